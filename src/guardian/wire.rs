//! What a daemon and a keeper tell each other: JSON, one message a line, over the stream socket
//! that the keeper was made with.
//!
//! ```text
//!   daemon                         keeper
//!     │ ◀──────────── Ready ──────── │  from here on the job may come to run
//!     │ ───────────── Launch ──────▶ │
//!     │ ◀──────────── Started ────── │
//!     │ ─ Extend, Signal, Stop, … ─▶ │  in any order, any number
//!     │ ◀──────────── Ended ──────── │  nothing of the job runs any more
//! ```
//!
//! The end of the stream is a message too. To a keeper: the daemon is gone, kill everything. To
//! the daemon: the keeper is gone; before `Ready`, nothing was started.
//!
//! Both ends are the same program, of the same build, so the messages need no versions.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};
use std::mem;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::facts::{CutShort, Exit, SpawnError};
use super::http::HttpCall;
use super::identity::Identity;
use crate::scheduler::time::BootTime;

/// Longer than any message: what execve(2) takes is far below it.
const MESSAGE_LIMIT: usize = 64 * 1024 * 1024;

/// One attempt, as its keeper is told of it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Launch {
    pub(crate) work: Work,
    pub(crate) surroundings: Surroundings,
    /// From its start on the boot clock; none for as long as it takes.
    pub(crate) timeout: Option<Duration>,
    /// From TERM to KILL after the timeout.
    pub(crate) kill_grace: Duration,
    /// What its lease allows.
    pub(crate) deadline: Deadline,
    /// Where a cgroup for it can be made, if anywhere, and its name.
    pub(crate) cgroup: Option<(PathBuf, String)>,
}

/// What there is to do.
#[derive(Serialize, Deserialize)]
pub(crate) enum Work {
    /// A program, named as in a shell, and its arguments.
    Execute {
        program: String,
        arguments: Vec<String>,
    },
    /// A request, made by a process of its own, which ends with it.
    Call(HttpCall),
}

impl Work {
    /// What it is called where it can't be started.
    pub(super) fn name(&self) -> &str {
        match self {
            Work::Execute { program, .. } => program,
            Work::Call(_) => "http",
        }
    }
}

/// In what surroundings a job runs.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Surroundings {
    /// All of its environment.
    #[serde(with = "variables")]
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// None for the daemon's own.
    pub(crate) working_dir: Option<PathBuf>,
    pub(crate) identity: Identity,
    /// None for the daemon's own.
    pub(crate) umask: Option<u32>,
    /// The soft limit of open files that the daemon was started with (getrlimit(2)); it may
    /// have raised its own.
    pub(crate) open_files: Option<u64>,
}

/// Variables as text where they are text. serde's own form of an `OsString` is a number for each
/// byte, which takes several times as long to write and to read.
mod variables {
    use std::borrow::Cow;
    use std::ffi::{OsStr, OsString};
    use std::os::unix::ffi::{OsStrExt, OsStringExt};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    enum Written<'a> {
        #[serde(borrow)]
        Text(Cow<'a, str>),
        Bytes(Cow<'a, [u8]>),
    }

    fn write(word: &OsStr) -> Written<'_> {
        match word.to_str() {
            Some(text) => Written::Text(text.into()),
            None => Written::Bytes(word.as_bytes().into()),
        }
    }

    fn read(word: Written<'_>) -> OsString {
        match word {
            Written::Text(text) => text.into_owned().into(),
            Written::Bytes(bytes) => OsString::from_vec(bytes.into_owned()),
        }
    }

    pub(super) fn serialize<S: Serializer>(
        variables: &[(OsString, OsString)],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(
            variables
                .iter()
                .map(|(name, value)| (write(name), write(value))),
        )
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<(OsString, OsString)>, D::Error> {
        let written = Vec::<(Written<'_>, Written<'_>)>::deserialize(from)?;
        let pairs = written.into_iter();
        Ok(pairs
            .map(|(name, value)| (read(name), read(value)))
            .collect())
    }
}

/// Names without values: an environment may hold secrets.
impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&OsString> = self.environment.iter().map(|(name, _)| name).collect();
        f.debug_struct("Surroundings")
            .field("environment", &names)
            .field("working_dir", &self.working_dir)
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

/// By when an attempt has to end for the sake of its lease, on this host's boot clock. The
/// keeper holds it whether or not the daemon is able to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Deadline {
    stop_at: Duration,
    kill_at: Duration,
}

impl Deadline {
    /// TERM at `stop_at`, KILL at `kill_at`.
    pub(crate) fn new(stop_at: BootTime, kill_at: BootTime) -> Self {
        Self {
            stop_at: stop_at.as_duration(),
            kill_at: kill_at.as_duration(),
        }
    }

    /// When TERM is due.
    pub(crate) fn stop_at(self) -> BootTime {
        BootTime::since_boot(self.stop_at)
    }

    /// When KILL is due.
    pub(crate) fn kill_at(self) -> BootTime {
        BootTime::since_boot(self.kill_at)
    }
}

/// What a keeper is told while its attempt runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Order {
    /// The lease was renewed.
    Extend(Deadline),
    /// End it: TERM now, KILL at this time since boot. Said again, the earlier time counts.
    Stop { kill_at: Duration },
    /// Send this signal to its first process, as soon as that is the program that it is to be.
    Signal { number: i32 },
}

/// What a keeper tells.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// It is there, and waits for the launch.
    Ready,
    /// The job runs.
    Started,
    /// The job ended, and nothing that it started runs any more.
    Ended(End),
}

