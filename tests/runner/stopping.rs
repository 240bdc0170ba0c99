//! How attempts are ended from outside, and what is left of them: nothing.

use std::time::Instant;

use super::*;

/// A timeout before which a shell has read its first line, also on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Ends with 42 when it is told to, and not before.
const OBEYS: &str = "trap 'exit 42' TERM; echo $$ >pid; while :; do sleep 0.01; done";
/// Ends when it is killed.
const IGNORES: &str = "trap '' TERM; echo $$ >pid; while :; do sleep 0.01; done";

#[tokio::test]
async fn a_job_over_its_timeout_that_heeds_term_has_timed_out_and_nothing_else() {
    let bench = Bench::new();
    let mut job = bench.shell(OBEYS);
    job.timeout = Some(TIMEOUT);
    let started = Instant::now();
    let ending = bench.run(job).await;
    assert!(started.elapsed() >= TIMEOUT, "ended before its time");
    assert_eq!(ending.how, EndedHow::TimedOut);
    assert_eq!(ending.detail.exit_code, Some(42));
    assert_eq!(
        reason_of(&ending),
        "ran over its timeout of 2s: exited with code 42"
    );
}

#[tokio::test]
async fn a_job_over_its_timeout_that_ignores_term_is_killed_after_its_grace() {
    let bench = Bench::new();
    let mut job = bench.shell(IGNORES);
    (job.timeout, job.kill_grace) = (Some(TIMEOUT), SHORT);
    let started = Instant::now();
    let ending = bench.run(job).await;
    assert!(started.elapsed() >= TIMEOUT + SHORT, "had no grace");
    assert_eq!(
        (ending.how, ending.detail.signal),
        (EndedHow::TimedOut, Some(9))
    );
    assert!(reason_of(&ending).ends_with("killed by SIGKILL"));
}

#[tokio::test]
async fn a_job_within_its_timeout_is_left_alone() {
    let bench = Bench::new();
    let mut job = bench.shell("sleep 0.05");
    job.timeout = Some(LONG);
    assert_eq!(bench.run(job).await.how, EndedHow::Succeeded);
}

#[tokio::test]
async fn a_stopped_job_is_stopped_whatever_its_code() {
    let bench = Bench::new();
    let mut job = bench.shell(OBEYS);
    job.command.success_codes = vec![42];
    let trial = bench.start(job);
    bench.line_in("pid").await;
    trial.running.stop(LONG);
    let ending = trial.ended().await;
    assert_eq!(
        (ending.how, ending.detail.exit_code),
        (EndedHow::Stopped, Some(42))
    );
    assert_eq!(ending.detail.reason, None);
}

#[tokio::test]
async fn a_further_stop_shortens_the_grace() {
    let bench = Bench::new();
    let trial = bench.start(bench.shell(IGNORES));
    bench.line_in("pid").await;
    trial.running.stop(LONG);
    trial.running.stop(SHORT);
    let ending = trial.ended().await;
    assert_eq!(
        (ending.how, ending.detail.signal),
        (EndedHow::Stopped, Some(9))
    );
}

#[tokio::test]
async fn a_further_stop_never_lengthens_the_grace() {
    let bench = Bench::new();
    let trial = bench.start(bench.shell(IGNORES));
    bench.line_in("pid").await;
    trial.running.stop(SHORT);
    trial.running.stop(LONG);
    assert_eq!(trial.ended().await.detail.signal, Some(9));
}

#[tokio::test]
async fn a_stop_shortens_the_grace_of_a_timeout_and_leaves_the_cause() {
    let bench = Bench::new();
    let script = "trap 'echo told >told' TERM; while :; do sleep 0.01; done";
    let mut job = bench.shell(script);
    job.timeout = Some(TIMEOUT);
    let trial = bench.start(job);
    bench.line_in("told").await;
    trial.running.kill_now();
    let ending = trial.ended().await;
    assert_eq!(
        (ending.how, ending.detail.signal),
        (EndedHow::TimedOut, Some(9))
    );
}

#[tokio::test]
async fn a_stop_never_lengthens_the_grace_of_a_timeout() {
    let bench = Bench::new();
    let mut job = bench.shell("trap 'echo told >told' TERM; while :; do sleep 0.01; done");
    (job.timeout, job.kill_grace) = (Some(TIMEOUT), TIMEOUT);
    let trial = bench.start(job);
    bench.line_in("told").await;
    trial.running.stop(LONG);
    let ending = trial.ended().await;
    assert_eq!(
        (ending.how, ending.detail.signal),
        (EndedHow::TimedOut, Some(9))
    );
}

#[tokio::test]
async fn kill_now_gives_no_time_to_clean_up() {
    let bench = Bench::new();
    let trial = bench
        .start(bench.shell("trap 'echo >cleaned' TERM; echo >up; while :; do sleep 1000; done"));
    bench.line_in("up").await;
    trial.running.kill_now();
    assert_eq!(trial.ended().await.detail.signal, Some(9));
    assert!(!bench.path("cleaned").exists());
}

