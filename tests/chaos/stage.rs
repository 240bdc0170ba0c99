//! Replicas at work, each with a link and a wall clock of its own, and what is done to them.
//!
//! Must never: count a fault that did nothing: each has to show that it was there.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

use test_support::account::SECOND;
use test_support::fleet::{Fleet, Replica, SOON, now_ns};
use test_support::probe::{Run, runs_and_twice};
use test_support::process::{Deaths, Process, Signal};
use test_support::redis::RedisServer;

use crate::aim::aimed;
use crate::ledgers::Ledgers;
use crate::member::Member;
use crate::plan::{Fault, REPLICAS, Store, Strike, Target};
use crate::pulse::Pulse;
use crate::table::{jobs, table};

/// What anything of a job may outlive its daemon by, and what a busy machine takes for itself.
pub(crate) const DEATH_WITHIN: Duration = Duration::from_secs(2);

/// A replica that started so shortly before a loss of data may know nothing yet.
const SETTLED: Duration = Duration::from_millis(2_500);

/// Turns of a plan, in their order where they fall together, and how long after a look whether somebody
/// has left another one is taken.
const BEGINS: u8 = 1;
const ENDS: u8 = 2;
const LOOK_AGAIN_MS: u64 = 50;

/// A fault that did happen.
#[derive(Clone, Debug)]
pub(crate) struct Happened {
    pub(crate) fault: Fault,
    pub(crate) begun_ns: i128,
    pub(crate) ended_ns: i128,
}

/// A fleet under chaos.
pub(crate) struct Stage {
    pub(crate) fleet: Fleet,
    pub(crate) ledgers: Ledgers,
    pub(crate) happened: Vec<Happened>,
    /// When all replicas were ready and all jobs had run.
    pub(crate) begun_ns: i128,
    /// From a kill to the death of all that descended from the daemon, each.
    pub(crate) deaths: Vec<Duration>,
    /// What a replica did that none may do.
    pub(crate) broken: Vec<String>,
    /// What replicas logged in lives that are over, and when these began.
    pub(crate) logs: Vec<(String, i128, String)>,
    /// Whether the server answers at all.
    pub(crate) pulse: Pulse,
    store: Store,
    server: RedisServer,
    members: Vec<Member>,
    watches: Vec<(i128, String, Deaths, Vec<Process>)>,
    changes: usize,
    /// What is struck now; and of the replicas those that were asked to leave.
    struck: Vec<Target>,
    drained: BTreeSet<usize>,
    taken: Vec<usize>,
}

impl Stage {
    /// Starts all; returns when every job has run.
    pub(crate) fn begin(store: Store) -> Self {
        let server = match store {
            Store::Keeps => RedisServer::options().appendonly().start(),
            Store::Forgets => RedisServer::start(),
        };
        let member = |number: usize| Member::new(number, server.port());
        let mut stage = Self {
            fleet: Fleet::new(server.url(), &table(0)),
            ledgers: Ledgers::default(),
            happened: Vec::new(),
            begun_ns: 0,
            deaths: Vec::new(),
            broken: Vec::new(),
            logs: Vec::new(),
            pulse: Pulse::of(server.port()),
            store,
            members: (0..REPLICAS).map(member).collect(),
            server,
            watches: Vec::new(),
            changes: 0,
            struck: Vec::new(),
            drained: BTreeSet::new(),
            taken: Vec::new(),
        };
        (0..REPLICAS).for_each(|who| stage.start(who));
        for member in &stage.members {
            member.replica.iter().for_each(Replica::wait_until_ready);
        }
        let all = jobs().count();
        stage.fleet.wait_for_runs(SOON, |runs| {
            let named = jobs().filter(|(job, _)| runs.iter().any(|run| run.job == *job));
            (named.count() == all).then_some(())
        });
        stage.begun_ns = now_ns();
        stage
    }

    /// Strikes as planned. What comes too late for its instant is done at once.
    pub(crate) fn perform(&mut self, plan: &[Strike]) {
        let numbered = || plan.iter().enumerate();
        let begins = numbered().map(|(number, one)| (one.begins_ms, BEGINS, number));
        let ends = numbered().map(|(number, one)| (one.ends_ms, ENDS, number));
        let mut turns: BTreeSet<(u64, u8, usize)> = begins.chain(ends).collect();
        let mut open: Vec<Option<(Fault, i128)>> = vec![None; plan.len()];
        while let Some((at_ms, turn, number)) = turns.pop_first() {
            let at = self.begun_ns + i128::from(at_ms) * SECOND / 1000;
            let wait = u64::try_from(at - now_ns()).unwrap_or(0);
            std::thread::sleep(Duration::from_nanos(wait));
            let fault = plan[number].fault;
            if turn == BEGINS {
                let fault = aimed(fault, &self.members, &self.struck, || self.runs());
                if !self.struck.contains(&fault.target()) && self.strike(fault) {
                    self.struck.push(fault.target());
                    open[number] = Some((fault, now_ns()));
                }
                continue;
            }
            let Some((fault, begun_ns)) = open[number] else {
                continue;
            };
            if self.takes_longer(fault, begun_ns) {
                turns.insert((at_ms + LOOK_AGAIN_MS, turn, number));
                continue;
            }
            let was_there = self.lift(fault);
            self.struck.retain(|target| *target != fault.target());
            if was_there {
                self.happened.push(Happened {
                    fault,
                    begun_ns,
                    ended_ns: now_ns(),
                });
            }
        }
    }

