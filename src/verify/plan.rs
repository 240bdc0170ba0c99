//! What a self-test will do, drawn from a seed before anything is done: the jobs, and which
//! replica is hurt how, when.
//!
//! ```text
//!  replica  │── rest ──✗ kill ····· start ── rest ──✗ pause ···· go on ── rest ── …
//!           0                                                        hurting ends ─┤ settling
//! ```
//!
//! Must never: read a clock, start anything, or plan what touches the store's server itself.

use std::time::Duration;

use serde::Serialize;

use super::dice::Dice;

/// The shortest self-test: two leases have to run out in it.
pub const SHORTEST: Duration = Duration::from_secs(8);
/// The longest: evidence is kept of every second.
pub const LONGEST: Duration = Duration::from_secs(3600);
/// Fewer have nobody to take over.
pub const FEWEST_REPLICAS: u32 = 2;
/// Each is a process with connections of its own.
pub const MOST_REPLICAS: u32 = 20;

/// From this length on a lease is as long as in [`LONG_TTL`].
const LONG_TEST: Duration = Duration::from_secs(30);
const LONG_TTL: Duration = Duration::from_secs(3);
/// The shortest lease that there is.
const SHORT_TTL: Duration = Duration::from_secs(1);

/// How long a drained replica has to be gone before it is started again.
const AWAY: Duration = Duration::from_millis(300);

/// What a self-test is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// How long jobs fall due and are judged.
    pub duration: Duration,
    /// How many replicas.
    pub replicas: u32,
    /// What all is drawn from.
    pub seed: u64,
    /// The link of each replica to the store can be cut.
    pub has_links: bool,
}

/// A job of the self-test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobPlan {
    /// Its name.
    pub name: &'static str,
    /// From one occurrence to the next, in whole seconds that divide a minute.
    pub every_seconds: u32,
    /// How long an attempt takes if nothing comes between.
    pub lasts: Duration,
    /// `on_crash = "skip"`: each occurrence starts once at most.
    pub once: bool,
    /// `concurrency_policy = "queue"`: what falls due meanwhile waits for its turn.
    pub queues: bool,
}

/// A way to hurt a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// `kill -9` of the replica, and a new start.
    Kill,
    /// SIGSTOP, and SIGCONT before a lease can run out.
    ShortPause,
    /// SIGSTOP, and SIGCONT after every lease has run out.
    LongPause,
    /// SIGTERM, and a new start.
    Drain,
    /// `kill -9` of the replica's guardian.
    KillGuardian,
    /// The link between replica and store lets nothing through.
    CutLink,
}

impl Fault {
    /// All that there are.
    pub const ALL: [Fault; 6] = [
        Fault::Kill,
        Fault::LongPause,
        Fault::CutLink,
        Fault::Drain,
        Fault::KillGuardian,
        Fault::ShortPause,
    ];

    /// As people read it.
    pub fn words(self) -> &'static str {
        match self {
            Fault::Kill => "kill -9 of a replica",
            Fault::ShortPause => "pause shorter than a lease",
            Fault::LongPause => "pause longer than a lease",
            Fault::Drain => "SIGTERM to a replica",
            Fault::KillGuardian => "kill -9 of a guardian",
            Fault::CutLink => "link to the store cut",
        }
    }
}

/// What is done to a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// SIGKILL.
    Kill,
    /// Started again.
    Start,
    /// SIGSTOP.
    Stop,
    /// SIGCONT.
    Continue,
    /// SIGTERM.
    Drain,
    /// SIGKILL to its guardian.
    KillGuardian,
    /// Its link lets nothing through.
    Cut,
    /// Its link lets all through.
    Mend,
}

/// One thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// When, from the beginning.
    pub at: Duration,
    /// To which replica.
    pub replica: usize,
    /// What.
    pub act: Act,
    /// The fault that this begins; none where it ends one.
    pub begins: Option<Fault>,
}

impl Setup {
    /// How long a lease lasts: short, so that many of them run out.
    pub fn lease_ttl(&self) -> Duration {
        match self.duration < LONG_TEST {
            true => SHORT_TTL,
            false => LONG_TTL,
        }
    }

    /// From when on nobody is hurt, so that what was due can come to its end: a takeover, and the
    /// longest job.
    pub fn hurting_ends(&self) -> Duration {
        let settling = self.lease_ttl() * 5 / 2 + Duration::from_millis(500);
        self.duration.saturating_sub(settling)
    }

    /// The jobs: short ones of each second, and those that outlast a lease.
    pub fn jobs(&self) -> Vec<JobPlan> {
        let long = self.lease_ttl() * 3 / 2;
        let period = match self.lease_ttl() == SHORT_TTL {
            true => 2,
            false => 6,
        };
        let ms = Duration::from_millis;
        let job = |name, every_seconds, lasts| JobPlan {
            name,
            every_seconds,
            lasts,
            once: false,
            queues: false,
        };
        let once = |job| JobPlan { once: true, ..job };
        let mut queued = job("short-queued", 1, ms(100));
        queued.queues = true;
        // So many long ones that most replicas hold one when they are hurt.
        vec![
            job("short", 1, ms(20)),
            once(job("short-once", 1, ms(40))),
            queued,
            job("long-a", period, long),
            job("long-b", period, long),
            job("long-c", period, long),
            job("long-d", period, long),
            once(job("long-once-a", period, long)),
            once(job("long-once-b", period, long)),
        ]
    }

