//! Processes as the kernel shows them, and the moments at which they die.

use std::fs;
use std::os::fd::OwnedFd;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, WaitOptions, pidfd_open, pidfd_send_signal};

pub use rustix::process::Signal;

use crate::fleet::now_ns;
use crate::machine::stood_still;

/// One process, which is never taken for another that is given its pid later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Process {
    /// Its id.
    pub pid: i32,
    /// When it started, in ticks since the boot: field 22 of proc_pid_stat(5).
    pub start_time: u64,
}

/// What is read of /proc/PID/stat.
struct Stat {
    comm: String,
    state: char,
    parent: i32,
    start_time: u64,
}

fn stat(pid: i32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (start, rest) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    Some(Stat {
        comm: start.split_once('(')?.1.to_owned(),
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        start_time: fields.get(19)?.parse().ok()?,
    })
}

impl Process {
    /// The process that has this id now.
    #[must_use]
    pub fn of(pid: i32) -> Option<Self> {
        let start_time = stat(pid)?.start_time;
        Some(Self { pid, start_time })
    }

    /// Every process of the host, zombies included.
    ///
    /// # Panics
    ///
    /// Where there is no /proc.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let entries = fs::read_dir("/proc").expect("a proc file system");
        let pids =
            entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
        pids.filter_map(Self::of).collect()
    }

    fn stat(self) -> Option<Stat> {
        stat(self.pid).filter(|stat| stat.start_time == self.start_time)
    }

    /// `R`, `S`, `T`, `Z`, …; none once it was reaped.
    #[must_use]
    pub fn state(self) -> Option<char> {
        Some(self.stat()?.state)
    }

    /// Whether it could still do anything. A zombie can't.
    #[must_use]
    pub fn is_alive(self) -> bool {
        self.state()
            .is_some_and(|state| !matches!(state, 'Z' | 'X'))
    }

    /// Its name, at most 15 bytes of it.
    #[must_use]
    pub fn comm(self) -> String {
        self.stat().map_or(String::new(), |stat| stat.comm)
    }

    /// Its children, zombies included.
    #[must_use]
    pub fn children(self) -> Vec<Self> {
        let is_child = |process: &Self| {
            let stat = process.stat();
            stat.is_some_and(|stat| stat.parent == self.pid)
        };
        Self::all().into_iter().filter(is_child).collect()
    }

    /// Its living children of that name.
    #[must_use]
    pub fn children_named(self, comm: &str) -> Vec<Self> {
        let mut children = self.children();
        children.retain(|child| child.is_alive() && child.comm() == comm);
        children
    }

    /// How many of its children are zombies.
    #[must_use]
    pub fn zombies(self) -> usize {
        let children = self.children().into_iter();
        children.filter(|child| child.state() == Some('Z')).count()
    }

    /// All that descend from it now.
    #[must_use]
    pub fn descendants(self) -> Vec<Self> {
        let mut found = vec![self];
        let mut next = 0;
        while next < found.len() {
            found.extend(found[next].children());
            next += 1;
        }
        found.remove(0);
        found
    }

    /// How many descriptors it has open; 0 once it has ended.
    #[must_use]
    pub fn descriptors(self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.pid)).map_or(0, Iterator::count)
    }

    /// How much of it is in memory, in KiB; 0 once it has ended.
    #[must_use]
    pub fn resident_kib(self) -> u64 {
        let value = self.status("VmRSS");
        value.trim_end_matches(" kB").parse().unwrap_or(0)
    }

    /// Whether it has a handler for this signal.
    #[must_use]
    pub fn catches(self, signal: Signal) -> bool {
        let mask = u64::from_str_radix(&self.status("SigCgt"), 16).unwrap_or(0);
        mask >> (signal.as_raw() - 1) & 1 == 1
    }

    /// What it was started with, with blanks between.
    #[must_use]
    pub fn command_line(self) -> String {
        let bytes = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\0', " ")
    }

    /// A line of /proc/PID/status; empty where there is none.
    #[must_use]
    pub fn status(self, name: &str) -> String {
        let text = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        let found = lines.find(|(key, _)| *key == name);
        found.map_or(String::new(), |(_, value)| value.trim().to_owned())
    }

    /// Something that is this process for as long as it is held.
    fn handle(self) -> Option<OwnedFd> {
        let handle = pidfd_open(Pid::from_raw(self.pid)?, PidfdFlags::empty()).ok()?;
        // Asked after it was opened: the handle can't be another process's by now.
        self.stat().map(|_| handle)
    }

    /// Sends it a signal. Says whether it was there to get it.
    pub fn signal(self, signal: Signal) -> bool {
        let handle = self.handle();
        handle.is_some_and(|handle| pidfd_send_signal(handle, signal).is_ok())
    }

    /// Waits until it is in this state.
    ///
    /// # Panics
    ///
    /// When it is not within ten seconds.
    pub fn wait_for_state(self, wanted: impl Fn(Option<char>) -> bool) {
        let end = Instant::now() + Duration::from_secs(10);
        while !wanted(self.state()) {
            assert!(Instant::now() < end, "{self:?} is {:?}", self.state());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// SIGSTOP, and waits until it has stopped.
    ///
    /// # Panics
    ///
    /// When it doesn't.
    pub fn freeze(self) {
        assert!(self.signal(Signal::STOP), "{self:?} has ended");
        self.wait_for_state(|state| state == Some('T'));
    }

    /// SIGCONT.
    pub fn thaw(self) {
        self.signal(Signal::CONT);
    }
}

/// Has this process adopt whatever loses its parent below it, so that nothing that it started is
/// ever out of its sight.
///
/// # Panics
///
/// Where the kernel can't.
pub fn adopt_orphans() {
    let own = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(own)).expect("a subreaper");
}