    /// Who was asked to leave has not left yet.
    fn takes_longer(&self, fault: Fault, begun_ns: i128) -> bool {
        let Fault::Drain(who) = fault else {
            return false;
        };
        self.process(who).is_some() && now_ns() - begun_ns < nanos(SOON)
    }

    /// Does it; says whether there was anybody to do it to.
    fn strike(&mut self, fault: Fault) -> bool {
        match fault {
            Fault::Kill(who) => self.kill(who),
            // Nobody was at work.
            Fault::KillHolder | Fault::FreezeHolder => false,
            Fault::Drain(who) => {
                let told = self.members[who].signal(Signal::TERM);
                told && self.drained.insert(who)
            }
            Fault::FreezeShortly(who) | Fault::Freeze(who) => {
                let process = self.process(who);
                process.inspect(|process| process.freeze()).is_some()
            }
            Fault::KillGuardian(who) => self.members[who].kill_guardian(),
            Fault::ShiftClock(who, by_ms) => {
                let member = &self.members[who];
                let has_clock = member.has_clock();
                member.clock.set(if has_clock { by_ms } else { 0 });
                has_clock
            }
            Fault::Reload => self.reload(),
            Fault::FreezeServerShortly | Fault::FreezeServer => {
                self.server.freeze();
                true
            }
            Fault::KillServer | Fault::Flush => self.lose(fault),
            Fault::ForgetScripts => self.server.command(&["SCRIPT", "FLUSH"]) == "OK",
            Fault::KillClients => {
                let kill = |kind| self.server.command(&["CLIENT", "KILL", "TYPE", kind]);
                ["normal", "pubsub"].map(kind_killed(kill)).contains(&true)
            }
            Fault::Cut(who)
            | Fault::BlackHole(who)
            | Fault::LoseReplies(who)
            | Fault::Slow(who, _)
            | Fault::Stall(who)
            | Fault::BreakReply(who) => self.members[who].harm_link(fault),
        }
    }

    /// Ends it; says whether it was there.
    fn lift(&mut self, fault: Fault) -> bool {
        match fault {
            Fault::Kill(who) => {
                self.start(who);
                true
            }
            Fault::Drain(who) => self.restart_drained(who),
            Fault::FreezeShortly(who) | Fault::Freeze(who) => {
                let process = self.process(who);
                let frozen = process.is_some_and(|process| process.state() == Some('T'));
                process.inspect(|process| process.thaw());
                frozen
            }
            Fault::ShiftClock(who, _) => {
                self.members[who].clock.set(0);
                true
            }
            Fault::Cut(who)
            | Fault::BlackHole(who)
            | Fault::LoseReplies(who)
            | Fault::Slow(who, _)
            | Fault::Stall(who)
            | Fault::BreakReply(who) => self.members[who].mend_link(),
            Fault::FreezeServerShortly | Fault::FreezeServer => {
                let frozen = self.server.is_down();
                self.server.thaw();
                frozen
            }
            Fault::KillServer => {
                let before = self.server.pid();
                self.server.restart();
                self.server.pid() != before
            }
            Fault::Reload => self.was_read(),
            Fault::KillGuardian(_)
            | Fault::KillHolder
            | Fault::FreezeHolder
            | Fault::Flush
            | Fault::ForgetScripts
            | Fault::KillClients => true,
        }
    }

    fn process(&self, who: usize) -> Option<Process> {
        self.members[who].process()
    }

    fn start(&mut self, who: usize) {
        self.drained.remove(&who);
        self.members[who].start(&self.fleet);
    }

    /// Its life is over: its log is kept.
    fn bury(&mut self, who: usize) {
        let member = &mut self.members[who];
        if let Some(replica) = member.replica.take() {
            self.logs
                .push((member.name.clone(), member.started_ns, replica.log()));
        }
    }

    /// What the jobs wrote down by now.
    pub(crate) fn runs(&self) -> Vec<Run> {
        runs_and_twice(&self.fleet.probe_log()).0
    }

    fn kill(&mut self, who: usize) -> bool {
        let Some(process) = self.process(who) else {
            return false;
        };
        let below = process.descendants();
        let deaths = Deaths::watch(&below, DEATH_WITHIN);
        let killed_ns = now_ns();
        self.members[who]
            .replica
            .iter_mut()
            .for_each(Replica::kill9);
        let name = self.members[who].name.clone();
        self.watches.push((killed_ns, name, deaths, below));
        self.bury(who);
        true
    }

