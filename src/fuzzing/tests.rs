//! What fuzzers found, and what they begin with, on every run of the tests.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use super::TARGETS;

/// More than that nobody looks through, and a clone is to stay small.
const FILES_LIMIT: usize = 300;
const BYTES_LIMIT: u64 = 400 * 1024;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus")
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn every_input_of_the_corpus_holds_to_its_laws() {
    let mut broken = Vec::new();
    for (name, target) in TARGETS {
        let inputs = entries(&corpus().join(name));
        assert!(inputs.len() >= 3, "{name} has {} inputs", inputs.len());
        for path in inputs {
            let input = fs::read(&path).unwrap();
            if catch_unwind(AssertUnwindSafe(|| target(&input))).is_err() {
                broken.push(path);
            }
        }
    }
    assert!(broken.is_empty(), "the lines above say why: {broken:#?}");
}

#[test]
fn the_corpus_is_small_and_of_known_targets() {
    let folders = entries(&corpus());
    let names: Vec<_> = folders.iter().filter_map(|path| path.file_name()).collect();
    assert_eq!(names, TARGETS.map(|(name, _)| name));
    let files: Vec<_> = folders.iter().flat_map(|folder| entries(folder)).collect();
    let bytes: u64 = files
        .iter()
        .map(|path| path.metadata().unwrap().len())
        .sum();
    assert!(files.len() <= FILES_LIMIT, "{} files", files.len());
    assert!(bytes <= BYTES_LIMIT, "{bytes} bytes");
}

#[test]
fn every_target_can_be_fuzzed() {
    let manifest = fs::read_to_string(corpus().join("../Cargo.toml")).unwrap();
    for (name, _) in TARGETS {
        let path = format!("targets/{name}.rs");
        assert!(manifest.contains(&format!("path = \"{path}\"")), "{path}");
        let text = fs::read_to_string(corpus().join("..").join(&path)).unwrap();
        assert!(text.contains(&format!("\"{name}\"")), "{path}");
    }
}
