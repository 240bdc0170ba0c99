//! The task that owns one attempt, from its start to its end. All transitions are here.
//!
//! It waits for five things at once: the end of the leader, orders, its deadline, and output
//! on two streams. It never waits for the job to read, write or react.

use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;

use super::ending::{CutShort, Exit, judge};
use super::group::ProcessGroup;
use super::leader::Leader;
use super::output::OutputReader;
use super::starting::{Orders, Started, next_order, start};
use super::{KILL_LIMIT, OutputMode, Shared};
use crate::clock::{BootTimer, Clock, SystemClock};
use crate::scheduler::lease::Output;
use crate::scheduler::time::BootTime;
use crate::scheduler::{Attempt, Ending};

/// How long to read on after the job is gone if somebody who left its group still holds its
/// output open. What the job itself wrote is in the pipe by then, and read within this.
const DRAIN_LIMIT: Duration = Duration::from_millis(250);

/// How often to look whether a group is empty, at first and at most: there is no event for it.
const LOOK_INTERVAL_MIN: Duration = Duration::from_millis(1);
const LOOK_INTERVAL_MAX: Duration = Duration::from_millis(50);

/// Runs one attempt to its end.
pub(super) async fn run(
    attempt: Attempt,
    output: OutputMode,
    shared: Arc<Shared>,
    mut orders: Orders,
) -> Ending {
    let end = match start(&attempt, output, &shared, &mut orders).await {
        Ok(started) => Execution::new(&attempt, started, orders).run_to_end().await,
        Err(exit) => End {
            exit,
            cut_short: None,
            output: Output::default(),
            left_behind: Vec::new(),
        },
    };
    let mut ending = judge(&end.exit, end.cut_short, &attempt.job.command.success_codes);
    ending.output = end.output;
    if !end.left_behind.is_empty() {
        tracing::error!(
            job = %attempt.job.name, scheduled_at = %attempt.scheduled_at,
            attempt = attempt.number, token = attempt.token.get(),
            replica = &**shared.environment.replica(), processes = ?end.left_behind,
            "processes of a job survived KILL for {KILL_LIMIT:?}: they hang in the kernel, and may yet do something"
        );
    }
    ending
}

/// What an [`Ending`] is made of.
#[derive(Debug)]
struct End {
    exit: Exit,
    cut_short: Option<CutShort>,
    output: Output,
    /// Processes of the group that even KILL did not end in time: they hang in the kernel
    /// (uninterruptible sleep, say on a dead NFS server). Almost always empty.
    left_behind: Vec<u32>,
}

/// How far an attempt has come on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Until its timeout, where it has one.
    Running { timeout_at: Option<BootTime> },
    /// It was sent TERM.
    Ending { kill_at: BootTime },
    /// It was sent KILL.
    Killed { give_up_at: BootTime },
}

/// Something that the task waited for.
#[derive(Debug)]
enum Event {
    LeaderEnded,
    /// It is to be dead by then.
    StopOrdered(BootTime),
    /// The instant that was asked for has come.
    Due,
    OutputRead,
}

struct Execution<'a> {
    attempt: &'a Attempt,
    leader: Leader,
    output: OutputReader,
    timer: BootTimer,
    orders: Orders,
    phase: Phase,
    cut_short: Option<CutShort>,
}

impl<'a> Execution<'a> {
    /// Time counts from here. A guardian outside this process would be told of the leader
    /// here, together with the instant by which its group must be gone, and of a later one
    /// whenever the lease is renewed; the deadlines of this task would then only decide when
    /// the job is asked nicely.
    fn new(attempt: &'a Attempt, started: Started, orders: Orders) -> Self {
        let Started {
            leader,
            output,
            timer,
        } = started;
        let timeout_at = attempt
            .job
            .timeout
            .map(|timeout| SystemClock.boot() + timeout);
        let phase = Phase::Running { timeout_at };
        Self {
            attempt,
            leader,
            output,
            timer,
            orders,
            phase,
            cut_short: None,
        }
    }

    async fn run_to_end(mut self) -> End {
        // It may have been given while the job was being spawned.
        let standing = *self.orders.borrow_and_update();
        if let Some(kill_at) = standing {
            self.stop(kill_at);
        }
        let (exit, left_behind) = if self.leader_ends().await {
            self.group_has_its_grace().await;
            self.clean_up().await
        } else {
            let cause = format!("it survived KILL for {KILL_LIMIT:?}");
            (Exit::Unknown { cause }, vec![self.leader.pid()])
        };
        self.drain().await;
        let Self {
            output, cut_short, ..
        } = self;
        End {
            exit,
            cut_short,
            output: output.finish(),
            left_behind,
        }
    }

    /// Waits for the leader's end, and sees to it that it comes. False if even KILL did not
    /// bring it about.
    async fn leader_ends(&mut self) -> bool {
        loop {
            match (self.next(self.phase_ends_at()).await, self.phase) {
                (Event::LeaderEnded, _) => return true,
                (Event::StopOrdered(kill_at), _) => self.stop(kill_at),
                (Event::Due, Phase::Running { .. }) => self.time_out(),
                (Event::Due, Phase::Ending { .. }) => self.kill(),
                (Event::Due, Phase::Killed { .. }) => return false,
                (Event::OutputRead, _) => {}
            }
        }
    }

