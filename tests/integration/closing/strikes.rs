//! What befalls replicas: their daemon is killed, or their whole host is paused.

use std::thread::sleep;
use std::time::Duration;

use test_support::process::{Deaths, Process, Signal};

use super::premises::{LEASE_TTL, Shop};
use crate::fleet::{Replica, now_ns};

/// How long anything of a job may live on after its daemon was killed.
const GONE_LIMIT: Duration = Duration::from_secs(1);

/// How long to look for an attempt in whose middle a pause can be.
const AIM_LIMIT: Duration = Duration::from_secs(3);

/// A takeover may take the TTL and a second; in a pause there has to be one.
const SHORTEST_PAUSE: Duration = LEASE_TTL.saturating_add(Duration::from_millis(1_200));

/// How much longer a pause may take until another attempt has written.
const WRITE_LIMIT: Duration = Duration::from_millis(1_500);

/// How long a resumed job is ahead of all who could end it: a moment, and for as long as it
/// takes to do its worst.
const SHORTEST_LEAD: Duration = Duration::from_millis(300);
const LONGEST_LEAD: Duration = Duration::from_secs(1);

/// The longest that a pause takes, with all that belongs to it.
pub(crate) const LONGEST_PAUSE: Duration = AIM_LIMIT
    .saturating_add(SHORTEST_PAUSE)
    .saturating_add(WRITE_LIMIT)
    .saturating_add(LONGEST_LEAD);

/// Kills a replica's daemon, and nothing else, and waits until nothing of its jobs is left. Gives
/// how long the last of them lived on.
pub(crate) fn kill(replica: &mut Replica) -> Duration {
    // Jobs, and those who end them: a guardian leaves last, so that its end speaks for whoever
    // was forked behind our back.
    let below = replica.process().descendants();
    let deaths = Deaths::watch(&below, GONE_LIMIT);
    let killed_ns = now_ns();
    replica.kill9();
    let ended = deaths.join();
    let survivors: Vec<String> = ended.survivors().into_iter().map(named).collect();
    assert!(
        survivors.is_empty(),
        "alive {GONE_LIMIT:?} after {} was killed: {survivors:?}",
        replica.name
    );
    let last_ns = ended.last(below).map_or(0, |died_ns| died_ns - killed_ns);
    Duration::from_nanos(u64::try_from(last_ns).unwrap_or(0))
}

/// Pauses the host of whoever is in the middle of closing orders; failing that, another's. Waits
/// until somebody else has taken over, and written if it does so in time. Then resumes, in the
/// worst order: the job first, with its write in flight and nobody there to end it.
pub(crate) fn pause(shop: &Shop, replicas: &[Replica], otherwise: usize) {
    let stale = shop.wait_for_closer_at_work(AIM_LIMIT);
    let holder = stale.as_ref().map(|attempt| &attempt.replica);
    let mut all = replicas.iter();
    let victim = all.find(|replica| Some(&replica.name) == holder);
    let host = PausedHost::pause(victim.unwrap_or(&replicas[otherwise]));
    sleep(SHORTEST_PAUSE);
    let Some(stale) = stale else {
        host.resume(|| ());
        return;
    };
    shop.wait_for(WRITE_LIMIT, |attempts| {
        let later = attempts.iter().filter(|attempt| attempt.closes);
        let mut later = later.skip_while(|attempt| attempt.token != stale.token);
        later.any(|attempt| attempt.token != stale.token && attempt.code.is_some())
    });
    host.resume(|| {
        shop.wait_for(LONGEST_LEAD, |attempts| {
            let mut ended = attempts.iter().filter(|attempt| attempt.code.is_some());
            ended.any(|attempt| attempt.closes && attempt.token == stale.token)
        });
    });
}

/// A replica and everything below it, all of which stands still.
struct PausedHost {
    /// The daemon, its guardian, the keepers.
    replica: Vec<Process>,
    jobs: Vec<Process>,
}

impl PausedHost {
    /// From above, as a daemon continues its guardian, and a guardian its keepers. Who has
    /// stopped has no further children, so that nobody is missed.
    fn pause(replica: &Replica) -> Self {
        let mut all = vec![replica.process()];
        let mut next = 0;
        while let Some(process) = all.get(next).copied() {
            process.signal(Signal::STOP);
            process.wait_for_state(stands_still);
            all.extend(process.children());
            next += 1;
        }
        let (replica, jobs) = all.into_iter().partition(|process| {
            ["soloist", "job-guardian", "job-keeper"].contains(&&*process.comm())
        });
        let host = Self { replica, jobs };
        host.has_not_moved();
        host
    }

    fn has_not_moved(&self) {
        for process in self.replica.iter().chain(&self.jobs) {
            let state = process.state();
            assert!(stands_still(state), "{state:?}: {}", named(*process));
        }
    }

    /// Lets the jobs go on, and the rest when `lead` is over.
    fn resume(self, lead: impl FnOnce()) {
        self.has_not_moved();
        self.jobs.iter().for_each(|process| process.thaw());
        sleep(SHORTEST_LEAD);
        lead();
        self.replica.iter().rev().for_each(|process| process.thaw());
    }
}

/// Stopped, or dead.
fn stands_still(state: Option<char>) -> bool {
    matches!(state, Some('T' | 'Z' | 'X') | None)
}

fn named(process: Process) -> String {
    format!("{} ({})", process.pid, process.comm())
}
