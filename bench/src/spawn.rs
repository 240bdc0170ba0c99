//! What it costs to start and end a process: an attempt of the runner, guardian and keeper
//! included, beside a bare posix_spawn(3) of the same program, in turns in one process.
//!
//! The process is made as large as asked first, since that is what fork(2) would pay for.

use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use soloist::clock::{Clock, SystemClock};
use soloist::runner::{OutputMode, Runner, RunningAttempt};
use soloist::scheduler::job::{Job, Program};
use soloist::scheduler::lease::{FencingToken, RunId};
use soloist::scheduler::time::{BootTime, Timestamp};
use soloist::scheduler::{Attempt, EndedHow, Ending, Guard};
use tokio::sync::oneshot;
use uuid::Uuid;

/// Resident sizes to measure at, the smallest first.
const SIZES_MB: [usize; 2] = [20, 500];

/// How many of each are measured one at a time, and how many before that count for nothing.
const TRIES: usize = 300;
const WARM_UP: usize = 30;

/// How long nothing happens before each of those that come after a pause, and how many they are.
/// In a row they profit from what the kernel puts off, and from a warm processor; the jobs of
/// most tables come one by one.
const PAUSE: Duration = Duration::from_millis(30);
const PAUSES: usize = 60;

/// How many at once, and how often.
const AT_ONCE: usize = 32;
const BATCHES: usize = 30;

/// What this program prints the boot clock for, as a job.
const INSTANT: &str = "instant";

/// The measurements, in the order in which a child tells them.
const MEASURED: [&str; 4] = [
    "one at a time, start to end",
    "after a pause of 30 ms",
    "32 at once, for each",
    "start to first instruction",
];

/// The middle and the slow end, in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Cost {
    p50_ms: f64,
    p99_ms: f64,
}

impl Cost {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |quantile: f64| {
            let index = (times.len().saturating_sub(1) as f64 * quantile).round() as usize;
            times
                .get(index)
                .map_or(0.0, |time| time.as_secs_f64() * 1e3)
        };
        Self {
            p50_ms: at(0.5),
            p99_ms: at(0.99),
        }
    }

    fn columns(self) -> String {
        format!("{:8.3} {:8.3}", self.p50_ms, self.p99_ms)
    }

    fn ratio_to(self, other: Self) -> String {
        let (p50, p99) = (self.p50_ms / other.p50_ms, self.p99_ms / other.p99_ms);
        format!("{p50:7.2}x {p99:7.2}x")
    }
}

/// One measurement of both.
#[derive(Clone, Copy, Debug)]
struct Pair {
    bare: Cost,
    attempt: Cost,
}

/// If this process is here to tell when it began, tells it.
pub(crate) fn tell_if_asked(arguments: &[String]) -> bool {
    let is_asked = arguments == [INSTANT];
    if is_asked {
        println!("{}", SystemClock.boot().as_duration().as_nanos());
    }
    is_asked
}

/// Measures in a process for each size, and prints.
pub(crate) fn compare() {
    println!("{:31} {:12} {:>8} {:>8}", "", "", "p50 ms", "p99 ms");
    let sizes = SIZES_MB.map(|megabytes| (megabytes, measure_in_child(megabytes)));
    for (megabytes, pairs) in &sizes {
        println!("{megabytes} MB resident");
        for (what, Pair { bare, attempt }) in MEASURED.iter().zip(pairs) {
            println!("  {what:29} {:12} {}", "posix_spawn", bare.columns());
            println!("  {:29} {:12} {}", "", "soloist", attempt.columns());
            println!("  {:29} {:12} {}", "", "ratio", attempt.ratio_to(*bare));
            let added = attempt.p50_ms - bare.p50_ms;
            println!("  {:29} {:12} {added:8.3}", "", "added");
        }
    }
    let [(small, ref in_small), (large, ref in_large)] = sizes;
    println!("{large} MB against {small} MB");
    for ((what, small), large) in MEASURED.iter().zip(in_small).zip(in_large) {
        // What the machine itself did between the two shows in posix_spawn's.
        let bare = large.bare.ratio_to(small.bare);
        println!("  {what:29} {:12} {bare}", "posix_spawn");
        let attempt = large.attempt.ratio_to(small.attempt);
        println!("  {:29} {:12} {attempt}", "", "soloist");
    }
}

fn measure_in_child(megabytes: usize) -> Vec<Pair> {
    let output = this_program()
        .args(["spawn", &megabytes.to_string()])
        .stderr(Stdio::inherit())
        .output()
        .expect("a child that runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let pair = |line: &str| {
        let figures: Vec<f64> = line.split(' ').map_while(|one| one.parse().ok()).collect();
        let [bare, bare_p99, attempt, attempt_p99] = figures[..] else {
            panic!("no measurement: {line}");
        };
        let cost = |p50_ms, p99_ms| Cost { p50_ms, p99_ms };
        Pair {
            bare: cost(bare, bare_p99),
            attempt: cost(attempt, attempt_p99),
        }
    };
    let pairs: Vec<Pair> = text.lines().map(pair).collect();
    assert_eq!(pairs.len(), MEASURED.len(), "a line for each measurement");
    pairs
}

fn this_program() -> Command {
    Command::new(std::env::current_exe().expect("a path to this program"))
}

