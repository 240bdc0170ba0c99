//! Runs sequences until there were enough operations, and takes what is not needed out of one that
//! shows a difference.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use soloist::scheduler::job::JobName;
use tokio::runtime::Builder;

use crate::drawing::{self, Drawing};
use crate::engines::{Engine, Kind};
use crate::steps::{Step, What};
use crate::tally::Tally;
use crate::twins::{Fault, Twins};
use crate::words::shortened;

/// After so many steps all that both hold is compared.
const COMPARED_EVERY: u64 = 30;

/// How long a sequence with a difference is made shorter.
const SHRINKING: Duration = Duration::from_secs(60);

/// What there is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) kind: Kind,
    /// How many operations, at least.
    pub(crate) operations: u64,
    /// One sequence alone.
    pub(crate) seed: Option<u64>,
    /// How many sequences at a time, each with a store of its own.
    pub(crate) workers: usize,
}

/// What came of a plan.
pub(crate) struct Done {
    pub(crate) version: String,
    pub(crate) tally: Tally,
    pub(crate) took: Duration,
}

/// What the workers share.
#[derive(Default)]
struct Progress {
    next_seed: AtomicU64,
    operations: AtomicU64,
    /// One of them found a difference.
    over: AtomicBool,
}

impl Plan {
    /// Panics at a difference, with what shows it.
    pub(crate) fn carry_out(self) -> Done {
        let begun = Instant::now();
        let progress = Progress::default();
        let done: Vec<_> = thread::scope(|scope| {
            let work = || scope.spawn(|| self.work(&progress));
            let workers: Vec<_> = (0..self.workers).map(|_| work()).collect();
            let joined = workers.into_iter().map(|worker| worker.join());
            joined.collect::<Vec<_>>()
        });
        let mut tally = Tally::default();
        let mut version = String::new();
        for one in done {
            let (of, counted) = one.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            version = of;
            tally.add(&counted);
        }
        Done {
            version,
            tally,
            took: begun.elapsed(),
        }
    }

    fn work(&self, progress: &Progress) -> (String, Tally) {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime can be made");
        runtime.block_on(async {
            let mut engine = Engine::start(self.kind);
            let mut tally = Tally::default();
            while let Some(seed) = self.next(progress) {
                let before = tally.operations;
                if let Err(found) = drawn(&mut engine, seed, &mut tally).await {
                    progress.over.store(true, Ordering::SeqCst);
                    let nth =
                        progress.operations.load(Ordering::SeqCst) + tally.operations - before;
                    let shown = found.shrink(&mut engine, seed).await;
                    let shown = shortened(&shown);
                    panic!("{:?}, SEED={seed}, operation {nth}:\n{shown}", self.kind);
                }
                let more = tally.operations - before;
                progress.operations.fetch_add(more, Ordering::SeqCst);
            }
            (engine.version(), tally)
        })
    }

    fn next(&self, progress: &Progress) -> Option<u64> {
        if progress.over.load(Ordering::SeqCst) {
            return None;
        }
        let next = progress.next_seed.fetch_add(1, Ordering::SeqCst);
        match self.seed {
            Some(seed) => (next == 0).then_some(seed),
            None => {
                let so_far = progress.operations.load(Ordering::SeqCst);
                (so_far < self.operations).then_some(next + 1)
            }
        }
    }
}

/// A sequence that shows a difference.
struct Found {
    steps: Vec<Step>,
    jobs: Vec<JobName>,
    difference: String,
}

/// Draws a sequence and takes its steps.
async fn drawn(engine: &mut Engine, seed: u64, tally: &mut Tally) -> Result<(), Found> {
    let mut drawing = Drawing::new(seed, &engine.habits(seed));
    let jobs = drawing.jobs().to_vec();
    let mut twins = Twins::new(engine, seed, &jobs).await;
    let mut steps = Vec::new();
    let last = drawing::steps(seed);
    for number in 1..=last {
        let step = drawing.step();
        steps.push(step.clone());
        let mut taken = twins.take(&step).await;
        if taken.is_ok() && number == last {
            taken = twins.compare_at_last().await.and(taken);
        } else if taken.is_ok() && number % COMPARED_EVERY == 0 {
            taken = twins.compare_all().await.and(taken);
        }
        match taken {
            Ok(said) => {
                count(tally, &step);
                for (asked, reply) in &said {
                    tally.count(asked, reply);
                    drawing.learn(asked, reply);
                }
            }
            Err(Fault::Silent(cause)) => {
                eprintln!("sequence {seed} is given up at step {number}: {cause}");
                tally.given_up += 1;
                return Ok(());
            }
            Err(Fault::Difference(difference)) => {
                return Err(Found {
                    steps,
                    jobs,
                    difference,
                });
            }
        }
    }
    tally.sequences += 1;
    tally.deaf += u64::from(!twins.heard_all());
    Ok(())
}

fn count(tally: &mut Tally, step: &Step) {
    match &step.what {
        What::Alone(_) => {}
        What::Together(..) => tally.crossed += 2,
        What::Trouble(_) => tally.troubles += 1,
    }
}

/// Takes steps as they are. The difference that shows, if one does.
async fn given(engine: &mut Engine, seed: u64, steps: &[Step], jobs: &[JobName]) -> Option<String> {
    let mut twins = Twins::new(engine, seed, jobs).await;
    for step in steps {
        if let Err(Fault::Difference(difference)) = twins.take(step).await {
            return Some(difference);
        }
    }
    match twins.compare_at_last().await {
        Err(Fault::Difference(difference)) => Some(difference),
        _ => None,
    }
}

impl Found {
    /// Leaves out what is not needed, the large parts first, and shows what is left.
    async fn shrink(mut self, engine: &mut Engine, seed: u64) -> String {
        let begun = Instant::now();
        let drawn = self.steps.len();
        let mut length = drawn / 2;
        while length > 0 {
            let mut end = self.steps.len();
            while end > 0 && begun.elapsed() < SHRINKING {
                let start = end.saturating_sub(length);
                let mut fewer = self.steps.clone();
                fewer.drain(start..end);
                if let Some(difference) = given(engine, seed, &fewer, &self.jobs).await {
                    self.steps = fewer;
                    self.difference = difference;
                }
                end = start;
            }
            length /= 2;
        }
        let steps: Vec<String> = self.steps.iter().map(|step| format!("{step:?}")).collect();
        format!(
            "{}\n{} steps of {drawn} are enough:\n{}",
            self.difference,
            steps.len(),
            steps.join("\n")
        )
    }
}
