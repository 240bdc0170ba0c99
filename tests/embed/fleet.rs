//! Three processes with the library on one Redis, while they are killed and clocks are set: each
//! occurrence succeeds once.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use soloist::store::{self, AttemptRecord};
use soloist::{
    CatchUp, Clock as _, Concurrency, Context, Error, Job, Outcome, Scheduler, SystemClock,
};
use test_support::clock_shim::SteppingClock;
use test_support::machine::stood_still;
use test_support::redis::RedisServer;

use crate::world::OnDrop;

const NAMESPACE: &str = "shop";
const TTL: Duration = Duration::from_secs(2);

/// What a member of the fleet is told by.
const STORE: &str = "EMBED_TEST_STORE";
const NOTES: &str = "EMBED_TEST_NOTES";
const NAME: &str = "EMBED_TEST_NAME";
/// Its job is one of a `JobScheduler`.
const TIMED: &str = "EMBED_TEST_TIMED";

/// Where the machine itself stood still for longer than this, leases may run out as well.
const STILL: Duration = Duration::from_millis(500);

/// How often somebody is killed.
const KILLS: usize = 6;

/// From one fault to the next: longer than a lease and what a takeover takes.
const PAUSE: Duration = Duration::from_millis(3500);

/// By how much the store's clock is set, in milliseconds, one after the other. A step back is waited
/// out; after one forward, what fell due in it is caught up with.
const STEPS: [i64; KILLS] = [0, 3000, 2500, 2500, 6000, 6000];

/// By how much the wall clocks of replicas are off.
const SHIFTS: [i64; 3] = [0, 3_600_000, -86_400_000];

/// One line of what jobs wrote down.
#[derive(Clone, Debug)]
struct Run {
    scheduled_at: String,
    token: u64,
    replica: String,
    began: u128,
    ended: Option<u128>,
}

fn boot_ns() -> u128 {
    SystemClock.boot().as_duration().as_nanos()
}

async fn work(ctx: Context, path: PathBuf) -> Result<(), Error> {
    let note = |what: &str| {
        let (at, token, now) = (ctx.scheduled_at(), ctx.fencing_token(), boot_ns());
        let line = format!("{what} {at} {token} {} {now}\n", ctx.replica());
        let mut file = OpenOptions::new()
            .append(true)
            .open(&path)
            .expect("the notes");
        // In one piece.
        file.write_all(line.as_bytes()).expect("written");
    };
    note("began");
    // Also where it is aborted, as its lease runs out.
    let _ended = OnDrop(|| note("ended"));
    tokio::time::sleep(Duration::from_millis(150)).await;
    Ok(())
}

/// A member of the fleet, when this program is started as one; nothing else.
#[tokio::test]
async fn member() {
    let Ok(url) = std::env::var(STORE) else {
        return;
    };
    let path = PathBuf::from(std::env::var_os(NOTES).unwrap());
    let job = Job::new("tick", "* * * * * *", move |ctx| work(ctx, path.clone()))
        .catch_up(CatchUp::All { limit: 100 })
        .concurrency_policy(Concurrency::Queue { limit: 100 });
    let builder = Scheduler::builder()
        .store(url)
        .namespace(NAMESPACE)
        .replica(std::env::var(NAME).unwrap())
        .lease_ttl(TTL);
    let scheduler = match std::env::var_os(TIMED) {
        #[cfg(feature = "tokio-cron-scheduler")]
        Some(_) => crate::adapter::timed(builder, job).await,
        _ => builder.job(job).start().await.unwrap(),
    };
    let end = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    end.await.unwrap().unwrap();
    scheduler.shutdown().await.unwrap();
}

struct Fleet {
    url: String,
    is_timed: bool,
    notes: PathBuf,
    clocks: Vec<SteppingClock>,
    members: Vec<Child>,
    started: usize,
    /// By the names of the killed.
    killed: BTreeMap<String, u128>,
    names: Vec<String>,
}

impl Fleet {
    /// One member for each shift of a wall clock.
    fn of(url: String, notes: PathBuf, is_timed: bool, shifts: &[i64]) -> Self {
        let clocks = shifts.iter().map(|shift| {
            let clock = SteppingClock::new();
            clock.set(*shift);
            clock
        });
        let mut fleet = Self {
            url,
            is_timed,
            notes,
            clocks: clocks.collect(),
            members: Vec::new(),
            started: 0,
            killed: BTreeMap::new(),
            names: vec![String::new(); shifts.len()],
        };
        fleet.members = (0..shifts.len()).map(|place| fleet.start(place)).collect();
        fleet
    }

    fn start(&mut self, place: usize) -> Child {
        self.started += 1;
        let name = format!("r{}", self.started);
        self.names[place] = name.clone();
        let timed = self.is_timed.then_some((TIMED, "yes"));
        Command::new(std::env::current_exe().expect("this program"))
            .envs(timed)
            .args(["fleet::member", "--exact", "--nocapture"])
            .env(STORE, &self.url)
            .env(NOTES, &self.notes)
            .env(NAME, name)
            .envs(self.clocks[place].environment())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("started")
    }

    /// Kills the one that began an attempt last, in the middle of the next one where that can be
    /// had, and starts another in its place.
    fn strike(&mut self) {
        let before = runs(&self.notes).len();
        let last = loop {
            let runs = runs(&self.notes);
            match runs.last() {
                Some(last) if runs.len() > before && last.ended.is_none() => break last.clone(),
                _ => sleep(Duration::from_millis(5)),
            }
        };
        let place = self
            .names
            .iter()
            .position(|name| *name == last.replica)
            .expect("one of them");
        self.members[place].kill().expect("killed");
        self.members[place].wait().expect("ended");
        self.killed.insert(last.replica, boot_ns());
        self.members[place] = self.start(place);
    }

