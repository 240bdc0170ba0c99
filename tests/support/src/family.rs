//! A job that is a whole tree of processes, each of which says where it is.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::c;
use crate::process::Process;

const SOURCE: &str = include_str!("family.c");

/// The compiled family: `family LOG KIND [MILLIS]`. It is compiled once per test process, by
/// `cc`.
///
/// # Panics
///
/// When there is no C compiler.
pub fn family() -> &'static Path {
    static FAMILY: OnceLock<PathBuf> = OnceLock::new();
    FAMILY.get_or_init(|| c::compile("family", SOURCE))
}

/// What tree a family is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A child beside the leader.
    Plain,
    /// And a child in a session of its own.
    Setsid,
    /// Two that were adopted by whoever reaps them, one of them without any environment.
    DoubleFork,
    /// All of these, and none minds a signal that it can ignore.
    Stubborn,
    /// All write as fast as they can, whether anybody reads or not.
    Flooding,
    /// All but one write down when they are told to end; one of these ends then.
    Listening,
}

impl Kind {
    /// Those that have nothing to say about their end.
    pub const ALL: [Self; 5] = [
        Self::Plain,
        Self::Setsid,
        Self::DoubleFork,
        Self::Stubborn,
        Self::Flooding,
    ];

    /// As the program takes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Setsid => "setsid",
            Self::DoubleFork => "double-fork",
            Self::Stubborn => "stubborn",
            Self::Flooding => "flooding",
            Self::Listening => "listening",
        }
    }

    /// How many processes it has.
    #[must_use]
    pub fn size(self) -> usize {
        match self {
            Self::Plain => 2,
            Self::Setsid | Self::DoubleFork | Self::Flooding => 3,
            Self::Stubborn | Self::Listening => 5,
        }
    }
}

/// One process of a family.
#[derive(Clone, Debug)]
pub struct Member {
    /// The process.
    pub process: Process,
    /// What it is in its family: `leader`, `child`, `session`, `orphan`, `bare`, `deaf`.
    pub role: String,
    /// The job.
    pub job: String,
    /// The occurrence, RFC 3339.
    pub scheduled_at: String,
    /// The attempt.
    pub attempt: u32,
    /// The replica that ran it.
    pub replica: String,
    /// The attempt's own id.
    pub run_id: String,
    /// When it started, in nanoseconds since the epoch.
    pub started_ns: i128,
    /// When it was told to end, each time.
    pub told_ns: Vec<i128>,
}

/// Reads what families wrote, in the order in which their members came. A missing file is an
/// empty one.
///
/// # Panics
///
/// When there are lines that a family didn't write.
#[must_use]
pub fn members(log: &Path) -> Vec<Member> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let mut members: Vec<Member> = Vec::new();
    // The last line may be in the making.
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    for line in whole.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let [
            what,
            at,
            pid,
            start_time,
            role,
            job,
            scheduled_at,
            attempt,
            _token,
            replica,
            run_id,
        ] = fields[..]
        else {
            panic!("no line of a family: {line}");
        };
        let at: i128 = at.parse().expect("nanoseconds");
        let process = Process {
            pid: pid.parse().expect("a process id"),
            start_time: start_time.parse().expect("a start time"),
        };
        if what == "term" {
            let mut known = members.iter_mut();
            let member = known.find(|member| member.process == process);
            member.expect("a start before").told_ns.push(at);
            continue;
        }
        members.push(Member {
            process,
            role: role.to_owned(),
            job: job.to_owned(),
            scheduled_at: scheduled_at.to_owned(),
            attempt: attempt.parse().unwrap_or(0),
            replica: replica.to_owned(),
            run_id: run_id.to_owned(),
            started_ns: at,
            told_ns: Vec::new(),
        });
    }
    members
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::process::{Deaths, Signal};

    const SOON: Duration = Duration::from_secs(10);

    fn all_there(log: &Path, kind: Kind) -> Vec<Member> {
        let end = Instant::now() + SOON;
        loop {
            let found = members(log);
            if found.len() >= kind.size() {
                return found;
            }
            assert!(Instant::now() < end, "{kind:?}: {found:#?}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    #[test]
    fn every_member_of_every_kind_is_known_and_its_death_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        for kind in Kind::ALL.into_iter().chain([Kind::Listening]) {
            let log = dir.path().join(kind.name());
            let mut leader = Command::new(family())
                .args([log.as_os_str(), kind.name().as_ref()])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let found = all_there(&log, kind);
            assert_eq!(found.len(), kind.size(), "{found:#?}");
            let processes: Vec<Process> = found.iter().map(|member| member.process).collect();
            assert!(processes.iter().all(|process| process.is_alive()));
            let deaths = Deaths::watch(&processes, SOON);
            for process in &processes {
                process.signal(Signal::KILL);
            }
            assert_eq!(deaths.join().survivors(), []);
            assert!(processes.iter().all(|process| !process.is_alive()));
            leader.wait().unwrap();
        }
    }

    #[test]
    fn a_listener_says_that_it_was_told_and_only_the_polite_one_ends() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let mut leader = Command::new(family())
            .args([log.as_os_str(), "listening".as_ref()])
            .spawn()
            .unwrap();
        let found = all_there(&log, Kind::Listening);
        let polite = found.iter().find(|member| member.role == "session");
        let deaths = Deaths::watch(&[polite.unwrap().process], SOON);
        for member in &found {
            member.process.signal(Signal::TERM);
        }
        assert_eq!(deaths.join().survivors(), []);
        let end = Instant::now() + SOON;
        let told = |member: &&Member| !member.told_ns.is_empty();
        while members(&log).iter().filter(told).count() < 4 {
            assert!(Instant::now() < end, "{:#?}", members(&log));
            std::thread::sleep(Duration::from_millis(2));
        }
        let alive: Vec<&Member> = found.iter().filter(|m| m.process.is_alive()).collect();
        assert_eq!(alive.len(), 4);
        for member in alive {
            member.process.signal(Signal::KILL);
        }
        leader.wait().unwrap();
    }
}
