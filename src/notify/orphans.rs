//! News whose teller vanished, and that name targets which this replica's table has not.
//!
//! Another replica may have them, as tables differ while a new one is rolled out. It takes such
//! news over as soon as it sees them; whoever has not waits for that, and gives them up where
//! nobody came, so that they end in a log and in no job's way.
//!
//! Must never: keep news from a replica that can tell them.

use std::collections::HashMap;
use std::time::Duration;

use crate::scheduler::lease::{RunId, TELLING_TTL, Topic, Untold};
use crate::scheduler::time::BootTime;

/// For how long somebody else may take them: several looks of each replica.
const OTHERS_FIRST: Duration = TELLING_TTL.saturating_mul(2);

/// See the module: when each was seen first.
#[derive(Debug, Default)]
pub(super) struct Orphans(HashMap<(RunId, Topic), BootTime>);

impl Orphans {
    /// Keeps those alone that are still nobody's.
    pub(super) fn retain(&mut self, untold: &[Untold]) {
        if !self.0.is_empty() {
            let is_there = |by, topic| {
                let mut all = untold.iter();
                all.any(|one| one.by == by && one.told.topic == topic)
            };
            self.0.retain(|(by, topic), _| is_there(*by, *topic));
        }
    }

    /// Whether others had the time to take them.
    pub(super) fn is_nobodys(&mut self, untold: &Untold, now: BootTime) -> bool {
        let key = (untold.by, untold.told.topic);
        let first = *self.0.entry(key).or_insert(now);
        now.saturating_since(first) >= OTHERS_FIRST
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::job::JobName;
    use crate::scheduler::lease::{Occurrence, Outcome, Told};
    use crate::scheduler::time::Timestamp;

    #[test]
    fn whoever_lacks_a_target_leaves_news_to_others_for_a_while_and_gives_them_up_then() {
        let at = Timestamp::from_second(0);
        let untold = Untold {
            occurrence: Occurrence {
                job: JobName::new("report").unwrap(),
                scheduled_at: at,
            },
            by: RunId::new(uuid::Uuid::nil()),
            outcome: Outcome::Failed,
            told: Told {
                topic: Topic::Failure,
                since: at,
                count: 1,
            },
            to: vec!["gone".to_owned()],
            due: at,
        };
        let mut orphans = Orphans::default();
        let now = |seconds| BootTime::since_boot(Duration::from_secs(seconds));
        assert!(!orphans.is_nobodys(&untold, now(100)));
        assert!(!orphans.is_nobodys(&untold, now(129)));
        assert!(orphans.is_nobodys(&untold, now(130)));
        // Somebody takes them, and vanishes too.
        orphans.retain(&[]);
        assert!(!orphans.is_nobodys(&untold, now(131)));
        orphans.retain(std::slice::from_ref(&untold));
        assert!(orphans.is_nobodys(&untold, now(161)));
    }
}