    fn end(&mut self) {
        for member in &mut self.members {
            drop(member.stdin.take());
            assert!(member.wait().expect("ended").success());
        }
    }
}

fn runs(path: &Path) -> Vec<Run> {
    let text = std::fs::read_to_string(path).expect("the notes");
    let mut runs: Vec<Run> = Vec::new();
    for line in text.lines() {
        let [what, at, token, replica, now] = line.split(' ').collect::<Vec<_>>()[..] else {
            continue; // still being written
        };
        let (token, now) = (
            token.parse().expect("a number"),
            now.parse().expect("a number"),
        );
        match what {
            "began" => runs.push(Run {
                scheduled_at: at.to_owned(),
                token,
                replica: replica.to_owned(),
                began: now,
                ended: None,
            }),
            _ => {
                let run = runs.iter_mut().find(|run| run.token == token);
                run.expect("begun before").ended = Some(now);
            }
        }
    }
    runs
}

#[test]
fn each_occurrence_succeeds_once_while_replicas_are_killed_and_clocks_are_set() {
    survive(false);
}

#[cfg(feature = "tokio-cron-scheduler")]
#[test]
fn so_does_each_of_a_job_scheduler_though_its_timer_goes_by_the_clocks_that_are_set() {
    survive(true);
}

/// Alone, so that nobody whose clock is right does its work.
#[cfg(feature = "tokio-cron-scheduler")]
#[test]
fn a_job_scheduler_whose_clock_is_wrong_runs_what_is_due_at_the_store() {
    for shift in [-86_400_000, 3_600_400] {
        let dir = tempfile::tempdir().unwrap();
        let notes = dir.path().join("notes");
        File::create(&notes).unwrap();
        let server = RedisServer::start();
        let mut fleet = Fleet::of(server.url(), notes, true, &[shift]);
        sleep(Duration::from_secs(8));
        let now = SystemClock.wall();
        fleet.end();
        let lines = ledger(&fleet.url);
        let ran = judge_ledger(&lines);
        eprintln!("{ran} occurrences in 8 s by a clock that is off by {shift} ms");
        assert!(ran >= 5, "{lines:#?}");
        let newest = lines.iter().map(|line| line.scheduled_at).max().unwrap();
        let off = newest.as_millis() - now.as_millis();
        assert!(off.abs() < 3000, "{newest} at {now}");
    }
}

fn survive(is_timed: bool) {
    let stood_before = stood_still();
    let dir = tempfile::tempdir().expect("a directory");
    let notes = dir.path().join("notes");
    File::create(&notes).expect("the notes");
    let clock = SteppingClock::new();
    let server = RedisServer::options().environment(clock.environment());
    let server = server.start();
    let mut fleet = Fleet::of(server.url(), notes, is_timed, &SHIFTS);
    for (number, step) in STEPS.into_iter().enumerate() {
        fleet.strike();
        clock.set(step);
        fleet.clocks[number % 3].set(-SHIFTS[number % 3]);
        sleep(PAUSE);
    }
    sleep(PAUSE);
    fleet.end();
    let runs = runs(&fleet.notes);
    let lines = ledger(&fleet.url);
    eprintln!(
        "{} attempts of {} occurrences over {KILLS} kills of 3 processes; by a JobScheduler: {is_timed}",
        runs.len(),
        judge_ledger(&lines)
    );
    judge_runs(&runs, &fleet.killed, stood_still() - stood_before < STILL);
}

fn ledger(url: &str) -> Vec<AttemptRecord> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(async {
        let store = store::open(Some(url), NAMESPACE).expect("a store");
        store.ready().await.expect("it is there");
        store.history(None, 10_000).await.expect("the ledger")
    })
}

/// Each instant from the first to the last has one last word, and that is its success.
fn judge_ledger(lines: &[AttemptRecord]) -> usize {
    let mut last_words: BTreeMap<i64, Vec<Outcome>> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.detail.is_final()) {
        let at = line.scheduled_at.as_second();
        last_words.entry(at).or_default().push(line.outcome);
    }
    for (at, outcomes) in &last_words {
        assert_eq!(*outcomes, [Outcome::Succeeded], "{at}: {lines:#?}");
    }
    let first = *last_words.keys().next().expect("some ran");
    let last = *last_words.keys().last().expect("some ran");
    let seconds = usize::try_from(last - first + 1).expect("in order");
    assert_eq!(last_words.len(), seconds, "no instant is missing");
    seconds
}

/// Tokens rise, no attempt ran beside another of its occurrence, and what was cut short was killed: or
/// its lease ran out, where the machine stood still.
fn judge_runs(runs: &[Run], killed: &BTreeMap<String, u128>, ran_on: bool) {
    if !ran_on {
        eprintln!("NOT SHOWN, as the machine stood still: that only who was killed is taken over");
    }
    let lost = |run: &Run| killed.contains_key(&run.replica) || !ran_on;
    let mut ended: BTreeMap<&str, &Run> = BTreeMap::new();
    for pair in runs.windows(2) {
        assert!(pair[0].token < pair[1].token, "{pair:#?}");
    }
    for run in runs {
        if let Some(before) = ended.insert(&run.scheduled_at, run) {
            let over = before.ended.max(killed.get(&before.replica).copied());
            assert!(
                over.is_some_and(|over| over <= run.began),
                "{before:?} {run:?}"
            );
            assert!(lost(before), "{before:?} {run:?}");
        }
    }
    let cut_short = runs.iter().filter(|run| run.ended.is_none());
    for run in cut_short {
        assert!(lost(run), "{run:?}");
    }
}
