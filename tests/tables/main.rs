//! The table of policies: each row a cron table, a script of what happens, and the ledger that
//! comes of it, the same on every store. All of them go by the world's time: memory and SQLite
//! by a clock that they are given, Redis by a library that is loaded into its server.
//!
//! The rows are in `rows/`, in this form:
//!
//! ```text
//! ## the law that it shows
//! [jobs.j]                    the cron table; what every row has is in `row.rs`
//! schedule = "0 * * * * *"
//! -- table                    another one, which replicas have that start after `table`
//! …
//! -- script
//! replicas a:zone=x b:max=2   three without tags if this isn't there
//! j 25                        attempts of it run for 25 s; 1 s if this isn't there
//! j 25 failed #1              the first attempts end like this (`#2`: and the second ones)
//! 10 crash all                what happens, and when: see `script.rs`
//! 300 end
//! -- ledger
//! j 60..240 (4) missed catch_up          a line for several occurrences: see `notation.rs`
//! j 300 #1 A 310-311 succeeded           A is whoever came first
//! ```
//!
//! `ROW` picks rows by a part of their name. Chance decides which replica goes first, how much of
//! a back-off is cut and how soon a job heeds TERM; all rows have one seed.

mod engines;
mod notation;
mod row;
mod script;
mod upkeep;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use self::engines::Engine;
use self::row::Row;
use soloist_simulation::world::World;
use test_support::machine::while_it_runs;

const ROWS: [(&str, &str); 8] = [
    ("late", include_str!("rows/late.txt")),
    ("busy", include_str!("rows/busy.txt")),
    ("failed", include_str!("rows/failed.txt")),
    ("crashed", include_str!("rows/crashed.txt")),
    ("placed", include_str!("rows/placed.txt")),
    ("asked", include_str!("rows/asked.txt")),
    ("after", include_str!("rows/after.txt")),
    ("edited", include_str!("rows/edited.txt")),
];

/// How many rows there are at least: what is not read shows nothing.
const ROWS_AT_LEAST: usize = 40;

const SEED: u64 = 1;

fn rows() -> Vec<Row> {
    let files = ROWS.iter();
    let rows: Vec<_> = files
        .flat_map(|(file, text)| Row::read(file, text))
        .collect();
    assert!(rows.len() >= ROWS_AT_LEAST, "{} rows", rows.len());
    let picked = std::env::var("ROW").unwrap_or_default();
    let mut rows = rows;
    rows.retain(|row| row.name.contains(&picked));
    rows
}

/// What a row comes to: in short, and in full but for ids and tokens.
struct Came {
    short: Vec<String>,
    full: Vec<String>,
}

fn play(row: &Row, engine: &Engine) -> Came {
    let jobs = row.tables[0].clone();
    let mut world = World::on(engine.premises(), SEED, jobs, |_| {
        unreachable!("rows have a plot")
    });
    world.network.slowest_ms = 0;
    world.plot = Some(row.plot());
    let mut tables = row.tables.iter().skip(1);
    for replica in &row.replicas {
        world.start_with(replica.tags.clone(), replica.max_running);
    }
    for step in &row.steps {
        script::perform(&mut world, step, || {
            let table = tables.next().expect("as many tables as the script takes");
            table.iter().cloned().map(Arc::new).collect()
        });
    }
    soloist_simulation::checks::check_shards(&world);
    Came {
        short: notation::short(&world, row),
        full: notation::full(&world),
    }
}

/// How a row differs from what it should be, on this engine. A real server takes the machine's time: a
/// call that it lets time out comes later in the world's.
fn judge(row: &Row, engine: &Engine, memory: &Engine) -> Result<(), String> {
    let came = play(row, engine);
    let differs = |came: &[String], other: &str, there: &[String]| {
        let (came, there) = (came.join("\n"), there.join("\n"));
        Err(format!(
            "## {}: {}\n{came}\n({other}:)\n{there}\n",
            row.file, row.name
        ))
    };
    if came.short != row.ledger {
        return differs(&came.short, "expected", &row.ledger);
    }
    if engine.is_memory() {
        return Ok(());
    }
    let there = play(row, memory);
    match came.full == there.full {
        true => Ok(()),
        false => differs(&came.full, "in memory", &there.full),
    }
}

/// Plays every row on an engine, and tells of all that differ from what they should be, and of those
/// whose script finds nobody whom it speaks of, or that break a law of all worlds.
fn hold(engine: &Engine) {
    let memory = Engine::memory();
    let mut red = rows();
    red.retain(|row| {
        let holds = || while_it_runs(|| judge(row, engine, &memory));
        catch_unwind(AssertUnwindSafe(holds)).is_err()
    });
    let red: Vec<&str> = red.iter().map(|row| row.name.as_str()).collect();
    assert!(red.is_empty(), "{} rows are red: {red:#?}", red.len());
}

#[test]
fn every_row_of_the_table_holds_in_memory() {
    hold(&Engine::memory());
}

#[test]
fn every_row_of_the_table_holds_on_sqlite() {
    hold(&Engine::sqlite());
}

#[test]
fn every_row_of_the_table_holds_on_redis() {
    hold(&Engine::redis());
}