/// The child's part.
pub(crate) fn measure_here(megabytes: usize) -> ExitCode {
    let ballast = ballast(megabytes);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for Pair { bare, attempt } in runtime.block_on(measure()) {
        println!(
            "{} {} {} {}",
            bare.p50_ms, bare.p99_ms, attempt.p50_ms, attempt.p99_ms
        );
    }
    drop(ballast);
    ExitCode::SUCCESS
}

/// Memory that makes this process so large; every page of it is written to.
fn ballast(megabytes: usize) -> Vec<u8> {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("/proc");
    let resident = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    let resident: usize = resident.expect("a number of pages");
    let wanted = megabytes * 1024 * 1024;
    vec![0xa5; wanted.saturating_sub(resident * rustix::param::page_size())]
}

async fn measure() -> [Pair; 4] {
    let bench = Bench {
        runner: Runner::new("bench".to_owned()),
        number: AtomicU64::new(0),
    };
    [
        bench.one_at_a_time(WARM_UP, TRIES, Duration::ZERO).await,
        bench.one_at_a_time(0, PAUSES, PAUSE).await,
        bench.many_at_once().await,
        bench.to_the_first_instruction().await,
    ]
}

struct Bench {
    runner: Runner,
    number: AtomicU64,
}

impl Bench {
    async fn one_at_a_time(&self, warm_up: usize, tries: usize, pause: Duration) -> Pair {
        let (mut bare, mut attempts) = (Vec::new(), Vec::new());
        for round in 0..warm_up + tries {
            tokio::time::sleep(pause).await;
            let began = Instant::now();
            true_bare().status().expect("it runs");
            let spawned = began.elapsed();
            tokio::time::sleep(pause).await;
            let began = Instant::now();
            ended(self.start(true_job()).1).await;
            let attempted = began.elapsed();
            if round >= warm_up {
                bare.push(spawned);
                attempts.push(attempted);
            }
        }
        Pair {
            bare: Cost::of(bare),
            attempt: Cost::of(attempts),
        }
    }

    async fn many_at_once(&self) -> Pair {
        let (mut bare, mut attempts) = (Vec::new(), Vec::new());
        let each = |began: Instant| began.elapsed() / AT_ONCE as u32;
        for _ in 0..BATCHES {
            let began = Instant::now();
            let children: Vec<_> = (0..AT_ONCE).map(|_| true_bare().spawn()).collect();
            for child in children {
                child.and_then(|mut child| child.wait()).expect("it runs");
            }
            bare.push(each(began));
            let began = Instant::now();
            let attempts_begun: Vec<_> = (0..AT_ONCE).map(|_| self.start(true_job())).collect();
            for (_, ending) in attempts_begun {
                ended(ending).await;
            }
            attempts.push(each(began));
        }
        Pair {
            bare: Cost::of(bare),
            attempt: Cost::of(attempts),
        }
    }

    /// Both run this program, which prints when its `main` began.
    async fn to_the_first_instruction(&self) -> Pair {
        let (mut bare, mut attempts) = (Vec::new(), Vec::new());
        for _ in 0..TRIES {
            let began = SystemClock.boot();
            let output = this_program().arg(INSTANT).output().expect("it runs");
            bare.push(since(began, &output.stdout));
            let began = SystemClock.boot();
            let ending = ended(self.start(instant_job()).1).await;
            attempts.push(since(began, &ending.output.stdout.head));
        }
        Pair {
            bare: Cost::of(bare),
            attempt: Cost::of(attempts),
        }
    }

    fn start(&self, job: Job) -> (RunningAttempt, oneshot::Receiver<Ending>) {
        let never = BootTime::since_boot(Duration::from_secs(3600 * 24 * 365 * 100));
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let attempt = Attempt {
            shard: 0,
            shards: 1,
            job: Arc::new(job),
            scheduled_at: Timestamp::from_second(1_795_212_000),
            run_id: RunId::new(Uuid::new_v4()),
            number: 1,
            token: FencingToken::new(number + 1),
            guard: Guard {
                stop_at: never,
                kill_at: never,
            },
        };
        let (told, ending) = oneshot::channel();
        let on_end = |ending| told.send(ending).expect("it is waited for");
        let running = self.runner.start(attempt, OutputMode::Capture, on_end);
        (running, ending)
    }
}

fn since(began: BootTime, printed: &[u8]) -> Duration {
    let text = String::from_utf8_lossy(printed);
    let at = text.trim().parse().map(Duration::from_nanos);
    at.expect("an instant").saturating_sub(began.as_duration())
}

async fn ended(ending: oneshot::Receiver<Ending>) -> Ending {
    let ending = ending.await.expect("its end is told");
    assert_eq!(ending.how, EndedHow::Succeeded, "{:?}", ending.detail);
    ending
}

/// Without pipes or anything else that would keep std from posix_spawn(3).
fn true_bare() -> Command {
    let mut command = Command::new("/bin/true");
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

fn true_job() -> Job {
    job_of(vec!["/bin/true".to_owned()])
}

fn instant_job() -> Job {
    let program = std::env::current_exe().expect("a path to this program");
    job_of(vec![program.display().to_string(), INSTANT.to_owned()])
}

fn job_of(words: Vec<String>) -> Job {
    let mut job = crate::own::job(0, "0 0 0 1 1 *");
    job.command.program = Program::Command(words);
    job.command.output_limit = 8 * 1024;
    job
}
