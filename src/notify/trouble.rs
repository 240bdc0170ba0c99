//! Why somebody could not be told, and whether it is tried again.
//!
//! Must never: name an address beyond its host, or a secret.

use std::time::Duration;

use crate::scheduler::time::BootTime;

/// How long a notification is tried before it is given up.
pub(super) const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// The wait after the first failure; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// The longest wait, where the receiver asks for no longer one.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Why somebody could not be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    /// In words: place, cause, cure.
    pub(super) cause: String,
    pub(super) again: Again,
}

/// Whether it is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// It would fail just so.
    No,
    /// After a while.
    Yes,
    /// Not before so long.
    After(Duration),
}

impl Trouble {
    pub(super) fn lasting(cause: impl Into<String>) -> Self {
        Self {
            cause: cause.into(),
            again: Again::No,
        }
    }

    pub(super) fn passing(cause: impl Into<String>) -> Self {
        Self {
            cause: cause.into(),
            again: Again::Yes,
        }
    }

    /// How long to wait after so many failures, a random number in hand; none where that is of no
    /// use, or there is not so much time left.
    pub(super) fn wait(&self, failures: u32, dice: u8, left: Duration) -> Option<Duration> {
        let wait = match self.again {
            Again::No => return None,
            Again::After(wait) => wait.max(FIRST_WAIT),
            Again::Yes => {
                let doubled = FIRST_WAIT * 2_u32.saturating_pow(failures.min(10));
                // From half of it to all of it, so that replicas don't come together.
                let part = 0.5 + f64::from(dice) / 512.0;
                doubled.min(LONGEST_WAIT).mul_f64(part)
            }
        };
        (wait < left).then_some(wait)
    }
}

/// From one line of the log that something was given up to the next for the same reason.
const TOLD_AGAIN_AFTER: Duration = Duration::from_secs(600);

/// Reasons that are logged for one receiver in that time: a server may word each refusal anew.
const REASONS_TOLD: usize = 8;

/// Why something was given up of late, and when that was logged.
#[derive(Debug, Default)]
pub(super) struct Reasons(Vec<(String, BootTime)>);

impl Reasons {
    /// Whether it is time to log this one.
    pub(super) fn is_new(&mut self, why: &str, now: BootTime) -> bool {
        self.0
            .retain(|(_, at)| now.saturating_since(*at) < TOLD_AGAIN_AFTER);
        let is_new = self.0.len() < REASONS_TOLD && self.0.iter().all(|(told, _)| told != why);
        if is_new {
            self.0.push((why.to_owned(), now));
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_reason_is_logged_once_in_ten_minutes_also_where_it_takes_turns_with_others() {
        let mut reasons = Reasons::default();
        let mut logged = 0;
        for second in 0..1200 {
            let now = BootTime::since_boot(Duration::from_secs(second));
            let why = ["answered 400", "answered 404"][usize::from(second % 2 == 1)];
            logged += usize::from(reasons.is_new(why, now));
        }
        assert_eq!(logged, 4);
        let now = BootTime::since_boot(Duration::from_secs(5000));
        let all = (0..1000).filter(|id| reasons.is_new(&format!("refused, {id}"), now));
        assert_eq!(all.count(), REASONS_TOLD);
    }

    #[test]
    fn waits_grow_to_a_minute_and_end_with_the_patience() {
        let trouble = Trouble::passing("away");
        let wait = |failures, dice| trouble.wait(failures, dice, PATIENCE).unwrap();
        assert_eq!(wait(0, 0), FIRST_WAIT / 2);
        assert!(wait(0, 255) < FIRST_WAIT);
        assert_eq!(wait(3, 0), FIRST_WAIT * 4);
        assert_eq!(wait(1000, 0), LONGEST_WAIT / 2);
        assert_eq!(trouble.wait(9, 0, LONGEST_WAIT / 2), None);
        assert_eq!(Trouble::lasting("no").wait(0, 0, PATIENCE), None);
    }

    #[test]
    fn who_asks_for_a_wait_gets_it_if_there_is_so_much_time() {
        let trouble = |secs| Trouble {
            cause: "busy".into(),
            again: Again::After(Duration::from_secs(secs)),
        };
        let minutes = Duration::from_secs(120);
        assert_eq!(trouble(120).wait(0, 0, PATIENCE), Some(minutes));
        assert_eq!(trouble(0).wait(0, 0, PATIENCE), Some(FIRST_WAIT));
        assert_eq!(trouble(3600).wait(0, 0, PATIENCE), None);
    }
}
