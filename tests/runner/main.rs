//! Laws of the runner, with real processes. Nothing here waits for a fixed time and then
//! hopes: tests wait for lines in files, for ends, and fail at [`LIMIT`].

use std::ffi::OsString;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, test_kill_process};
use tempfile::TempDir;
use tokio::sync::oneshot;
use uuid::Uuid;

use soloist::runner::{OutputMode, Runner, RunningAttempt};
use soloist::scheduler::job::{CommandSpec, Job, JobName, Program};
use soloist::scheduler::lease::{Captured, FencingToken, Output, RunId};
use soloist::scheduler::schedule::{DstFold, DstGap, Schedule};
use soloist::scheduler::time::{BootTime, Timestamp};
use soloist::scheduler::{Attempt, EndedHow, Ending, Guard};

mod endings;
mod hostile;
mod many;
mod output;
mod stopping;
mod surroundings;

/// Longer than any test takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);
/// A grace or timeout that must not pass within a test.
const LONG: Duration = Duration::from_secs(3600);
/// A timeout that is to pass within a test.
const SHORT: Duration = Duration::from_millis(100);

/// A directory of its own for one test, and jobs that run in it.
struct Bench {
    dir: TempDir,
    runner: Runner,
}

impl Bench {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().expect("a temporary directory"),
            runner: runner_with("replica-1", std::env::vars_os()),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A job of `/bin/sh -c`, to be changed as a test wants.
    fn shell(&self, script: &str) -> Job {
        job(Program::Shell(script.to_owned()), self.dir.path())
    }

    fn command(&self, argv: &[&str]) -> Job {
        let argv = argv.iter().map(|word| (*word).to_owned()).collect();
        job(Program::Command(argv), self.dir.path())
    }

    fn start(&self, job: Job) -> Trial {
        let (told, ending) = oneshot::channel();
        let on_end = move |ending| told.send(ending).expect("the test still listens");
        let running = self.runner.start(attempt(job), OutputMode::Capture, on_end);
        Trial { running, ending }
    }

    async fn run(&self, job: Job) -> Ending {
        self.start(job).ended().await
    }

    /// Waits until a job has written a whole line into a file, and returns it.
    async fn line_in(&self, name: &str) -> String {
        let path = self.path(name);
        within_limit(async move {
            loop {
                match std::fs::read_to_string(&path) {
                    Ok(text) if text.ends_with('\n') => return text.trim_end().to_owned(),
                    _ => tokio::time::sleep(Duration::from_millis(2)).await,
                }
            }
        })
        .await
    }
}

/// A runner whose guardian is the real program.
fn runner_with(replica: &str, variables: impl IntoIterator<Item = (OsString, OsString)>) -> Runner {
    let program = env!("CARGO_BIN_EXE_soloist").into();
    Runner::guarded_by(program, replica.to_owned(), variables)
}

/// One attempt under way.
struct Trial {
    running: RunningAttempt,
    ending: oneshot::Receiver<Ending>,
}

impl Trial {
    async fn ended(self) -> Ending {
        within_limit(self.ending).await.expect("its end is told")
    }
}

async fn within_limit<T>(future: impl Future<Output = T>) -> T {
    let in_time = tokio::time::timeout(LIMIT, future).await;
    in_time.expect("it comes about within the limit")
}

fn job(program: Program, working_dir: &Path) -> Job {
    let zone = jiff::tz::TimeZone::UTC;
    let schedule = Schedule::parse("@manual", "", zone, DstGap::default(), DstFold::default());
    let name = JobName::new("close-expired-orders").expect("a name");
    let command = CommandSpec {
        working_dir: Some(working_dir.to_owned()),
        ..CommandSpec::new(program.clone())
    };
    Job {
        command,
        kill_grace: LONG,
        ..Job::new(name, schedule.expect("a schedule"), program)
    }
}

/// A lease that lasts longer than any boot.
fn no_deadline() -> Guard {
    let never = BootTime::since_boot(LONG * 24 * 365 * 100);
    Guard {
        stop_at: never,
        kill_at: never,
    }
}

fn attempt(job: Job) -> Attempt {
    Attempt {
        shard: 0,
        shards: 1,
        job: Arc::new(job),
        scheduled_at: Timestamp::from_second(1_795_212_000),
        run_id: RunId::new(Uuid::from_u128(7)),
        number: 3,
        token: FencingToken::new(1_795_212_000_000_001),
        guard: no_deadline(),
    }
}

/// What a stream holds, where none of it was cut.
fn whole(captured: &Captured) -> String {
    assert_eq!(captured.cut(), 0, "some of it was cut");
    let bytes = [captured.head.as_slice(), captured.tail.as_slice()].concat();
    String::from_utf8(bytes).expect("text")
}

fn stdout_of(ending: &Ending) -> String {
    whole(&ending.output.stdout)
}

fn reason_of(ending: &Ending) -> &str {
    ending.detail.reason.as_deref().unwrap_or_default()
}

/// Whether a process is there that has not ended.
fn is_alive(pid: &str) -> bool {
    let number = pid.parse().ok().and_then(Pid::from_raw).expect("a pid");
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    test_kill_process(number).is_ok() && !stat.contains(") Z ")
}
