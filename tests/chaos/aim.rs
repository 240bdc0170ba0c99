//! Whom a fault strikes that would do nothing to a replica without work: one that is at work.
//!
//! Must never: find another victim for a fault while its target is struck already.

use std::time::{Duration, Instant};

use test_support::fleet::{SOON, now_ns};
use test_support::probe::Run;

use crate::member::Member;
use crate::plan::{Fault, Target};
use crate::stage::nanos;
use crate::table::{TTL, at_most_once, runs_for};

/// How long to look for somebody at work, and among how many of the newest runs.
const AIM: Duration = Duration::from_millis(500);
const RECENT: usize = 60;

/// How long a run is under way when its holder is killed and nothing else is broken.
const AT_WORK: Duration = Duration::from_millis(300);

/// The fault with its victim: the planned one, where nobody is at work.
pub(crate) fn aimed(
    planned: Fault,
    members: &[Member],
    struck: &[Target],
    runs: impl Fn() -> Vec<Run>,
) -> Fault {
    let again = |run: &Run| !at_most_once(&run.job);
    let at_work =
        |run: &Run| again(run) && will_last(run) && now_ns() - run.started_ns > nanos(AT_WORK);
    let find = |within: Duration, of: fn(usize) -> Fault, wanted: &dyn Fn(&Run) -> bool| {
        let end = Instant::now() + within;
        loop {
            let runs = runs();
            let mut recent = runs.iter().rev().take(RECENT).filter(|run| wanted(run));
            let fault = recent.find_map(|run| {
                let fault = holder(run, members).map(of);
                fault.filter(|fault| !struck.contains(&fault.target()))
            });
            if fault.is_some() || Instant::now() > end {
                return fault.unwrap_or(planned);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    match planned {
        Fault::KillHolder => find(SOON, Fault::Kill, &at_work),
        Fault::FreezeHolder => find(SOON, Fault::Freeze, &at_work),
        Fault::Kill(_) => find(AIM, Fault::Kill, &again),
        Fault::Freeze(_) => find(AIM, Fault::Freeze, &will_last),
        Fault::Cut(_) => find(AIM, Fault::Cut, &will_last),
        Fault::BlackHole(_) => find(AIM, Fault::BlackHole, &will_last),
        other => other,
    }
}

/// Who runs it now.
fn holder(run: &Run, members: &[Member]) -> Option<usize> {
    let is_it = |member: &Member| {
        member.name == run.replica
            && member.started_ns < run.started_ns
            && member.process().is_some()
    };
    let victim = members.iter().position(is_it);
    victim.filter(|_| run.ended_ns.is_none())
}

/// It would go on for longer than a lease, if nobody ended it.
fn will_last(run: &Run) -> bool {
    now_ns() - run.started_ns + nanos(TTL) < nanos(runs_for(&run.job))
}
