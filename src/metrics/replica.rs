//! Series of the replica as a whole: leases, claims, takeovers, the store, clocks.
//!
//! Must never: have a label whose values anybody but this file decides.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use crate::scheduler::lease::{Cause, Outcome};

/// Names and values of labels.
pub(super) type Labels<const N: usize> = [(&'static str, &'static str); N];

type Counters<const N: usize> = Family<Labels<N>, Counter>;

/// From a few milliseconds, which is usual, to an hour, which is a catch-up.
const LATENCIES: [f64; 14] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 600.0, 3600.0,
];

/// A takeover takes a TTL and its margin: 15 s by default, and a second at least.
const TAKEOVERS: [f64; 11] = [
    1.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 60.0, 120.0, 300.0, 900.0,
];

/// A call takes a round trip; after a second it has failed.
const CALLS: [f64; 12] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0,
];

/// Calls to the store.
pub(super) const OPERATIONS: [&str; 6] =
    ["register", "claim", "renew", "release", "observe", "sweep"];

/// What becomes of a claim.
pub(super) const CLAIMS: [&str; 5] = ["won", "lost", "refused", "put_off", "failed"];

/// What becomes of a renewal.
pub(super) const RENEWALS: [&str; 3] = ["renewed", "lost", "failed"];

/// Why a lease is lost.
pub(super) const LOSSES: [&str; 4] = ["expiring", "taken", "superseded", "unreleased"];

/// Why an occurrence never started.
const NOT_STARTED: [(Outcome, Cause); 11] = [
    (Outcome::Skipped, Cause::Overlap),
    (Outcome::Skipped, Cause::QueueFull),
    (Outcome::Skipped, Cause::Replaced),
    (Outcome::Skipped, Cause::Paused),
    (Outcome::Skipped, Cause::Disabled),
    (Outcome::Skipped, Cause::Placement),
    (Outcome::Skipped, Cause::After),
    (Outcome::Missed, Cause::Deadline),
    (Outcome::Missed, Cause::CatchUp),
    (Outcome::Missed, Cause::ScheduleChanged),
    (Outcome::Missed, Cause::Unknown),
];

/// All series that are not of one job.
pub(super) struct Replica {
    not_started: Counters<2>,
    pub(super) start_latency: Histogram,
    pub(super) running: Gauge,
    pub(super) max_running: Gauge,
    pub(super) leases: Gauge,
    losses: Counters<1>,
    renewals: Counters<1>,
    takeovers: Counters<1>,
    pub(super) takeover_duration: Histogram,
    claims: Counters<1>,
    pub(super) store_up: Gauge,
    calls: Family<Labels<1>, Histogram>,
    errors: Counters<1>,
    skew: Gauge<f64, AtomicU64>,
    /// The same, for those who need the store's time.
    skew_ms: AtomicI64,
    pub(super) drift: Gauge,
    notifications: Counters<2>,
    /// Spans of traces, by what became of them.
    #[cfg(feature = "otlp")]
    pub(super) spans: Counters<1>,
}

impl std::fmt::Debug for Replica {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replica").finish_non_exhaustive()
    }
}

impl Replica {
    /// All of them at their beginning, in a registry: what is not there yet can't be seen to rise.
    pub(super) fn registered(registry: &mut Registry) -> Self {
        let replica = Self {
            not_started: Counters::default(),
            start_latency: Histogram::new(LATENCIES),
            running: Gauge::default(),
            max_running: Gauge::default(),
            leases: Gauge::default(),
            losses: Counters::default(),
            renewals: Counters::default(),
            takeovers: Counters::default(),
            takeover_duration: Histogram::new(TAKEOVERS),
            claims: Counters::default(),
            store_up: Gauge::default(),
            calls: Family::new_with_constructor(|| Histogram::new(CALLS)),
            errors: Counters::default(),
            skew: Gauge::default(),
            skew_ms: AtomicI64::new(0),
            drift: Gauge::default(),
            notifications: Counters::default(),
            #[cfg(feature = "otlp")]
            spans: Counters::default(),
        };
        replica.begin();
        replica.register_work(registry);
        replica.register_leases(registry);
        replica.register_surroundings(registry);
        #[cfg(feature = "otlp")]
        replica.register_spans(registry);
        replica
    }

    fn begin(&self) {
        for (outcome, cause) in NOT_STARTED {
            self.not_started(outcome, Some(cause)).inc_by(0);
        }
        let each = |family: &Counters<1>, label, values: &[&'static str]| {
            for value in values {
                let _ = family.get_or_create(&[(label, *value)]);
            }
        };
        each(&self.losses, "reason", &LOSSES);
        each(&self.renewals, "result", &RENEWALS);
        each(&self.takeovers, "result", &["started", "closed"]);
        each(&self.claims, "result", &CLAIMS);
        each(&self.errors, "operation", &OPERATIONS);
        for operation in OPERATIONS {
            let _ = self.calls.get_or_create(&[("operation", operation)]);
        }
    }

