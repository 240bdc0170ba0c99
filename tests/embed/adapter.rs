//! Jobs of tokio-cron-scheduler as singletons. Its timer goes by the host's clock alone, so that these
//! tests take the time that they take.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use soloist::{
    Builder, Clock as _, Context, EndedAttempt, Error, Job, Outcome, Retry, Scheduler, SharedStore,
    Singletons, SystemClock,
};
use test_support::machine::while_it_runs_async;
use tokio_cron_scheduler::{Job as Timed, JobScheduler};

use crate::world::{Notes, SOON};

/// Half a second, and what this machine may take for itself.
const LATE: Duration = Duration::from_millis(1500);

/// A scheduler of one job by a `JobScheduler` of its own.
pub(crate) async fn timed(builder: Builder, job: Job) -> Scheduler {
    let mut singletons = Singletons::new(builder);
    let timer = JobScheduler::new().await.expect("a timer");
    let job = singletons.job(job).expect("a job");
    timer.add(job).await.expect("added");
    timer.start().await.expect("started");
    singletons.start().await.expect("a scheduler")
}

fn replica(store: &SharedStore, name: &str) -> Builder {
    Scheduler::builder().store_in(store).replica(name)
}

/// Writes down each attempt, and by how much it is late.
fn noting(name: &str, schedule: &str, notes: &Notes) -> Job {
    let notes = notes.clone();
    Job::new(name, schedule, move |ctx: Context| {
        let late = SystemClock.wall().saturating_since(ctx.scheduled_at());
        notes.add(format!("{} {}", ctx.scheduled_at(), late.as_millis()));
        async { Ok::<_, Error>(()) }
    })
}

