//! What has one place: the reading of clocks, the spelling of keys, Lua.

use crate::finding::Finding;
#[cfg(test)]
use crate::finding::lines;
use crate::paths::named;
use crate::source::Source;

/// How Rust asks for the time.
const READINGS: [&str; 7] = [
    "SystemTime::now",
    "Instant::now",
    "Timestamp::now",
    "Zoned::now",
    "Utc::now",
    "Local::now",
    "clock_gettime",
];

/// What knows how to ask, under whatever name it is brought in.
const READERS: [&str; 3] = [
    "std::time::SystemTime",
    "std::time::Instant",
    "tokio::time::Instant",
];

/// Files beside `clock` that ask for the time, and why they may. Leases, schedules and records
/// hang on none of them.
const OTHER_READERS: [(&str, &str); 5] = [
    (
        "src/store/redis/quorum/news.rs",
        "which of several servers told an event first, by the runtime's own timer",
    ),
    (
        "src/store/redis/quorum/pace.rs",
        "how long a step took, by the runtime's own timer",
    ),
    (
        "src/store/redis/health.rs",
        "how often settings are looked at goes by the runtime's own timer",
    ),
    (
        "src/store/redis/link.rs",
        "the back-off between attempts to connect goes by the runtime's own timer",
    ),
    (
        "src/store/redis/reading.rs",
        "whether a connection failed at once or after a time-out, of the runtime's own timer",
    ),
];

/// Where the host's clock is chosen; everything else is given one, and can be given another.
/// Guardian, runner and self-test have no other choice: the processes they time live on this host.
const CHOOSERS: [&str; 12] = [
    "src/clock",
    "src/cli",
    "src/daemon",
    "src/embed/builder.rs",
    "src/embed/store.rs",
    // Named for users, who choose it.
    "src/lib.rs",
    "src/guardian",
    "src/runner",
    "src/leases/open.rs",
    "src/store/url.rs",
    "src/config/mod.rs",
    "src/verify",
];

fn is_clock(path: &str) -> bool {
    path == "src/clock.rs" || path.starts_with("src/clock/")
}

fn readings(source: &Source) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    for name in READINGS {
        let lines = source.lines_with(name).into_iter();
        found.extend(lines.map(|line| (line, name)));
    }
    for named in named(source) {
        let path = named.path.join("::");
        let reader = READERS.into_iter().find(|reader| path == *reader);
        let reader = reader.filter(|_| !source.is_test(named.line));
        found.extend(reader.map(|reader| (named.line, reader)));
    }
    found
}

pub(crate) fn clock_readers(source: &Source) -> Vec<Finding> {
    let excepted = OTHER_READERS.iter().any(|(path, _)| *path == source.path);
    if !source.is_in_src() || is_clock(&source.path) || excepted {
        return Vec::new();
    }
    let findings = readings(source).into_iter().map(|(line, reading)| {
        let what = format!("`{reading}` reads clocks, outside of src/clock.rs");
        let cure = "take `now` as an argument, or ask a `Clock`";
        Finding::new(&source.path, line, what, cure)
    });
    findings.collect()
}

pub(crate) fn stale_exceptions(sources: &[Source]) -> Vec<Finding> {
    let stale = OTHER_READERS.iter().filter(|(path, _)| {
        let mut named = sources.iter().filter(|source| source.path == *path);
        !named.any(|source| !readings(source).is_empty())
    });
    let findings = stale.map(|(path, why)| {
        let what = format!("is excepted from the rule on clocks ({why}) and reads none");
        let cure = "take it out of OTHER_READERS (tests/tidy/places.rs)";
        Finding::new(path, 1, what, cure)
    });
    findings.collect()
}

pub(crate) fn system_clocks(source: &Source) -> Vec<Finding> {
    if !source.is_in_src() || CHOOSERS.iter().any(|path| source.path.starts_with(path)) {
        return Vec::new();
    }
    let lines = source.lines_with("SystemClock").into_iter();
    let findings = lines.map(|line| {
        let what = "the host's clock is chosen here instead of being given";
        let cure = "take an `Arc<dyn Clock>`; src/cli and src/store/url.rs choose it";
        Finding::new(&source.path, line, what, cure)
    });
    findings.collect()
}

