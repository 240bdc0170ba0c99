//! A keeper: the process around one attempt, from its launch until nothing of it is left.
//!
//! ```text
//!            timeout, Stop, stop_at        kill_at, of either
//!  Running ─────────────────────▶ Ending ──────────────────▶ Killed
//!     │                     TERM, CONT to all         KILL to all │ and again, until
//!     │ the job ends by itself                                    ▼ nobody is left
//!     └──────────────────────────▶ Killed ─────────────────▶ Ended is told
//!       the daemon is gone
//! ```
//!
//! There is this one way to end. As a subreaper the keeper is the parent of whatever the job
//! leaves behind, so that the kernel itself says when nobody is left: wait(2) has no child any
//! more. What the job leaves behind when it ends by itself is killed at once, as systemd's
//! `KillMode=control-group` does, but without a TERM first.
//!
//! Its deadlines are its own: they hold while the daemon is frozen, cut off or dead, and they
//! are counted on the boot clock, suspended time included.
//!
//! Must never: wait for the daemon, or for anything but the next event.

use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, wait};

use super::cgroup::Cgroup;
use super::child::{self, Forked, Streams};
use super::facts::{CutShort, Exit, SpawnError, Word};
use super::held_back::HeldBack;
use super::wire::{Deadline, End, Launch, Link, Order, PeakMemory, Received, Report, Used, Work};
use super::{KILL_LIMIT, drain, retry, sys, tree, wake_when_parent_ends};
use crate::clock::{BootAlarm, Clock, SystemClock};
use crate::scheduler::time::BootTime;

/// How often to kill again what was forked past an earlier KILL. The end of a process wakes the
/// keeper too; this is for the ends that nobody is told of.
const KILL_AGAIN_INTERVAL: Duration = Duration::from_millis(20);

/// Keeps one attempt; returns when nothing of it is left, or nothing was launched.
pub(super) fn keep(stream: UnixStream, streams: Streams) -> io::Result<()> {
    set_child_subreaper(Some(getpid()))?;
    wake_when_parent_ends()?;
    let events = sys::child_events()?;
    let mut link = Link::new(stream)?;
    link.tell(&Report::Ready)?;
    let Some(launch) = launch(&mut link)? else {
        return Ok(());
    };
    // The daemon may have been frozen since it asked, or this host suspended.
    if SystemClock.boot() >= launch.deadline.stop_at() {
        return link.tell(&Report::Ended(too_late()));
    }
    match start(&launch, streams) {
        Ok(started) => Keeper::new(launch, link, events, started).run(),
        Err(error) => link.tell(&Report::Ended(never_ran(&launch, &error))),
    }
}

/// Waits to be told what to launch; none if the daemon has thought better of it.
fn launch(link: &mut Link) -> io::Result<Option<Launch>> {
    loop {
        match link.receive() {
            Received::Message(launch) => return Ok(Some(launch)),
            Received::End => return Ok(None),
            Received::Nothing => {
                let mut waiting = [PollFd::new(link.stream(), PollFlags::IN)];
                retry(|| poll(&mut waiting, None))?;
            }
        }
    }
}

struct Started {
    forked: Forked,
    cgroup: Option<Cgroup>,
    alarm: BootAlarm,
}

fn start(launch: &Launch, streams: Streams) -> io::Result<Started> {
    // What could be refused comes before the job.
    let alarm = BootAlarm::new()?;
    // Without one it runs as well.
    let wanted = launch.cgroup.as_ref();
    let cgroup = wanted.and_then(|(base, name)| Cgroup::make(base, name).ok());
    let dir = cgroup.as_ref().map(Cgroup::dir);
    let forked = child::fork(launch, streams, dir)?;
    Ok(Started {
        forked,
        cgroup,
        alarm,
    })
}

fn too_late() -> End {
    End {
        exit: Exit::Withdrawn,
        cut_short: Some(CutShort::LeaseExpired),
        used: Used::default(),
        left_behind: Vec::new(),
    }
}

fn never_ran(launch: &Launch, error: &io::Error) -> End {
    let name = launch.work.name();
    End::not_started(SpawnError::explain(error, name, name))
}

/// How far an attempt has come on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// It was sent TERM.
    Ending {
        kill_at: BootTime,
    },
    /// It was sent KILL.
    Killed {
        again_at: BootTime,
        give_up_at: BootTime,
    },
}

struct Keeper {
    launch: Launch,
    /// None once the daemon is gone.
    link: Option<Link>,
    events: OwnedFd,
    alarm: BootAlarm,
    job: Pid,
    /// None once it has said all there is: it was executed, or can't be.
    word: Option<PipeReader>,
    said: Vec<u8>,
    held_back: HeldBack,
    cgroup: Option<Cgroup>,
    deadline: Deadline,
    timeout_at: Option<BootTime>,
    phase: Phase,
    cut_short: Option<CutShort>,
    /// Of the job's first process, once it has ended.
    exit: Option<Exit>,
}

