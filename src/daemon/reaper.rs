//! The duties of a process that orphans fall to: as PID 1 of a container all of them do, and as
//! a child subreaper (prctl(2)) those that jobs leave behind.
//!
//! An orphan that ends stays a zombie until it is reaped, and enough of them leave no pid for
//! anybody. So when children end, those are reaped that are *nobody's*: who starts a child wants
//! its exit status, and relies on its pid being given to nobody else until then.
//!
//! `waitid(P_ALL)` can't tell them apart. Asked not to reap (WNOWAIT) it tells of the same child
//! again and again, and one whose owner takes his time would hide all others. It only says
//! whether there is anything to do; then the children are listed and asked one by one.

use std::fs;
use std::io;

use futures_util::StreamExt;
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, set_child_subreaper, waitid,
};
use signal_hook::consts::SIGCHLD;
use signal_hook_tokio::Signals;
use tracing::{debug, warn};

use crate::guardian::{self, GUARDIAN_NAME, KEEPER_NAME};

/// Has orphans below this process fall to it, and reaps them for as long as the runtime lives;
/// children that are `owned` are left to their owners. Must be called on a runtime.
///
/// `owned` is asked of a child that has ended and is not reaped yet. It must know a child before
/// that can end: it is to take a lock that is held while children are started, or to know them
/// by what they are.
pub(super) fn start(owned: impl Fn(Pid) -> bool + Send + Sync + 'static) -> io::Result<()> {
    if let Err(error) = set_child_subreaper(Some(getpid())) {
        warn!(%error, "failed to become a child subreaper: what jobs leave behind falls to PID 1");
    }
    if !fs::read_link("/proc/self").is_ok_and(|shown| shown.to_str() == Some(&own_pid())) {
        warn!(
            "orphans that end stay zombies: /proc is missing, or shows another PID namespace; \
             mount this one's (`mount -t proc proc /proc`)"
        );
    }
    reap_from_now_on(owned)
}

fn own_pid() -> String {
    getpid().as_raw_pid().to_string()
}

fn reap_from_now_on(owned: impl Fn(Pid) -> bool + Send + Sync + 'static) -> io::Result<()> {
    let mut ends = Signals::new([SIGCHLD])?;
    tokio::spawn(async move {
        loop {
            // Once before the first signal too: some may have ended before anybody listened.
            // Not on a thread of its own: there may be none to be had, and children are few.
            continue_keepers();
            reap(&owned);
            if ends.next().await.is_none() {
                return;
            }
        }
    });
    Ok(())
}

/// Whether a child is the guardian, whose end the runner waits for. Its name outlives it, until
/// it is reaped.
pub(super) fn is_guardian(child: Pid) -> bool {
    let name = fs::read_to_string(format!("/proc/{}/comm", child.as_raw_pid()));
    name.is_ok_and(|name| name.trim_end() == GUARDIAN_NAME)
}

/// Continues keepers that are stopped. They fall to this process when their guardian dies,
/// which did so before.
fn continue_keepers() {
    let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
    for child in guardian::children() {
        let name = fs::read_to_string(format!("/proc/{}/comm", child.as_raw_pid()));
        let is_keeper = name.is_ok_and(|name| name.trim_end() == KEEPER_NAME);
        if is_keeper && matches!(waitid(WaitId::Pid(child), options), Ok(Some(_))) {
            warn!(
                pid = child.as_raw_pid(),
                "a keeper was stopped: continuing it"
            );
            let _ = kill_process(child, Signal::CONT);
        }
    }
}

/// Reaps every child that has ended and is not `owned`.
fn reap(owned: &impl Fn(Pid) -> bool) {
    // Several times, as a list that is read while children come and go can lack some.
    while has_ended(WaitId::All) {
        let ended = guardian::children()
            .into_iter()
            .filter(|child| has_ended(WaitId::Pid(*child)));
        let orphans: Vec<Pid> = ended.filter(|child| !owned(*child)).collect();
        if orphans.is_empty() {
            break;
        }
        for orphan in orphans {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
            let status = retry_on_intr(|| waitid(WaitId::Pid(orphan), options));
            debug!(pid = orphan.as_raw_pid(), ?status, "reaped an orphan");
        }
    }
}

/// Whether a child, or any, has ended. It is left as it is.
fn has_ended(which: WaitId<'_>) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match retry_on_intr(|| waitid(which.clone(), options)) {
        Ok(status) => status.is_some(),
        Err(Errno::CHILD) => false,
        Err(error) => {
            debug!(%error, "failed to ask for children that have ended");
            false
        }
    }
}

#[cfg(test)]
#[expect(
    clippy::zombie_processes,
    reason = "that others than their parents reap them is what is tested"
)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};
    use std::time::Duration;

    use super::*;

    /// Other tests of this process have children too: none but these may be reaped here.
    fn all_but(orphans: &[&Child]) -> impl Fn(Pid) -> bool + Send + Sync + 'static {
        let orphans: Vec<Pid> = orphans.iter().map(|child| Pid::from_child(child)).collect();
        move |pid| !orphans.contains(&pid)
    }

    fn ended() -> Child {
        let child = Command::new("/bin/true").process_group(0).spawn().unwrap();
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        retry_on_intr(|| waitid(WaitId::Pid(Pid::from_child(&child)), options)).unwrap();
        child
    }

    fn is_reaped(child: &Child) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = retry_on_intr(|| waitid(WaitId::Pid(Pid::from_child(child)), options));
        status.is_err_and(|error| error == Errno::CHILD)
    }

    #[test]
    fn an_owned_zombie_hides_no_other_and_is_kept() {
        let owned = [ended(), ended()];
        let orphans = [ended(), ended()];
        let mut later = ended();
        // Again, as the list can lack some while other tests wait for their own children: in a
        // daemon the next end has it read again.
        let reaped = (0..1000).any(|_| {
            reap(&all_but(&[&orphans[0], &orphans[1]]));
            orphans.iter().all(is_reaped)
        });
        assert!(reaped);
        for mut child in owned {
            assert!(child.wait().unwrap().success());
        }
        assert!(later.wait().unwrap().success());
    }

    #[test]
    fn a_living_child_is_left_alone() {
        let mut child = Command::new("/bin/sleep").arg("1000").spawn().unwrap();
        reap(&all_but(&[&child]));
        assert!(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[tokio::test]
    async fn an_end_is_noticed_whenever_it_comes() {
        let before = ended();
        let mut after = Command::new("/bin/sleep").arg("1000").spawn().unwrap();
        reap_from_now_on(all_but(&[&before, &after])).unwrap();
        eventually_reaped(&before).await;
        after.kill().unwrap();
        eventually_reaped(&after).await;
    }

    async fn eventually_reaped(child: &Child) {
        let reaped = async {
            while !is_reaped(child) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let in_time = tokio::time::timeout(Duration::from_secs(30), reaped).await;
        in_time.expect("it is reaped");
    }

    #[test]
    fn a_guardian_is_told_from_an_orphan_even_when_it_has_ended() {
        let program = tempfile::tempdir().unwrap();
        let guardian = program.path().join(GUARDIAN_NAME);
        std::os::unix::fs::symlink("/bin/true", &guardian).unwrap();
        for (name, is_one) in [(guardian.as_path(), true), ("/bin/true".as_ref(), false)] {
            let mut child = Command::new(name).spawn().unwrap();
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            waitid(WaitId::Pid(Pid::from_child(&child)), options).unwrap();
            assert_eq!(is_guardian(Pid::from_child(&child)), is_one);
            child.wait().unwrap();
        }
    }
}
