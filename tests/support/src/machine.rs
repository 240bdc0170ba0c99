//! The machine, which tests of one program share or have to themselves.
//!
//! What is measured is measured alone: such a test takes [`alone`], others take [`together`].
//!
//! A virtual machine may stand still for a second or more, and all that is tested with it. A test
//! that demands that something comes in time allows for that by [`stood_still`].

use std::sync::{Mutex, MutexGuard, Once, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

static MACHINE: RwLock<()> = RwLock::new(());

/// The machine for one test.
pub fn alone() -> RwLockWriteGuard<'static, ()> {
    begin_to_watch();
    MACHINE.write().unwrap_or_else(PoisonError::into_inner)
}

/// The machine shared with others that measure nothing fine.
pub fn together() -> RwLockReadGuard<'static, ()> {
    begin_to_watch();
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

/// How often it is looked whether the machine stands still.
const BEAT: Duration = Duration::from_millis(10);

/// A thread that has its turn so late was not forgotten among others: nothing had its turn.
pub const LATE: Duration = Duration::from_millis(200);

/// CPUs that are watched at most. Of a virtual machine one may stand still while the others run.
const CPUS_WATCHED: usize = 8;

/// How often something is played at most, where the machine stands still each time.
const PLAYS: usize = 3;

static WATCHED: Mutex<Watched> = Mutex::new(Watched {
    late: Vec::new(),
    asleep_since: Vec::new(),
});

/// From when to when.
type Span = (Instant, Instant);

/// What threads that sleep have seen.
struct Watched {
    /// When one of them was late. On a machine that runs there are few.
    late: Vec<Span>,
    /// Each of them.
    asleep_since: Vec<Instant>,
}

impl Watched {
    fn lock() -> MutexGuard<'static, Self> {
        WATCHED.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&mut self, number: usize) {
        let now = Instant::now();
        self.late.extend(late(self.asleep_since[number], now));
        self.asleep_since[number] = now;
    }

    /// How long one of them or more was late, those included that are late now: whoever asks may have
    /// its turn before them.
    fn stood_still(&self) -> Duration {
        let now = Instant::now();
        let asleep = self.asleep_since.iter();
        let mut all = self.late.clone();
        all.extend(asleep.filter_map(|since| late(*since, now)));
        all.sort_unstable();
        let mut until = None;
        all.into_iter()
            .map(|(from, to)| {
                let begun = until.map_or(from, |until| from.max(until));
                until = until.max(Some(to));
                to.saturating_duration_since(begun)
            })
            .sum()
    }
}

/// When a thread that slept from then on was late.
fn late(asleep_since: Instant, now: Instant) -> Option<Span> {
    let due = asleep_since + BEAT;
    (now.saturating_duration_since(due) >= LATE).then_some((due, now))
}

/// The CPUs that this process may have, so many at most.
fn own_cpus() -> Vec<usize> {
    let own = sched_getaffinity(None).unwrap_or_default();
    let own = (0..CpuSet::MAX_CPU).filter(|cpu| own.is_set(*cpu));
    own.take(CPUS_WATCHED).collect()
}

/// Has this thread run on one CPU alone. Where that is refused, which is said, it goes on where it is
/// put.
fn stay_on(cpu: usize) -> bool {
    let mut alone = CpuSet::new();
    alone.set(cpu);
    sched_setaffinity(None, &alone).is_ok()
}

fn begin_to_watch() {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| {
        let cpus = own_cpus();
        let watchers = cpus.len().max(1);
        Watched::lock().asleep_since = vec![Instant::now(); watchers];
        for number in 0..watchers {
            let cpu = cpus.get(number).copied();
            thread::spawn(move || {
                let _ = cpu.map(stay_on);
                loop {
                    thread::sleep(BEAT);
                    Watched::lock().wake(number);
                }
            });
        }
    });
}

/// How long the machine has stood still by now, in all, since a test took it or this was first asked.
///
/// Seen by threads that do nothing but sleep, one on each CPU: for how long one of them or more was late,
/// if by more than what a machine with much to do is late by.
#[must_use]
pub fn stood_still() -> Duration {
    begin_to_watch();
    Watched::lock().stood_still()
}

/// Plays what demands that all comes in time, and gives what came of it. What is missing counts on a
/// machine that ran all the while; where it stood still, all is played again.
///
/// What must never be, whether the machine runs or not, `play` itself has to panic at.
///
/// # Panics
///
/// When something is missing.
pub fn while_it_runs<T>(mut play: impl FnMut() -> Result<T, String>) -> T {
    let mut judge = Judge::default();
    loop {
        let before = stood_still();
        if let Some(came) = judge.accepts(play(), stood_still() - before) {
            return came;
        }
    }
}

/// The same for what is played by awaiting it.
///
/// # Panics
///
/// When something is missing.
pub async fn while_it_runs_async<T>(mut play: impl AsyncFnMut() -> Result<T, String>) -> T {
    let mut judge = Judge::default();
    loop {
        let before = stood_still();
        if let Some(came) = judge.accepts(play().await, stood_still() - before) {
            return came;
        }
    }
}

