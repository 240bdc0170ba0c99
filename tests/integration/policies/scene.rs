//! A store, a fleet on it, the ledger, and the notes that jobs make.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use soloist::scheduler::job::JobName;
use soloist::scheduler::lease::{
    Caller, Cause, FencingToken, Order, OrderAnswer, OrderKind, Outcome, Replica as Identity,
    Retention, RunId,
};
use soloist::store::{AttemptRecord, Store};
use tempfile::TempDir;
use test_support::redis::RedisServer;
use tokio::runtime::Runtime;
use uuid::Uuid;

use crate::fleet::{Fleet, Replica, SOON};

/// From one look at a file or a ledger that others write to the next.
const LOOK: Duration = Duration::from_millis(20);

/// What jobs take from the shell to make notes: `note WHAT`. One write each: lines of processes
/// don't mix.
const NOTE: &str = r#"note() {
    echo "$1 $(date +%s%N) $SOLOIST_JOB $SOLOIST_SCHEDULED_AT $SOLOIST_ATTEMPT" \
        "$SOLOIST_SHARD_INDEX/$SOLOIST_SHARD_TOTAL $SOLOIST_REPLICA" >>"DIR/notes"
}
"#;

/// Where the ledger is.
enum Place {
    Redis(Box<RedisServer>),
    File(TempDir),
}

impl Place {
    fn url(&self) -> String {
        match self {
            Self::Redis(server) => server.url(),
            Self::File(dir) => format!("sqlite:{}", dir.path().join("soloist.db").display()),
        }
    }
}

/// A fleet with its ledger in reach.
pub(super) struct Scene {
    pub(super) fleet: Fleet,
    store: Arc<dyn Store>,
    runtime: Runtime,
    place: Place,
}

/// What a job wrote down.
#[derive(Clone, Debug)]
pub(super) struct Note {
    pub(super) what: String,
    pub(super) at_ns: i128,
    pub(super) job: String,
    pub(super) scheduled_at: String,
    pub(super) attempt: u32,
    pub(super) shard: String,
    pub(super) replica: String,
}

impl Scene {
    /// On a Redis of its own. In `table`, `DIR` is a place for files, and `NOTES` brings `note`
    /// into a shell.
    pub(super) fn on_redis(table: &str) -> Self {
        Self::at(Place::Redis(Box::new(RedisServer::start())), table)
    }

    /// On a Redis that comes back with its data.
    pub(super) fn on_durable_redis(table: &str) -> Self {
        let server = RedisServer::options().appendonly().start();
        Self::at(Place::Redis(Box::new(server)), table)
    }