fn instant_of(note: &str) -> &str {
    note.split(' ').next().unwrap_or_default()
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// The outcomes of each instant of each job; from the first to the last second none is missing.
fn by_instant(lines: &[EndedAttempt]) -> BTreeMap<(String, i64), Vec<Outcome>> {
    let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for line in lines {
        let key = (line.job.clone(), line.scheduled_at.as_second());
        all.entry(key).or_default().push(line.outcome);
    }
    let seconds = |(job, at): &(String, i64)| all.contains_key(&(job.clone(), at + 1));
    let ends = all.keys().filter(|key| !seconds(key)).count();
    let mut jobs: Vec<&String> = all.keys().map(|(job, _)| job).collect();
    jobs.dedup();
    assert_eq!(ends, jobs.len(), "an instant is missing: {all:#?}");
    all
}

/// None succeeded twice, and all did: what falls due while the machine stands still may come too late
/// for the next.
fn all_succeeded(all: &BTreeMap<(String, i64), Vec<Outcome>>) -> Result<(), String> {
    for (instant, ends) in all {
        let succeeded = ends.iter().filter(|end| **end == Outcome::Succeeded);
        assert!(succeeded.count() <= 1, "{instant:?}: {ends:?}");
    }
    let mut others = all.clone();
    others.retain(|_, ends| *ends != [Outcome::Succeeded]);
    match others.is_empty() {
        true => Ok(()),
        false => Err(format!("{others:#?}")),
    }
}

#[tokio::test]
async fn three_job_schedulers_on_one_store_run_each_occurrence_once() {
    while_it_runs_async(three_job_schedulers).await;
}

async fn three_job_schedulers() -> Result<(), String> {
    let (store, notes) = (SharedStore::memory(), Notes::default());
    let mut fleet = Vec::new();
    for name in ["one", "two", "three"] {
        let job = noting("tick", "* * * * * *", &notes);
        fleet.push(timed(replica(&store, name), job).await);
    }
    pass(8).await;
    let lines = fleet[0].history(None, 100).await.expect("the ledger");
    let newest = lines.iter().map(|line| line.scheduled_at).max();
    let mut notes = notes.all();
    let instants: BTreeSet<&str> = notes.iter().map(|note| instant_of(note)).collect();
    assert_eq!(instants.len(), notes.len(), "more than once: {notes:#?}");
    // One that has begun since has no line yet.
    let is_over = |note: &String| instant_of(note).parse().ok() <= newest;
    notes.retain(is_over);
    for scheduler in fleet {
        scheduler.shutdown().await.expect("it ends");
    }
    let all = by_instant(&lines);
    all_succeeded(&all)?;
    if all.len() < 6 || notes.len() != all.len() {
        return Err(format!("{all:#?} of {notes:#?}"));
    }
    let late = notes
        .iter()
        .map(|note| note.rsplit(' ').next().expect("a word"));
    let mut late: Vec<u64> = late.map(|late| late.parse().expect("a number")).collect();
    late.sort_unstable();
    eprintln!(
        "{} occurrences, late by {late:?} ms: the first of three timers counts",
        notes.len()
    );
    match u128::from(late[late.len() - 1]) < LATE.as_millis() {
        true => Ok(()),
        false => Err(format!("late by {late:?} ms")),
    }
}

/// The line of an attempt of this number, once there is one.
async fn line_of(scheduler: &Scheduler, job: &str, attempt: u32) -> EndedAttempt {
    let looking = async {
        loop {
            let lines = scheduler.history(Some(job), 100).await.expect("the ledger");
            let mut lines = lines.into_iter();
            match lines.find(|line| line.attempt == attempt) {
                Some(line) => return line,
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    let found = tokio::time::timeout(SOON, looking).await;
    found.unwrap_or_else(|_| panic!("no attempt {attempt} of {job}"))
}

#[tokio::test]
async fn an_error_and_a_panic_are_failures_with_their_text_and_are_tried_again() {
    let mut singletons = Singletons::new(replica(&SharedStore::memory(), "one"));
    let timer = JobScheduler::new().await.unwrap();
    let failing = |_| async { Err::<(), _>("the database is away") };
    let job = singletons.singleton("failing", "* * * * * *", failing);
    timer.add(job.unwrap()).await.unwrap();
    let job = Job::new("panicking", "* * * * * *", |ctx: Context| async move {
        match ctx.attempt() {
            1 => panic!("not today"),
            _ => Ok::<_, Error>(()),
        }
    });
    let retry = Retry {
        backoff: Duration::from_millis(100),
        ..Retry::times(1)
    };
    let job = singletons.job(job.retry(retry));
    timer.add(job.unwrap()).await.unwrap();
    timer.start().await.unwrap();
    let scheduler = singletons.start().await.unwrap();
    let told = async |job: &str, attempt: u32| {
        let line = line_of(&scheduler, job, attempt).await;
        (line.outcome, line.reason.unwrap_or_default())
    };
    assert_eq!(
        told("failing", 1).await,
        (Outcome::Failed, "the database is away".to_owned())
    );
    let (outcome, reason) = told("panicking", 1).await;
    assert_eq!(outcome, Outcome::Failed);
    assert!(reason.contains("not today"), "{reason}");
    let again = told("panicking", 2).await.0;
    assert_eq!(again, Outcome::Succeeded, "by no callback");
    scheduler.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_job_that_is_taken_from_its_job_scheduler_is_not_claimed_any_more() {
    let (store, notes) = (SharedStore::memory(), Notes::default());
    let mut singletons = Singletons::new(replica(&store, "one"));
    let timer = JobScheduler::new().await.unwrap();
    let job = singletons.job(noting("tick", "* * * * * *", &notes));
    let id = timer.add(job.unwrap()).await.unwrap();
    let other = Notes::default();
    let job = singletons.job(noting("other", "* * * * * *", &other));
    timer.add(job.unwrap()).await.unwrap();
    timer.start().await.unwrap();
    let scheduler = singletons.start().await.unwrap();
    pass(3).await;
    timer.remove(&id).await.unwrap();
    pass(2).await;
    let before = (notes.all().len(), other.all().len());
    assert!(before.0 > 0);
    pass(3).await;
    assert_eq!(notes.all().len(), before.0);
    assert!(other.all().len() > before.1, "the other one goes on");
    timer.clone().shutdown().await.unwrap();
    pass(2).await;
    let before = other.all().len();
    pass(3).await;
    assert_eq!(other.all().len(), before, "no timer, no jobs");
    scheduler.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_job_of_the_builder_needs_no_job_scheduler() {
    let (store, notes) = (SharedStore::memory(), Notes::default());
    let builder = replica(&store, "one").job(noting("own", "* * * * * *", &notes));
    let singletons = Singletons::new(builder);
    let scheduler = singletons.start().await.unwrap();
    let twice = async {
        while notes.all().len() < 2 {
            pass(1).await;
        }
    };
    tokio::time::timeout(SOON, twice).await.expect("it runs");
    scheduler.shutdown().await.unwrap();
}

/// One call that comes through has all jobs looked at.
#[tokio::test]
async fn what_a_channel_that_is_too_small_drops_is_run_even_so() {
    while_it_runs_async(a_small_channel).await;
}

async fn a_small_channel() -> Result<(), String> {
    const JOBS: usize = 60;
    let store = SharedStore::memory();
    let timer = JobScheduler::new_with_channel_size(8)
        .await
        .expect("a timer");
    let mut singletons = Singletons::new(replica(&store, "one"));
    let plain = Notes::default();
    for number in 0..JOBS {
        let name = format!("job{number}");
        let job = singletons.singleton(name, "* * * * * *", |_| async { Ok::<_, Error>(()) });
        timer.add(job.expect("a job")).await.expect("added");
    }
    for _ in 0..JOBS {
        let called = plain.clone();
        let job = Timed::new_async("* * * * * *", move |_, _| {
            called.add(format!("{}", SystemClock.wall().as_second()));
            Box::pin(async {})
        });
        timer.add(job.expect("a job")).await.expect("added");
    }
    let scheduler = singletons.start().await.expect("a scheduler");
    timer.start().await.expect("started");
    pass(10).await;
    let lines = scheduler.history(None, 10_000).await.expect("the ledger");
    scheduler.shutdown().await.expect("it ends");
    let all = by_instant(&lines);
    all_succeeded(&all)?;
    if all.len() < 8 * JOBS {
        return Err(format!("{} came through", all.len()));
    }
    eprintln!(
        "{JOBS} jobs each second for 10 s: {} runs as singletons, {} as they are",
        all.len(),
        plain.all().len()
    );
    Ok(())
}

#[tokio::test]
async fn what_is_wrong_is_told_at_the_line_or_at_the_start() {
    let mut singletons = Singletons::new(replica(&SharedStore::memory(), "one"));
    let nothing = |_| async { Ok::<_, Error>(()) };
    let both = singletons.singleton("a", "0 0 0 13 * 5", nothing);
    let told = both.err().unwrap().to_string();
    assert!(
        told.starts_with("job `a`, `schedule`: both a day of the month"),
        "{told}"
    );
    let never = singletons.singleton("b", "0 0 0 30 2 *", nothing);
    assert!(never.is_ok(), "the other crate takes it, and forgets it");
    let told = singletons.start().await.unwrap_err().to_string();
    assert!(told.starts_with("job `b`, `schedule`: "), "{told}");
}
