//! What this replica knows of the store's clock.
//!
//! Claims are judged by the store's clock, so that is the clock to fire by. Each answer carries
//! the store's time; it was read between the sending and the hearing, which bounds the offset
//! from this host's boot clock on both sides. The estimate is the *lower* bound: when it says
//! that an instant has come, the store will agree. This host's wall clock plays no part: a
//! replica whose clock is 90 s off fires like all others.
//!
//! An answer outside the bounds means that one of the two clocks jumped. From then on expiry by
//! the store's clock is believed only for leases renewed after the jump.
//!
//! Must never: read a clock itself.

use std::time::Duration;

use super::time::{BootTime, Timestamp};

/// How fast two clocks may drift apart without one having jumped: what NTP slews at most
/// (adjtime(3): 500 ppm), on both sides.
const DRIFT_PPM: i64 = 1000;

/// The resolution of the store's time stamps, in nanoseconds.
const RESOLUTION_NS: i64 = 1_000_000;

/// An estimate of the store's clock.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoreClock {
    bounds: Option<Bounds>,
    trusted_since: Option<Timestamp>,
    round_trip: Duration,
}

/// The store's time minus boot time, in nanoseconds, is within these: drift adds up over calls
/// that are far less than a millisecond apart.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    low: i64,
    high: i64,
    at: BootTime,
}

/// A clock jumped: this is by how much the store's is ahead of where it should have been
/// (negative: behind), at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockJump {
    /// Milliseconds.
    pub millis: i64,
}

impl StoreClock {
    /// Takes in an answer that was given at `now` by the store's clock.
    pub(crate) fn learn(
        &mut self,
        sent: BootTime,
        heard: BootTime,
        now: Timestamp,
    ) -> Option<ClockJump> {
        self.round_trip = heard.saturating_since(sent);
        let store = nanos_of_millis(now);
        let fresh = Bounds {
            low: store - nanos(heard),
            high: store + RESOLUTION_NS - nanos(sent),
            at: heard,
        };
        let Some(aged) = self.bounds.map(|bounds| bounds.aged(heard)) else {
            self.bounds = Some(fresh);
            self.trusted_since = Some(now);
            return None;
        };
        let (low, high) = (aged.low.max(fresh.low), aged.high.min(fresh.high));
        if low <= high {
            self.bounds = Some(Bounds {
                low,
                high,
                at: heard,
            });
            return None;
        }
        self.bounds = Some(fresh);
        self.trusted_since = Some(now);
        let by = if fresh.low > aged.high {
            fresh.low - aged.high
        } else {
            fresh.high - aged.low
        };
        Some(ClockJump {
            millis: by / 1_000_000,
        })
    }

    /// A time that the store's clock has surely reached; none before the first answer.
    pub(crate) fn reached(&self, now: BootTime) -> Option<Timestamp> {
        let bounds = self.bounds?;
        Some(Timestamp::from_millis(
            (nanos(now) + bounds.surely()).div_euclid(1_000_000),
        ))
    }

    /// When the store's clock will surely have reached `instant`; none before the first answer.
    pub(crate) fn boot_time_of(&self, instant: Timestamp) -> Option<BootTime> {
        let bounds = self.bounds?;
        let boot = nanos_of_millis(instant).saturating_sub(bounds.surely());
        Some(BootTime::since_boot(Duration::from_nanos(
            u64::try_from(boot).unwrap_or(0),
        )))
    }

    /// How long the last answer took.
    pub(super) fn round_trip(&self) -> Duration {
        self.round_trip
    }

    /// Since when, by the store's clock, it has been seen to run true against the boot clock.
    pub(crate) fn trusted_since(&self) -> Option<Timestamp> {
        self.trusted_since
    }
}

impl Bounds {
    /// By how much the store's time is ahead of boot time at least.
    fn surely(self) -> i64 {
        match mutant!(GrantsEarly) {
            true => self.high,
            false => self.low,
        }
    }

    /// The bounds as they are known later: wider by what the clocks may have drifted.
    fn aged(self, now: BootTime) -> Self {
        let drift = nanos_of(now.saturating_since(self.at)) / (1_000_000 / DRIFT_PPM);
        Self {
            low: self.low - drift,
            high: self.high + drift,
            at: now,
        }
    }
}

fn nanos(instant: BootTime) -> i64 {
    nanos_of(instant.as_duration())
}

fn nanos_of(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// Saturates beyond the years 1678 to 2262.
fn nanos_of_millis(instant: Timestamp) -> i64 {
    instant.as_millis().saturating_mul(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boot(millis: u64) -> BootTime {
        BootTime::since_boot(Duration::from_millis(millis))
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn the_estimate_is_never_ahead_of_the_store() {
        let mut clock = StoreClock::default();
        // The store reads 1,000,000 when the boot clock reads 50; the answer takes 30 back.
        assert_eq!(clock.learn(boot(40), boot(80), at(1_000_000)), None);
        assert_eq!(clock.reached(boot(80)), Some(at(1_000_000)));
        // A quicker answer narrows it.
        assert_eq!(clock.learn(boot(100), boot(101), at(1_000_050)), None);
        assert_eq!(clock.reached(boot(101)), Some(at(1_000_050)));
        assert_eq!(clock.boot_time_of(at(1_000_100)), Some(boot(151)));
        // A slower one doesn't spoil it.
        assert_eq!(clock.learn(boot(200), boot(300), at(1_000_200)), None);
        assert!(clock.reached(boot(300)) >= Some(at(1_000_248)));
        assert!(clock.reached(boot(300)) <= Some(at(1_000_250)));
    }

    #[test]
    fn a_jump_of_either_clock_is_noticed_and_ends_the_trust() {
        let mut clock = StoreClock::default();
        clock.learn(boot(0), boot(1), at(1_000_000));
        assert_eq!(clock.trusted_since(), Some(at(1_000_000)));
        let jump = clock.learn(boot(1000), boot(1001), at(1_121_000));
        assert_eq!(jump, Some(ClockJump { millis: 119_997 }));
        assert_eq!(clock.trusted_since(), Some(at(1_121_000)));
        let jump = clock.learn(boot(2000), boot(2001), at(1_001_000)).unwrap();
        assert!(jump.millis < -119_000, "{jump:?}");
        assert_eq!(clock.reached(boot(2001)), Some(at(1_001_000)));
    }

    #[test]
    fn drift_adds_up_over_calls_that_are_close_together() {
        let mut clock = StoreClock::default();
        let micros = |micros| BootTime::since_boot(Duration::from_micros(micros));
        // A call each 200 µs for ten seconds, the store's clock 400 ppm fast.
        for call in 0..50_000u64 {
            let boot_us = call * 200;
            let store_ms = 1_000_000_000 + (boot_us + boot_us * 4 / 10_000) / 1000;
            let now = at(i64::try_from(store_ms).unwrap());
            assert_eq!(
                clock.learn(micros(boot_us), micros(boot_us + 50), now),
                None
            );
        }
    }

    #[test]
    fn drift_within_what_ntp_slews_is_no_jump() {
        let mut clock = StoreClock::default();
        clock.learn(boot(0), boot(1), at(1_000_000));
        // 400 ppm fast over ten minutes.
        for second in 1..600u64 {
            let now = at(1_000_000 + i64::try_from(second * 1000 + second * 2 / 5).unwrap());
            assert_eq!(
                clock.learn(boot(second * 1000), boot(second * 1000 + 1), now),
                None
            );
        }
        assert_eq!(clock.trusted_since(), Some(at(1_000_000)));
    }
}