    /// On a file that all replicas share.
    pub(super) fn on_file(table: &str) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        Self::at(Place::File(dir), table)
    }

    fn at(place: Place, table: &str) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let url = place.url();
        let open = async { soloist::store::open(Some(&url), "default") };
        let store = runtime.block_on(open).expect("a store");
        let scene = Self {
            fleet: Fleet::new(url, ""),
            store,
            runtime,
            place,
        };
        let note = NOTE.replace("DIR", &scene.dir());
        std::fs::write(scene.fleet.dir().join("note.sh"), note).expect("a file");
        scene.set_table(table);
        scene
    }

    fn dir(&self) -> String {
        self.fleet.dir().display().to_string()
    }

    /// What it is called in figures.
    pub(super) fn store_name(&self) -> &'static str {
        match self.place {
            Place::Redis(_) => "Redis",
            Place::File(_) => "SQLite",
        }
    }

    /// Replicas that start from now on have this one.
    pub(super) fn set_table(&self, table: &str) {
        let table = table.replace("NOTES", ". DIR/note.sh");
        self.fleet.set_table(&table.replace("DIR", &self.dir()));
    }

    /// The server of a scene that is on one.
    pub(super) fn server(&mut self) -> &mut RedisServer {
        match &mut self.place {
            Place::Redis(server) => server,
            Place::File(_) => panic!("a scene on a file has no server"),
        }
    }

    /// Starts a replica and waits until it is ready; a job finds its process id in
    /// `DIR/pid.NAME`.
    pub(super) fn start(&self, name: &str) -> Replica {
        self.start_with(name, &[])
    }

    /// Starts a replica with more arguments.
    pub(super) fn start_with(&self, name: &str, arguments: &[&str]) -> Replica {
        let replica = self.fleet.start_with(name, |command| {
            command.args(arguments);
        });
        let file = self.fleet.dir().join(format!("pid.{name}"));
        std::fs::write(file, replica.pid().as_raw_pid().to_string()).expect("a file");
        replica.wait_until_ready();
        replica
    }

    /// Three replicas, ready and past a new ledger's first second, in which nothing is granted:
    /// who goes first after it is a matter of milliseconds. Those of former lives may be listed.
    pub(super) fn three(&self) -> Vec<Replica> {
        let replicas: Vec<Replica> = ["a", "b", "c"].map(|name| self.start(name)).into();
        let pid = |replica: &Replica| Some(i64::from(replica.pid().as_raw_pid()));
        wait_for(SOON, || {
            let status = self.fleet.json(&["status", "--json"]);
            let listed = status["replicas"].as_array().expect("replicas");
            let is_listed = |pid| listed.iter().any(|replica| replica["pid"].as_i64() == pid);
            let all_listed = replicas.iter().map(pid).all(is_listed);
            let in_grace = status["grace_seconds"].as_f64() != Some(0.0);
            (all_listed && !in_grace)
                .then_some(())
                .ok_or_else(|| format!("{status:#}"))
        });
        replicas
    }

    /// What jobs wrote down so far, in the order in which they did.
    pub(super) fn notes(&self) -> Vec<Note> {
        read_notes(&self.fleet.dir().join("notes"))
    }

    /// Waits until jobs wrote down what is wanted.
    pub(super) fn wait_for_notes<T>(&self, wanted: impl Fn(&[Note]) -> Option<T>) -> T {
        wait_for(SOON, || {
            let notes = self.notes();
            wanted(&notes).ok_or_else(|| format!("{notes:#?}"))
        })
    }

    /// The lines of a job, the oldest first.
    pub(super) fn lines(&self, job: &str) -> Vec<AttemptRecord> {
        let job = name(job);
        let read = self.store.history(Some(&job), 10_000);
        let mut lines = self.runtime.block_on(read).expect("a history");
        lines.reverse();
        lines
    }

    /// Waits until the lines of a job are as wanted.
    pub(super) fn wait_for_lines<T>(
        &self,
        job: &str,
        within: Duration,
        wanted: impl Fn(&[AttemptRecord]) -> Option<T>,
    ) -> T {
        wait_for(within, || {
            let lines = self.lines(job);
            wanted(&lines).ok_or_else(|| shown(&lines))
        })
    }

    /// Waits for the last word on a job's only occurrence.
    pub(super) fn wait_for_end(&self, job: &str, within: Duration) -> AttemptRecord {
        self.wait_for_lines(job, within, |lines| {
            lines.iter().find(|line| line.detail.is_final()).cloned()
        })
    }

    /// Asks for something in the name of Alice.
    pub(super) fn order(&self, job: &str, what: OrderKind) -> OrderAnswer {
        let order = Order {
            job: name(job),
            what,
            by: "alice@desk".to_owned(),
            id: RunId::new(Uuid::new_v4()),
            retention: Retention {
                limit: 1000,
                age: Duration::from_secs(24 * 3600),
            },
            dependents: Default::default(),
        };
        let caller = Caller {
            replica: Identity {
                id: Uuid::new_v4(),
                name: "alice".to_owned(),
            },
            quarantine: Duration::from_secs(10),
            token_floor: FencingToken::default(),
            send_by: None,
            held_back: Duration::ZERO,
        };
        // Sent again to a store that was too slow, it is done once.
        let orders = [order];
        let send = || self.runtime.block_on(self.store.order(&caller, &orders));
        let mut answers = wait_for(Duration::from_secs(10), || {
            send().map_err(|error| error.to_string())
        });
        answers.answer.remove(0)
    }

    /// Asks for an occurrence now; gives its instant.
    pub(super) fn trigger(&self, job: &str) -> String {
        match self.order(job, OrderKind::Trigger) {
            OrderAnswer::Triggered { scheduled_at } => scheduled_at.to_string(),
            other => panic!("{job}: {other:?}"),
        }
    }
}

