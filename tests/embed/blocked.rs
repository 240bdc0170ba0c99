//! A program whose functions compute where they should await, on its only thread.
//!
//! Must never: measure how fast: it is enough who ran what, and that nobody did twice.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use soloist::{Clock as _, Context, Job, Outcome, Scheduler, SystemClock, Timestamp};
use test_support::machine::while_it_runs;
use test_support::redis::RedisServer;
use tokio::sync::watch;

const TTL: Duration = Duration::from_secs(3);

/// Longer than what is not renewed takes to be another's.
const BLOCKED: Duration = Duration::from_secs(8);

/// What ran.
#[derive(Clone, Debug)]
struct Ran {
    job: String,
    due: Timestamp,
    attempt: u32,
    replica: &'static str,
    /// Since the host's boot.
    from: Duration,
    to: Duration,
    was_held: bool,
}

#[derive(Clone, Default)]
struct Seen {
    ran: Arc<Mutex<Vec<Ran>>>,
    has_blocked: Arc<AtomicBool>,
}

impl Seen {
    fn of(&self, job: &str) -> Vec<Ran> {
        let mut ran = self.ran.lock().expect("no panic").clone();
        ran.retain(|one| one.job == job);
        ran
    }

    /// A function of a job, the first call of which blocks if it is to.
    fn job(&self, name: &str, blocks: bool, replica: &'static str) -> Job {
        let seen = self.clone();
        Job::new(name, "* * * * * *", move |ctx: Context| {
            let seen = seen.clone();
            async move {
                let from = SystemClock.boot().as_duration();
                if blocks && !seen.has_blocked.swap(true, Ordering::SeqCst) {
                    thread::sleep(BLOCKED);
                }
                seen.ran.lock().expect("no panic").push(Ran {
                    job: ctx.job().to_owned(),
                    due: ctx.scheduled_at(),
                    attempt: ctx.attempt(),
                    replica,
                    from,
                    to: SystemClock.boot().as_duration(),
                    was_held: ctx.check().is_ok(),
                });
                Ok::<_, std::io::Error>(())
            }
        })
    }
}

/// A program: one thread, one scheduler.
fn program(
    replica: &'static str,
    url: String,
    seen: Seen,
    mut over: watch::Receiver<bool>,
) -> JoinHandle<()> {
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let scheduler = Scheduler::builder()
                .store(url)
                .replica(replica)
                .lease_ttl(TTL)
                .job(seen.job("compute", true, replica))
                .job(seen.job("tick", false, replica))
                .start()
                .await
                .expect("it starts");
            over.wait_for(|over| *over).await.expect("a test");
            scheduler.shutdown().await.expect("it ends");
        });
    })
}

#[test]
fn what_computes_for_longer_than_its_lease_keeps_it_and_nothing_else() {
    while_it_runs(compute_for_longer);
}

fn compute_for_longer() -> Result<(), String> {
    let server = RedisServer::start();
    let seen = Seen::default();
    let (over, heard) = watch::channel(false);
    let programs =
        ["one", "two"].map(|replica| program(replica, server.url(), seen.clone(), heard.clone()));
    // The first attempt of `compute` ends when it has blocked, and others run after it.
    for _ in 0..400 {
        if seen.of("compute").len() >= 2 {
            break;
        }
        thread::sleep(Duration::from_millis(50));
    }
    over.send(true).expect("programs");
    for program in programs {
        program.join().expect("no panic");
    }

    let computed = seen.of("compute");
    let is_long = |one: &&Ran| one.to - one.from >= BLOCKED;
    let blocked = computed.iter().find(is_long).expect("one has blocked");
    if !blocked.was_held {
        return Err(format!("it was not renewed: {computed:#?}"));
    }
    let beside = computed.iter().filter(|one| !is_long(one));
    let beside: Vec<&Ran> = beside
        .filter(|one| one.due == blocked.due || one.from < blocked.to)
        .filter(|one| one.to > blocked.from)
        .collect();
    assert!(
        beside.is_empty(),
        "two at once: {beside:#?} and {blocked:#?}"
    );
    // What it could not begin the other one did, meanwhile.
    let ticks = seen.of("tick");
    let meanwhile = ticks
        .iter()
        .filter(|one| one.replica != blocked.replica)
        .filter(|one| (blocked.from..blocked.to).contains(&one.from));
    let count = meanwhile.count();
    match count >= 2 {
        true => Ok(()),
        false => Err(format!("{count} of the ticks: {ticks:#?} in {blocked:#?}")),
    }
}

static HAS_BEGUN: AtomicBool = AtomicBool::new(false);

async fn begins_and_waits(_: Context) -> Result<(), std::io::Error> {
    HAS_BEGUN.store(true, Ordering::SeqCst);
    std::future::pending().await
}

/// The runtime of the functions is gone, and with it the scheduler: nothing claims what nobody runs.
#[test]
fn a_scheduler_ends_with_the_runtime_of_its_functions() {
    let server = RedisServer::start();
    let seen = Seen::default();
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().expect("a runtime");
    let scheduler = runtime.block_on(async {
        let scheduler = Scheduler::builder()
            .store(server.url())
            .replica("gone")
            .lease_ttl(TTL)
            .job(seen.job("tick", false, "gone"))
            .job(Job::new("compute", "* * * * * *", begins_and_waits));
        let scheduler = scheduler.start().await.unwrap();
        while seen.of("tick").is_empty() || !HAS_BEGUN.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        scheduler
    });
    seen.has_blocked.store(true, Ordering::SeqCst);
    let mut events = scheduler.events();
    drop(runtime);
    let handle = scheduler.handle();
    let (over, heard) = watch::channel(false);
    let other = program("other", server.url(), seen.clone(), heard);
    let by_other = |seen: &Seen| {
        let has = |job: &str, attempt| {
            let ran = seen.of(job).into_iter();
            { ran }.any(|one| one.replica == "other" && one.attempt == attempt)
        };
        has("tick", 1) && has("compute", 2)
    };
    let mut waited = 0;
    while !by_other(&seen) {
        assert!(
            waited < 400,
            "nobody else goes on: {:#?}",
            seen.ran.lock().unwrap()
        );
        waited += 1;
        thread::sleep(Duration::from_millis(50));
    }
    over.send(true).unwrap();
    other.join().unwrap();
    // What can be asked of it still can.
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().expect("a runtime");
    let ended = async { while events.next().await.is_some() {} };
    let ended = runtime.block_on(async { tokio::time::timeout(TTL * 20, ended).await });
    ended.expect("nothing happens there any more");
    let status = runtime.block_on(handle.status()).unwrap();
    let past = runtime
        .block_on(handle.history(Some("compute"), 100))
        .unwrap();
    let failed = past.iter().filter(|one| one.outcome == Outcome::Failed);
    assert_eq!(failed.count(), 0, "it was cut short: {past:#?}");
    assert!(status.jobs.iter().any(|job| job.name == "tick"));
    drop(scheduler);
}