/// How an attempt ended.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct End {
    pub(crate) exit: Exit,
    /// Why it was ended from outside, if it was.
    pub(crate) cut_short: Option<CutShort>,
    pub(crate) used: Used,
    /// Processes that even KILL did not end in time: they hang in the kernel (uninterruptible
    /// sleep, say on a dead NFS server). Almost always empty.
    pub(crate) left_behind: Vec<u32>,
}

impl End {
    /// Of an attempt of which nothing ran.
    pub(crate) fn not_started(error: SpawnError) -> Self {
        Self {
            exit: Exit::NotStarted(error),
            cut_short: None,
            used: Used::default(),
            left_behind: Vec::new(),
        }
    }
}

/// What an attempt used, as far as it could be measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Used {
    /// Processor time of all its processes, user and system.
    pub(crate) cpu: Option<Duration>,
    pub(crate) peak_memory: Option<PeakMemory>,
}

/// The most memory that an attempt held, in bytes, and whose that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum PeakMemory {
    /// Of all its processes together: it had a cgroup with a memory controller (`memory.peak`).
    OfAll(u64),
    /// Of the largest of them, its resident set (getrusage(2)).
    OfLargest(u64),
}

/// A message as it goes over the wire.
///
/// # Errors
/// When it can't be said in JSON, which no message of ours can't.
pub(crate) fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// Reads a message that came as a line, with or without its end.
///
/// # Errors
/// When it is not such a message.
pub(crate) fn decode<T: DeserializeOwned>(line: &[u8]) -> io::Result<T> {
    Ok(serde_json::from_slice(line)?)
}

/// A keeper's end of the stream: sends at once, and takes in what comes, as it comes.
#[derive(Debug)]
pub(super) struct Link {
    stream: UnixStream,
    received: Vec<u8>,
    /// How much of that is known to hold no end of a line.
    searched: usize,
}

/// What was received.
pub(super) enum Received<T> {
    Message(T),
    /// Not yet a whole message.
    Nothing,
    /// The other end is gone.
    End,
}

impl Link {
    pub(super) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            received: Vec::new(),
            searched: 0,
        })
    }

    pub(super) fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// Says something. The few short messages of a keeper fit the socket's buffer, so that a
    /// daemon which doesn't read can't hold it up.
    pub(super) fn tell(&mut self, report: &Report) -> io::Result<()> {
        self.stream.write_all(&encode(report)?)
    }

    /// The next message, without waiting. A stream that broke, or that holds what is no
    /// message, counts as ended: nobody sensible is at its other end.
    pub(super) fn receive<T: DeserializeOwned>(&mut self) -> Received<T> {
        loop {
            let new = self.received.iter().skip(self.searched);
            if let Some(end) = new.copied().position(|byte| byte == b'\n') {
                let rest = self.received.split_off(self.searched + end + 1);
                let line = mem::replace(&mut self.received, rest);
                self.searched = 0;
                return decode(&line).map_or(Received::End, Received::Message);
            }
            self.searched = self.received.len();
            match self.read() {
                Ok(0) => return Received::End,
                Ok(_) if self.received.len() > MESSAGE_LIMIT => return Received::End,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Received::Nothing;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Received::End,
            }
        }
    }

    fn read(&mut self) -> io::Result<usize> {
        let mut chunk = [0; 16 * 1024];
        let count = io::Read::read(&mut self.stream, &mut chunk)?;
        self.received.extend_from_slice(&chunk[..count]);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Shutdown;

    use super::*;

    #[test]
    fn messages_are_received_whole_however_they_are_cut() {
        let (mut daemon, keeper) = UnixStream::pair().unwrap();
        let mut link = Link::new(keeper).unwrap();
        let stop = Order::Stop {
            kill_at: Duration::from_millis(7),
        };
        let line = encode(&stop).unwrap();
        let (first, second) = line.split_at(5);
        assert!(matches!(link.receive::<Order>(), Received::Nothing));
        daemon.write_all(first).unwrap();
        assert!(matches!(link.receive::<Order>(), Received::Nothing));
        daemon.write_all(&[second, &line].concat()).unwrap();
        for _ in 0..2 {
            let Received::Message(received) = link.receive::<Order>() else {
                panic!("a whole message is there");
            };
            assert_eq!(received, stop);
        }
        // As at its last end. To drop this one is not enough: a process that another test is about
        // to start has a copy until it executes its program.
        daemon.shutdown(Shutdown::Both).unwrap();
        assert!(matches!(link.receive::<Order>(), Received::End));
    }

    #[test]
    fn an_environment_arrives_as_it_is_be_it_text_or_not() {
        use std::os::unix::ffi::OsStringExt;
        let variable = |name: &str, value: &[u8]| (name.into(), OsString::from_vec(value.into()));
        let surroundings = Surroundings {
            environment: vec![
                variable("TEXT", "a\"\\\n\u{0}ä".as_bytes()),
                variable("BYTES", b"\xff\n\0"),
                variable("", b""),
            ],
            working_dir: None,
            identity: Identity::default(),
            umask: None,
            open_files: None,
        };
        let line = encode(&surroundings).unwrap();
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        let received: Surroundings = decode(&line).unwrap();
        assert_eq!(received.environment, surroundings.environment);
    }

    #[test]
    fn what_is_no_message_ends_the_stream() {
        let (mut daemon, keeper) = UnixStream::pair().unwrap();
        let mut link = Link::new(keeper).unwrap();
        daemon.write_all(b"{}\n").unwrap();
        assert!(matches!(link.receive::<Order>(), Received::End));
    }
}