fn name(job: &str) -> JobName {
    JobName::new(job).expect("a job's name")
}

fn wait_for<T>(within: Duration, mut look: impl FnMut() -> Result<T, String>) -> T {
    let end = Instant::now() + within;
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) => assert!(Instant::now() < end, "not within {within:?}:\n{seen}"),
        }
        // What others append to: there is nothing to wait on.
        std::thread::sleep(LOOK);
    }
}

fn read_notes(path: &Path) -> Vec<Note> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    // The last line may be in the making.
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    let read = |line: &str| {
        let fields: Vec<&str> = line.split(' ').collect();
        let [what, at, job, scheduled_at, attempt, shard, replica] = fields[..] else {
            panic!("no note: {line}");
        };
        Note {
            what: what.to_owned(),
            at_ns: at.parse().expect("nanoseconds"),
            job: job.to_owned(),
            scheduled_at: scheduled_at.to_owned(),
            attempt: attempt.parse().expect("an attempt"),
            shard: shard.to_owned(),
            replica: replica.to_owned(),
        }
    };
    whole.lines().map(read).collect()
}

/// Lines for a message.
pub(super) fn shown(lines: &[AttemptRecord]) -> String {
    let line = |line: &AttemptRecord| {
        let since = line.detail.since.map(|since| format!("after {since} to "));
        let cause = line.detail.cause.map_or("-", Cause::as_str);
        format!(
            "{} {}{} attempt {} {} {cause} on {}{}\n",
            line.job,
            since.unwrap_or_default(),
            line.scheduled_at,
            line.attempt,
            line.outcome,
            line.replica,
            if line.detail.is_final() {
                ""
            } else {
                ", to follow"
            },
        )
    };
    lines.iter().map(line).collect()
}

/// How a line's occurrence, or all of its occurrences, ended.
pub(super) fn fate(line: &AttemptRecord) -> (Outcome, Option<Cause>) {
    (line.outcome, line.detail.cause)
}

/// The second of a line.
pub(super) fn second(line: &AttemptRecord) -> i64 {
    line.scheduled_at.as_second()
}

/// The sum rule: of each multiple of `period` seconds from the first to the last that the ledger
/// has a final word on, it has that word once. Gives how many there were.
pub(super) fn each_is_accounted_for_once(lines: &[AttemptRecord], period: i64) -> usize {
    let last_words = || lines.iter().filter(|line| line.detail.is_final());
    let bounds = last_words().map(second);
    let (Some(first), Some(last)) = (bounds.clone().min(), bounds.max()) else {
        panic!("nothing is accounted for: {}", shown(lines));
    };
    let mut instants = 0;
    for instant in (first..=last).filter(|at| at % period == 0) {
        let words = last_words().filter(|line| match line.detail.since {
            None => second(line) == instant,
            Some(since) => since.as_second() < instant && instant <= second(line),
        });
        assert_eq!(words.count(), 1, "of {instant}:\n{}", shown(lines));
        instants += 1;
    }
    instants
}

/// The lines that stand for many occurrences.
pub(super) fn ranges(lines: &[AttemptRecord]) -> Vec<&AttemptRecord> {
    let ranges = lines.iter().filter(|line| line.detail.since.is_some());
    ranges.collect()
}
