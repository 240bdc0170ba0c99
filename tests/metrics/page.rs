//! A page of series, as a scraper reads it.

use std::collections::{BTreeMap, BTreeSet};

/// The series of a page, by name and labels as they stand there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    pub(crate) text: String,
    series: BTreeMap<String, f64>,
}

impl Page {
    pub(crate) fn of(text: String) -> Self {
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        let series = samples.map(|line| {
            let (series, value) = line.rsplit_once(' ').expect("a sample");
            (series.to_owned(), value.parse().expect("a number"))
        });
        Self {
            series: series.collect(),
            text,
        }
    }

    pub(crate) fn get(&self, series: &str) -> Option<f64> {
        self.series.get(series).copied()
    }

    /// 0 where it is not there.
    pub(crate) fn value(&self, series: &str) -> f64 {
        self.get(series).unwrap_or(0.0)
    }

    pub(crate) fn ended(&self, job: &str, outcome: &str) -> f64 {
        let labels = format!("{{job=\"{job}\",outcome=\"{outcome}\"}}");
        self.value(&format!("soloist_occurrences_total{labels}"))
    }

    /// All series of a family, by their labels.
    pub(crate) fn family(&self, name: &str) -> BTreeMap<String, f64> {
        let of = self.series.iter().filter_map(|(series, value)| {
            let labels = series.strip_prefix(name)?;
            (labels.is_empty() || labels.starts_with('{')).then(|| (labels.to_owned(), *value))
        });
        of.collect()
    }

    /// The names of all samples.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        self.series
            .keys()
            .map(|one| name_of(one).to_owned())
            .collect()
    }

    /// The names of samples that have another value here, or are new.
    pub(crate) fn moved_since(&self, before: &Page) -> BTreeSet<String> {
        let moved = self.series.iter().filter(|(series, value)| {
            let former = before.series.get(*series);
            former != Some(*value)
        });
        moved
            .map(|(series, _)| name_of(series).to_owned())
            .collect()
    }
}

fn name_of(series: &str) -> &str {
    series.split('{').next().unwrap_or(series)
}
