//! What happened around something that does not hold, for whoever has to find out why.
//!
//! Must never: be read by a program.

use std::fmt::Write as _;

use serde_json::Value;
use test_support::account::{Occurrence, SECOND, Stretch, occurrence};

use crate::judge::Evidence;
use crate::stage::Stage;

/// How much of all of it is told: so many broken things, and of some of them so long before and after.
const LISTED: usize = 30;
const TOLD: usize = 3;
const AROUND_S: i64 = 8;

/// How much of each log, without what jobs printed.
const LOG_LINES: usize = 40;

type Broken = (String, Option<Occurrence>);

/// Prints it, with the seed; whole logs are left in a directory.
pub(crate) fn tell(seed: u64, stage: &Stage, evidence: &Evidence, broken: &[Broken]) {
    println!("\n=== SEED={seed}: {} things do not hold", broken.len());
    for (what, _) in broken.iter().take(LISTED) {
        println!("  {what}");
    }
    if broken.len() > LISTED {
        println!("  and {} more", broken.len() - LISTED);
    }
    let since = |ns: i128| (ns - stage.begun_ns) as f64 / SECOND as f64;
    let about = || broken.iter().filter_map(|(_, about)| about.as_ref());
    if let Some((job, at)) = about().min_by_key(|(_, at)| *at) {
        let due = since(i128::from(*at) * SECOND);
        println!("the first of them is of {job}, due {due:.1} s after all was ready");
    }
    println!("\n--- faults, in seconds since all was ready");
    for one in &stage.happened {
        let (from, until) = (since(one.begun_ns), since(one.ended_ns));
        println!("  {from:8.3} to {until:8.3}  {:?}", one.fault);
    }
    for loss in &evidence.losses_ns {
        println!("  {:8.3}  all data are lost", since(*loss));
    }
    for about in about().take(TOLD) {
        around(about, evidence, &since);
    }
    logs(seed, stage);
}

fn around((job, at): &Occurrence, evidence: &Evidence, since: &dyn Fn(i128) -> f64) {
    let near = |other: i64| (other - at).abs() <= AROUND_S;
    let due = since(i128::from(*at) * SECOND);
    println!("\n--- {job}, what was due at {due:.3}: runs");
    for run in evidence.runs.iter().chain(&evidence.same_token) {
        let (of, due) = occurrence(run);
        if of == *job && near(due) {
            let due = since(i128::from(due) * SECOND);
            let ended = run
                .ended_ns
                .map_or("never".to_owned(), |ns| format!("{:.3}", since(ns)));
            println!(
                "  due {due:.3}, attempt {}, token {}, on {}, from {:.3} to {ended}, beside: {}",
                run.attempt,
                run.token,
                run.replica,
                since(run.started_ns),
                run.beside
            );
        }
    }
    println!("--- and lines");
    let is_near = |line: &&Value| {
        let stretch = Stretch::of(line);
        stretch.job == *job && (near(stretch.through) || near(stretch.since))
    };
    for line in evidence.lines.iter().filter(is_near) {
        println!("  {line}");
    }
}

/// Tails for the reader, and whole files for whoever wants to know more.
fn logs(seed: u64, stage: &Stage) {
    let program = std::env::current_exe().expect("a test program");
    let dir = program.with_file_name(format!("chaos-{seed}"));
    let mut all = String::new();
    for (number, (name, started_ns, log)) in stage.logs().iter().enumerate() {
        let began = (started_ns - stage.begun_ns) as f64 / SECOND as f64;
        let own: Vec<&str> = log
            .lines()
            .filter(|line| !line.contains(" stream=\""))
            .collect();
        let tail = &own[own.len().saturating_sub(LOG_LINES)..];
        let _ = writeln!(
            all,
            "\n--- {name}, started at {began:.3}:\n{}",
            tail.join("\n")
        );
        let file = dir.join(format!("{number}-{name}.log"));
        let written = std::fs::create_dir_all(&dir).and_then(|()| std::fs::write(file, log));
        written.expect("a place for logs");
    }
    println!("{all}\nwhole logs are in {}", dir.display());
}
