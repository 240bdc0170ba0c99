//! The daemon is frozen, or cut off from the store, or its whole host is paused: another replica
//! goes on with its jobs, and never beside them.
//!
//! A lease of 3 s makes a replica end its jobs after 1.8 s without a renewal: where the machine stands
//! still for so long, a round is played again. That nothing is beside anything holds in these as well.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

use test_support::family::Kind;
use test_support::fleet::{Fleet, Replica, SOON, now_ns};
use test_support::machine::{together, while_it_runs};
use test_support::process::{Deaths, Process, Signal};
use test_support::redis::RedisServer;
use test_support::relay::Relay;

use crate::figures::{Figures, millis};
use crate::scene::{
    Family, family_job, fleet_on, guardian_of, history, keepers_of, processes_of, wait_for_families,
};

const KINDS: [Kind; 3] = [Kind::Plain, Kind::Stubborn, Kind::DoubleFork];

const TTL: Duration = Duration::from_secs(3);
const SCHEDULER: &str = "lease_ttl = \"3s\"\nshutdown_grace = \"0s\"";
/// Each with a job of each kind.
const ROUNDS: usize = 3;
/// For how long nothing may happen that must not.
const OBSERVED: Duration = Duration::from_millis(1500);
/// A stale attempt after a pause of the whole host.
const STALE_LIMIT: Duration = Duration::from_millis(500);

/// The first attempts on replica a, with replica b ready to take over.
struct Round {
    fleet: Fleet,
    a: Replica,
    b: Replica,
    first: Vec<Family>,
}

/// What came of it, over all jobs.
#[derive(Default)]
struct Findings {
    /// From the cut to the last death of the first attempt.
    died: Figures,
    /// From the last death of the first attempt to the second's start.
    margin: Figures,
    /// How long the machine stood still at most.
    still: Duration,
}

impl Round {
    /// Under names of its own: who starts as another one's namesake looks after what it left.
    fn start(redis: &RedisServer, link_of_a: &str) -> Self {
        static ROUNDS: AtomicU32 = AtomicU32::new(0);
        let number = ROUNDS.fetch_add(1, Ordering::Relaxed);
        let [name_of_a, name_of_b] = ["a", "b"].map(|name| format!("{name}-{number}"));
        let jobs = KINDS.map(|kind| family_job(kind, ""));
        let fleet = fleet_on(redis, SCHEDULER, &jobs);
        let a = fleet.start_on(link_of_a, &name_of_a);
        let first = wait_for_families(&fleet, &KINDS, |member| member.attempt == 1);
        let b = fleet.start(&name_of_b);
        b.wait_until_ready();
        Self { fleet, a, b, first }
    }

    /// The next attempts, on replica b.
    fn taken_over(&self) -> Vec<Family> {
        wait_for_families(&self.fleet, &KINDS, |member| member.replica == self.b.name)
    }

    /// Cuts a off, waits for b, mends it, and looks who was alive when. An error says what of a
    /// machine that ran is missing.
    fn play(
        self,
        cut: impl FnOnce(&Replica),
        mend: impl FnOnce(&Replica),
        found: &mut Findings,
    ) -> Result<(), String> {
        all_alive(&self.first, &self.a)?;
        let deaths = Deaths::watch(&processes_of(&self.first), SOON);
        let cut_ns = now_ns();
        cut(&self.a);
        let second = self.taken_over();
        mend(&self.a);
        sleep(OBSERVED);
        // Whoever lives now does so for ever: that is known, and the watch need not go on.
        let mut overdue = processes_of(&self.first);
        overdue.retain(|process| process.is_alive());
        for process in &overdue {
            process.signal(Signal::KILL);
        }
        let ended = deaths.join();
        found.still = found.still.max(ended.still());
        for (first, second) in self.first.iter().zip(&second) {
            let started = second.members.iter().map(|member| member.started_ns).min();
            let processes = first.processes();
            let over = !processes.iter().any(|process| overdue.contains(process));
            let died = over.then(|| ended.last(processes)).flatten();
            found.died.add(died.map(|died| died - cut_ns));
            found
                .margin
                .add(started.zip(died).map(|(start, died)| start - died));
        }
        let members = self.fleet.members();
        let late: Vec<_> = members
            .iter()
            .filter(|member| member.replica == self.a.name && member.started_ns > cut_ns)
            .collect();
        assert!(
            late.is_empty(),
            "started while cut off, or beside b: {late:#?}"
        );
        same_occurrences_next_attempts(&self.first, &second)?;
        all_alive(&second, &self.b)
    }
}

