//! How long it takes until another replica goes on with what a killed one ran.
//!
//! Must never: hold a fleet to the bound where nobody could keep it: some replica, and the server, are well.

use std::time::Duration;

use test_support::account::occurrence;
use test_support::probe::Run;

use crate::plan::{Fault, REPLICAS, Target};
use crate::stage::{Happened, nanos};
use crate::table::{GRACE, TTL, at_most_once};

/// What the promise adds to the lease, and what a machine with more to do than it can takes for itself.
pub(crate) const BOUND: Duration = Duration::from_secs(TTL.as_secs() + 1 + 1);

/// How long who takes over has to have been well before.
const WELL_BEFORE: Duration = Duration::from_secs(2);

/// How long a replica may take from its start, or from a link that works again, until it is well: attempts
/// to connect are apart by half a second, and who takes over has looked at the store for a while.
const RECOVERY: Duration = Duration::from_secs(2);

/// An occurrence that went from a killed replica to another attempt.
#[derive(Clone, Debug)]
pub(crate) struct Takeover {
    pub(crate) run: Run,
    pub(crate) took: Duration,
    /// The server was well, and so was a replica that lived on: the bound holds.
    pub(crate) bound: bool,
}

/// All takeovers from replicas that were killed.
pub(crate) fn takeovers(
    runs: &[Run],
    happened: &[Happened],
    gaps: &[(i128, i128)],
    name: impl Fn(usize) -> String,
) -> Vec<Takeover> {
    let mut found = Vec::new();
    for kill in happened {
        let Fault::Kill(who) = kill.fault else {
            continue;
        };
        let bound = somebody_was_well(kill, who, happened) && !stood_still(kill, gaps);
        for run in cut_short(runs, &name(who), kill.begun_ns) {
            let next = runs
                .iter()
                .find(|next| occurrence(next) == occurrence(run) && next.token > run.token);
            if let Some(next) = next {
                let took = u64::try_from(next.started_ns - kill.begun_ns).unwrap_or(0);
                found.push(Takeover {
                    run: run.clone(),
                    took: Duration::from_nanos(took),
                    bound,
                });
            }
        }
    }
    found
}

/// What the replica was running when it was killed. What it ran in an earlier life, or lost before, was
/// started again before.
fn cut_short<'a>(
    runs: &'a [Run],
    replica: &'a str,
    killed_ns: i128,
) -> impl Iterator<Item = &'a Run> {
    runs.iter().filter(move |run| {
        let next = runs
            .iter()
            .find(|next| next.job == run.job && next.token > run.token);
        run.replica == replica
            && run.started_ns < killed_ns
            && run.ended_ns.is_none()
            && !at_most_once(&run.job)
            && killed_ns - run.started_ns < nanos(TTL * 2)
            && next.is_none_or(|next| next.started_ns > killed_ns)
    })
}

/// The server gave no answer in that time, whoever was at fault.
fn stood_still(kill: &Happened, gaps: &[(i128, i128)]) -> bool {
    let from = kill.begun_ns - nanos(WELL_BEFORE);
    let until = kill.begun_ns + nanos(BOUND);
    gaps.iter().any(|gap| gap.0 <= until && gap.1 >= from)
}

fn somebody_was_well(kill: &Happened, who: usize, happened: &[Happened]) -> bool {
    let from = kill.begun_ns - nanos(WELL_BEFORE);
    let until = kill.begun_ns + nanos(BOUND);
    let touches = |other: &&Happened, rest: Duration| {
        other.begun_ns <= until && other.ended_ns + nanos(rest) >= from
    };
    let server = happened.iter().any(|other| {
        let rest = match other.fault {
            Fault::ForgetScripts => return false,
            Fault::KillServer | Fault::Flush => RECOVERY + GRACE,
            _ => RECOVERY,
        };
        other.fault.target() == Target::Server && touches(&other, rest)
    });
    let is_well = |one: usize| {
        one != who
            && !happened.iter().any(|other| {
                let is_its = matches!(other.fault.target(),
                    Target::Daemon(it) | Target::Guardian(it) | Target::Link(it) if it == one);
                is_its && touches(&other, RECOVERY)
            })
    };
    !server && (0..REPLICAS).any(is_well)
}

#[cfg(test)]
mod tests {
    use test_support::account::SECOND;

    use super::*;

    fn run(job: &str, attempt: u32, replica: &str, started_ns: i128) -> Run {
        Run {
            job: job.to_owned(),
            scheduled_at: "1970-01-01T00:01:40Z".to_owned(),
            attempt,
            token: attempt.into(),
            replica: replica.to_owned(),
            started_ns,
            ended_ns: None,
            beside: false,
        }
    }

    fn at(fault: Fault, second: i128) -> Happened {
        Happened {
            fault,
            begun_ns: second * SECOND,
            ended_ns: second * SECOND,
        }
    }

    fn of(happened: &[Happened]) -> Vec<(u64, bool)> {
        beside_gaps(happened, &[])
    }

    fn beside_gaps(happened: &[Happened], gaps: &[(i128, i128)]) -> Vec<(u64, bool)> {
        let runs = [
            run("held-rerun", 1, "0", 100 * SECOND),
            run("held-rerun", 2, "1", 104 * SECOND),
        ];
        let found = takeovers(&runs, happened, gaps, |who| who.to_string());
        found
            .iter()
            .map(|one| (one.took.as_secs(), one.bound))
            .collect()
    }

    #[test]
    fn a_takeover_takes_from_the_kill_to_the_next_start() {
        assert_eq!(of(&[at(Fault::Kill(0), 101)]), [(3, true)]);
        assert_eq!(of(&[at(Fault::Kill(1), 101)]), [], "of another replica");
        assert_eq!(
            of(&[at(Fault::Kill(0), 105)]),
            [],
            "it was taken over before"
        );
    }

    #[test]
    fn the_bound_holds_where_the_server_and_somebody_else_are_well() {
        let kill = at(Fault::Kill(0), 101);
        assert_eq!(
            of(&[kill.clone(), at(Fault::KillClients, 102)]),
            [(3, false)]
        );
        let gap = |from: i128| [(from * SECOND, (from + 1) * SECOND)];
        let killed = [kill.clone()];
        assert_eq!(beside_gaps(&killed, &gap(103)), [(3, false)]);
        assert_eq!(beside_gaps(&killed, &gap(97)), [(3, true)], "long before");
        let mut all = vec![kill];
        all.extend((1..4).map(|who| at(Fault::Cut(who), 102)));
        assert_eq!(of(&all), [(3, true)]);
        all.push(at(Fault::KillGuardian(4), 102));
        assert_eq!(of(&all), [(3, false)]);
    }
}
