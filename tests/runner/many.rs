//! Many attempts at once, and what each costs.

use std::collections::BTreeMap;
use std::time::Instant;

use tokio::sync::mpsc;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_jobs_at_once_each_end_once_and_with_their_own_code() {
    const JOBS: i32 = 200;
    let bench = Bench::new();
    let (told, mut endings) = mpsc::unbounded_channel();
    for number in 0..JOBS {
        let job = attempt(bench.shell(&format!("echo {number}; exit {}", number % 7)));
        let told = told.clone();
        let on_end = move |ending| told.send((number, ending)).expect("the test still listens");
        bench.runner.start(job, OutputMode::Capture, on_end);
    }
    drop(told);
    let mut seen = BTreeMap::new();
    // Ends when every `on_end` has been called or dropped.
    while let Some((number, ending)) = within_limit(endings.recv()).await {
        assert_eq!(stdout_of(&ending), format!("{number}\n"));
        assert_eq!(ending.detail.exit_code, Some(number % 7));
        assert!(
            seen.insert(number, ending.how).is_none(),
            "{number} was told twice"
        );
    }
    assert_eq!(seen.len(), usize::try_from(JOBS).unwrap());
}

fn open_descriptors() -> Vec<String> {
    let entries = std::fs::read_dir("/proc/self/fd").expect("/proc");
    let links = entries.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    links.map(|link| link.display().to_string()).collect()
}

/// How attempts are paid for in descriptors: all come back. Other tests run meanwhile, so the
/// law is that many attempts leave no more behind than those could hold.
#[tokio::test]
async fn ended_attempts_hold_no_descriptors() {
    let bench = Bench::new();
    let before = open_descriptors().len();
    for _ in 0..300 {
        bench.run(bench.command(&["true"])).await;
    }
    let after = open_descriptors().len();
    assert!(
        after < before + 250,
        "{before} descriptors before, {after} after"
    );
}

/// Printed, not asserted: it is the machine's. `cargo test -- --ignored --nocapture rate`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn the_rate_of_attempts() {
    const JOBS: u32 = 2_000;
    let bench = Bench::new();
    for at_once in [1, 64] {
        let started = Instant::now();
        for _ in 0..JOBS / at_once {
            let job = || bench.start(bench.command(&["/bin/true"]));
            for trial in (0..at_once).map(|_| job()).collect::<Vec<_>>() {
                trial.ended().await;
            }
        }
        let each = started.elapsed() / JOBS;
        println!(
            "{at_once} at once: {each:?} an attempt, {:.0}/s",
            1.0 / each.as_secs_f64()
        );
    }
}
