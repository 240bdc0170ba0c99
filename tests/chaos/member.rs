//! One replica with what is its own: a link to the store, a wall clock.
//!
//! Must never: signal a process that has not come so far as to listen, which nobody can help.

use std::time::Duration;

use test_support::clock_shim::SteppingClock;
use test_support::fleet::{Fleet, Replica, now_ns};
use test_support::process::{Process, Signal};
use test_support::relay::Relay;

use crate::plan::Fault;

/// What a replica is called. Nobody else's on this host is called so: who starts ends what jobs of its
/// name left over.
pub(crate) fn name(number: usize) -> String {
    format!("r{number}-of-{}", std::process::id())
}

/// A replica and what is its own.
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) replica: Option<Replica>,
    pub(crate) clock: SteppingClock,
    pub(crate) started_ns: i128,
    relay: Relay,
}

impl Member {
    /// One that has not started.
    pub(crate) fn new(number: usize, port: u16) -> Self {
        Self {
            name: name(number),
            replica: None,
            relay: Relay::to(port),
            clock: SteppingClock::new(),
            started_ns: 0,
        }
    }

    /// The daemon, while it is alive.
    pub(crate) fn process(&self) -> Option<Process> {
        let process = self.replica.as_ref()?.process();
        process.is_alive().then_some(process)
    }

    pub(crate) fn start(&mut self, fleet: &Fleet) {
        let mut command = fleet.command_on(&self.relay.url(), &["run", "--replica", &self.name]);
        command.envs(self.clock.environment());
        self.replica = Some(Replica::start(command, &self.name));
        self.started_ns = now_ns();
    }

    /// Says whether it was there to listen.
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        let process = self.process();
        let process = process.filter(|process| process.catches(signal));
        process.is_some_and(|process| process.signal(signal))
    }

    pub(crate) fn kill_guardian(&self) -> bool {
        let guardians = self.process();
        let guardians = guardians.map(|process| process.children_named("job-guardian"));
        let mut guardians = guardians.into_iter().flatten();
        guardians.any(|guardian| guardian.signal(Signal::KILL))
    }

    /// Whether its process goes by its clock.
    pub(crate) fn has_clock(&self) -> bool {
        let maps = self.process().map(|process| {
            std::fs::read_to_string(format!("/proc/{}/maps", process.pid)).unwrap_or_default()
        });
        maps.is_some_and(|maps| maps.contains("clock_shim"))
    }

    /// How many tables it has taken in this life.
    pub(crate) fn tables_taken(&self) -> usize {
        let replica = self.replica.as_ref();
        replica.map_or(0, |one| one.lines_with("the table was read again"))
    }

    /// From now on its link is not what it should be; whether that did harm is seen when it is mended.
    pub(crate) fn harm_link(&self, fault: Fault) -> bool {
        match fault {
            Fault::Cut(_) => self.relay.refuse(),
            Fault::BlackHole(_) => self.relay.cut(),
            Fault::LoseReplies(_) => self.relay.lose_replies(),
            Fault::Slow(_, ms) => self.relay.delay(Duration::from_millis(ms)),
            Fault::Stall(_) => self.relay.stall_connection_at_request("EVALSHA"),
            Fault::BreakReply(_) => self.relay.break_reply_to("EVALSHA"),
            _ => return false,
        }
        true
    }

    /// Says whether anything came to harm.
    pub(crate) fn mend_link(&self) -> bool {
        let harmed = self.relay.harmed();
        self.relay.mend();
        harmed > 0
    }
}
