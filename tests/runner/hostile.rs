//! Jobs that do what no job should: none of it keeps anything of them alive, or its end untold.

use super::*;

/// Under an id of its own: what a dead keeper leaves is found, and killed, by that.
fn start(bench: &Bench, job: Job) -> Trial {
    let attempt = Attempt {
        run_id: RunId::new(Uuid::new_v4()),
        ..attempt(job)
    };
    let (told, ending) = oneshot::channel();
    let on_end = move |ending| told.send(ending).expect("the test still listens");
    let running = bench.runner.start(attempt, OutputMode::Capture, on_end);
    Trial { running, ending }
}

/// Kills the guardian that the job's keeper is a child of, and nobody else.
const KILL_GUARDIAN: &str = "read -r _ _ _ guardian _ </proc/$PPID/stat; \
    read -r name </proc/$guardian/comm; [ \"$name\" = job-guardian ] && kill -KILL $guardian";

/// Waits until a process has ended; whoever is its parent reaps it.
async fn gone(pid: &str) {
    within_limit(async {
        while is_alive(pid) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

/// Words of a line that a job has written into a file.
async fn words_in(bench: &Bench, name: &str) -> Vec<String> {
    let line = bench.line_in(name).await;
    line.split_whitespace().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_job_that_kills_its_keeper_dies_with_all_it_started_and_has_failed() {
    let bench = Bench::new();
    let script = "(setsid sh -c 'trap \"\" TERM HUP; echo $$ >escaped; sleep 1000') & \
                  sleep 1000 & echo $$ $! >pids; while [ ! -s escaped ]; do sleep 0.01; done; \
                  kill -KILL $PPID; sleep 1000";
    let ending = start(&bench, bench.shell(script)).ended().await;
    assert_eq!(ending.how, EndedHow::Failed);
    assert!(
        reason_of(&ending).contains("keeper"),
        "{}",
        reason_of(&ending)
    );
    let mut pids = words_in(&bench, "pids").await;
    pids.push(bench.line_in("escaped").await);
    for pid in pids {
        assert!(!is_alive(&pid), "{pid} lives though the end was told");
    }
}

#[tokio::test]
async fn a_job_that_stops_its_keeper_is_ended_in_time_all_the_same() {
    let bench = Bench::new();
    let mut job = bench.shell("while :; do kill -STOP $PPID; sleep 0.01; done");
    (job.timeout, job.kill_grace) = (Some(SHORT), SHORT);
    assert_eq!(start(&bench, job).ended().await.how, EndedHow::TimedOut);
}

#[tokio::test]
async fn a_job_that_kills_the_guardian_goes_on_and_so_does_what_comes_after_it() {
    let bench = Bench::new();
    let script = format!(
        "{KILL_GUARDIAN}; echo $guardian >guardian; while [ ! -e go ]; do sleep 0.01; done; exit 5"
    );
    let trial = start(&bench, bench.shell(&script));
    gone(&bench.line_in("guardian").await).await;
    let next = start(&bench, bench.shell("true")).ended().await;
    assert_eq!(next.how, EndedHow::Succeeded, "{}", reason_of(&next));
    std::fs::write(bench.path("go"), "now\n").unwrap();
    assert_eq!(trial.ended().await.detail.exit_code, Some(5));
}

#[tokio::test]
async fn attempts_that_start_while_guardians_die_start_with_the_next() {
    let bench = Bench::new();
    for _ in 0..20 {
        let trial = start(&bench, bench.shell(KILL_GUARDIAN));
        let others: Vec<_> = (0..5)
            .map(|_| start(&bench, bench.shell("exit 3")))
            .collect();
        let ending = trial.ended().await;
        assert_eq!(ending.how, EndedHow::Succeeded, "{}", reason_of(&ending));
        // It was killed a moment ago, and who is asked now may be it.
        let later = start(&bench, bench.shell("exit 3"));
        for other in others.into_iter().chain([later]) {
            let ending = other.ended().await;
            assert_eq!(ending.detail.exit_code, Some(3), "{}", reason_of(&ending));
        }
    }
}

/// What is left of a bomb that is limited to so many processes of a user whom nobody else is.
#[tokio::test]
async fn a_fork_bomb_is_ended_by_its_timeout() {
    let bench = Bench::new();
    let mut job = bench.shell("trap '' TERM; bomb() { bomb | bomb & }; bomb; sleep 1000");
    (job.timeout, job.kill_grace) = (Some(SHORT), SHORT);
    let started = std::time::Instant::now();
    let ending = start(&bench, limited(job)).ended().await;
    println!("{:?}", started.elapsed());
    assert_eq!(ending.how, EndedHow::TimedOut);
    assert!(nobody_is_left(), "processes of it live on");
}

#[tokio::test]
async fn a_job_that_flees_by_forking_and_leaving_is_caught() {
    let bench = Bench::new();
    let script = "trap '' TERM; flee() { ( flee & ); }; \
                  for _ in 1 2 3 4 5 6 7 8; do flee & done; sleep 1000";
    let mut job = bench.shell(script);
    (job.timeout, job.kill_grace) = (Some(SHORT), SHORT);
    let started = std::time::Instant::now();
    let ending = start(&bench, limited(job)).ended().await;
    println!("{:?}", started.elapsed());
    assert_eq!(ending.how, EndedHow::TimedOut);
    assert!(nobody_is_left(), "processes of it live on");
}

const LIMITED_USER: u32 = 54_321;
fn limited(mut job: Job) -> Job {
    job.command.user = Some(LIMITED_USER.to_string());
    job.command.group = Some(LIMITED_USER.to_string());
    job.command.working_dir = None;
    let Program::Shell(script) = &mut job.command.program else {
        panic!()
    };
    *script = format!(
        "(ulimit -u 200) 2>/dev/null && ulimit -u 200 || ulimit -p 200 || exit 9; {script}"
    );
    job
}

fn nobody_is_left() -> bool {
    use std::os::unix::fs::MetadataExt;
    let all = std::fs::read_dir("/proc").expect("/proc").flatten();
    !all.filter_map(|entry| Some((entry.metadata().ok()?.uid(), entry.file_name())))
        .any(|(uid, name)| uid == LIMITED_USER && is_alive(&name.to_string_lossy()))
}

#[tokio::test]
async fn a_job_with_a_thousand_children_ends_whole() {
    let bench = Bench::new();
    let script = "trap '' TERM; n=0; while [ $n -lt 1000 ]; do sleep 1000 & n=$((n+1)); done; \
                  echo $! >last; wait";
    let trial = start(&bench, bench.shell(script));
    let last = bench.line_in("last").await;
    trial.running.kill_now();
    assert_eq!(trial.ended().await.how, EndedHow::Stopped);
    assert!(!is_alive(&last));
}

#[tokio::test]
async fn a_tree_three_hundred_deep_ends_whole() {
    let bench = Bench::new();
    let script = "trap '' TERM; if [ $1 -gt 0 ]; then sh deep.sh $(($1-1)); else \
                  echo $$ >deepest; sleep 1000; fi; :\n";
    std::fs::write(bench.path("deep.sh"), script).unwrap();
    let trial = start(&bench, bench.shell("sh deep.sh 300"));
    let deepest = bench.line_in("deepest").await;
    trial.running.kill_now();
    assert_eq!(trial.ended().await.how, EndedHow::Stopped);
    assert!(!is_alive(&deepest));
}

#[tokio::test]
async fn a_job_whose_lease_has_run_out_before_it_begins_never_runs() {
    let bench = Bench::new();
    let late = Attempt {
        guard: Guard {
            stop_at: BootTime::since_boot(Duration::from_secs(1)),
            kill_at: BootTime::since_boot(Duration::from_secs(2)),
        },
        ..attempt(bench.shell("echo >ran"))
    };
    let (told, ending) = oneshot::channel();
    let on_end = move |ending| told.send(ending).expect("the test still listens");
    bench.runner.start(late, OutputMode::Capture, on_end);
    let ending = within_limit(ending).await.expect("its end is told");
    assert_eq!(ending.how, EndedHow::Stopped);
    assert!(reason_of(&ending).starts_with("not started: its lease"));
    assert!(!bench.path("ran").exists());
}