    fn register_work(&self, registry: &mut Registry) {
        registry.register(
            "build",
            "The software that runs",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
        registry.register(
            "not_started",
            "Occurrences that this replica wrote down as skipped or missed, by the policy that decided",
            self.not_started.clone(),
        );
        registry.register_with_unit(
            "start_latency",
            "From the instant of an occurrence of the schedule and its random delay to its first attempt, by the store's clock",
            Unit::Seconds,
            self.start_latency.clone(),
        );
        registry.register(
            "attempts_running",
            "Attempts that run on this replica",
            self.running.clone(),
        );
        registry.register(
            "max_running",
            "Attempts that may run on this replica at once; 0 for no limit",
            self.max_running.clone(),
        );
        registry.register(
            "claims",
            "Claims to occurrences that the store answered: won, lost to another replica, refused by a policy, put off; or not answered: failed",
            self.claims.clone(),
        );
    }

    fn register_leases(&self, registry: &mut Registry) {
        registry.register(
            "leases_held",
            "Leases that this replica holds",
            self.leases.clone(),
        );
        registry.register(
            "leases_lost",
            "Leases lost: an attempt was stopped as its lease was expiring, or taken by another replica; or its end could not be written down, as the lease was superseded or the store was away until it ran out (unreleased)",
            self.losses.clone(),
        );
        registry.register(
            "lease_renewals",
            "Renewals of leases; failed are those without an answer",
            self.renewals.clone(),
        );
        registry.register(
            "takeovers",
            "Leases of vanished holders that this replica took: the next attempt was started, or the occurrence closed as lost",
            self.takeovers.clone(),
        );
        registry.register_with_unit(
            "takeover_duration",
            "From the last sign of life of the former holder, the renewal of its lease, to the grant of the next attempt, by the store's clock",
            Unit::Seconds,
            self.takeover_duration.clone(),
        );
    }

    fn register_surroundings(&self, registry: &mut Registry) {
        registry.register(
            "store_up",
            "Whether the store answered the last call",
            self.store_up.clone(),
        );
        registry.register_with_unit(
            "store_call_duration",
            "Calls to the store, from sending to the answer or the time-out",
            Unit::Seconds,
            self.calls.clone(),
        );
        registry.register(
            "store_call_errors",
            "Calls to the store without an answer",
            self.errors.clone(),
        );
        registry.register_with_unit(
            "clock_skew",
            "By how much this host's wall clock is ahead of the store's",
            Unit::Seconds,
            self.skew.clone(),
        );
        registry.register(
            "config_drift_jobs",
            "Jobs in which the table of this replica differs from the newest one among live replicas",
            self.drift.clone(),
        );
        registry.register(
            "notifications",
            "Notifications by this replica that were delivered, given up, or dropped for want of room",
            self.notifications.clone(),
        );
    }

    #[cfg(feature = "otlp")]
    fn register_spans(&self, registry: &mut Registry) {
        for result in ["exported", "dropped"] {
            let _ = self.spans.get_or_create(&[("result", result)]);
        }
        registry.register(
            "spans",
            "Spans of traces that were exported, or dropped as the collector was away or too slow",
            self.spans.clone(),
        );
    }

    /// How many notifications of a channel ended in that way so far.
    pub(super) fn notified(&self, channel: &'static str, result: &'static str, count: u64) {
        let labels = [("channel", channel), ("result", result)];
        let counter = self.notifications.get_or_create_owned(&labels);
        counter.inner().store(count, Ordering::Relaxed);
    }

    pub(super) fn not_started(&self, outcome: Outcome, cause: Option<Cause>) -> Counter {
        let reason = cause.map_or("other", Cause::as_str);
        let labels = [("outcome", outcome.as_str()), ("reason", reason)];
        self.not_started.get_or_create_owned(&labels)
    }

    pub(super) fn lost(&self, reason: &'static str) {
        debug_assert!(LOSSES.contains(&reason));
        self.losses.get_or_create(&[("reason", reason)]).inc();
    }

    pub(super) fn renewal(&self, result: &'static str) {
        debug_assert!(RENEWALS.contains(&result));
        self.renewals.get_or_create(&[("result", result)]).inc();
    }

    pub(super) fn takeover(&self, result: &'static str) {
        self.takeovers.get_or_create(&[("result", result)]).inc();
    }

    pub(super) fn claim(&self, result: &'static str) {
        debug_assert!(CLAIMS.contains(&result));
        self.claims.get_or_create(&[("result", result)]).inc();
    }

    /// A call came back after so long; none for one whose time is not known.
    pub(super) fn call(&self, operation: &'static str, seconds: Option<f64>, answered: bool) {
        debug_assert!(OPERATIONS.contains(&operation));
        let labels = [("operation", operation)];
        if let Some(seconds) = seconds {
            self.calls.get_or_create(&labels).observe(seconds);
        }
        if !answered {
            self.errors.get_or_create(&labels).inc();
        }
        self.store_up.set(i64::from(answered));
    }

    pub(super) fn set_skew(&self, ahead_ms: i64) {
        self.skew.set(ahead_ms as f64 / 1e3);
        self.skew_ms.store(ahead_ms, Ordering::Relaxed);
    }

    pub(super) fn skew_ms(&self) -> i64 {
        self.skew_ms.load(Ordering::Relaxed)
    }
}
