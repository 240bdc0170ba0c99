//! A replica's host: its clocks, and whether it is suspended.

use std::time::Duration;

use soloist::scheduler::time::BootTime;

/// Parts per million, and nanoseconds.
const MILLION: i128 = 1_000_000;

/// The host of a replica, as one that outlives it.
#[derive(Clone, Debug)]
pub(super) struct Host {
    /// It was booted so long before the world began.
    booted_before: Duration,
    /// Its boot clock goes faster than the world's time by this.
    ppm: i64,
    /// Its wall clock is ahead of what the store's should read.
    pub(super) wall_shift_ms: i64,
    /// Until then nothing on it gets CPU; its boot clock goes on.
    pub(super) suspended_until: Duration,
}

impl Host {
    pub(super) fn booted(booted_before: Duration, ppm: i64) -> Self {
        Self {
            booted_before,
            ppm,
            wall_shift_ms: 0,
            suspended_until: Duration::ZERO,
        }
    }

    /// What its boot clock reads, at the world's time.
    pub(super) fn boot(&self, now: Duration) -> BootTime {
        let gone = nanos(now) * (MILLION + i128::from(self.ppm)) / MILLION;
        BootTime::since_boot(self.booted_before + duration(gone))
    }

    /// The first instant of the world's time at which its boot clock has reached another.
    pub(super) fn world_time(&self, boot: BootTime) -> Duration {
        let gone = boot.as_duration().saturating_sub(self.booted_before);
        let rate = MILLION + i128::from(self.ppm);
        let now = (nanos(gone) * MILLION).div_euclid(rate);
        duration(
            match nanos(self.boot(duration(now)).as_duration()) < nanos(boot.as_duration()) {
                true => now + 1,
                false => now,
            },
        )
    }
}

fn nanos(duration: Duration) -> i128 {
    i128::try_from(duration.as_nanos()).expect("a short simulation")
}

fn duration(nanos: i128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).expect("a short simulation"))
}
