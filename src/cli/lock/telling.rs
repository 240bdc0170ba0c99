//! What people are told while nothing seems to happen: who has what is waited for, and that the
//! store is away.
//!
//! Must never: tell the same twice in a row, or wait for whoever reads stderr.

use std::convert::Infallible;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use super::super::print_error;
use super::witness::{InTheWay, Seen};
use crate::clock::{Clock as _, SystemClock};
use crate::scheduler::lease::{Busy, LeaseName};
use crate::scheduler::time::{BootTime, short_duration};

/// What takes less than that is not worth a word.
const PATIENCE: Duration = Duration::from_secs(1);

/// Between two lines.
const INTERVAL: Duration = Duration::from_secs(5);

/// A store that is new grants nothing for the first second: what takes no longer than that is
/// nothing to be told.
const SHORT_GRACE: Duration = Duration::from_secs(2);

/// How many holders are named.
const NAMED_LIMIT: usize = 3;

/// What was told, without what may change each time.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Topic {
    /// All is well.
    Nothing,
    /// The store does not answer, or refuses.
    Away,
    /// Nothing is granted.
    Grace,
    /// These have it, or nobody, and others came first.
    Holders(Vec<String>),
}

/// Something to be told, and since when it is so.
struct News {
    since: BootTime,
    topic: Topic,
    text: String,
}

/// Tells people.
pub(super) struct Teller {
    quiet: bool,
    seen: watch::Receiver<Seen>,
    wanted: String,
    place: String,
    begun: BootTime,
    told: Topic,
    told_at: Option<BootTime>,
}

impl Teller {
    /// Tells of what is wanted at a place; nothing at all if it is to be quiet.
    pub(super) fn new(
        seen: watch::Receiver<Seen>,
        names: &[LeaseName],
        place: String,
        quiet: bool,
    ) -> Self {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        Self {
            quiet,
            seen,
            wanted: names.join(", "),
            place,
            begun: SystemClock.boot(),
            told: Topic::Nothing,
            told_at: None,
        }
    }

    /// The namespace and its store, for people.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// What the store has answered so far.
    pub(super) fn seen(&self) -> Seen {
        self.seen.borrow().clone()
    }

    /// Tells what is waited for, as long as it is polled. Cancel safe.
    pub(super) async fn while_waiting(&mut self) -> Infallible {
        self.tell(Self::of_waiting).await
    }

    /// Tells whether the store can be reached, as long as it is polled. Cancel safe.
    pub(super) async fn while_running(&mut self) -> Infallible {
        self.tell(Self::of_running).await
    }

    /// What was waited for is granted: there is nothing to tell.
    pub(super) fn granted(&mut self) {
        self.told = Topic::Nothing;
        self.told_at = None;
    }

    /// Tells something at once. Nobody waits for it to be read: a pipe that is full must keep no
    /// renewal from the command's guardian.
    pub(super) fn say(&self, text: &str) {
        if !self.quiet {
            let line = format!("note: {text}\n");
            tokio::task::spawn_blocking(move || print_error(&line));
        }
    }

    async fn tell(&mut self, news: impl Fn(&Self, &Seen) -> Option<News>) -> Infallible {
        loop {
            let seen = self.seen.borrow_and_update().clone();
            let rest = match news(self, &seen).filter(|news| news.topic != self.told) {
                Some(News { since, topic, text }) => {
                    let now = SystemClock.boot();
                    let again_at = self.told_at.map(|at| at + INTERVAL);
                    let at = again_at.unwrap_or_default().max(since + PATIENCE);
                    if at <= now {
                        self.say(&text);
                        (self.told, self.told_at) = (topic, Some(now));
                        continue;
                    }
                    Some(at.saturating_since(now))
                }
                None => None,
            };
            let rest = async {
                match rest {
                    Some(rest) => sleep(rest).await,
                    None => std::future::pending().await,
                }
            };
            let change = async {
                // Who is gone sees no more.
                if self.seen.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                () = rest => {}
                () = change => {}
            }
        }
    }

    fn of_waiting(&self, seen: &Seen) -> Option<News> {
        let Self { wanted, place, .. } = self;
        let news = |since, topic, why: &str| News {
            since,
            topic,
            text: format!("waiting for {wanted} in {place}: {why}"),
        };
        if let Some((since, why)) = &seen.away {
            return Some(news(*since, Topic::Away, why));
        }
        match &seen.in_the_way {
            Some(InTheWay::Others(busy)) => {
                let holders = Topic::Holders(holders(busy));
                Some(news(self.begun, holders, &of_others(busy)))
            }
            Some(InTheWay::Grace(wait)) if *wait >= SHORT_GRACE => {
                let wait = short_duration(*wait);
                let why = format!(
                    "nothing is granted for another {wait}, as the store is new, or lost data"
                );
                Some(news(self.begun, Topic::Grace, &why))
            }
            Some(InTheWay::Grace(_)) => None,
            None if seen.answered_at.is_none() => Some(news(
                self.begun,
                Topic::Away,
                "the store does not answer yet",
            )),
            None => None,
        }
    }

    fn of_running(&self, seen: &Seen) -> Option<News> {
        match &seen.away {
            Some((since, why)) => Some(News {
                since: *since,
                topic: Topic::Away,
                text: format!(
                    "{why}; the command goes on, and is ended before the lease of {} runs out",
                    self.wanted
                ),
            }),
            None => Some(News {
                since: BootTime::default(),
                topic: Topic::Nothing,
                text: format!(
                    "the store answers again: the lease of {} is kept",
                    self.wanted
                ),
            }),
        }
    }
}

/// Who has it, each once.
fn holders(busy: &Busy) -> Vec<String> {
    let mut holders: Vec<String> = busy.held.iter().map(|held| held.by.clone()).collect();
    holders.sort();
    holders.dedup();
    holders
}

/// Who has what, and how many came first.
fn of_others(busy: &Busy) -> String {
    let mut parts: Vec<String> = busy
        .held
        .iter()
        .take(NAMED_LIMIT)
        .map(|held| format!("`{}` is {}'s", held.name, held.by))
        .collect();
    let more = busy.held.len().saturating_sub(NAMED_LIMIT);
    if more > 0 {
        parts.push(format!("{more} more hold one of them"));
    }
    match busy.ahead {
        0 => {}
        1 => parts.push("another one came first".to_owned()),
        ahead => parts.push(format!("{ahead} others came first")),
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::scheduler::lease::{FencingToken, HeldName, Sighting};
    use crate::scheduler::time::Timestamp;

    fn busy(held: usize, ahead: usize) -> Busy {
        let one = |by: usize| HeldName {
            name: LeaseName::new("a").unwrap(),
            hold: Uuid::nil(),
            sighting: Sighting {
                token: FencingToken::default(),
                deadline: Timestamp::default(),
            },
            ttl: Duration::from_secs(1),
            by: format!("h:{by}"),
        };
        Busy {
            held: (0..held).map(one).collect(),
            ahead,
            ahead_until: None,
        }
    }

    #[test]
    fn however_many_have_it_the_line_stays_short() {
        for (held, ahead, told) in [
            (1, 0, "`a` is h:0's"),
            (0, 1, "another one came first"),
            (1, 7, "`a` is h:0's, 7 others came first"),
            (
                40,
                0,
                "`a` is h:0's, `a` is h:1's, `a` is h:2's, 37 more hold one of them",
            ),
        ] {
            assert_eq!(of_others(&busy(held, ahead)), told);
        }
    }
}