    /// When a leader that was told to end has ended, the others of its group still have what
    /// is left of the grace. The leader is a zombie meanwhile, which keeps the group's id.
    async fn group_has_its_grace(&mut self) {
        let mut look = Look::default();
        while let Phase::Ending { kill_at } = self.phase {
            if living_members(self.leader.group()).is_empty() {
                return;
            }
            match self.next(Some(look.next_at().min(kill_at))).await {
                Event::Due if SystemClock.boot() >= kill_at => self.kill(),
                Event::StopOrdered(kill_at) => self.stop(kill_at),
                Event::Due | Event::LeaderEnded | Event::OutputRead => {}
            }
        }
    }

    /// Kills what is left of the group once its leader has ended, and reaps the leader. One
    /// KILL is enough: nobody can join the group or fork past it. Who is still there after
    /// [`KILL_LIMIT`] is told.
    async fn clean_up(&mut self) -> (Exit, Vec<u32>) {
        let group = self.leader.group();
        group.signal(Signal::KILL);
        let exit = self.leader.reap();
        let give_up_at = SystemClock.boot() + KILL_LIMIT;
        let mut look = Look::default();
        loop {
            // Usually there was nobody else. Zombies remain of processes whose new parent
            // doesn't reap them, as a container's first process may not.
            if group.is_gone() {
                return (exit, Vec::new());
            }
            let living = living_members(group);
            if living.is_empty() || SystemClock.boot() >= give_up_at {
                return (exit, living);
            }
            self.pause_until(look.next_at()).await;
        }
    }

    /// Reads what is left to read.
    async fn drain(&mut self) {
        let give_up_at = SystemClock.boot() + DRAIN_LIMIT;
        while !self.output.has_ended() && SystemClock.boot() < give_up_at {
            tokio::select! {
                biased;
                () = self.output.read() => {}
                () = self.timer.sleep_until(Some(give_up_at)) => {}
            }
        }
    }

    /// Waits for whatever comes first, until `due`. An end that has come is told before
    /// anything else, so that a job that made it in time is not taken for a stopped one.
    async fn next(&mut self, due: Option<BootTime>) -> Event {
        tokio::select! {
            biased;
            () = self.leader.ended() => Event::LeaderEnded,
            kill_at = next_order(&mut self.orders) => Event::StopOrdered(kill_at),
            () = self.timer.sleep_until(due) => Event::Due,
            () = self.output.read() => Event::OutputRead,
        }
    }

    /// Goes on reading; orders have nothing more to change.
    async fn pause_until(&mut self, due: BootTime) {
        tokio::select! {
            biased;
            () = self.timer.sleep_until(Some(due)) => {}
            () = self.output.read() => {}
        }
    }

    fn phase_ends_at(&self) -> Option<BootTime> {
        match self.phase {
            Phase::Running { timeout_at } => timeout_at,
            Phase::Ending { kill_at } => Some(kill_at),
            Phase::Killed { give_up_at } => Some(give_up_at),
        }
    }

    fn stop(&mut self, kill_at: BootTime) {
        self.end_by(kill_at, CutShort::Stopped);
    }

    fn time_out(&mut self) {
        let Some(after) = self.attempt.job.timeout else {
            return;
        };
        let kill_at = SystemClock.boot() + self.attempt.job.kill_grace;
        self.end_by(kill_at, CutShort::TimedOut { after });
    }

    /// Has the group end by an instant, which can be brought forward and never put off.
    fn end_by(&mut self, kill_at: BootTime, why: CutShort) {
        let kill_at = match self.phase {
            // It ended by itself, and its end is about to be seen.
            Phase::Running { .. } if self.leader.has_ended() => return,
            Phase::Running { .. } => kill_at,
            Phase::Ending { kill_at: standing } => kill_at.min(standing),
            Phase::Killed { .. } => return,
        };
        self.cut_short.get_or_insert(why);
        if kill_at <= SystemClock.boot() {
            return self.kill();
        }
        if let Phase::Running { .. } = self.phase {
            self.leader.group().signal(Signal::TERM);
            // A stopped process can't heed TERM before it is continued.
            self.leader.group().signal(Signal::CONT);
        }
        self.phase = Phase::Ending { kill_at };
    }

    fn kill(&mut self) {
        self.leader.group().signal(Signal::KILL);
        self.phase = Phase::Killed {
            give_up_at: SystemClock.boot() + KILL_LIMIT,
        };
    }
}

/// Those who can still do something. Without `/proc` nobody is seen, so that none is waited
/// for: at the end of the leader the others then get KILL at once.
fn living_members(group: ProcessGroup) -> Vec<u32> {
    group.living_members().unwrap_or_else(|error| {
        tracing::debug!(%error, "failed to look for the members of a process group");
        Vec::new()
    })
}

/// When to look for the members of a group: soon, and then at growing intervals.
#[derive(Debug)]
struct Look {
    interval: Duration,
}

impl Default for Look {
    fn default() -> Self {
        Self {
            interval: LOOK_INTERVAL_MIN,
        }
    }
}

impl Look {
    fn next_at(&mut self) -> BootTime {
        let at = SystemClock.boot() + self.interval;
        self.interval = (self.interval * 2).min(LOOK_INTERVAL_MAX);
        at
    }
}