/// A log target (`soloist::output`) is no key, and nor is a URN (`urn:soloist:problem`).
pub(crate) fn keys(source: &Source) -> Vec<Finding> {
    if !source.is_in_src() || source.path == "src/store/redis/keys.rs" {
        return Vec::new();
    }
    let prefix = concat!("soloist", ":");
    let spells = |line: &str| {
        let mut found = line.match_indices(prefix);
        found.any(|(at, _)| {
            !line[at + prefix.len()..].starts_with(':') && !line[..at].ends_with("urn:")
        })
    };
    let lines = source.code_and_literals.lines().zip(1..);
    let findings = lines.filter(|(line, _)| spells(line)).map(|(_, line)| {
        let what = format!("`{prefix}` is spelt outside of src/store/redis/keys.rs");
        Finding::new(
            &source.path,
            line,
            what,
            "ask `Keys`, or add the name there",
        )
    });
    findings.collect()
}

/// Scripts in a string can't be read, checked or found where the others are.
pub(crate) fn lua(source: &Source) -> Vec<Finding> {
    const SIGNS: [&str; 4] = ["redis.call", "redis.pcall", "KEYS[", "ARGV["];
    if !source.is_in_src() {
        return Vec::new();
    }
    let lines = source.code_and_literals.lines().zip(1..);
    let findings = lines.filter_map(|(line, number)| {
        let sign = SIGNS.iter().find(|sign| line.contains(**sign))?;
        let what = format!("Lua (`{sign}`) stands in Rust");
        let cure = "give the script a file in lua/, and take it in by `include_str!`";
        Some(Finding::new(&source.path, number, what, cure))
    });
    findings.collect()
}

#[test]
fn a_clock_read_elsewhere_is_found() {
    let found = |path, text| lines(&clock_readers(&Source::new(path, text)));
    let text = "fn f() {\n    std::time::Instant::now();\n}\n";
    assert_eq!(found("src/driver/mod.rs", text), [2]);
    assert_eq!(found("src/clock.rs", text), [0; 0]);
    assert_eq!(found("src/clock/tests.rs", text), [0; 0]);
    assert_eq!(found("src/driver/mod.rs", "// Instant::now()"), [0; 0]);
    for reading in READINGS {
        assert_eq!(found("src/cli/a.rs", reading), [1], "{reading}");
    }
    let renamed = "use std::time::{Duration, Instant as Clock};";
    assert_eq!(found("src/cli/a.rs", renamed), [1]);
}

#[test]
fn an_exception_that_nobody_needs_is_found() {
    let needed = OTHER_READERS.map(|(path, _)| Source::new(path, "Instant::now()"));
    assert_eq!(stale_exceptions(&needed), []);
    let idle = OTHER_READERS.map(|(path, _)| Source::new(path, ""));
    assert_eq!(stale_exceptions(&idle).len(), OTHER_READERS.len());
}

#[test]
fn a_clock_chosen_deep_inside_is_found() {
    let text = "use crate::clock::SystemClock;";
    let found = |path| lines(&system_clocks(&Source::new(path, text)));
    assert_eq!(found("src/store/memory.rs"), [1]);
    assert_eq!(found("src/driver/mod.rs"), [1]);
    assert_eq!(found("src/store/url.rs"), [0; 0]);
}

#[test]
fn a_key_spelt_elsewhere_is_found() {
    let found = |path, text| lines(&keys(&Source::new(path, text)));
    let text = concat!("\nlet key = \"soloist", ":{shop}:jobs\";");
    assert_eq!(found("src/store/redis/mod.rs", text), [2]);
    assert_eq!(found("src/store/redis/keys.rs", text), [0; 0]);
    let target = "let target = \"soloist::output\";";
    assert_eq!(found("src/runner/mod.rs", target), [0; 0]);
}

#[test]
fn lua_in_rust_is_found() {
    let found = |text| lines(&lua(&Source::new("src/store/a.rs", text)));
    assert_eq!(
        found("\nlet s = \"return redis.call('GET', KEYS[1])\";"),
        [2]
    );
    assert_eq!(found("// KEYS[1] is the jobs hash"), [0; 0]);
}
