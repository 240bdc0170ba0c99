//! What each key of a job may be, and what it is where nobody says.
//!
//! Must never: differ between jobs.toml and the library.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::scheduler::margins::{LONGEST_TTL, SHORTEST_TTL};
use crate::scheduler::policy::CatchUp;
use crate::scheduler::time::format_duration;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: u64 = 86_400;

/// The longest duration that a table may hold. Beyond it lies a slip of the pen.
pub(crate) const DURATION_LIMIT: Duration = Duration::from_secs(10 * 365 * DAY);

/// What a lease may last.
pub(crate) const LEASE_TTLS: RangeInclusive<Duration> = SHORTEST_TTL..=LONGEST_TTL;

/// How long a lease lasts where nobody says: a crash is noticed soon, and a renewal may be 7 s
/// late.
pub(crate) const LEASE_TTL: Duration = Duration::from_secs(15);

/// How many attempts the ledger may keep of one job.
pub(crate) const HISTORY_LIMITS: RangeInclusive<u32> = 1..=1_000_000;
pub(crate) const HISTORY_LIMIT: u32 = 1000;

/// How old the kept attempts may get. Below a minute nobody could look at them.
pub(crate) const HISTORY_AGES: RangeInclusive<Duration> = MINUTE..=DURATION_LIMIT;
pub(crate) const HISTORY_AGE: Duration = Duration::from_secs(30 * DAY);

/// How long an attempt may run, if there is a limit.
pub(crate) const TIMEOUTS: RangeInclusive<Duration> = Duration::from_millis(1)..=DURATION_LIMIT;

/// From TERM to KILL; none at all is a way to say KILL at once.
pub(crate) const KILL_GRACES: RangeInclusive<Duration> = Duration::ZERO..=HOUR;
pub(crate) const KILL_GRACE: Duration = Duration::from_secs(5);

/// Attempts of one occurrence.
pub(crate) const ATTEMPTS: RangeInclusive<u32> = 1..=1000;
pub(crate) const MAX_ATTEMPTS: u32 = 10;

/// How many of the occurrences that nobody could claim may run one after the other.
pub(crate) const CATCH_UP_LIMITS: RangeInclusive<u32> = 1..=1000;

/// How many occurrences may wait for their turn.
pub(crate) const QUEUE_LIMITS: RangeInclusive<u32> = 1..=1000;

/// In how many parts an occurrence may run: each is a lease, an attempt and a line of the ledger.
pub(crate) const SHARDS: RangeInclusive<u32> = 1..=128;

/// How late an occurrence may be made to start: below a day.
pub(crate) const RANDOM_DELAYS: RangeInclusive<Duration> =
    Duration::ZERO..=Duration::from_secs(DAY - 1);

/// How late an occurrence may start. Below a second, a takeover or a slow store would lose
/// occurrences for nothing; above a year, a job would run for reasons nobody remembers.
pub(crate) const STARTING_DEADLINES: RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(366 * DAY);

/// How many failures may be followed by another attempt.
pub(crate) const RETRIES: RangeInclusive<u32> = 0..=1000;

/// How long a wait after a failure may be: beyond a week, an occurrence would come back unexpected.
pub(crate) const RETRY_WAITS: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(7 * DAY);

/// What a wait may be multiplied by: below 1, it would shrink.
pub(crate) const RETRY_FACTORS: RangeInclusive<f64> = 1.0..=100.0;

/// The longest `shutdown_grace`: a replica that drains takes no work.
pub(crate) const LONGEST_SHUTDOWN_GRACE: Duration = Duration::from_secs(DAY);

/// What running attempts get when a replica shuts down: as Kubernetes gives a pod.
pub(crate) const SHUTDOWN_GRACE: Duration = Duration::from_secs(30);

/// How many attempts a replica may run at once.
pub(crate) const RUNNING_LIMITS: RangeInclusive<u32> = 1..=100_000;

/// Of how many replicas of the store's server an acknowledgement can be asked for.
pub(crate) const ACKNOWLEDGEMENTS: RangeInclusive<u32> = 0..=20;

/// The largest revision: all readers of JSON know integers up to there.
pub(crate) const LARGEST_REVISION: u64 = (1 << 53) - 1;

/// How late an occurrence of a job may start that doesn't say.
pub(crate) fn default_starting_deadline(catch_up: CatchUp) -> Duration {
    match catch_up {
        CatchUp::All { .. } => Duration::from_secs(DAY),
        CatchUp::Latest | CatchUp::None => MINUTE,
    }
}

/// Why a duration is not within its limits, if it isn't.
pub(crate) fn check_duration(
    name: &str,
    value: Duration,
    limits: &RangeInclusive<Duration>,
) -> Result<(), String> {
    if value < *limits.start() {
        let least = format_duration(*limits.start());
        return Err(format!("`{name}` is at least {least}"));
    }
    if value > *limits.end() {
        let most = format_duration(*limits.end());
        return Err(format!("`{name}` is at most {most}"));
    }
    Ok(())
}

/// Why a number is not within its limits.
pub(crate) fn number_outside(name: &str, limits: &RangeInclusive<u32>) -> String {
    let (least, most) = (limits.start(), limits.end());
    format!("`{name}` is a number from {least} to {most}")
}