fn all_alive(families: &[Family], of: &Replica) -> Result<(), String> {
    let is_whole = |family: &&Family| family.alive().len() == family.kind.size();
    match families.iter().find(|family| !is_whole(family)) {
        None => Ok(()),
        Some(family) => Err(format!("not all are alive: {family:#?}\n{}", of.tail())),
    }
}

fn same_occurrences_next_attempts(first: &[Family], second: &[Family]) -> Result<(), String> {
    let follows = |(first, second): &(&Family, &Family)| {
        let attempts = (first.members[0].attempt, second.members[0].attempt);
        attempts == (1, 2) && first.scheduled_at() == second.scheduled_at()
    };
    match first.iter().zip(second).find(|both| !follows(both)) {
        None => Ok(()),
        Some(both) => Err(format!("the second is not the next attempt: {both:#?}")),
    }
}

impl Findings {
    fn hold(&self, what: &str) {
        eprintln!("{what}, TTL {TTL:?}: last death after {}", self.died.tell());
        let least = self.margin.min().map_or("none".to_owned(), millis);
        eprintln!(
            "{what}: from the last death of attempt 1 to the start of attempt 2: least {least}; {}",
            self.margin.tell()
        );
        self.died.assert_within(what, TTL + self.still);
        assert_eq!(self.margin.lost(), 0, "{what}: two attempts at once");
        assert!(
            self.margin.min() > Some(0),
            "{what}: attempt 2 started {least} after attempt 1 was dead"
        );
    }
}

#[test]
fn a_frozen_daemons_jobs_are_dead_before_anybody_else_starts_them() {
    let _machine = together();
    let redis = RedisServer::start();
    let mut found = Findings::default();
    for _round in 0..ROUNDS {
        while_it_runs(|| {
            let round = Round::start(&redis, &redis.url());
            let thaw = |a: &Replica| a.process().thaw();
            round.play(|a| a.process().freeze(), thaw, &mut found)
        });
    }
    assert!(found.margin.tries() >= 5);
    found.hold("SIGSTOP of the daemon");
}

#[test]
fn a_cut_off_daemons_jobs_are_dead_before_anybody_else_starts_them() {
    let _machine = together();
    let redis = RedisServer::start();
    let mut found = Findings::default();
    for _round in 0..ROUNDS {
        while_it_runs(|| {
            let link = Relay::to(redis.port());
            let round = Round::start(&redis, &link.url());
            round.play(|_| link.cut(), |_| link.mend(), &mut found)
        });
    }
    assert!(found.margin.tries() >= 5);
    found.hold("black-holed link");
}

/// Nobody is left to tell the keepers anything: they hold their deadlines themselves.
#[test]
fn jobs_of_a_frozen_daemon_with_a_frozen_or_killed_guardian_are_dead_in_time() {
    let _machine = together();
    let redis = RedisServer::start();
    for (what, signal) in [("frozen", Signal::STOP), ("killed", Signal::KILL)] {
        let mut found = Findings::default();
        while_it_runs(|| {
            let round = Round::start(&redis, &redis.url());
            let guardian = guardian_of(&round.a);
            let cut = |a: &Replica| {
                a.process().freeze();
                guardian.signal(signal);
            };
            let mend = |a: &Replica| {
                guardian.thaw();
                a.process().thaw();
            };
            round.play(cut, mend, &mut found)
        });
        found.hold(&format!("SIGSTOP of the daemon, guardian {what}"));
    }
}