impl Keeper {
    fn new(launch: Launch, link: Link, events: OwnedFd, started: Started) -> Self {
        let now = SystemClock.boot();
        Self {
            link: Some(link),
            events,
            alarm: started.alarm,
            job: started.forked.pid,
            word: Some(started.forked.word),
            said: Vec::new(),
            held_back: HeldBack::until_executed(),
            cgroup: started.cgroup,
            deadline: launch.deadline,
            timeout_at: launch.timeout.map(|timeout| now + timeout),
            phase: Phase::Running,
            cut_short: None,
            exit: None,
            launch,
        }
    }

    fn run(mut self) -> io::Result<()> {
        if matches!(self.launch.work, Work::Call(_)) {
            self.tell(&Report::Started); // it will not be executed
        }
        // An end that has come counts before anything that was due meanwhile, so that a job
        // which made it in time is not taken for one that was stopped.
        while self.somebody_is_left() {
            self.act(SystemClock.boot());
            if self.is_given_up(SystemClock.boot()) {
                self.finish(&tree::children());
                // Which hands them to the guardian as orphans.
                return Err(io::Error::other("it survived KILL"));
            }
            self.wait()?;
        }
        self.finish(&[]);
        Ok(())
    }

    /// Reaps what has ended. Whether anything of the job is left.
    fn somebody_is_left(&mut self) -> bool {
        loop {
            match retry(|| wait(WaitOptions::NOHANG)) {
                // Once it was reaped, its number may be given to what it left behind.
                Ok(Some((pid, status))) if pid == self.job && self.exit.is_none() => {
                    let status = ExitStatus::from_raw(status.as_raw());
                    self.exit = Some(Exit::of(status));
                }
                Ok(Some(_)) => {}
                Ok(None) => return true,
                // ECHILD
                Err(_) => return self.cgroup.as_ref().is_some_and(Cgroup::is_populated),
            }
        }
    }

    /// Does what is due.
    fn act(&mut self, now: BootTime) {
        match self.phase {
            // It ended by itself: what it left behind goes with it.
            Phase::Running if self.exit.is_some() => self.kill(now),
            Phase::Running if now >= self.deadline.stop_at() => {
                self.stop(self.deadline.kill_at(), CutShort::LeaseExpired, now);
            }
            Phase::Running if self.timeout_at.is_some_and(|at| now >= at) => {
                let after = self.launch.timeout.unwrap_or_default();
                let kill_at = now + self.launch.kill_grace;
                self.stop(kill_at, CutShort::TimedOut { after }, now);
            }
            Phase::Running => {}
            Phase::Ending { kill_at } => {
                if now >= kill_at.min(self.deadline.kill_at()) {
                    self.kill(now);
                }
            }
            Phase::Killed { again_at, .. } => {
                if now >= again_at {
                    self.kill(now);
                }
            }
        }
    }

    /// Has it ended: TERM now, KILL at `kill_at`. Again, it can shorten the grace, never
    /// lengthen it.
    fn stop(&mut self, kill_at: BootTime, cause: CutShort, now: BootTime) {
        if self.exit.is_none() {
            self.cut_short.get_or_insert(cause);
        }
        match self.phase {
            Phase::Running if kill_at > now => {
                self.signal(Signal::TERM);
                // A stopped process can't heed TERM before it is continued.
                self.signal(Signal::CONT);
                self.phase = Phase::Ending { kill_at };
            }
            Phase::Running => self.kill(now),
            Phase::Ending { kill_at: before } => {
                let kill_at = kill_at.min(before);
                self.phase = Phase::Ending { kill_at };
            }
            Phase::Killed { .. } => {}
        }
    }

    fn kill(&mut self, now: BootTime) {
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
        if matches!(self.phase, Phase::Killed { .. }) {
            // They fork faster than they are killed.
            tree::halt();
        }
        self.signal(Signal::KILL);
        let give_up_at = match self.phase {
            Phase::Killed { give_up_at, .. } => give_up_at,
            Phase::Running | Phase::Ending { .. } => now + KILL_LIMIT,
        };
        self.phase = Phase::Killed {
            again_at: now + KILL_AGAIN_INTERVAL,
            give_up_at,
        };
    }

    /// Signals the job's first process alone: what it has started may die of what it handles.
    fn pass_on(&mut self, signal: Signal) {
        let now = self.held_back.take(signal);
        // Once it was reaped, its number may be somebody else's.
        if let Some(signal) = now.filter(|_| self.exit.is_none()) {
            let _ = kill_process(self.job, signal);
        }
    }

    /// Signals all there is of the job.
    fn signal(&self, signal: Signal) {
        let children = tree::children();
        tree::signal(&children, signal);
        if children.is_empty() {
            tree::signal_group(self.job, signal);
        }
    }

    fn is_given_up(&self, now: BootTime) -> bool {
        matches!(self.phase, Phase::Killed { give_up_at, .. } if now >= give_up_at)
    }

