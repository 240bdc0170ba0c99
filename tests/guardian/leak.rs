//! Ten thousand attempts leave nothing behind: no descriptor, no zombie, no memory.

use std::time::{Duration, Instant};

use test_support::fleet::Replica;
use test_support::machine::alone;
use test_support::process::Process;
use test_support::redis::RedisServer;

use crate::scene::{fleet_on, guardian_of};

const ATTEMPTS: usize = 10_000;
/// Until caches and pools have the size that they keep.
const WARM_UP: usize = 1_000;
/// All due at once, each second.
const JOBS: usize = 200;
/// The whole test.
const BUDGET: Duration = Duration::from_secs(150);

/// What may come and go: allocators give back in their own time.
const MEMORY_SLACK_KIB: u64 = 4 * 1024;
const DESCRIPTOR_SLACK: usize = 4;

/// What a process has, at its least over two seconds: attempts come in bursts.
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

    fn at_rest<const N: usize>(processes: [Process; N]) -> [Self; N] {
        let end = Instant::now() + Duration::from_secs(2);
        let mut held = processes.map(Self::of);
        while Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
            for (held, process) in held.iter_mut().zip(processes) {
                *held = held.least(Self::of(process));
            }
        }
        held
    }

    fn assert_flat(self, name: &str, before: Self) {
        eprintln!("{name}: before {before:?}");
        eprintln!("{name}: after  {self:?}");
        assert!(
            self.descriptors <= before.descriptors + DESCRIPTOR_SLACK,
            "{name}"
        );
        assert!(
            self.resident_kib <= before.resident_kib + MEMORY_SLACK_KIB,
            "{name}"
        );
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

fn wait_for_attempts(replica: &Replica, wanted: usize, end: Instant) {
    while succeeded(replica) < wanted {
        assert!(
            Instant::now() < end,
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
                "[jobs.job-{number}]\nschedule = \"* * * * * *\"\ncommand = [\"true\"]\n\
                 history_limit = 10\n"
            )
        })
        .collect();
    let fleet = fleet_on(&redis, "", &jobs);
    let mut replica = fleet.start("a");
    wait_for_attempts(&replica, WARM_UP, began + BUDGET);
    let warm = Instant::now();
    let processes = [replica.process(), guardian_of(&replica)];
    let [daemon, guardian] = Holdings::at_rest(processes);
    wait_for_attempts(&replica, ATTEMPTS, began + BUDGET);
    eprintln!(
        "{} attempts in {:.0?}, {:.0} a second",
        succeeded(&replica),
        began.elapsed(),
        (succeeded(&replica) - WARM_UP) as f64 / warm.elapsed().as_secs_f64()
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
    let [daemon_after, guardian_after] = Holdings::at_rest(processes);
    daemon_after.assert_flat("daemon", daemon);
    guardian_after.assert_flat("guardian", guardian);
    replica.drain();
    assert!(
        !processes[1].is_alive(),
        "the guardian ends with its daemon"
    );
}