#[test]
fn a_daemon_that_is_frozen_and_thawed_within_its_lease_goes_on() {
    let _machine = together();
    let redis = RedisServer::start();
    while_it_runs(|| {
        let round = Round::start(&redis, &redis.url());
        round.a.process().freeze();
        // No event says how much of the lease is left; a quarter of it has to be.
        sleep(TTL / 4);
        round.a.process().thaw();
        sleep(OBSERVED);
        all_alive(&round.first, &round.a)?;
        let others = round.fleet.members();
        let all_of_a = others.iter().all(|member| member.replica == round.a.name);
        assert!(all_of_a, "another took it beside them: {others:#?}");
        Ok(())
    });
}

/// Where a and all below it stand still, and b, on the same host, stands in for another host.
#[test]
fn after_a_pause_of_the_host_the_stale_attempt_dies_first_and_its_end_counts_nothing() {
    let _machine = together();
    let redis = RedisServer::start();
    while_it_runs(|| pause_the_host(Round::start(&redis, &redis.url())));
}

fn pause_the_host(round: Round) -> Result<(), String> {
    let Round {
        fleet,
        mut a,
        mut b,
        first,
    } = round;
    all_alive(&first, &a)?;
    let guardian = guardian_of(&a);
    let keepers = keepers_of(guardian, KINDS.len());
    let members = processes_of(&first);
    let host: Vec<Process> = [vec![a.process(), guardian], keepers, members.clone()].concat();
    for process in &host {
        process.signal(Signal::STOP);
    }
    for process in &host {
        process.wait_for_state(|state| state == Some('T'));
    }
    let second = wait_for_families(&fleet, &KINDS, |member| member.replica == b.name);
    let deaths = Deaths::watch(&members, SOON);
    let resumed_ns = now_ns();
    // The jobs first: that is worst.
    for process in host.iter().rev() {
        process.thaw();
    }
    let ended = deaths.join();
    let mut stale = Figures::default();
    for family in &first {
        stale.add(ended.last(family.processes()).map(|died| died - resumed_ns));
    }
    eprintln!(
        "host paused and resumed: stale attempts dead after {}",
        stale.tell()
    );
    stale.assert_within("host paused and resumed", STALE_LIMIT + ended.still());
    sleep(OBSERVED);
    same_occurrences_next_attempts(&first, &second)?;
    all_alive(&second, &b)?;
    all_ended_so(&fleet, &first, &[(1, "lost")])?;
    a.drain();
    b.drain();
    all_ended_so(&fleet, &first, &[(2, "handed_over"), (1, "lost")])
}

/// Each family's occurrence is so in the ledger: attempts and outcomes, the newest first.
fn all_ended_so(fleet: &Fleet, families: &[Family], so: &[(u64, &str)]) -> Result<(), String> {
    let so: Vec<(u64, String)> = so.iter().map(|(at, how)| (*at, (*how).into())).collect();
    families.iter().try_for_each(|family| {
        let found = outcomes(fleet, family);
        let of_first = found.iter().filter(|(attempt, _)| *attempt == 1);
        let of_first: Vec<&str> = of_first.map(|(_, outcome)| outcome.as_str()).collect();
        // What it did after it was lost counts nothing, whatever the machine does.
        let is_sound = matches!(of_first[..], ["lost" | "handed_over"]);
        assert!(is_sound, "{found:?}: {family:#?}");
        (found == so)
            .then_some(())
            .ok_or_else(|| format!("{found:?}, not {so:?}: {family:#?}"))
    })
}

/// What the ledger has of a family's occurrence: attempts and outcomes, the newest first.
fn outcomes(fleet: &Fleet, family: &Family) -> Vec<(u64, String)> {
    let attempts = history(fleet, family.kind.name());
    let same = attempts
        .iter()
        .filter(|attempt| attempt["scheduled_at"] == family.scheduled_at());
    same.map(|attempt| {
        let number = attempt["attempt"].as_u64().expect("a number");
        let outcome = attempt["outcome"].as_str().expect("an outcome");
        (number, outcome.to_owned())
    })
    .collect()
}
