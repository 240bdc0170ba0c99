//! Each text of the corpus gives the table and the report that lie beside it.
//!
//! `GOLDEN=write cargo test --test import golden` writes them anew; look at every line that
//! changes, for what it means. Must never: be written anew to make a test pass.

use std::fs;
use std::path::Path;

use super::corpus::{check, samples};

/// Where no job is carried over there is no table.
const NO_TABLE: &str = "# no table\n";

#[test]
fn the_corpus_gives_the_tables_and_reports_beside_it() {
    let mut differing = Vec::new();
    for sample in samples() {
        let imported = sample.import();
        let table = imported.table.unwrap_or_else(|| NO_TABLE.into());
        let report = imported.report.to_string();
        for (ending, text) in [("toml", table), ("report", report)] {
            let path = sample.path.with_extension(ending);
            if !matches(&path, &text) {
                differing.push(path.display().to_string());
            }
        }
    }
    assert_eq!(
        differing,
        Vec::<String>::new(),
        "set GOLDEN=write, and look"
    );
}

fn matches(path: &Path, text: &str) -> bool {
    if std::env::var_os("GOLDEN").is_some_and(|value| value == "write") {
        fs::write(path, text).expect("written");
        return true;
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    if expected != text {
        eprintln!("--- {}\n{expected}\n+++ now\n{text}", path.display());
    }
    expected == text
}

#[test]
fn every_table_of_the_corpus_is_one_that_check_accepts() {
    let samples = samples();
    let of = |ending: &str| {
        let of = |path: &Path| path.extension().is_some_and(|found| found == ending);
        samples.iter().filter(|sample| of(&sample.path)).count()
    };
    assert!(
        of("crontab") >= 25 && of("yaml") >= 12,
        "the corpus is small"
    );
    for sample in &samples {
        let imported = sample.import();
        let jobs = imported.table.map_or(0, |table| check(&table).jobs.len());
        assert_eq!(jobs, imported.report.carried, "{}", sample.label);
    }
}

#[test]
fn no_golden_file_is_left_without_its_text() {
    for sample in samples() {
        let folder = sample.path.parent().expect("a folder");
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let has_text = ["crontab", "yaml"]
                .iter()
                .any(|ending| path.with_extension(ending).exists());
            assert!(has_text, "{}", path.display());
        }
    }
}
