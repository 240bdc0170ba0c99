//! How long a replica takes to stop, at most: what whoever stops it has to wait before it kills.
//!
//! ```text
//!  TERM ─ shutdown_grace ─ TERM to jobs ─ kill_grace ─ KILL ─ AFTER_JOBS ─ the process ends
//! ```
//!
//! Units, the chart, the Compose file and the manual name the sum of the three; the tests below
//! hold them to it. A store that is away adds to it, as leases then run out rather than being
//! given back; to kill a replica that waits for that costs nothing.
//!
//! Must never: be guessed at elsewhere.

use std::time::Duration;

use super::service_manager;
use crate::config::Config;
use crate::driver;
use crate::http;

/// What a drain may take when no grace of jobs is left: the sum of what follows, rounded up.
pub(super) const AFTER_JOBS: Duration = Duration::from_secs(15);

/// Until processes that were killed are gone, and their ends are known.
const LAST_ENDS: Duration = Duration::from_secs(1);

/// How long a replica that has drained goes on to notify people: short enough for whoever stops
/// it to wait for, as other replicas go on where it ends.
pub(super) const LAST_NOTIFICATIONS: Duration = Duration::from_secs(5);

#[cfg(feature = "otlp")]
const LAST_SPANS: Duration = crate::traces::LAST_PATIENCE;
#[cfg(not(feature = "otlp"))]
const LAST_SPANS: Duration = Duration::ZERO;

// A call is on its way; then leases are given back; then the replica signs off.
const _: () = assert!(
    LAST_ENDS.as_millis()
        + 3 * driver::CALL_TIMEOUT.as_millis()
        + LAST_SPANS.as_millis()
        + LAST_NOTIFICATIONS.as_millis()
        + http::LAST_ANSWERS.as_millis()
        + service_manager::LAST_WORDS.as_millis()
        <= AFTER_JOBS.as_millis()
);

/// The longest that a replica with this table takes to stop.
pub(super) fn longest(config: &Config) -> Duration {
    let graces = config.jobs.iter().map(|job| job.kill_grace);
    config.scheduler.shutdown_grace + graces.max().unwrap_or_default() + AFTER_JOBS
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::config;

    fn read(path: &str) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Of a table, in seconds.
    fn seconds_of(text: &str) -> u64 {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("jobs.toml");
        fs::write(&path, text).expect("written");
        longest(&config::load(&path).expect("a table")).as_secs()
    }

    /// The numbers that a text has after what it is looked through for.
    fn named(text: &str, before: &str) -> Vec<u64> {
        let parts = text.split(before).skip(1);
        let digits = parts.map(|part| part.chars().take_while(char::is_ascii_digit));
        digits
            .filter_map(|digits| digits.collect::<String>().parse().ok())
            .collect()
    }

    const ONE: &str = "[jobs.a]\nschedule = \"@daily\"\ncommand = [\"true\"]\n";

    #[test]
    fn the_longest_kill_grace_counts() {
        let usual = seconds_of(ONE);
        assert_eq!(usual, 30 + 5 + 15);
        let two = format!(
            "{ONE}kill_grace = \"1s\"\n{}",
            ONE.replace("jobs.a", "jobs.b")
        );
        assert_eq!(seconds_of(&two), usual);
        let longer = format!("{ONE}kill_grace = \"1m\"\n");
        assert_eq!(seconds_of(&longer), usual + 55);
        let graceful = format!("[scheduler]\nshutdown_grace = \"2m\"\n{ONE}");
        assert_eq!(seconds_of(&graceful), usual + 90);
    }

    #[test]
    fn whoever_stops_a_replica_waits_as_long_as_it_takes() {
        let usual = seconds_of(ONE);
        for (file, before) in [
            ("deploy/systemd/soloist.service", "\nTimeoutStopSec="),
            ("deploy/systemd/soloist-root.service", "\nTimeoutStopSec="),
            (
                "deploy/kubernetes/deployment.yaml",
                "terminationGracePeriodSeconds: ",
            ),
            ("docs/docker.md", "--stop-timeout "),
            ("docs/docker.md", "stop_grace_period: "),
        ] {
            let named = named(&read(file), before);
            let all = !named.is_empty() && named.iter().all(|seconds| *seconds == usual);
            assert!(all, "{file}: {before}{named:?} is not {usual}");
        }
        let compose = read("deploy/docker/compose.yaml");
        let of_compose = seconds_of(&read("deploy/docker/config/jobs.toml"));
        assert_eq!(named(&compose, "\n    stop_grace_period: "), [of_compose]);
    }

    #[test]
    fn the_chart_and_the_manual_add_what_comes_after_the_jobs() {
        let after = AFTER_JOBS.as_secs();
        for (file, before) in [
            ("deploy/helm/soloist/values.yaml", "\nstopMarginSeconds: "),
            ("docs/operating.md", "the longest `kill_grace` + "),
            ("docs/systemd.md", "the longest `kill_grace` + "),
        ] {
            assert_eq!(named(&read(file), before), [after], "{file}: {before}");
        }
    }
}