#[tokio::test]
async fn a_job_stopped_before_its_start_never_runs() {
    let bench = Bench::new();
    // There is one thread, and the task of the attempt has not had its turn yet.
    let trial = bench.start(bench.shell("echo >ran"));
    trial.running.stop(LONG);
    let ending = trial.ended().await;
    assert_eq!(
        (ending.how, ending.detail.exit_code),
        (EndedHow::Stopped, None)
    );
    assert_eq!(reason_of(&ending), "stopped before it was started");
    // A later one does run, so that the first would have by then.
    assert_eq!(
        bench.run(bench.shell("echo >ran2")).await.how,
        EndedHow::Succeeded
    );
    assert!(bench.path("ran2").exists() && !bench.path("ran").exists());
}

#[tokio::test]
async fn a_stop_during_the_spawn_is_not_lost() {
    let bench = Bench::new();
    for _ in 0..20 {
        let trial = bench.start(bench.shell("exec sleep 1000"));
        trial.running.stop(LONG);
        assert_eq!(trial.ended().await.how, EndedHow::Stopped);
        let trial = bench.start(bench.shell("exec sleep 1000"));
        tokio::task::yield_now().await; // its task runs up to the spawn
        trial.running.stop(LONG);
        assert_eq!(trial.ended().await.how, EndedHow::Stopped);
    }
}

#[tokio::test]
async fn a_stop_after_the_end_is_in_vain() {
    let bench = Bench::new();
    let Trial { running, ending } = bench.start(bench.shell("true"));
    assert_eq!(within_limit(ending).await.unwrap().how, EndedHow::Succeeded);
    running.stop(LONG);
    running.kill_now();
}

#[tokio::test]
async fn a_job_whose_handle_is_dropped_runs_on() {
    let bench = Bench::new();
    let script = "while [ ! -e go ]; do sleep 0.01; done; exit 5";
    let Trial { running, ending } = bench.start(bench.shell(script));
    drop(running);
    std::fs::write(bench.path("go"), "now\n").unwrap();
    assert_eq!(
        within_limit(ending).await.unwrap().detail.exit_code,
        Some(5)
    );
}

#[tokio::test]
async fn a_suspended_job_can_heed_a_stop() {
    let bench = Bench::new();
    let script = "trap 'exit 42' TERM; echo $$ >pid; kill -STOP $$; while :; do sleep 0.01; done";
    let trial = bench.start(bench.shell(script));
    let pid = bench.line_in("pid").await;
    let is_suspended = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.contains(") T ")
    };
    within_limit(async {
        while !is_suspended() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
    trial.running.stop(LONG);
    assert_eq!(trial.ended().await.detail.exit_code, Some(42));
}

#[tokio::test]
async fn the_whole_group_is_killed_with_its_leader() {
    let bench = Bench::new();
    let script = "trap '' TERM; (sleep 1000 & echo $! >grandchild; wait) & \
                  sleep 1000 & echo $! >child; wait";
    let trial = bench.start(bench.shell(script));
    let (child, grandchild) = (
        bench.line_in("child").await,
        bench.line_in("grandchild").await,
    );
    assert!(is_alive(&child) && is_alive(&grandchild));
    trial.running.stop(SHORT);
    trial.ended().await;
    assert!(!is_alive(&child) && !is_alive(&grandchild));
}

#[tokio::test]
async fn what_a_job_leaves_behind_in_its_group_ends_with_it() {
    let bench = Bench::new();
    let ending = bench
        .run(bench.shell("trap '' TERM; sleep 1000 & echo $! >child"))
        .await;
    assert_eq!(ending.how, EndedHow::Succeeded);
    assert!(!is_alive(&bench.line_in("child").await));
}

#[tokio::test]
async fn a_child_has_its_grace_though_the_leader_is_gone() {
    let bench = Bench::new();
    let child =
        "trap 'sleep 0.1; echo >cleaned; exit' TERM; echo >up; while :; do sleep 0.01; done";
    std::fs::write(bench.path("child.sh"), child).unwrap();
    let trial = bench.start(bench.shell("sh child.sh & wait"));
    bench.line_in("up").await;
    trial.running.stop(LONG);
    let ending = trial.ended().await;
    assert_eq!(
        (ending.how, ending.detail.signal),
        (EndedHow::Stopped, Some(15))
    );
    assert!(bench.path("cleaned").exists(), "the child was cut off");
}

#[test]
fn what_runs_is_killed_with_the_runtime() {
    let bench = Bench::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let pid = runtime.block_on(async {
        let _trial = bench.start(bench.shell("trap '' TERM; echo $$ >pid; sleep 1000"));
        bench.line_in("pid").await
    });
    drop(runtime);
    let started = Instant::now();
    while is_alive(&pid) {
        assert!(started.elapsed() < LIMIT, "it lives on");
        std::thread::sleep(Duration::from_millis(2));
    }
}
