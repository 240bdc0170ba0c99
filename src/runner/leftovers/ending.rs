//! Ends what was found. Blocks.

use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Signal, geteuid};
use rustix::thread::no_new_privs;

use super::census::{Census, Whose};
use super::process::Process;
use super::{Leftover, Report, SweepError};
use crate::clock::{Clock, SystemClock};

/// How long to wait for killed processes to be gone. One that can be killed is gone within
/// microseconds; one that hangs in the kernel may hang for ever.
const DEATH_LIMIT: Duration = Duration::from_secs(10);

/// Between two looks while processes come to a halt.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// How often to look for more before those that were found are killed anyway. A few looks do
/// unless they fork as fast as they are found.
const LOOKS_LIMIT: u32 = 50;

/// How often to begin anew with what was found after a kill.
const ROUNDS_LIMIT: u32 = 5;

/// How long a guardian that was stopped has to do its duty once it goes on.
const GUARDIAN_LIMIT: Duration = Duration::from_secs(1);

/// Ends them all, and verifies it.
pub(super) fn end(whose: &Whose, grace: Duration) -> Result<Report, SweepError> {
    let mut report = Report {
        unseen: unseen(),
        ..Report::default()
    };
    let mut known = Vec::new();
    if !grace.is_zero() {
        halt(whose, &mut known, &mut report)?;
        terminate(&known, grace);
    }
    for _ in 0..ROUNDS_LIMIT {
        halt(whose, &mut known, &mut report)?;
        if known.is_empty() {
            break;
        }
        kill(std::mem::take(&mut known), &mut report);
    }
    Ok(report)
}

/// Stops those that there are and those that they start meanwhile, until a look that began when
/// nothing moved any more shows nobody new: kin of the dead can't be found. Those known already
/// are kept, alive or not.
///
/// That makes two looks where there is nobody, and it takes two: one can miss a process that is
/// just being executed, or that got a number which the look had passed.
fn halt(whose: &Whose, known: &mut Vec<Leftover>, report: &mut Report) -> Result<(), SweepError> {
    let mut was_still = false;
    for _ in 0..LOOKS_LIMIT {
        let found = Census::take()?.find(whose, known);
        wake_guardians(found.below_stopped);
        report.undecided = found.undecided;
        let is_new = |leftover: &Leftover| {
            let survivors = report.survivors.iter().map(|(survivor, _)| survivor);
            let mut old = known.iter().chain(survivors);
            !old.any(|old| old.process.is_same(&leftover.process))
        };
        let new: Vec<Leftover> = found.leftovers.into_iter().filter(is_new).collect();
        let nobody_new = new.is_empty() && !found.missed_one;
        known.extend(new);
        let now = known.iter().filter_map(|known| known.process.now());
        let moving: Vec<Process> = now.filter(|now| !now.is_stopped()).collect();
        for process in &moving {
            // What can't be stopped shows when it can't be killed.
            let _ = process.signal(Signal::STOP);
        }
        if nobody_new && was_still {
            break;
        }
        was_still = moving.iter().all(Process::is_still);
        sleep(LOOK_INTERVAL);
    }
    Ok(())
}

/// Gives them a grace to end by themselves.
fn terminate(leftovers: &[Leftover], grace: Duration) {
    for signal in [Signal::TERM, Signal::CONT] {
        for leftover in leftovers {
            // Whoever can't be signalled shows when it can't be killed.
            let _ = leftover.process.signal(signal);
        }
    }
    let end = SystemClock.boot() + grace;
    for leftover in leftovers {
        let _ = leftover.process.wait_until_gone(end);
    }
}

/// Kills them and waits until they are gone.
fn kill(leftovers: Vec<Leftover>, report: &mut Report) {
    let mut killed = Vec::with_capacity(leftovers.len());
    for leftover in leftovers {
        match leftover.process.signal(Signal::KILL) {
            Ok(()) => killed.push(leftover),
            Err(error) => {
                let cause = format!("failed to kill it: {error}");
                report.survivors.push((leftover, cause));
            }
        }
    }
    let end = SystemClock.boot() + DEATH_LIMIT;
    for leftover in killed {
        let cause = match leftover.process.wait_until_gone(end) {
            Ok(true) => {
                report.ended.push(leftover);
                continue;
            }
            Ok(false) => format!("it hangs in the kernel: not gone {DEATH_LIMIT:?} after KILL"),
            Err(error) => format!("failed to see whether it is gone: {error}"),
        };
        report.survivors.push((leftover, cause));
    }
}

/// Has guardians and keepers that are stopped go on. If their daemon is dead they learn it now
/// and kill what is below them; if it lives they were to go on anyway.
fn wake_guardians(below_stopped: Vec<(Leftover, Vec<Process>)>) {
    for (_, guardians) in &below_stopped {
        for guardian in guardians {
            // What can't be continued can't be helped: it is still above its job.
            let _ = guardian.signal(Signal::CONT);
        }
    }
    let end = SystemClock.boot() + GUARDIAN_LIMIT;
    for (leftover, _) in below_stopped {
        // If it lives on its guardian has a daemon that lives.
        let _ = leftover.process.wait_until_gone(end);
    }
}

/// What this user can't look at.
fn unseen() -> Option<String> {
    // Where no program may gain rights, nothing that a job starts can be another user's.
    let is_all_own = no_new_privs().unwrap_or(false);
    let all_seen = is_all_own || geteuid().is_root() || Process::read(1).is_some();
    (!all_seen).then(|| {
        "processes of other users are hidden here (`hidepid` of /proc): what a job started by \
         way of a setuid program is not found"
            .to_owned()
    })
}