    /// The ways to hurt that are possible here.
    pub fn faults(&self) -> impl Iterator<Item = Fault> {
        let has_links = self.has_links;
        let all = Fault::ALL.into_iter();
        all.filter(move |fault| has_links || *fault != Fault::CutLink)
    }

    /// All that is done to the replicas, in order. Each is hurt in one way at a time, and rests in
    /// between, so that most of them are well at most moments.
    pub fn steps(&self) -> Vec<Step> {
        let mut dice = Dice::new(self.seed);
        let ttl = self.lease_ttl();
        let end = self.hurting_ends();
        let mut hands: Vec<Duration> = (0..self.replicas)
            .map(|_| dice.between(ttl / 4, ttl * 2))
            .collect();
        let mut deck: Vec<Fault> = Vec::new();
        let mut steps = Vec::new();
        // Whoever has rested longest is next.
        while let Some((replica, at)) = hands
            .iter()
            .copied()
            .enumerate()
            .min_by_key(|(_, at)| *at)
            .filter(|(_, at)| *at < end)
        {
            if deck.is_empty() {
                deck = self.faults().collect();
                dice.shuffle(&mut deck);
            }
            let fault = deck.pop().unwrap_or(Fault::Kill);
            let length = length_of(fault, ttl, &mut dice);
            if at + length > end {
                hands[replica] = end;
                continue;
            }
            push(&mut steps, fault, replica, at, length);
            hands[replica] = at + length + dice.between(ttl, ttl * 3);
        }
        steps.sort_by_key(|step| step.at);
        steps
    }
}

/// How long a replica is hurt.
fn length_of(fault: Fault, ttl: Duration, dice: &mut Dice) -> Duration {
    match fault {
        Fault::KillGuardian => Duration::ZERO,
        Fault::ShortPause => dice.between(ttl / 20, ttl * 2 / 3),
        Fault::LongPause => dice.between(ttl * 11 / 10, ttl * 2),
        Fault::CutLink => dice.between(ttl / 5, ttl * 2),
        Fault::Kill => dice.between(ttl / 20, ttl * 3 / 2),
        // It may take its grace to end.
        Fault::Drain => dice.between(ttl + AWAY, ttl * 2),
    }
}

fn push(steps: &mut Vec<Step>, fault: Fault, replica: usize, at: Duration, length: Duration) {
    let (first, last) = match fault {
        Fault::Kill => (Act::Kill, Some(Act::Start)),
        Fault::ShortPause | Fault::LongPause => (Act::Stop, Some(Act::Continue)),
        Fault::Drain => (Act::Drain, Some(Act::Start)),
        Fault::KillGuardian => (Act::KillGuardian, None),
        Fault::CutLink => (Act::Cut, Some(Act::Mend)),
    };
    let step = |at, act, begins| Step {
        at,
        replica,
        act,
        begins,
    };
    steps.push(step(at, first, Some(fault)));
    steps.extend(last.map(|act| step(at + length, act, None)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(seed: u64, seconds: u64) -> Setup {
        Setup {
            duration: Duration::from_secs(seconds),
            replicas: 5,
            seed,
            has_links: true,
        }
    }

    #[test]
    fn a_seed_gives_the_same_plan_again_and_another_one_another() {
        assert_eq!(setup(7, 60).steps(), setup(7, 60).steps());
        assert_ne!(setup(7, 60).steps(), setup(8, 60).steps());
    }

    #[test]
    fn each_way_to_hurt_comes_in_a_minute_and_all_is_mended_before_the_end() {
        for seed in 0..200 {
            let setup = setup(seed, 60);
            let steps = setup.steps();
            for fault in Fault::ALL {
                let begins = |step: &&Step| step.begins == Some(fault);
                assert!(steps.iter().any(|step| begins(&step)), "{seed}: {fault:?}");
            }
            let last = steps.iter().map(|step| step.at).max();
            assert!(last <= Some(setup.hurting_ends()), "{seed}");
        }
    }

    #[test]
    fn a_replica_is_hurt_in_one_way_at_a_time() {
        for seed in 0..200 {
            for replica in 0..5 {
                let mut hurt = false;
                for step in setup(seed, 60).steps() {
                    if step.replica != replica || step.act == Act::KillGuardian {
                        continue;
                    }
                    assert_eq!(step.begins.is_some(), !hurt, "{seed}: {step:?}");
                    hurt = !hurt;
                }
                assert!(!hurt, "{seed}: replica {replica} is left hurt");
            }
        }
    }

    #[test]
    fn a_link_that_is_not_there_is_not_cut() {
        let setup = Setup {
            has_links: false,
            ..setup(1, 60)
        };
        let cut = setup
            .steps()
            .into_iter()
            .filter(|step| step.act == Act::Cut);
        assert_eq!(cut.count(), 0);
    }

    #[test]
    fn the_shortest_test_has_faults_and_its_long_jobs_outlast_a_lease() {
        let setup = setup(3, SHORTEST.as_secs());
        assert!(!setup.steps().is_empty());
        assert!(setup.jobs().iter().any(|job| job.lasts > setup.lease_ttl()));
        for job in setup.jobs() {
            assert_eq!(60 % job.every_seconds, 0, "{}", job.name);
        }
    }
}
