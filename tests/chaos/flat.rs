//! Whether what is measured again and again stays as it is.
//!
//! Must never: call something flat for want of samples.

/// Of all samples, so many at the start are of something that still grows into its size.
const WARM_UP: usize = 10;

/// How much more the last third's median may be than the first third's: a part of it, and what each
/// series has besides.
const MORE: f64 = 1.05;

/// So few samples say nothing.
const FEWEST: usize = 12;

/// What was measured of one thing.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    /// What it may be more, beyond a part: the grain in which it is measured.
    pub(crate) grain: f64,
    /// Seconds since the first one, and what it was.
    pub(crate) samples: Vec<(f64, f64)>,
}

impl Series {
    /// Nothing was measured yet.
    pub(crate) fn new(name: impl Into<String>, unit: &'static str, grain: f64) -> Self {
        Self {
            name: name.into(),
            unit,
            grain,
            samples: Vec::new(),
        }
    }

    /// What counts: a tenth is warm-up.
    fn warm(&self) -> &[(f64, f64)] {
        &self.samples[self.samples.len().div_ceil(WARM_UP)..]
    }

    /// The last third's median is at most the first third's times 1.05, and a grain. Of too few samples
    /// it is not.
    pub(crate) fn is_flat(&self) -> bool {
        let warm = self.warm();
        let third = warm.len() / 3;
        if warm.len() < FEWEST {
            return false;
        }
        let (first, last) = (&warm[..third], &warm[warm.len() - third..]);
        median(last) <= median(first) * MORE + self.grain
    }

    /// How much it rises in an hour, by least squares, after the warm-up.
    pub(crate) fn slope_an_hour(&self) -> f64 {
        let warm = self.warm();
        let count = warm.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| warm.iter().map(of).sum::<f64>() / count;
        let (time, value) = (mean(|one| one.0), mean(|one| one.1));
        let spread: f64 = warm.iter().map(|one| (one.0 - time).powi(2)).sum();
        let together: f64 = warm
            .iter()
            .map(|one| (one.0 - time) * (one.1 - value))
            .sum();
        together / spread * 3600.0
    }

    /// As a row of a table.
    pub(crate) fn row(&self) -> String {
        let number = |value: f64| format!("{value:.0}");
        let ends = [self.samples.first(), self.samples.last()];
        let [first, last] = ends.map(|one| one.map_or(f64::NAN, |one| one.1));
        let cells = [
            format!("{}, {}", self.name, self.unit),
            number(first),
            number(median(&self.samples)),
            number(last),
            format!("{:+.1}", self.slope_an_hour()),
            if self.is_flat() { "flat" } else { "RISES" }.to_owned(),
        ];
        format!("| {} |", cells.join(" | "))
    }
}

/// The head of that table.
pub(crate) const HEAD: &str = "| what | first | median | last | slope an hour | |\n\
                               |---|---|---|---|---|---|";

fn median(samples: &[(f64, f64)]) -> f64 {
    let mut values: Vec<f64> = samples.iter().map(|one| one.1).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: impl Fn(usize) -> f64) -> Series {
        let mut series = Series::new("it", "KiB", 100.0);
        series.samples = (0..180).map(|n| (n as f64 * 10.0, value(n))).collect();
        series
    }

    /// The same on every run: between 0 and 1.
    fn noise(n: usize) -> f64 {
        (n * 7919 % 101) as f64 / 101.0
    }

    #[test]
    fn what_leaks_slowly_rises() {
        let leak = of(|n| 20_000.0 + 15.0 * n as f64 + 500.0 * noise(n));
        assert!(!leak.is_flat(), "{leak:?}");
        let slope = leak.slope_an_hour();
        assert!((slope - 5_400.0).abs() < 200.0, "{slope}");
        assert!(leak.row().ends_with("RISES |"));
    }

    #[test]
    fn what_grows_into_its_size_or_wavers_is_flat() {
        assert!(of(|n| 20_000.0 - 9_000.0 / (n + 1) as f64).is_flat());
        assert!(of(|n| 20_000.0 + 5_000.0 * noise(n)).is_flat());
        assert!(of(|n| 20_000.0 + 200.0 * (n % 9) as f64).is_flat());
        assert!(of(|_| 7.0).row().ends_with("| 7 | 7 | 7 | +0.0 | flat |"));
    }

    #[test]
    fn a_step_up_that_stays_rises_and_one_grain_does_not() {
        let step = |by: f64| of(move |n| if n > 90 { 1_000.0 + by } else { 1_000.0 });
        assert!(!step(200.0).is_flat());
        assert!(step(140.0).is_flat(), "a twentieth and a grain");
    }

    #[test]
    fn of_too_few_samples_nothing_is_flat() {
        let mut few = of(|_| 7.0);
        few.samples.truncate(FEWEST);
        assert!(!few.is_flat());
    }
}
