//! Dependencies run one way, so that what decides can be tested without what acts.

use crate::finding::Finding;
#[cfg(test)]
use crate::finding::lines;
use crate::paths::named;
use crate::source::Source;

/// What each module may name of the others; `a::b` allows that part alone.
const MAY_KNOW: [(&str, &[&str]); 28] = [
    (
        "cli",
        &[
            "config",
            "daemon",
            "driver",
            "store",
            "runner",
            "guardian",
            "clock",
            "http",
            "orders",
            "scheduler",
            "store_url",
            "verify",
            "views",
            "why",
            "import",
            "leases",
        ],
    ),
    // Clients of named leases, beside the driver.
    (
        "leases",
        &["own_thread", "store", "store_url", "clock", "scheduler"],
    ),
    // Where all of this lives in programs that embed it.
    ("own_thread", &[]),
    // It starts replicas from outside, and asks the store what became of what they did.
    (
        "verify",
        &[
            "config",
            "store",
            "store_url",
            "guardian",
            "clock",
            "scheduler",
            "why",
        ],
    ),
    // The library's face: it puts together what a replica is, as the daemon does.
    (
        "embed",
        &[
            "clock",
            "driver",
            "jobs",
            "orders",
            "own_thread",
            "scheduler",
            "store",
            "store_url",
        ],
    ),
    // What jobs.toml and the library have in common: the rules of a table.
    ("jobs", &["scheduler", "store_url"]),
    // Deliberate faults; no program has them.
    ("mutants", &[]),
    // A list of what the others have for fuzzers; no program has it.
    (
        "fuzzing",
        &[
            "config",
            "guardian",
            "http",
            "import",
            "scheduler",
            "store",
            "store_url",
        ],
    ),
    // It writes what config has to read.
    ("import", &["config", "scheduler"]),
    (
        "daemon",
        &[
            "config",
            "health",
            "metrics",
            "traces",
            "notify",
            "http",
            "driver",
            "store",
            "runner",
            "guardian",
            "clock",
            "scheduler",
        ],
    ),
    // It looks on, and asks the store how jobs stand.
    (
        "metrics",
        &["health", "why", "driver", "store", "clock", "scheduler"],
    ),
    // Spans are counted like the rest.
    ("traces", &["metrics", "http_client", "driver", "scheduler"]),
    (
        "http",
        &[
            "clock",
            "config",
            "driver",
            "health",
            "orders",
            "scheduler",
            "store",
            "views",
            "why",
        ],
    ),
    // What the command line and HTTP have in common.
    ("orders", &["clock", "config", "store", "scheduler"]),
    ("views", &["config", "store", "scheduler", "why"]),
    ("health", &["scheduler::time"]),
    // It tells people what came of what others decided.
    ("why", &["store", "scheduler"]),
    ("driver", &["store", "runner", "clock", "scheduler"]),
    (
        "store",
        &[
            "own_thread",
            "scheduler",
            "store_url",
            "clock",
            "tls_trouble",
        ],
    ),
    ("runner", &["guardian", "scheduler", "clock"]),
    (
        "guardian",
        &["clock", "scheduler::time", "http_client", "tls_trouble"],
    ),
    (
        "notify",
        &[
            "config",
            "driver",
            "store",
            "clock",
            "scheduler",
            "http_client",
            "tls_trouble",
        ],
    ),
    ("http_client", &["tls_trouble"]),
    // A table is validated against the present: what lies in the past for ever is an error.
    ("config", &["jobs", "scheduler", "store_url", "clock"]),
    ("clock", &["scheduler::time"]),
    ("scheduler", &[]),
    ("store_url", &[]),
    ("tls_trouble", &[]),
];

/// What would make the scheduler's decisions depend on more than its arguments.
const IMPURE: [&str; 10] = [
    "tokio",
    "tracing",
    "redis",
    "rusqlite",
    "rustix",
    "std::time::SystemTime",
    "std::time::Instant",
    "std::fs",
    "std::net",
    "std::process",
];

