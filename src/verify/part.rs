//! What this program does when a self-test has started it again: it is a replica, or a job.
//!
//! A replica is `soloist run` itself, executed by a process that has asked to die with the
//! self-test first. A job writes down that it lives: when it starts, while it lasts, when it
//! ends, each a line at the end of its file in one write. As long as it lives it holds a lock of
//! the kernel on a file of its job; whoever starts and finds that lock taken has met another one.
//!
//! Must never: be listed as a command, or tell what it should have done instead of what it did.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use super::evidence::{Line, Started};
use crate::clock::Clock;

/// The first argument of such a start.
pub const WORD: &str = "verify-part";

/// How a job ends that can't write down what it does: EX_IOERR (sysexits.h).
pub(super) const CANT_WRITE: u8 = 74;

/// How often a job says that it lives.
const SIGN_OF_LIFE: Duration = Duration::from_millis(50);

/// Why it could not do what was asked for.
struct Trouble {
    code: u8,
    cause: String,
}

impl From<String> for Trouble {
    fn from(cause: String) -> Self {
        Self { code: 2, cause }
    }
}

impl From<&str> for Trouble {
    fn from(cause: &str) -> Self {
        cause.to_owned().into()
    }
}

/// Does what was asked for; none where this is no such start.
pub fn run_if_asked(clock: &dyn Clock) -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    if words.next()?.to_str() != Some(WORD) {
        return None;
    }
    let words: Vec<OsString> = words.collect();
    let done = match words.first().and_then(|word| word.to_str()) {
        Some("replica") => replica(&words[1..]),
        Some("job") => job(&words[1..], clock),
        _ => Err("it is started by `soloist verify` alone".into()),
    };
    Some(match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Trouble { code, cause }) => {
            // There is nobody else to tell.
            let _ = writeln!(std::io::stderr(), "error: {WORD}: {cause}");
            ExitCode::from(code)
        }
    })
}

/// `replica PARENT WORD…`: becomes `soloist WORD…`, and dies with its parent.
fn replica(words: &[OsString]) -> Result<(), Trouble> {
    let (parent, words) = words.split_first().ok_or("no parent was named")?;
    let parent = parent.to_str().and_then(|text| text.parse().ok());
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| error.to_string())?;
    // It may have died before that.
    if getppid().map(Pid::as_raw_pid) != parent {
        return Err("the self-test is gone".into());
    }
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let error = Command::new(program).args(words).exec();
    Err(format!("failed to become a replica: {error}").into())
}

/// `job DIR MILLIS`: lasts that long.
fn job(words: &[OsString], clock: &dyn Clock) -> Result<(), Trouble> {
    let [dir, lasts] = words else {
        return Err("a job is given a directory and how long it lasts".into());
    };
    let lasts = lasts.to_str().and_then(|text| text.parse().ok());
    let lasts = Duration::from_millis(lasts.ok_or("how long it lasts is no number")?);
    let name = variable("SOLOIST_JOB")?;
    let dir = Path::new(dir);
    let began = clock.boot();
    let lock = open(&dir.join(format!("{name}.lock")))?;
    let met = match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => false,
        Err(Errno::WOULDBLOCK) => true,
        Err(error) => return Err(format!("its lock: {error}").into()),
    };
    let mut log = open(&dir.join(format!("{name}.log")))?;
    let run = variable("SOLOIST_RUN_ID")?;
    let now_us = || u64::try_from(clock.boot().as_duration().as_micros()).unwrap_or(u64::MAX);
    let started = Started {
        scheduled_at: variable("SOLOIST_SCHEDULED_AT")?,
        attempt: number("SOLOIST_ATTEMPT")?,
        token: number("SOLOIST_FENCING_TOKEN")?,
        replica: variable("SOLOIST_REPLICA")?,
        pid: std::process::id(),
        met,
    };
    let line = |event: fn(String, u64) -> Line| event(run.clone(), now_us());
    write(&mut log, &Line::Start(run.clone(), now_us(), started))?;
    loop {
        let left = lasts.saturating_sub(clock.boot().saturating_since(began));
        if left.is_zero() {
            break;
        }
        std::thread::sleep(left.min(SIGN_OF_LIFE));
        write(&mut log, &line(Line::Alive))?;
    }
    write(&mut log, &line(Line::End))?;
    drop(lock);
    Ok(())
}

fn variable(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|error| format!("{name}: {error}"))
}

fn number<T: std::str::FromStr>(name: &str) -> Result<T, String> {
    let text = variable(name)?;
    text.parse().map_err(|_| format!("{name} is no number"))
}

fn open(path: &Path) -> Result<File, Trouble> {
    let opened = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path);
    opened.map_err(|error| Trouble {
        code: CANT_WRITE,
        cause: format!("{}: {error}", path.display()),
    })
}

fn write(log: &mut File, line: &Line) -> Result<(), Trouble> {
    let mut text = serde_json::to_vec(line).map_err(|error| error.to_string())?;
    text.push(b'\n');
    // In one write, so that lines of two jobs never mix (open(2), O_APPEND).
    log.write_all(&text).map_err(|error| Trouble {
        code: CANT_WRITE,
        cause: error.to_string(),
    })
}