    fn next_wakeup(&self) -> BootTime {
        match self.phase {
            Phase::Running => {
                let stop_at = self.deadline.stop_at();
                self.timeout_at.map_or(stop_at, |at| at.min(stop_at))
            }
            Phase::Ending { kill_at } => kill_at.min(self.deadline.kill_at()),
            Phase::Killed {
                again_at,
                give_up_at,
            } => again_at.min(give_up_at),
        }
    }

    /// Waits for the next event, and takes in what came.
    fn wait(&mut self) -> io::Result<()> {
        self.alarm.set(Some(self.next_wakeup()))?;
        let (told, said) = {
            let mut waiting = vec![
                PollFd::new(&self.events, PollFlags::IN),
                PollFd::from_borrowed_fd(self.alarm.as_fd(), PollFlags::IN),
            ];
            let link = self.link.as_ref().map(Link::stream);
            let link = link.map(|stream| PollFd::new(stream, PollFlags::IN));
            let word = self.word.as_ref();
            let word = word.map(|word| PollFd::new(word, PollFlags::IN));
            let at_word = waiting.len() + usize::from(link.is_some());
            waiting.extend(link);
            waiting.extend(word);
            retry(|| poll(&mut waiting, None))?;
            let has_come = |at: usize| waiting.get(at).is_some_and(|fd| !fd.revents().is_empty());
            let told = self.link.is_some() && has_come(2);
            (told, self.word.is_some() && has_come(at_word))
        };
        drain(&self.events);
        if said {
            self.hear_the_job();
        }
        if told {
            self.hear_the_daemon();
        }
        Ok(())
    }

    /// Takes in what the forked process says. The end of it without a word means that it was
    /// executed.
    fn hear_the_job(&mut self) {
        let Some(word) = &mut self.word else { return };
        let mut chunk = [0; 4096];
        match word.read(&mut chunk) {
            Ok(0) | Err(_) => {
                self.word = None;
                let executed = matches!(self.launch.work, Work::Execute { .. });
                if executed && self.said.is_empty() {
                    self.tell(&Report::Started);
                }
                for signal in self.held_back.executed() {
                    self.pass_on(signal);
                }
            }
            Ok(count) => self.said.extend_from_slice(&chunk[..count]),
        }
    }

    fn hear_the_daemon(&mut self) {
        let now = SystemClock.boot();
        while let Some(link) = &mut self.link {
            match link.receive() {
                Received::Message(Order::Extend(deadline)) => self.deadline = deadline,
                Received::Message(Order::Signal { number }) => {
                    if let Some(signal) = Signal::from_named_raw(number) {
                        self.pass_on(signal);
                    }
                }
                Received::Message(Order::Stop { kill_at }) => {
                    let kill_at = BootTime::since_boot(kill_at);
                    self.stop(kill_at, CutShort::Stopped, now);
                }
                Received::Nothing => return,
                // It died, or was killed: nobody renews the lease, and nobody is told.
                Received::End => {
                    self.link = None;
                    self.kill(now);
                }
            }
        }
    }

    /// Tells what became of it.
    fn finish(mut self, left_behind: &[Pid]) {
        while self.exit.is_some() && self.word.is_some() {
            self.hear_the_job(); // what it said on its way out
        }
        let exit = self.exit();
        let end = End {
            exit,
            cut_short: self.cut_short,
            used: self.used(),
            left_behind: left_behind
                .iter()
                .map(|pid| pid.as_raw_pid().unsigned_abs())
                .collect(),
        };
        self.cgroup = None; // removed before anybody hears of the end
        self.tell(&Report::Ended(end));
    }

    fn exit(&mut self) -> Exit {
        let is_call = matches!(self.launch.work, Work::Call(_));
        match (serde_json::from_slice(&self.said), self.exit.take()) {
            (Ok(Word::NotStarted(error)), _) => Exit::NotStarted(error),
            (Ok(Word::TooLate), _) => {
                self.cut_short.get_or_insert(CutShort::LeaseExpired);
                Exit::Withdrawn
            }
            (Ok(Word::Failed(failure)), _) => Exit::Answered {
                failure: Some(failure),
            },
            (Err(_), Some(Exit::Exited { code: 0 })) if is_call => Exit::Answered { failure: None },
            (Err(_), Some(exit)) => exit,
            (Err(_), None) => Exit::Unknown {
                cause: format!("it survived KILL for {KILL_LIMIT:?}"),
            },
        }
    }

    fn used(&self) -> Used {
        let all = sys::children_usage();
        let grouped = self.cgroup.as_ref().map(Cgroup::used).unwrap_or_default();
        Used {
            cpu: grouped.cpu.or(Some(all.cpu)),
            peak_memory: grouped
                .peak_memory
                .or(Some(PeakMemory::OfLargest(all.peak_resident))),
        }
    }

    /// A daemon that can't be told is gone, which shows by itself.
    fn tell(&mut self, report: &Report) {
        if let Some(link) = &mut self.link {
            let _ = link.tell(report);
        }
    }
}
