//! What `docs/model.md` says came of the searches comes of them: verdicts, states, depths, traces.
//!
//! Must never: take less than the page shows.

use std::fs;
use std::path::Path;

use soloist_model::page::{rewritten, without_times};
use soloist_model::report::run_all;
use soloist_model::scenarios::{locks, missing_guards, quick};

/// As many as a small machine has cores.
const AT_ONCE: usize = 2;

#[test]
fn the_page_says_what_the_searches_find_and_all_end_as_they_have_to() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/model.md");
    let page = fs::read_to_string(path).expect("docs/model.md can be read");
    let scenarios = [quick(), missing_guards(), locks()].concat();
    let reports = run_all(&scenarios, AT_ONCE);
    assert_eq!(reports.len(), scenarios.len());
    let lines: Vec<String> = reports.iter().map(|report| report.line()).collect();
    println!("{}", lines.join("\n"));
    let odd = reports.iter().filter(|report| !report.as_expected);
    let odd: Vec<String> = odd.map(|report| report.line()).collect();
    assert_eq!(odd, Vec::<String>::new());
    let page_now = rewritten(&page, &reports).expect("docs/model.md has its marks");
    let (now, before) = (without_times(&page_now), without_times(&page));
    let differs = now
        .lines()
        .zip(before.lines())
        .find(|(now, before)| now != before);
    assert!(
        differs.is_none() && now.lines().count() == before.lines().count(),
        "docs/model.md is not of these searches: {differs:?}; \
         `cargo run --release -p soloist-model -- write` makes it anew"
    );
}
