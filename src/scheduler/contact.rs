//! Whether the store is there, and what time it is at it: what every answer tells beside itself.
//!
//! Must never: fill the log with an outage. What keeps the store away is told once, and again only
//! where it has become something else. Nor with a clock that stands still. Nor keep an outage that
//! lasts to itself, however soon it came after another: readiness goes by what is told.

use std::time::Duration;

use super::lease::{Answered, Scope};
use super::store_clock::ClockJump;
use super::time::BootTime;
use super::{CallResult, Notice, Scheduler};

/// How long after people were told why the store is away another reason is told. Short outages
/// come with several: a connection that breaks, one that is refused, a server that loads.
const OTHER_REASON_TOLD_AFTER: Duration = Duration::from_secs(5);

/// How long after an outage was told another one for the same reason is. A record that nobody here
/// can read fails every call that touches it, and no other.
const SAME_REASON_TOLD_AFTER: Duration = Duration::from_secs(60);

/// How long an outage lasts, with no call that succeeded, before it is told also where another one
/// for the same reason was told a moment ago. Each sixth of a lease something is asked that no
/// unreadable record keeps from its answer: with those of 30 s and less it makes no such outage.
const LASTS_FROM: Duration = Duration::from_secs(5);

/// How long after a jump of a clock was told another one the same way is. After a step back the
/// store's time stands still for up to a minute, and each answer shows that anew.
const SAME_JUMP_TOLD_AFTER: Duration = Duration::from_secs(60);

/// How it stands between this replica and its store.
#[derive(Debug, Default)]
pub(super) struct Contact {
    away_since: Option<BootTime>,
    /// Of this outage people were told.
    is_told: bool,
    /// Why the store was away, as people were told last, and when.
    told: Option<(String, BootTime)>,
    /// When a jump of a clock was told last, and whether it was forward.
    jump_told: Option<(BootTime, bool)>,
}

impl Contact {
    /// A call failed; answers whether people are to be told why.
    fn failed(&mut self, cause: &str, now: BootTime) -> bool {
        let since = *self.away_since.get_or_insert(now);
        let tell = match &self.told {
            Some((told, at)) if told == cause => {
                let lasts = now >= since + LASTS_FROM;
                !self.is_told && (lasts || now >= *at + SAME_REASON_TOLD_AFTER)
            }
            Some((_, at)) => !self.is_told || now >= *at + OTHER_REASON_TOLD_AFTER,
            None => true,
        };
        if tell {
            self.is_told = true;
            self.told = Some((cause.to_owned(), now));
        }
        tell
    }

    /// A call succeeded; answers since when none did, if so, and whether people were told.
    fn heard(&mut self) -> Option<(BootTime, bool)> {
        let is_told = std::mem::take(&mut self.is_told);
        self.away_since.take().map(|since| (since, is_told))
    }

    /// A clock jumped; answers whether people are to be told.
    fn jumped(&mut self, jump: ClockJump, now: BootTime) -> bool {
        let forward = jump.millis > 0;
        let known =
            |(at, way): &(BootTime, bool)| *way == forward && now < *at + SAME_JUMP_TOLD_AFTER;
        let tell = !self.jump_told.as_ref().is_some_and(known);
        if tell {
            self.jump_told = Some((now, forward));
        }
        tell
    }
}

impl Scheduler {
    /// Takes note of how a call went: what time it is at the store, and whether it is there.
    pub(super) fn heard<T>(
        &mut self,
        sent: BootTime,
        now: BootTime,
        result: CallResult<T>,
    ) -> Option<Answered<T>> {
        match result {
            Err(cause) => {
                self.watch.failed();
                if self.contact.failed(&cause, now) {
                    self.report(Notice::StoreAway { cause });
                }
                None
            }
            Ok(answered) => {
                self.watch.heard(now);
                if let Some((since, is_told)) = self.contact.heard() {
                    let after = now.saturating_since(since);
                    self.upkeep.was_away(after);
                    if is_told {
                        self.report(Notice::StoreBack { after });
                    }
                    self.watch.look_now(Scope::All, now);
                }
                if let Some(jump) = self.clock.learn(sent, now, answered.now) {
                    if self.contact.jumped(jump, now) {
                        self.report(Notice::ClockJumped(jump));
                    }
                    self.upkeep.disturbed();
                    self.drift.disturbed(now);
                    self.jumped |= jump.millis > 0;
                    self.watch.look_now(Scope::All, now);
                }
                Some(answered)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> BootTime {
        BootTime::since_boot(Duration::from_secs(seconds))
    }

    #[test]
    fn why_the_store_is_away_is_told_once_and_again_where_it_became_something_else() {
        let mut contact = Contact::default();
        assert!(contact.failed("closed", at(0)));
        assert!(!contact.failed("closed", at(90)));
        assert!(contact.failed("of another layout", at(91)));
        assert!(!contact.failed("closed", at(92)), "a moment ago");
        assert!(!contact.failed("of another layout", at(200)));
        assert!(contact.failed("closed", at(201)));
        assert_eq!(contact.heard(), Some((at(0), true)));
        assert_eq!(contact.heard(), None);
    }

    #[test]
    fn an_outage_that_comes_and_goes_for_one_reason_is_told_now_and_then() {
        let mut contact = Contact::default();
        let mut told = 0;
        for second in 0..121 {
            told += usize::from(contact.failed("a record of another form", at(second)));
            contact.heard();
        }
        assert_eq!(told, 3);
        assert!(contact.failed("closed", at(121)), "another reason");
    }

    #[test]
    fn an_outage_soon_after_another_is_told_once_it_lasts() {
        let mut contact = Contact::default();
        assert!(contact.failed("closed", at(0)));
        assert_eq!(contact.heard(), Some((at(0), true)));
        let told = (10..30).filter(|second| contact.failed("closed", at(*second)));
        assert_eq!(told.collect::<Vec<u64>>(), [15]);
        assert_eq!(contact.heard(), Some((at(10), true)), "and that it is over");
    }

    #[test]
    fn a_clock_that_stands_still_is_told_once_and_its_way_back_too() {
        let mut contact = Contact::default();
        let back = ClockJump { millis: -1_000 };
        let told = (0..60).filter(|second| contact.jumped(back, at(*second)));
        assert_eq!(told.count(), 1);
        assert!(contact.jumped(ClockJump { millis: 30_000 }, at(60)));
        assert!(contact.jumped(back, at(61)), "the other way");
        assert!(contact.jumped(back, at(121)), "long ago");
    }
}