#[derive(Default)]
struct Judge {
    plays: usize,
}

impl Judge {
    /// What came of it while the machine stood still for so long, unless it is to be played again.
    fn accepts<T>(&mut self, came: Result<T, String>, still: Duration) -> Option<T> {
        self.plays += 1;
        match came {
            Ok(came) => Some(came),
            Err(missing) => {
                let again = !still.is_zero() && self.plays < PLAYS;
                assert!(again, "{missing}\nthe machine stood still for {still:?}");
                eprintln!("played again, as the machine stood still for {still:?}: {missing}");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::process::{Command, Stdio};

    use super::*;
    use crate::process::{Process, Signal};

    const STILL: Duration = Duration::from_millis(700);

    fn missing() -> Result<(), String> {
        Err("it is missing".to_owned())
    }

    #[test]
    fn what_is_missing_on_a_machine_that_ran_is_missing() {
        let mut judge = Judge::default();
        let judged = || judge.accepts(missing(), Duration::ZERO);
        assert!(catch_unwind(AssertUnwindSafe(judged)).is_err());
    }

    #[test]
    fn on_a_machine_that_stood_still_it_is_played_again_and_not_for_ever() {
        let mut judge = Judge::default();
        assert_eq!(judge.accepts(missing(), STILL), None);
        assert_eq!(judge.accepts(missing(), STILL), None);
        let third = || judge.accepts(missing(), STILL);
        assert!(catch_unwind(AssertUnwindSafe(third)).is_err());
    }

    #[test]
    fn what_is_there_counts_though_the_machine_stood_still() {
        assert_eq!(Judge::default().accepts(Ok(7), STILL), Some(7));
    }

    #[test]
    fn what_several_were_late_by_at_one_time_counts_once_and_at_others_each() {
        let begun = Instant::now();
        let at = |ms: u64| begun + Duration::from_millis(ms);
        let watched = |late: &[(u64, u64)]| Watched {
            late: late.iter().map(|(from, to)| (at(*from), at(*to))).collect(),
            asleep_since: Vec::new(),
        };
        for (late, still) in [
            (vec![], 0),
            (vec![(1000, 1500), (1010, 1500)], 500),
            (vec![(5800, 6000), (1000, 6000)], 5000),
            (vec![(1000, 4000), (7000, 7300), (3000, 5000)], 4300),
        ] {
            let still = Duration::from_millis(still);
            assert_eq!(watched(&late).stood_still(), still, "{late:?}");
        }
        let now = Instant::now();
        let asleep = watched(&[]);
        let since = now.checked_sub(LATE + BEAT).expect("long after the boot");
        let asleep = Watched {
            asleep_since: vec![since, now],
            ..asleep
        };
        assert!(asleep.stood_still() >= LATE);
    }

    #[test]
    fn each_cpu_is_watched_by_a_thread_that_stays_there() {
        begin_to_watch();
        let end = Instant::now() + Duration::from_secs(20);
        let cpus = own_cpus();
        assert_eq!(Watched::lock().asleep_since.len(), cpus.len().max(1));
        let may = |cpu: usize| thread::spawn(move || stay_on(cpu)).join();
        if !cpus.iter().all(|cpu| may(*cpu).expect("no panic")) {
            eprintln!("NOT SHOWN: this process may bind no thread to a CPU");
            return;
        }
        let stays = |cpu: &usize| {
            let threads = std::fs::read_dir("/proc/self/task").expect("a proc file system");
            let mut states = threads.flatten().filter_map(|thread| {
                // A thread of another test may be gone by now.
                std::fs::read_to_string(thread.path().join("status")).ok()
            });
            states.any(|state| state.contains(&format!("\nCpus_allowed_list:\t{cpu}\n")))
        };
        while !cpus.iter().all(stays) {
            assert!(Instant::now() < end, "not on each of {cpus:?}");
            thread::sleep(BEAT);
        }
    }

    /// Run by the test below, as a process of its own: tells that it watches, and, once it is asked, for
    /// how long it has stood still.
    #[test]
    #[ignore = "a child of a_process_that_is_stopped_and_goes_on_has_stood_still"]
    fn child_that_is_stopped() {
        begin_to_watch();
        println!("\nwatches");
        let _ = std::io::stdin().read(&mut [0]);
        println!("{}", stood_still().as_millis());
    }

    #[test]
    fn a_process_that_is_stopped_and_goes_on_has_stood_still() {
        let this = std::env::current_exe().expect("a test program");
        let mut child = Command::new(this)
            .args(["--ignored", "--exact", "--nocapture"])
            .arg("machine::tests::child_that_is_stopped")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it can be run");
        let mut told = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut told = told.by_ref().map(|line| line.expect("text"));
        assert!(told.any(|line| line == "watches"));
        let process = Process::of(child.id().cast_signed()).expect("it lives");
        process.signal(Signal::STOP);
        thread::sleep(STILL);
        process.signal(Signal::CONT);
        drop(child.stdin.take());
        let still: u128 = told.next().expect("a line").parse().expect("a number");
        assert!(still >= 600, "{still} ms");
        assert!(child.wait().expect("it ended").success());
    }
}