    fn restart_drained(&mut self, who: usize) -> bool {
        let Some(replica) = &mut self.members[who].replica else {
            return false;
        };
        let status = replica.wait(SOON);
        if !status.success() {
            self.broken.push(format!(
                "{} was drained and ended with {status}",
                replica.name
            ));
        }
        self.bury(who);
        self.start(who);
        true
    }

    fn reload(&mut self) -> bool {
        self.changes += 1;
        self.fleet.replace_table(&table(self.changes));
        self.taken = self.tables_taken();
        let told = (0..REPLICAS).filter(|who| self.members[*who].signal(Signal::HUP));
        told.count() > 0
    }

    fn tables_taken(&self) -> Vec<usize> {
        self.members.iter().map(Member::tables_taken).collect()
    }

    fn was_read(&self) -> bool {
        let mut both = self.tables_taken().into_iter().zip(&self.taken);
        both.any(|(now, before)| now > *before)
    }

    /// The server is killed, or all that it has is gone.
    fn lose(&mut self, fault: Fault) -> bool {
        if !fault.loses_data(self.store) {
            self.server.kill();
            return true;
        }
        // A start that came late: who knows nothing yet is no part of what is promised.
        let fresh = |member: &Member| now_ns() - member.started_ns < nanos(SETTLED);
        let is_drained = |who: usize| {
            let process = self.process(who);
            process.is_none() || self.drained.contains(&who)
        };
        if self.members.iter().any(fresh) || (0..REPLICAS).any(is_drained) {
            return false;
        }
        match fault {
            Fault::Flush => self.ledgers.flush(&self.server, &self.fleet),
            _ => self.ledgers.kill(&mut self.server, &self.fleet),
        }
        true
    }

    /// Whoever is not alive though nobody ended it; and what outlived a daemon.
    pub(crate) fn look_around(&mut self) {
        for member in &self.members {
            if member.process().is_none() {
                self.broken.push(format!("{} ended by itself", member.name));
            }
        }
        for (killed_ns, name, deaths, below) in self.watches.drain(..) {
            let ended = deaths.join();
            for survivor in ended.survivors() {
                let what = survivor.command_line();
                self.broken
                    .push(format!("{survivor:?} ({what}) outlived the killed {name}"));
            }
            if let Some(last) = ended.last(below) {
                let took = u64::try_from(last - killed_ns).unwrap_or(0);
                self.deaths.push(Duration::from_nanos(took));
            }
        }
    }

    /// All replicas are asked to leave; what is alive of theirs after that is told.
    pub(crate) fn end(&mut self) {
        for who in 0..REPLICAS {
            self.members[who].signal(Signal::TERM);
        }
        for who in 0..REPLICAS {
            if let Some(replica) = &mut self.members[who].replica {
                let status = replica.wait(SOON);
                if !status.success() {
                    self.broken
                        .push(format!("{} ended with {status}", replica.name));
                }
            }
            self.bury(who);
        }
        let end = Instant::now() + DEATH_WITHIN;
        while !left_over().is_empty() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        for process in left_over() {
            let what = process.command_line();
            self.broken.push(format!("left over: {process:?} ({what})"));
            process.signal(Signal::KILL);
        }
        self.ledgers.close(&self.fleet);
    }

    /// What living replicas logged, beside those whose lives are over.
    pub(crate) fn logs(&self) -> Vec<(String, i128, String)> {
        let living = self.members.iter().filter_map(|member| {
            let log = member.replica.as_ref()?.log();
            Some((member.name.clone(), member.started_ns, log))
        });
        self.logs.iter().cloned().chain(living).collect()
    }
}

fn kind_killed(kill: impl Fn(&'static str) -> String) -> impl Fn(&'static str) -> bool {
    move |kind| kill(kind).parse::<u64>().is_ok_and(|count| count > 0)
}

/// What descends from this process and is alive, servers aside: it adopts what loses its parent.
fn left_over() -> Vec<Process> {
    let own = Process::of(i32::try_from(std::process::id()).expect("a process id"));
    let mut below = own.map(Process::descendants).unwrap_or_default();
    let is_server = |process: &Process| {
        let line = process.command_line();
        line.starts_with("redis-server") || line.contains("redis.sh")
    };
    below.retain(|process| process.is_alive() && !is_server(process));
    below
}

/// In nanoseconds.
pub(crate) fn nanos(time: Duration) -> i128 {
    i128::try_from(time.as_nanos()).expect("a short time")
}

/// A command of the fleet on another store, and what it answers as JSON.
pub(crate) fn json_on(fleet: &Fleet, store: &str, arguments: &[&str]) -> serde_json::Value {
    let mut command: Command = fleet.command_on(store, arguments);
    let output = command.output().expect("a program to run");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {complaint}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}
