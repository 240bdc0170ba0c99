//! What in a job contradicts what else is in it.
//!
//! Must never: say how to mend it; that depends on how the job is written.

use std::time::Duration;

use crate::scheduler::policy::{CatchUp, Concurrency, Retry};
use crate::scheduler::schedule::Schedule;
use crate::scheduler::time::{Timestamp, format_duration};

/// How many occurrences to come are looked at for the shortest gap.
const GAPS_SEEN: usize = 100;

/// What an attempt is told of that it can't reach, if it is so.
pub(crate) fn warns_too_late(warn_after: Option<Duration>, timeout: Option<Duration>) -> bool {
    warn_after
        .zip(timeout)
        .is_some_and(|(warn, timeout)| warn >= timeout)
}

/// What is said of it.
pub(crate) const WARNS_TOO_LATE: &str =
    "`warn_after` is not below `timeout`: no attempt runs for so long";

/// Whether each of those that are caught up with would end the one before it.
pub(crate) fn replaces_all(catch_up: CatchUp, concurrency: Concurrency) -> bool {
    matches!(catch_up, CatchUp::All { .. }) && concurrency == Concurrency::Replace
}

/// Whether the first wait after a failure would be longer than the longest.
pub(crate) fn waits_too_long(retry: &Retry) -> bool {
    retry.backoff > retry.max_backoff
}

/// What is said of a policy whose retries are more than there can be.
pub(crate) fn retries_never_happen(retry: &Retry, max_attempts: u32) -> Option<String> {
    // No attempt at all is an error of its own.
    (max_attempts > 0 && retry.max > 0 && retry.max >= max_attempts).then(|| {
        format!(
            "{} retries never happen: `max_attempts` is {max_attempts}, the first attempt included",
            retry.max
        )
    })
}

/// A delay that can carry an occurrence past the next one.
pub(crate) struct OrderLost {
    /// What is said of it.
    pub(crate) message: String,
    /// The shortest time between occurrences to come.
    pub(crate) gap: Duration,
    /// Not by a change of clocks alone.
    pub(crate) is_lasting: bool,
}

/// Whether a random delay can carry an occurrence past the next one.
pub(crate) fn order_lost(
    now: Timestamp,
    schedule: &Schedule,
    delay: Duration,
) -> Option<OrderLost> {
    if delay.is_zero() {
        return None;
    }
    let gaps = Gaps::after(now, schedule);
    let gap = gaps.shortest.filter(|gap| delay >= *gap)?;
    let (delay_shown, gap_shown) = (format_duration(delay), format_duration(gap));
    Some(OrderLost {
        message: format!(
            "`random_delay` is {delay_shown}, and occurrences come as close as {gap_shown}"
        ),
        gap,
        is_lasting: gaps.shortest_steady.is_some_and(|gap| delay >= gap),
    })
}

/// The shortest times between occurrences to come.
struct Gaps {
    shortest: Option<Duration>,
    /// Of those in which the clocks don't change.
    shortest_steady: Option<Duration>,
}

impl Gaps {
    fn after(now: Timestamp, schedule: &Schedule) -> Self {
        let next = |at: &Timestamp| schedule.next_after(*at);
        let occurrences: Vec<_> = std::iter::successors(schedule.next_after(now), next)
            .take(GAPS_SEEN)
            .collect();
        let offset = |at: Timestamp| schedule.zone().to_offset(at.to_jiff());
        let pairs = || occurrences.windows(2).map(|pair| (pair[0], pair[1]));
        let gap = |(one, next): (Timestamp, Timestamp)| next.saturating_since(one);
        Self {
            shortest: pairs().map(gap).min(),
            shortest_steady: pairs()
                .filter(|(one, next)| offset(*one) == offset(*next))
                .map(gap)
                .min(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_are_said_to_never_happen_where_attempts_are_too_few_and_not_where_there_are_none() {
        let three = Retry {
            max: 3,
            ..Retry::default()
        };
        for (most, told) in [(0, false), (1, true), (3, true), (4, false)] {
            assert_eq!(retries_never_happen(&three, most).is_some(), told, "{most}");
        }
        assert_eq!(retries_never_happen(&Retry::default(), 1), None);
    }
}
