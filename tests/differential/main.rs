//! Every store against memory: random sequences of all calls, with arguments that are easy to get
//! wrong, have to get the same answers to the letter, and leave the same behind.
//!
//! What is decided is written once for all engines (`store::rules`), so that a difference is one of
//! an engine: of what it keeps, how it finds it again, in which order, up to which limit, and of
//! two calls at once.
//!
//! ```text
//!  seed ─▶ drawing ─▶ step ─┬─▶ memory ─▶ answer, news ─┐
//!             ▲             └─▶ engine ─▶ answer, news ─┴─▶ the same? ─▶ state, records ─▶ the same?
//!             └───────────────── what was heard ────────────┘
//! ```
//!
//! `OPERATIONS=n` asks for so many calls of each engine, `SEED=n` for one sequence again; `make
//! differential` for a million, with a table. A difference is shown with what is needed of its
//! sequence, and both answers. `SOLOIST_TEST_REDIS_SERVER` names another server than the one on
//! PATH.

mod chance;
mod clock;
mod drawing;
mod engines;
mod memories;
mod run;
mod steps;
mod tally;
mod twins;
mod words;

use engines::Kind;
use run::{Done, Plan};

/// How many operations there are of each engine where nobody asks for more.
const OF_SQLITE: u64 = 8_000;
const OF_REDIS: u64 = 8_000;
const OF_CLUSTER: u64 = 3_000;

/// Of so many sequences one may come to no end, as its store did not answer in time: the machine
/// may be busy.
const ONE_GIVEN_UP_IN: u64 = 20;

/// What has to be heard a few times in any run that is worth it: each answer that starts or ends
/// something, or keeps it from starting.
const HEARD: [(&str, &str); 20] = [
    ("claim", "granted"),
    ("claim", "granted, watched"),
    ("claim", "held"),
    ("claim", "overlap"),
    ("claim", "waiting"),
    ("claim", "too late"),
    ("claim", "finished"),
    ("claim", "closed"),
    ("claim", "outdated"),
    ("renew", "renewed"),
    ("renew", "lost"),
    ("release", "released"),
    ("release", "superseded"),
    ("order", "triggered"),
    ("order", "paused"),
    ("order", "killed"),
    ("observe", "openings"),
    ("observe", "untold"),
    ("output", "some"),
    ("register", "other schedule"),
];

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().expect("a whole number"))
}

fn hold(kind: Kind, operations: u64) {
    let asked = number("OPERATIONS");
    let plan = Plan {
        kind,
        operations: asked.unwrap_or(operations),
        seed: number("SEED"),
        workers: match asked {
            Some(_) => 2,
            None => 1,
        },
    };
    let done = plan.carry_out();
    show(kind, &done);
    let tally = &done.tally;
    assert!(
        tally.given_up <= 1 + tally.sequences / ONE_GIVEN_UP_IN,
        "{} sequences of {} were given up",
        tally.given_up,
        tally.sequences
    );
    if plan.seed.is_none() {
        let is_rare =
            |(call, answer): &&(&'static str, &'static str)| tally.answered(call, answer) < 3;
        let rare: Vec<_> = HEARD.iter().filter(is_rare).collect();
        assert!(rare.is_empty(), "hardly heard: {rare:?}");
    }
}

fn show(kind: Kind, done: &Done) {
    let (tally, seconds) = (&done.tally, done.took.as_secs_f64());
    eprintln!(
        "{}, {}: {} operations in {} sequences ({} given up, {} without all news), {} of them two at once, {} losses \
         and restarts, {seconds:.0} s, differences 0\n{tally}",
        kind.name(),
        done.version,
        tally.operations,
        tally.sequences,
        tally.given_up,
        tally.deaf,
        tally.crossed,
        tally.troubles,
    );
}

#[test]
fn a_file_says_and_holds_what_memory_does() {
    hold(Kind::Sqlite, OF_SQLITE);
}

#[test]
fn a_server_says_and_holds_what_memory_does() {
    hold(Kind::Redis, OF_REDIS);
}

#[test]
fn a_node_of_a_cluster_says_and_holds_what_memory_does() {
    hold(Kind::Cluster, OF_CLUSTER);
}
