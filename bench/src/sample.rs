//! What one measurement found.

use std::time::Duration;

/// Lateness of what fired, and what it cost.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
    fired: usize,
    due: usize,
    cpu_percent: f64,
}

impl Sample {
    /// From the lateness of each firing.
    pub(crate) fn of(mut late: Vec<Duration>, due: usize, cpu: Duration, wall: Duration) -> Self {
        late.sort_unstable();
        let at = |quantile: f64| {
            let index = (late.len().saturating_sub(1) as f64 * quantile).round() as usize;
            late.get(index).map_or(0.0, |late| late.as_secs_f64() * 1e3)
        };
        Self {
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            max_ms: at(1.0),
            fired: late.len(),
            due,
            cpu_percent: 100.0 * cpu.as_secs_f64() / wall.as_secs_f64(),
        }
    }

    pub(crate) fn to_line(&self) -> String {
        let Self {
            p50_ms,
            p99_ms,
            max_ms,
            fired,
            due,
            cpu_percent,
        } = self;
        format!("{p50_ms} {p99_ms} {max_ms} {fired} {due} {cpu_percent}")
    }

    pub(crate) fn from_line(line: &str) -> Option<Self> {
        let figures: Vec<f64> = line.split(' ').map_while(|one| one.parse().ok()).collect();
        let [p50_ms, p99_ms, max_ms, fired, due, cpu_percent] = figures[..] else {
            return None;
        };
        let (fired, due) = (fired as usize, due as usize);
        Some(Self {
            p50_ms,
            p99_ms,
            max_ms,
            fired,
            due,
            cpu_percent,
        })
    }

    pub(crate) fn columns(&self) -> String {
        let fired = format!("{}/{}", self.fired, self.due);
        format!(
            "{:8.2} {:8.2} {:8.2} {fired:>13} {:9.3}",
            self.p50_ms, self.p99_ms, self.max_ms, self.cpu_percent
        )
    }

    /// How many times another's figures these are.
    pub(crate) fn ratio_to(&self, other: &Self) -> String {
        let times = |mine: f64, others: f64| match others > 0.0 {
            true => format!("{:.0}x", mine / others),
            false => "-".to_owned(),
        };
        format!(
            "{:>8} {:>8} {:>8} {:>13} {:>9}",
            times(self.p50_ms, other.p50_ms),
            times(self.p99_ms, other.p99_ms),
            times(self.max_ms, other.max_ms),
            "",
            times(self.cpu_percent, other.cpu_percent)
        )
    }
}

/// CPU time of this process so far.
pub(crate) fn cpu_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
