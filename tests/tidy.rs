//! What holds in the whole tree: which module may know which, how large things get, who reads
//! clocks, what stands in no file. Each finding says where, by which rule, and the cure.
//!
//! The rules are read out of the text, with comments and literals told apart from code; each
//! is proven, beside it, to find what it looks for.

#[path = "tidy/dependencies.rs"]
mod dependencies;
#[path = "tidy/finding.rs"]
mod finding;
#[path = "tidy/lexer.rs"]
mod lexer;
#[path = "tidy/links.rs"]
mod links;
#[path = "tidy/paths.rs"]
mod paths;
#[path = "tidy/places.rs"]
mod places;
#[path = "tidy/shape.rs"]
mod shape;
#[path = "tidy/sizes.rs"]
mod sizes;
#[path = "tidy/source.rs"]
mod source;
#[path = "tidy/tree.rs"]
mod tree;
#[path = "tidy/unsafety.rs"]
mod unsafety;

use finding::Finding;
use source::Source;
use tree::{TREE, Tree};

/// Looks at the tree and wants no findings.
fn hold(rule: impl Fn(&Tree) -> Vec<Finding>) {
    let findings = rule(&TREE);
    let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
    assert!(findings.is_empty(), "\n{}\n", lines.join("\n"));
}

/// Looks at each Rust file for itself.
fn hold_in_rust(rule: impl Fn(&Source) -> Vec<Finding>) {
    hold(|tree| tree.rust.iter().flat_map(&rule).collect());
}

#[test]
fn the_tree_is_all_there() {
    let paths: Vec<&str> = TREE.files.iter().map(|file| file.path.as_str()).collect();
    for path in ["Cargo.toml", "src/lib.rs", "lua/write.lua", "tests/tidy.rs"] {
        assert!(paths.contains(&path), "{path} was not read: {paths:?}");
    }
}

#[test]
fn modules_know_only_those_below_them() {
    hold_in_rust(dependencies::between_modules);
}

#[test]
fn the_scheduler_is_pure() {
    hold_in_rust(dependencies::of_the_scheduler);
}

#[test]
fn clocks_are_read_in_one_place() {
    hold_in_rust(places::clock_readers);
}

#[test]
fn every_exception_is_still_needed() {
    hold(|tree| places::stale_exceptions(&tree.rust));
}

#[test]
fn the_host_clock_is_chosen_at_the_edge() {
    hold_in_rust(places::system_clocks);
}

#[test]
fn keys_are_spelt_in_one_place() {
    hold_in_rust(places::keys);
}

#[test]
fn lua_stays_in_its_folder() {
    hold_in_rust(places::lua);
}

#[test]
fn files_and_functions_stay_small() {
    hold_in_rust(|source| [sizes::files(source), sizes::functions(source)].concat());
}

#[test]
fn every_file_says_what_it_is_for() {
    hold(|tree| tree.files.iter().flat_map(shape::opening).collect());
}

#[test]
fn nothing_is_left_over() {
    hold_in_rust(shape::leftovers);
}

#[test]
fn characters_are_what_they_look_like() {
    hold(|tree| tree.files.iter().flat_map(shape::characters).collect());
}

#[test]
fn no_file_knows_the_machine_it_was_written_on() {
    hold(|tree| tree.files.iter().flat_map(shape::machine_paths).collect());
}

#[test]
fn links_lead_somewhere() {
    hold(|tree| {
        let exists = |path: &str| tree.exists(path);
        let looked_at = |file| links::broken(file, &exists);
        tree.files.iter().flat_map(looked_at).collect()
    });
}

#[test]
fn unsafe_code_is_expected_and_says_why() {
    hold_in_rust(unsafety::unexpected);
}