/// Lets go of the adopted children that are dead. Only when nobody waits for a child of its own.
pub fn bury_the_dead() {
    let own = Process::of(rustix::process::getpid().as_raw_pid());
    for child in own.map(Process::children).unwrap_or_default() {
        if child.state() == Some('Z') {
            let _ = rustix::process::waitpid(Pid::from_raw(child.pid), WaitOptions::NOHANG);
        }
    }
}

/// A watch over processes, which says when each of them died. It is told by the kernel and never
/// looks around: what it says is late by a wake-up at most, and never early.
#[derive(Debug)]
pub struct Deaths(JoinHandle<Ended>);

/// When processes died.
#[derive(Clone, Debug)]
pub struct Ended {
    died: Vec<(Process, Option<i128>)>,
    dead_before: Vec<Process>,
    still: Duration,
}

impl Deaths {
    /// Watches from now on, for so long at most.
    #[must_use]
    pub fn watch(processes: &[Process], within: Duration) -> Self {
        let end = Instant::now() + within;
        let watched: Vec<(Process, Option<OwnedFd>)> = processes
            .iter()
            .map(|process| (*process, process.handle()))
            .collect();
        let dead = processes.iter().filter(|process| !process.is_alive());
        let dead_before = dead.copied().collect();
        let before = stood_still();
        Self(std::thread::spawn(move || Ended {
            died: watch(watched, end),
            dead_before,
            still: stood_still() - before,
        }))
    }

    /// Waits until all are dead, or the time is over.
    ///
    /// # Panics
    ///
    /// When the watch did.
    #[must_use]
    pub fn join(self) -> Ended {
        self.0.join().expect("a watch that doesn't panic")
    }
}

