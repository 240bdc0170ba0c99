//! Ten thousand attempts leave nothing behind: no descriptor, no zombie, no memory.

use std::time::{Duration, Instant};

use test_support::fleet::Replica;
use test_support::machine::{alone, stood_still};
use test_support::process::Process;
use test_support::redis::RedisServer;

use crate::scene::{fleet_on, fresh_name, guardian_of};

const ATTEMPTS: usize = 10_000;
/// Until caches and pools have the size that they keep.
const WARM_UP: usize = 1_000;
/// All due at once, eight seconds out of ten. In the other two all comes to rest.
const JOBS: usize = 300;
const SCHEDULE: &str = "0-7,10-17,20-27,30-37,40-47,50-57 * * * * *";
const ROUND: Duration = Duration::from_secs(10);
/// How long it is looked at while it rests.
const AT_REST: Duration = Duration::from_millis(500);
/// The whole test, which takes one minute of a machine that does nothing else.
const BUDGET: Duration = Duration::from_secs(300);

/// What may come and go: allocators give back in their own time. It is as much as nine thousand
/// attempts would leak by 450 bytes each, and half of it is what half as many would.
const MEMORY_SLACK_KIB: u64 = 4 * 1024;
const DESCRIPTOR_SLACK: usize = 4;

/// What a process has while no attempt is under way.
#[derive(Clone, Copy, Debug)]
struct Holdings {
    descriptors: usize,
    resident_kib: u64,
    zombies: usize,
    children: usize,
}

impl Holdings {
    fn of(process: Process) -> Self {
        Self {
            descriptors: process.descriptors(),
            resident_kib: process.resident_kib(),
            zombies: process.zombies(),
            children: process.children().len(),
        }
    }

    fn least(self, other: Self) -> Self {
        Self {
            descriptors: self.descriptors.min(other.descriptors),
            resident_kib: self.resident_kib.min(other.resident_kib),
            zombies: self.zombies.min(other.zombies),
            children: self.children.min(other.children),
        }
    }

    /// Of daemon and guardian, at their least while no keeper is there.
    fn at_rest(processes: [Process; 2]) -> [Self; 2] {
        let mut rest: Option<(Instant, [Self; 2])> = None;
        let end = Instant::now() + ROUND * 2;
        loop {
            assert!(Instant::now() < end, "no rest within {:?}", ROUND * 2);
            std::thread::sleep(Duration::from_millis(10));
            let [daemon, guardian] = processes.map(Self::of);
            rest = match rest {
                _ if guardian.children > 0 => None,
                None => Some((Instant::now(), [daemon, guardian])),
                Some((since, [least, other])) => {
                    Some((since, [least.least(daemon), other.least(guardian)]))
                }
            };
            if let Some((_, held)) = rest.filter(|(since, _)| since.elapsed() >= AT_REST) {
                return held;
            }
        }
    }

    fn has_grown(self, before: Self) -> bool {
        self.resident_kib > before.resident_kib + MEMORY_SLACK_KIB
    }

    fn assert_flat(self, name: &str, before: Self) {
        eprintln!("{name}: before {before:?}");
        eprintln!("{name}: after  {self:?}");
        assert!(
            self.descriptors <= before.descriptors + DESCRIPTOR_SLACK,
            "{name}"
        );
        assert!(!self.has_grown(before), "{name}");
        assert_eq!(self.zombies, 0, "{name}");
        assert!(
            self.children <= before.children + DESCRIPTOR_SLACK,
            "{name}"
        );
    }
}

fn succeeded(replica: &Replica) -> usize {
    replica.lines_with("attempt succeeded")
}

fn wait_for_attempts(replica: &Replica, wanted: usize, began: Instant) {
    let before = stood_still();
    while succeeded(replica) < wanted {
        let took = began.elapsed();
        assert!(
            took < BUDGET + (stood_still() - before),
            "{} of {ATTEMPTS} attempts within {BUDGET:?}",
            succeeded(replica)
        );
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn ten_thousand_attempts_leave_nothing_behind() {
    let _machine = alone();
    let redis = RedisServer::start();
    let began = Instant::now();
    let jobs: Vec<String> = (0..JOBS)
        .map(|number| {
            format!(
                "[jobs.job-{number}]\nschedule = \"{SCHEDULE}\"\ncommand = [\"true\"]\n\
                 history_limit = 10\n"
            )
        })
        .collect();
    let fleet = fleet_on(&redis, "", &jobs);
    let mut replica = fleet.start(&fresh_name());
    wait_for_attempts(&replica, WARM_UP, began);
    let processes = [replica.process(), guardian_of(&replica)];
    let [mut daemon, guardian] = Holdings::at_rest(processes);
    let counted = (succeeded(&replica), Instant::now());
    wait_for_attempts(&replica, ATTEMPTS, began);
    eprintln!(
        "{} attempts in {:.0?}, {:.0} a second",
        succeeded(&replica),
        began.elapsed(),
        (succeeded(&replica) - counted.0) as f64 / counted.1.elapsed().as_secs_f64()
    );
    assert_eq!(
        replica.lines_with("attempt failed"),
        0,
        "{}",
        replica.tail()
    );
    assert_eq!(
        guardian_of(&replica),
        processes[1],
        "the guardian is the same"
    );
    let [mut daemon_after, mut guardian_after] = Holdings::at_rest(processes);
    if daemon_after.has_grown(daemon) {
        eprintln!("daemon: from {daemon:?} to {daemon_after:?}, which may be all");
        // Of a busy machine each attempt takes longer, so that more than ever before were under way at
        // once; what that took stays. What leaks goes on.
        wait_for_attempts(&replica, ATTEMPTS * 3 / 2, began);
        daemon.resident_kib = daemon_after.resident_kib - MEMORY_SLACK_KIB / 2;
        [daemon_after, guardian_after] = Holdings::at_rest(processes);
    }
    daemon_after.assert_flat("daemon", daemon);
    guardian_after.assert_flat("guardian", guardian);
    replica.drain();
    // The guardian ends with its daemon.
    processes[1].wait_for_state(|state| matches!(state, None | Some('Z' | 'X')));
}
