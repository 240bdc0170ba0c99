//! The arithmetic of a lease: how often it is renewed, how long it may be trusted, and how much
//! of it is kept back so that a job is dead before anybody else may start it.
//!
//! ```text
//!  sent                                              trust_until       deadline at the store
//!   │ renewals, T/6 apart            TERM at           │ KILL was due     │ others may take over
//!   ├────┬────┬────┬────┬─ … ─────────┤◀─ stop grace ─▶│◀──── margin ────▶│◀─ watch delay ─▶
//! ```
//!
//! Time counts from *before* a request was sent, on a clock that counts suspended time.
//!
//! Must never: be loosened for a job's convenience; everything about "no two copies" is here.

use std::time::Duration;

use super::time::BootTime;

/// The shortest lease: below it, the time-outs of calls would be shorter than a busy network's
/// delays.
pub const SHORTEST_TTL: Duration = Duration::from_secs(1);

/// The longest lease: a crash goes unnoticed for that long.
pub const LONGEST_TTL: Duration = Duration::from_secs(3600);

/// How far two hosts' clocks may drift apart within one lease, in per cent: a hundred times
/// what a crystal does.
const DRIFT_PERCENT: u32 = 1;

/// The margins of a lease of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Margins {
    ttl: Duration,
}

impl Margins {
    /// The margins of leases that last `ttl`.
    ///
    /// # Panics
    /// When `ttl` is not within [`SHORTEST_TTL`] and [`LONGEST_TTL`]; the config is checked.
    pub fn of(ttl: Duration) -> Self {
        assert!(
            (SHORTEST_TTL..=LONGEST_TTL).contains(&ttl),
            "lease_ttl is checked at load"
        );
        Self { ttl }
    }

    /// From one renewal to the next: three may fail before the job has to stop.
    pub fn renewal_interval(self) -> Duration {
        self.ttl / 6
    }

    /// How long a call to the store may take.
    pub fn call_timeout(self) -> Duration {
        self.tenth()
    }

    /// How long after its deadline a lease is left alone by those who watch it. The holder's
    /// job was dead a kill margin before the deadline, and a watcher's idea of the store's
    /// clock is never ahead, so this is slack on top of both.
    pub fn watch_delay(self) -> Duration {
        (self.ttl / 20).min(Duration::from_millis(250))
    }

    /// How long after a failed renewal it is tried again.
    pub fn renewal_retry(self) -> Duration {
        self.ttl / 30
    }

    /// From TERM to KILL when the lease is being lost: what the job asks for, cut to what
    /// three failed renewals leave of the lease, and to a third of it.
    pub fn stop_grace(self, kill_grace: Duration) -> Duration {
        let trusted = self
            .trust_until(BootTime::default(), self.ttl)
            .as_duration();
        let failing = self.renewal_interval() * 3 + self.call_timeout();
        kill_grace
            .min(trusted.saturating_sub(failing))
            .min(self.ttl / 3)
    }

    /// Until when a lease may be trusted of which `remaining` was left at some instant after
    /// `sent`. KILL must have been sent by then.
    pub fn trust_until(self, sent: BootTime, remaining: Duration) -> BootTime {
        let drift = remaining / 100 * DRIFT_PERCENT;
        sent + remaining
            .saturating_sub(drift)
            .saturating_sub(self.kill_margin())
    }

    /// What is kept back for KILL to take effect.
    pub fn kill_margin(self) -> Duration {
        if mutant!(NoKillMargin) {
            return Duration::ZERO;
        }
        self.tenth()
    }

    fn tenth(self) -> Duration {
        (self.ttl / 10).min(Duration::from_secs(1))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn three_renewals_may_fail_and_the_job_still_stops_in_time_for_every_ttl() {
        for millis in (1000..=3_600_000).step_by(500) {
            let ttl = Duration::from_millis(millis);
            let margins = Margins::of(ttl);
            let trusted = margins.trust_until(BootTime::default(), ttl).as_duration();
            let needed = margins.renewal_interval() * 3
                + margins.call_timeout()
                + margins.stop_grace(Duration::MAX);
            assert!(trusted >= needed, "{ttl:?}: {trusted:?} < {needed:?}");
            assert!(margins.stop_grace(Duration::MAX) >= ttl / 4, "{ttl:?}");
        }
    }

    #[test]
    fn the_default_grace_of_five_seconds_fits_the_default_ttl() {
        let margins = Margins::of(Duration::from_secs(15));
        assert_eq!(
            margins.stop_grace(Duration::from_secs(5)),
            Duration::from_secs(5)
        );
    }

    #[test]
    fn a_lease_is_trusted_for_less_than_it_lasts() {
        let margins = Margins::of(Duration::from_secs(15));
        let sent = BootTime::since_boot(Duration::from_secs(100));
        let until = margins.trust_until(sent, Duration::from_secs(15));
        assert_eq!(until, sent + Duration::from_millis(13_850));
    }

    #[test]
    fn a_lease_with_nothing_left_is_not_trusted_at_all() {
        let margins = Margins::of(Duration::from_secs(15));
        let sent = BootTime::since_boot(Duration::from_secs(100));
        assert_eq!(margins.trust_until(sent, Duration::ZERO), sent);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_job_is_dead_before_its_lease_may_be_taken_over(
            ttl_us in 1_000_000..=3_600_000_000_u64,
            sent_ms in 0..u64::from(u32::MAX),
            grace_ms in 0..10_000_000_u64,
            // How fast the holder's clock goes beside the watcher's, in millionths.
            rate in 990_100..=1_009_900_u128,
        ) {
            let ttl = Duration::from_micros(ttl_us);
            let margins = Margins::of(ttl);
            let sent = BootTime::since_boot(Duration::from_millis(sent_ms));
            let trusted = margins.trust_until(sent, ttl).saturating_since(sent);
            // By the watcher's clock, on which the whole of the lease has to pass.
            let passed = Duration::from_micros(
                u64::try_from(trusted.as_micros() * 1_000_000 / rate).expect("an hour or so"),
            );
            let dead = passed + margins.kill_margin() * 9 / 10;
            prop_assert!(dead <= ttl + margins.watch_delay(), "{dead:?}");
            // TERM comes in time, and not before three renewals had their chance.
            let grace = margins.stop_grace(Duration::from_millis(grace_ms));
            let stop_at = trusted.saturating_sub(grace);
            prop_assert!(stop_at >= margins.renewal_interval() * 3 + margins.call_timeout());
            prop_assert!(grace <= Duration::from_millis(grace_ms));
        }

        #[test]
        fn less_of_a_lease_is_never_trusted_for_longer(
            ttl_ms in 1000..=3_600_000_u64,
            one in any::<u64>(),
            other in any::<u64>(),
        ) {
            let ttl = Duration::from_millis(ttl_ms);
            let margins = Margins::of(ttl);
            let sent = BootTime::since_boot(Duration::from_secs(7));
            let left = |part: u64| Duration::from_millis(part % (ttl_ms + 1));
            let (less, more) = (left(one).min(left(other)), left(one).max(left(other)));
            prop_assert!(margins.trust_until(sent, less) <= margins.trust_until(sent, more));
            let trusted = margins.trust_until(sent, more);
            prop_assert!(trusted >= sent && trusted <= sent + more);
        }
    }
}