fn watch(watched: Vec<(Process, Option<OwnedFd>)>, end: Instant) -> Vec<(Process, Option<i128>)> {
    let began = now_ns();
    let mut died: Vec<(Process, Option<i128>)> = Vec::new();
    let mut left: Vec<(Process, OwnedFd)> = Vec::new();
    for (process, handle) in watched {
        match handle {
            Some(handle) => left.push((process, handle)),
            // It was dead already.
            None => died.push((process, Some(began))),
        }
    }
    let mut is_over = false;
    while !left.is_empty() && !is_over {
        let rest = end.saturating_duration_since(Instant::now());
        // One more look, without waiting: this thread may have its turn long after a death.
        is_over = rest.is_zero();
        let mut handles: Vec<PollFd<'_>> = left
            .iter()
            .map(|(_, handle)| PollFd::new(handle, PollFlags::IN))
            .collect();
        let timeout = Timespec::try_from(rest).expect("a short time");
        let _ = poll(&mut handles, Some(&timeout));
        let now = now_ns();
        let ended: Vec<bool> = handles
            .iter()
            .map(|handle| handle.revents().contains(PollFlags::IN))
            .collect();
        let mut ended = ended.into_iter();
        left.retain(|(process, _)| {
            let dead = ended.next() == Some(true);
            if dead {
                died.push((*process, Some(now)));
            }
            !dead
        });
    }
    died.extend(left.into_iter().map(|(process, _)| (process, None)));
    died
}

impl Ended {
    /// How long the machine stood still meanwhile: by so much what had to come in time may be late.
    #[must_use]
    pub fn still(&self) -> Duration {
        self.still
    }

    /// Those that lived on.
    #[must_use]
    pub fn survivors(&self) -> Vec<Process> {
        let alive = self.died.iter().filter(|(_, died)| died.is_none());
        alive.map(|(process, _)| *process).collect()
    }

    /// When one died, in nanoseconds since the epoch; none if it lived on or wasn't watched. Of one
    /// that was dead before, that is when the watch began.
    #[must_use]
    pub fn of(&self, process: Process) -> Option<i128> {
        let mut found = self.died.iter().filter(|(other, _)| *other == process);
        found.next()?.1
    }

    /// Those that were dead when the watch began: when they died isn't known.
    #[must_use]
    pub fn dead_before(&self) -> &[Process] {
        &self.dead_before
    }

    /// When the last of these died; none if one lived on, or there are none.
    #[must_use]
    pub fn last(&self, processes: impl IntoIterator<Item = Process>) -> Option<i128> {
        let died: Option<Vec<i128>> = processes.into_iter().map(|one| self.of(one)).collect();
        died?.into_iter().max()
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_death_is_seen_within_milliseconds_and_a_zombie_is_dead() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let process = Process::of(i32::try_from(child.id()).unwrap()).unwrap();
        assert!(process.is_alive());
        let deaths = Deaths::watch(&[process], Duration::from_secs(10));
        let killed = now_ns();
        assert!(process.signal(Signal::KILL));
        let ended = deaths.join();
        let took = ended.of(process).unwrap() - killed;
        let within = Duration::from_millis(500) + ended.still();
        assert!(
            (0..within.as_nanos().cast_signed()).contains(&took),
            "{took}"
        );
        assert_eq!(ended.dead_before(), []);
        let again = Deaths::watch(&[process], Duration::from_secs(10)).join();
        assert_eq!(again.dead_before(), [process]);
        assert_eq!((process.state(), process.is_alive()), (Some('Z'), false));
        child.wait().unwrap();
        assert_eq!(process.state(), None);
        assert!(!process.signal(Signal::KILL));
    }

    #[test]
    fn who_lives_on_is_said() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let process = Process::of(i32::try_from(child.id()).unwrap()).unwrap();
        let ended = Deaths::watch(&[process], Duration::from_millis(20)).join();
        assert_eq!(ended.survivors(), [process]);
        assert_eq!(ended.last([process]), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn another_process_with_the_same_id_is_another() {
        let own = i32::try_from(std::process::id()).unwrap();
        let mut other = Process::of(own).unwrap();
        assert!(other.is_alive());
        other.start_time -= 1;
        assert!(!other.is_alive());
        assert!(!other.signal(Signal::WINCH));
    }
}