/// Tests are looked at like the rest: what they need from above belongs under `tests/`.
pub(crate) fn between_modules(source: &Source) -> Vec<Finding> {
    let module = source.module();
    let Some(own) = module.first().filter(|_| source.is_in_src()) else {
        return Vec::new();
    };
    let Some((_, allowed)) = MAY_KNOW.iter().find(|(name, _)| name == own) else {
        let what = format!("the module `{own}` has no place among the layers");
        let cure = "say in MAY_KNOW (tests/tidy/dependencies.rs) what it may know";
        return vec![Finding::new(&source.path, 1, what, cure)];
    };
    let uses = named(source).into_iter().filter_map(|named| {
        let path = named.path.strip_prefix(&["crate".to_owned()])?.join("::");
        let permitted = allowed.iter().chain([own]);
        let forbidden = !permitted.into_iter().any(|prefix| is_within(&path, prefix));
        forbidden.then_some((named.line, path))
    });
    uses.map(|(line, path)| {
        let what = format!("`{own}` must not know `{path}`: dependencies run one way");
        let cure = "pass what is needed as an argument, or move it to a module below both";
        Finding::new(&source.path, line, what, cure)
    })
    .collect()
}

/// Tests may measure and print; what they test may not.
pub(crate) fn of_the_scheduler(source: &Source) -> Vec<Finding> {
    if source.module().first() != Some(&"scheduler") {
        return Vec::new();
    }
    let paths = named(source).into_iter();
    let outside = paths.filter(|named| !source.is_test(named.line));
    let impure = outside.filter_map(|named| {
        let path = named.path.join("::");
        // `use std::*` would bring in all of them.
        let glob = path.strip_suffix("::*").map(str::to_owned);
        let found = IMPURE.iter().find(|impure| {
            is_within(&path, impure) || glob.as_ref().is_some_and(|glob| is_within(impure, glob))
        })?;
        let what = format!("the scheduler must not know `{found}`: it decides, the driver acts");
        let cure = "take what is needed as an argument or event; ask for it by an effect";
        Some(Finding::new(&source.path, named.line, what, cure))
    });
    impure.collect()
}

fn is_within(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

#[cfg(test)]
fn found(path: &str, text: &str) -> Vec<usize> {
    lines(&between_modules(&Source::new(path, text)))
}

#[test]
fn a_module_that_knows_one_above_it_is_found() {
    assert_eq!(found("src/runner/a.rs", "use crate::clock::Clock;"), [0; 0]);
    assert_eq!(found("src/runner/a.rs", "\nuse crate::store::Store;"), [2]);
    assert_eq!(found("src/store_url.rs", "use crate::store;"), [1]);
    assert_eq!(
        found("src/store/a.rs", "use crate::{scheduler, cli::run};"),
        [1]
    );
    assert_eq!(
        found("src/store/a.rs", "fn f() { super::super::cli::run() }"),
        [1]
    );
    assert_eq!(found("src/store/a.rs", "use crate::*;"), [1]);
    assert_eq!(
        found("src/clock.rs", "use crate::scheduler::time::BootTime;"),
        [0; 0]
    );
    assert_eq!(
        found("src/clock.rs", "use crate::scheduler::job::Job;"),
        [1]
    );
    assert_eq!(
        found("src/clock.rs", "use crate::scheduler::timers::Timers;"),
        [1]
    );
}

#[test]
fn a_module_without_a_place_is_found() {
    assert_eq!(found("src/manager/mod.rs", ""), [1]);
    assert_eq!(found("src/main.rs", "fn main() {}"), [0; 0]);
    assert_eq!(found("tests/a.rs", "use crate::b::c;"), [0; 0]);
}

#[test]
fn an_impure_scheduler_is_found() {
    let found = |text| lines(&of_the_scheduler(&Source::new("src/scheduler/a.rs", text)));
    assert_eq!(
        found("use std::time::Duration;\nuse std::time::{self, Instant};"),
        [2]
    );
    assert_eq!(found("use std::{fs, fmt};"), [1]);
    assert_eq!(found("use std::time::*;"), [1]);
    assert_eq!(found("\nfn f() { tracing::info!() }"), [2]);
    assert_eq!(found("fn f(redis: u8) { redis.g(); super::h() }"), [0; 0]);
    assert_eq!(
        found("#[cfg(test)]\nmod tests {\n    use std::time::Instant;\n}"),
        [0; 0]
    );
}
