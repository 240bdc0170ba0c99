//! Jobs that do what no job should: none of it keeps anything of them alive, or its end untold.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

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

/// By its cgroup it is found, even without an environment, a parent or a group of its kind.
#[tokio::test]
async fn a_process_that_hides_while_its_guardian_and_keeper_are_killed_is_found_by_its_cgroup() {
    let bench = Bench::new();
    let script = format!(
        "grep -q soloist- /proc/self/cgroup || exit 9; \
         setsid env -i /bin/sh -c '(setsid sleep 1000 & echo $! >hidden) & exit'; \
         while [ ! -s hidden ]; do sleep 0.01; done; \
         {KILL_GUARDIAN}; kill -KILL $PPID; sleep 1000"
    );
    let ending = start(&bench, bench.shell(&script)).ended().await;
    if ending.detail.exit_code == Some(9) {
        return eprintln!("!!! NOT SHOWN: no cgroup is delegated to this test");
    }
    assert_eq!(ending.how, EndedHow::Failed);
    let hidden = bench.line_in("hidden").await;
    assert!(!is_alive(&hidden));
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

/// A user whom nobody else is, so that a limit of processes is this test's alone.
fn limited(bench: &Bench, uid: u32, script: &str) -> Option<Job> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("!!! NOT SHOWN: only root can run a job as a user with a limit of its own");
        return None;
    }
    // `-p` in dash.
    let limit = "(ulimit -u 150) 2>/dev/null && ulimit -u 150 || ulimit -p 150 || exit 9";
    let mut job = bench.shell(&format!("{limit}; trap '' TERM; {script}"));
    let id = Some(uid.to_string());
    (job.command.user, job.command.group) = (id.clone(), id);
    job.command.working_dir = None;
    (job.timeout, job.kill_grace) = (Some(SHORT), SHORT);
    Some(job)
}

fn processes_of(uid: u32) -> usize {
    let all = std::fs::read_dir("/proc").expect("/proc").flatten();
    let is_of = |entry: &std::fs::DirEntry| entry.metadata().is_ok_and(|of| of.uid() == uid);
    all.filter(is_of).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_bomb_is_ended_by_its_timeout() {
    const UID: u32 = 54_321;
    let bench = Bench::new();
    let anybody = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(bench.dir.path(), anybody).unwrap();
    // Whoever can't have a child any more writes that down.
    let bomb = format!(
        "exec perl -e '$full = shift; while (1) {{ defined fork or -e $full or \
         open $to, \">\", $full and print $to \"full\\n\" and close $to }}' {}",
        bench.path("full").display()
    );
    let Some(mut job) = limited(&bench, UID, &bomb) else {
        return;
    };
    // Until then it goes off, also on a busy machine.
    job.timeout = Some(Duration::from_secs(2));
    let trial = start(&bench, job);
    bench.line_in("full").await;
    assert_eq!(trial.ended().await.how, EndedHow::TimedOut);
    assert_eq!(processes_of(UID), 0, "processes of it live on");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_flees_by_forking_and_leaving_is_caught() {
    const UID: u32 = 54_322;
    let bench = Bench::new();
    // Each child goes on, and each parent leaves.
    let flee = "for _ in 1 2 3 4 5; do perl -e 'while (1) { exit if fork }' & done; sleep 1000";
    let Some(job) = limited(&bench, UID, flee) else {
        return;
    };
    assert_eq!(start(&bench, job).ended().await.how, EndedHow::TimedOut);
    assert_eq!(processes_of(UID), 0, "processes of it live on");
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

/// A subreaper (prctl(2)) takes in what its descendants leave, as the keeper does.
#[tokio::test]
async fn what_a_job_takes_in_as_a_subreaper_ends_with_it() {
    let bench = Bench::new();
    let script = r#"
        my $prctl = `uname -m` =~ /x86_64/ ? 157 : 167;
        syscall($prctl, 36, 1, 0, 0, 0) == 0 or die;
        my $job = $$;
        if (!fork) {
            my $between = $$;
            if (!fork) {
                select undef, undef, undef, 0.001 while getppid == $between;
                getppid == $job or die;
                open my $file, '>', 'taken_in';
                print $file "$$\n";
                close $file;
                sleep 1000;
            }
            exit;
        }
        sleep 1000 while 1;"#;
    let trial = start(&bench, bench.command(&["perl", "-e", script]));
    let taken_in = bench.line_in("taken_in").await;
    trial.running.kill_now();
    assert_eq!(trial.ended().await.how, EndedHow::Stopped);
    assert!(!is_alive(&taken_in));
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

/// A keeper doesn't wait for its daemon to read, and what it tells has to fit the socket.
#[tokio::test]
async fn a_program_with_an_endless_name_is_refused_in_few_words() {
    let bench = Bench::new();
    let name = "x".repeat(600_000);
    for _ in 0..5 {
        let ending = start(&bench, bench.command(&[&name])).ended().await;
        let reason = reason_of(&ending);
        assert!(reason.starts_with("can't start `xxx"), "{reason:.200}");
        assert!(reason.len() < 32 * 1024, "{} bytes", reason.len());
    }
}
