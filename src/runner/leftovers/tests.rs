//! Laws of the sweep, with real processes. Each test has a replica's name of its own, so that
//! tests which run at the same time don't end each other's processes.

use std::os::unix::process::CommandExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use tempfile::TempDir;
use uuid::Uuid;

use super::census::Census;
use super::*;
use crate::clock::{Clock, SystemClock};

/// The leftovers of a replica, as one look finds them.
fn find(replica: &str) -> Result<Vec<Leftover>, SweepError> {
    look(&Whose::Replica(replica.to_owned()))
}

/// Every process of an attempt, whoever is above it.
fn of_run(run_id: &RunId) -> Result<Vec<Leftover>, SweepError> {
    look(&Whose::Run(run_id.to_string()))
}

fn look(whose: &Whose) -> Result<Vec<Leftover>, SweepError> {
    Ok(Census::take()?.find(whose, &[]).leftovers)
}

/// Longer than anything takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);
/// A grace that must not pass within a test.
const LONG: Duration = Duration::from_secs(3600);

/// A replica that died, and what it left behind.
struct Scene {
    replica: String,
    run_id: RunId,
    dir: TempDir,
    children: Vec<Child>,
}

impl Scene {
    fn new() -> Self {
        Self {
            replica: format!("r-{}", Uuid::new_v4()),
            run_id: RunId::new(Uuid::new_v4()),
            dir: tempfile::tempdir().unwrap(),
            children: Vec::new(),
        }
    }

    /// The environment that a job has.
    fn marks(&self) -> [(&'static str, String); 3] {
        [
            ("SOLOIST_RUN_ID", self.run_id.to_string()),
            ("SOLOIST_REPLICA", self.replica.clone()),
            ("SOLOIST_JOB", "close-expired-orders".to_owned()),
        ]
    }

    /// `/bin/sh -c`, with `marks` as the words by which `env -i` marks a child.
    fn shell(&self, script: &str) -> Command {
        let marks = self.marks().map(|(name, value)| format!("{name}={value}"));
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", script])
            .env_clear()
            .env("marks", marks.join(" "))
            .current_dir(self.dir.path())
            .stdin(Stdio::null());
        command
    }

    fn start(&mut self, mut command: Command) -> u32 {
        let child = command.spawn().unwrap();
        let pid = child.id();
        self.children.push(child);
        pid
    }

    /// A job's first process, in a session of its own, that nobody watches over.
    fn leave(&mut self, script: &str) -> u32 {
        let mut command = Command::new("/usr/bin/setsid");
        command
            .args(["/bin/sh", "-c", script])
            .env_clear()
            .envs(self.marks())
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            // So that setsid(1) doesn't fork: it does if it leads a group.
            .process_group(rustix::process::getpgrp().as_raw_pid());
        self.start(command)
    }

    /// What runs by a file's telling: a whole line with a pid.
    fn pid_in(&self, name: &str) -> u32 {
        let path: PathBuf = self.dir.path().join(name);
        let text = eventually(|| {
            let text = std::fs::read_to_string(&path).ok()?;
            text.ends_with('\n').then_some(text)
        });
        text.trim().parse().unwrap()
    }

    fn found(&self) -> Vec<u32> {
        pids(&find(&self.replica).unwrap())
    }

    fn wait_for_file(&self, name: &str) {
        eventually(|| self.dir.path().join(name).exists().then_some(()));
    }

    async fn end_all(&self, grace: Duration) -> Report {
        let report = end_all(&self.replica, grace).await.unwrap();
        assert!(report.survivors.is_empty(), "{report:?}");
        report
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn pids(leftovers: &[Leftover]) -> Vec<u32> {
    let mut pids: Vec<u32> = leftovers.iter().map(|leftover| leftover.pid).collect();
    pids.sort_unstable();
    pids
}

fn sorted<const N: usize>(mut pids: [u32; N]) -> [u32; N] {
    pids.sort_unstable();
    pids
}

/// Waits for what other processes do.
fn eventually<T>(wanted: impl Fn() -> Option<T>) -> T {
    let end = SystemClock.boot() + LIMIT;
    loop {
        if let Some(found) = wanted() {
            return found;
        }
        assert!(SystemClock.boot() < end, "not within {LIMIT:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn living(pid: u32) -> Option<Process> {
    Process::read(pid.cast_signed()).filter(|process| !process.is_zombie())
}

fn is_alive(pid: u32) -> bool {
    living(pid).is_some()
}

#[tokio::test]
async fn a_leftover_is_told_by_its_environment_and_ended() {
    let mut scene = Scene::new();
    let pid = scene.leave("echo $$ > pid; exec sleep 1000");
    assert_eq!(scene.pid_in("pid"), pid);
    let found = eventually(|| {
        let found = find(&scene.replica).unwrap();
        (found.len() == 1 && found[0].command == "sleep").then_some(found)
    });
    assert_eq!(found[0].pid, pid);
    assert_eq!(found[0].run_id, scene.run_id.to_string());
    assert_eq!(found[0].job, "close-expired-orders");
    let report = scene.end_all(Duration::ZERO).await;
    assert_eq!(pids(&report.ended), [pid]);
    assert!(!is_alive(pid));
    assert!(report.undecided.is_empty());
    assert!(scene.end_all(Duration::ZERO).await.ended.is_empty());
}

#[tokio::test]
async fn other_replicas_other_names_and_unmarked_processes_are_left_alone() {
    let mut scene = Scene::new();
    let unmarked = scene.shell("exec sleep 1000");
    let unmarked = scene.start(unmarked);
    let mut only_the_name = scene.shell("exec sleep 1000");
    // As an operator sets it for the daemon itself.
    only_the_name.env("SOLOIST_REPLICA", &scene.replica);
    let only_the_name = scene.start(only_the_name);
    let mut other = scene.shell("exec sleep 1000");
    other.envs(scene.marks());
    other.env("SOLOIST_REPLICA", format!("{}-2", scene.replica));
    let other = scene.start(other);
    let leftover = scene.leave("exec sleep 1000");
    eventually(|| (scene.found() == [leftover]).then_some(()));
    let report = scene.end_all(Duration::ZERO).await;
    assert_eq!(pids(&report.ended), [leftover]);
    assert!(is_alive(unmarked) && is_alive(only_the_name) && is_alive(other));
}

#[tokio::test]
async fn what_a_living_guardian_watches_over_is_not_touched() {
    let mut scene = Scene::new();
    let script = "env -i $marks sh -c 'echo $$ > pid; sleep 1000; :' & wait";
    let mut guardian = scene.shell(script);
    guardian.env("SOLOIST_GUARDIAN", "1");
    let guardian = scene.start(guardian);
    let job = scene.pid_in("pid");
    assert_eq!(scene.found(), [0; 0]);
    assert!(scene.end_all(Duration::ZERO).await.ended.is_empty());
    assert!(is_alive(guardian) && is_alive(job));
    // The guardian dies, and with that the job is a leftover, and its child as well.
    scene.children[0].kill().unwrap();
    scene.children[0].wait().unwrap();
    eventually(|| (scene.found().len() == 2).then_some(()));
    assert_eq!(scene.end_all(Duration::ZERO).await.ended.len(), 2);
    assert!(!is_alive(job));
}

#[tokio::test]
async fn a_guardian_further_up_guards_too() {
    let mut scene = Scene::new();
    let script = "env -i sh -c 'env -i \"$@\" sh -c \"echo \\$\\$ > pid; sleep 1000; :\" & wait' \
                  sh $marks & wait";
    let mut guardian = scene.shell(script);
    guardian.env("SOLOIST_GUARDIAN", "1");
    scene.start(guardian);
    let job = scene.pid_in("pid");
    assert_eq!(scene.found(), [0; 0]);
    // By the run's id they are found whoever is above them.
    eventually(|| (of_run(&scene.run_id).unwrap().len() == 2).then_some(()));
    let report = end_run(&scene.run_id).await.unwrap();
    assert_eq!(report.ended.len(), 2, "{report:?}");
    assert!(!is_alive(job));
}

#[tokio::test]
async fn a_daemon_guards_as_well_unless_it_is_part_of_a_job() {
    let mut scene = Scene::new();
    // A shell that goes by the daemon's name.
    let daemon = scene.dir.path().join("soloist");
    std::os::unix::fs::symlink("/bin/sh", &daemon).unwrap();
    for marked in [false, true] {
        let mut command = Command::new(&daemon);
        let script = scene.shell("env -i $marks sh -c 'echo $$ > pid; sleep 1000; :' & wait");
        command
            .args(script.get_args())
            .current_dir(scene.dir.path());
        command
            .env_clear()
            .env("marks", script.get_envs().next().unwrap().1.unwrap());
        if marked {
            command.envs(scene.marks());
        }
        let daemon = scene.start(command);
        let job = scene.pid_in("pid");
        assert_eq!(living(daemon).unwrap().command, "soloist");
        // The job's shell has started what it is to start.
        let size = if marked { 3 } else { 2 };
        eventually(|| (of_run(&scene.run_id).unwrap().len() == size).then_some(()));
        let ended = scene.end_all(Duration::ZERO).await.ended;
        assert_eq!(ended.len(), if marked { 3 } else { 0 }, "{ended:?}");
        assert_eq!(is_alive(job), !marked);
        end_run(&scene.run_id).await.unwrap();
        std::fs::remove_file(scene.dir.path().join("pid")).unwrap();
    }
}

#[tokio::test]
async fn a_stopped_guardian_is_woken_to_do_its_duty() {
    let mut scene = Scene::new();
    // This one ends its job when it is told to, as a guardian does whose daemon died.
    let script = "trap 'kill -9 $job; exit' USR1; \
                  env -i $marks sh -c 'echo $$ > pid; exec sleep 1000' & job=$!; \
                  echo > ready; while :; do wait; done";
    let mut guardian = scene.shell(script);
    guardian.env("SOLOIST_GUARDIAN", "1");
    let guardian = scene.start(guardian);
    let job = scene.pid_in("pid");
    scene.wait_for_file("ready");
    let signal = |signal| living(guardian).unwrap().signal(signal).unwrap();
    signal(Signal::STOP);
    eventually(|| living(guardian)?.is_stopped().then_some(()));
    signal(Signal::USR1);
    assert!(is_alive(job));
    let report = scene.end_all(Duration::ZERO).await;
    assert!(report.ended.is_empty(), "{report:?}");
    // The sweep waits for the guardian for a moment only, and leaves the job to it then.
    eventually(|| (!is_alive(job)).then_some(()));
}

#[tokio::test]
async fn children_that_wiped_their_environment_go_with_their_parent() {
    let mut scene = Scene::new();
    let script = "env -i sh -c 'echo $$ > child; setsid sh -c \"echo \\$\\$ > grandchild; \
                  sleep 1000; :\"; :' & wait";
    let parent = scene.leave(script);
    let (child, grandchild) = (scene.pid_in("child"), scene.pid_in("grandchild"));
    let found = eventually(|| {
        let found = scene.found();
        (found.len() == 4).then_some(found)
    });
    for pid in [parent, child, grandchild] {
        assert!(found.contains(&pid), "{pid} in {found:?}");
    }
    let report = scene.end_all(Duration::ZERO).await;
    assert_eq!(pids(&report.ended), found);
    assert!(
        report
            .ended
            .iter()
            .all(|ended| ended.run_id == scene.run_id.to_string())
    );
    assert!(!is_alive(child) && !is_alive(grandchild));
}

#[tokio::test]
async fn an_orphan_that_kept_its_environment_is_found_in_any_session() {
    let mut scene = Scene::new();
    let first = scene.leave("setsid sh -c 'echo $$ > orphan; exec sleep 1000' & exit 0");
    let orphan = scene.pid_in("orphan");
    scene.children[0].wait().unwrap();
    eventually(|| (scene.found() == [orphan]).then_some(()));
    scene.end_all(Duration::ZERO).await;
    assert!(!is_alive(first) && !is_alive(orphan));
}

#[tokio::test]
async fn a_wiped_orphan_is_found_by_the_session_that_its_leader_left() {
    let mut scene = Scene::new();
    let wiped = "env -i sh -c 'echo $$ > wiped; exec sleep 1000'";
    let script = format!("({wiped} &); sh -c 'echo $$ > marked; exec sleep 1000' & exit 0");
    scene.leave(&script);
    let (wiped, marked) = (scene.pid_in("wiped"), scene.pid_in("marked"));
    scene.children[0].wait().unwrap();
    eventually(|| (scene.found() == sorted([wiped, marked])).then_some(()));
    scene.end_all(Duration::ZERO).await;
    assert!(!is_alive(wiped) && !is_alive(marked));
}

#[tokio::test]
async fn a_session_with_others_in_it_is_not_the_jobs() {
    let mut scene = Scene::new();
    // Its first process is no job; it starts one, which timeout(1) puts into a group of its
    // own, and goes.
    let script = "sh -c 'echo $$ > stranger; exec sleep 1000' & \
                  env -i $marks timeout 1000 sh -c 'echo $$ > job; exec sleep 1000' & exit 0";
    let mut command = scene.shell(script);
    let inner = command.get_args().nth(1).unwrap().to_owned();
    let marks = command.get_envs().next().unwrap().1.unwrap().to_owned();
    command = Command::new("/usr/bin/setsid");
    command
        .args(["/bin/sh", "-c"])
        .arg(inner)
        .env_clear()
        .env("marks", marks);
    command.current_dir(scene.dir.path()).stdin(Stdio::null());
    scene.start(command);
    let (stranger, job) = (scene.pid_in("stranger"), scene.pid_in("job"));
    scene.children[0].wait().unwrap();
    let [of_job, of_stranger] = [job, stranger].map(|pid| living(pid).unwrap());
    assert_eq!(of_job.session, of_stranger.session, "the scene is as meant");
    assert_ne!(of_job.group, of_stranger.group, "the scene is as meant");
    assert_eq!(scene.end_all(Duration::ZERO).await.ended.len(), 2);
    assert!(!is_alive(job) && is_alive(stranger));
    of_stranger.signal(Signal::KILL).unwrap();
}

#[tokio::test]
async fn a_grace_lets_a_leftover_clean_up_and_wakes_a_stopped_one() {
    let mut scene = Scene::new();
    let script = "trap 'echo > cleaned; exit 7' TERM; echo > ready; while :; do sleep 0.01; done";
    let pid = scene.leave(script);
    scene.wait_for_file("ready");
    living(pid).unwrap().signal(Signal::STOP).unwrap();
    eventually(|| living(pid)?.is_stopped().then_some(()));
    scene.end_all(LONG).await;
    assert_eq!(scene.children[0].wait().unwrap().code(), Some(7));
    scene.wait_for_file("cleaned");
}

#[tokio::test]
async fn a_leftover_that_outlives_its_grace_is_killed() {
    let mut scene = Scene::new();
    let pid = scene.leave("trap '' TERM HUP; echo > ready; while :; do sleep 0.01; done");
    scene.wait_for_file("ready");
    let report = scene.end_all(Duration::from_millis(50)).await;
    assert!(pids(&report.ended).contains(&pid));
    assert_eq!(scene.children[0].wait().unwrap().signal(), Some(9));
}

/// A process that forks and goes, over and over.
const HOPPER: &str = "echo > going\nsleep 0.005\nsetsid sh ./hopper &\nexit 0\n";

#[tokio::test]
async fn a_leftover_that_hops_from_process_to_process_is_ended() {
    let mut scene = Scene::new();
    let hopper = scene.dir.path().join("hopper");
    std::fs::write(&hopper, HOPPER).unwrap();
    scene.leave("exec sh ./hopper");
    scene.wait_for_file("going");
    assert!(!scene.end_all(Duration::ZERO).await.ended.is_empty());
    // Looks twice, whoever is above it.
    let report = end_run(&scene.run_id).await.unwrap();
    assert!(report.ended.is_empty(), "{report:?}");
}

#[tokio::test]
async fn a_child_that_is_started_during_the_sweep_does_not_get_away() {
    let mut scene = Scene::new();
    // Once their parent is dead, nothing tells these from anybody else's processes.
    let script = "i=0; while [ $i -lt 3000 ]; do i=$((i + 1)); \
                  env -i setsid tail -f $PWD/file & [ $i = 20 ] && echo > going; done; wait";
    let file = scene.dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    scene.leave(script);
    scene.wait_for_file("going");
    let ended = scene.end_all(Duration::ZERO).await.ended;
    assert!(ended.len() > 20, "{}", ended.len());
    let all = process::pids()
        .unwrap()
        .into_iter()
        .filter_map(Process::read);
    let escaped = all.filter(|process| {
        let arguments = std::fs::read(format!("/proc/{}/cmdline", process.pid));
        String::from_utf8_lossy(&arguments.unwrap_or_default()).contains(file.to_str().unwrap())
    });
    let escaped: Vec<Process> = escaped.collect();
    escaped
        .iter()
        .for_each(|process| process.signal(Signal::KILL).unwrap());
    assert!(escaped.is_empty(), "{} of {}", escaped.len(), ended.len());
}

#[test]
fn a_look_costs_microseconds_a_process() {
    let scene = Scene::new();
    let look = || {
        let started = SystemClock.boot();
        assert_eq!(scene.found(), [0; 0]);
        SystemClock.boot().saturating_since(started)
    };
    // The best of some: others are busy on this machine.
    let best = (0..10).map(|_| look()).min().unwrap();
    let count = u32::try_from(process::pids().unwrap().len()).unwrap();
    println!("one look at {count} processes: {best:.2?}");
    assert!(
        best / count < Duration::from_micros(500),
        "{best:?} for {count}"
    );
}
