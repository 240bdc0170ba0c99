//! Instances of the service as processes, the database that they share, and whoever asks them.
//!
//! Must never: wait by sleeping for so long as should do.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use close_expired_orders::{audit, shop};
use serde_json::Value;
use tempfile::TempDir;
use test_support::postgres::PostgresServer;
use test_support::process::{Process, Signal};
use test_support::redis::fresh_namespace;

/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(30);

/// From one look at something to the next.
const LOOK: Duration = Duration::from_millis(3);

/// A shop's database, for one test.
pub(crate) struct Database {
    pub(crate) url: String,
    _directory: Option<TempDir>,
}

impl Database {
    pub(crate) fn sqlite() -> Self {
        let directory = TempDir::new().expect("a directory");
        let url = directory.path().join("shop.db");
        Self {
            url: url.to_str().expect("UTF-8").to_owned(),
            _directory: Some(directory),
        }
    }

    pub(crate) fn postgres() -> Self {
        Self {
            url: PostgresServer::shared().fresh_database(),
            _directory: None,
        }
    }

    pub(crate) fn number(&self, query: &str) -> i64 {
        let mut shop = shop::open(&self.url).expect("the shop");
        shop.numbers(&[query]).expect(query)[0]
    }

    #[track_caller]
    pub(crate) fn assert_sound(&self) {
        let mut shop = shop::open(&self.url).expect("the shop");
        let report = audit::audit(&mut *shop).expect("an audit");
        assert!(report.passed(), "{report}");
    }
}

/// The service in several instances.
pub(crate) struct Fleet {
    store: String,
    namespace: String,
    database: String,
    options: Vec<String>,
    /// What each that was ever started says, in order.
    pub(crate) said: Vec<Said>,
    pub(crate) instances: Vec<Instance>,
}

impl Fleet {
    /// Starts so many, each of which is at work when this returns.
    pub(crate) fn of(count: usize, store: &str, database: &Database, options: &[&str]) -> Self {
        let mut fleet = Self {
            store: store.to_owned(),
            namespace: fresh_namespace(),
            database: database.url.clone(),
            options: options.iter().map(|&option| option.to_owned()).collect(),
            said: Vec::new(),
            instances: Vec::new(),
        };
        for _ in 0..count {
            fleet.start();
        }
        for instance in &mut fleet.instances {
            instance.find();
            eventually("ready", || instance.get("/healthz").1["jobs"] == "ready");
        }
        fleet
    }

    /// Starts one more.
    pub(crate) fn start(&mut self) {
        let said = Said::default();
        self.said.push(said.clone());
        let name = format!("shop-{}", self.said.len());
        let mut child = Command::new(env!("CARGO_BIN_EXE_shop-service"))
            .args(["--listen", "127.0.0.1:0", "--replica", &name])
            .args(&self.options)
            .env("SOLOIST_STORE", &self.store)
            .env("SOLOIST_NAMESPACE", &self.namespace)
            .env("DATABASE_URL", &self.database)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        said.listen(child.stdout.take().expect("a pipe"));
        said.listen(child.stderr.take().expect("a pipe"));
        self.instances.push(Instance {
            name,
            child,
            said,
            address: String::new(),
        });
    }

    /// Waits for an instance that begins an attempt from now on and gets as far in it as to say
    /// this. Answers with its place and what it runs.
    #[track_caller]
    pub(crate) fn first_to_say(&self, words: &str) -> (usize, Attempt) {
        let marks: Vec<usize> = self.instances.iter().map(|one| one.said.len()).collect();
        let mut found = None;
        eventually(words, || {
            let mut all = self.instances.iter().zip(&marks).enumerate();
            found = all.find_map(|(place, (one, &mark))| {
                let lines = one.said.since(mark);
                let there = lines.iter().rposition(|line| line.contains(words))?;
                let before = lines[..there].iter().rev();
                let started = before.filter_map(|line| Attempt::started(line)).next()?;
                Some((place, started))
            });
            found.is_some()
        });
        found.expect("it was found")
    }

    /// Takes one out, to be killed or ended.
    pub(crate) fn take(&mut self, place: usize) -> Instance {
        self.instances.remove(place)
    }

    pub(crate) fn any(&self) -> &Instance {
        &self.instances[0]
    }

    /// Waits for the last word on this instant, and answers with all lines about it, oldest first.
    #[track_caller]
    pub(crate) fn settled(&self, scheduled_at: &str) -> Vec<Value> {
        let mut lines = Vec::new();
        eventually(scheduled_at, || {
            lines = self.any().history();
            lines.retain(|line| line["scheduled_at"] == scheduled_at);
            lines.iter().any(|line| line["next_attempt_at"].is_null())
        });
        lines.reverse();
        lines
    }
}

/// One process of the service.
pub(crate) struct Instance {
    pub(crate) name: String,
    pub(crate) said: Said,
    child: Child,
    address: String,
}

impl Instance {
    /// Waits until it says where it serves.
    pub(crate) fn find(&mut self) {
        let told = "serving on ";
        eventually(told, || self.said.contains(told));
        let lines = self.said.since(0);
        let address = lines.iter().find_map(|line| line.strip_prefix(told));
        self.address = address.expect("it was said").to_owned();
    }

    /// The status of the answer, and what is in it.
    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        answer(agent().get(format!("{}{path}", self.address)).call())
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> (u16, Value) {
        let request = agent().post(format!("{}{path}", self.address));
        answer(request.content_type("application/json").send(body))
    }

    /// Whether the job runs in any instance, or is about to.
    pub(crate) fn is_running(&self) -> bool {
        let (status, answer) = self.get("/jobs");
        assert_eq!(status, 200, "{answer}");
        let state = answer["jobs"][0]["last"]["state"].as_str();
        matches!(state, Some("running" | "again" | "waiting"))
    }

    /// What the ledger has of the job, newest first.
    pub(crate) fn history(&self) -> Vec<Value> {
        let (status, lines) = self.get("/jobs/close-expired-orders/history?limit=1000");
        assert_eq!(status, 200, "{lines}");
        lines.as_array().expect("lines").clone()
    }

    pub(crate) fn freeze(&self) {
        self.process().freeze();
    }

    pub(crate) fn thaw(&self) {
        self.process().thaw();
    }

    pub(crate) fn terminate(&self) {
        assert!(self.process().signal(Signal::TERM), "it has ended");
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
    }

    pub(crate) fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        eventually("the end", || {
            status = self.child.try_wait().expect("a child");
            status.is_some()
        });
        status.expect("it ended")
    }

    fn process(&self) -> Process {
        let pid = self.child.id().try_into().expect("a process id");
        Process::of(pid).expect("it lives")
    }
}

/// A test that fails leaves nobody behind, frozen ones included.
impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("{}:\n  {}", self.name, self.said.since(0).join("\n  "));
        }
    }
}

/// What an instance said, on either stream.
#[derive(Clone, Default)]
pub(crate) struct Said(Arc<Mutex<Vec<String>>>);

impl Said {
    fn listen(&self, pipe: impl Read + Send + 'static) {
        let said = Arc::clone(&self.0);
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                said.lock().expect("no panic holds it").push(line);
            }
        });
    }

    fn len(&self) -> usize {
        self.0.lock().expect("no panic holds it").len()
    }

    fn since(&self, mark: usize) -> Vec<String> {
        self.0.lock().expect("no panic holds it")[mark..].to_vec()
    }

    pub(crate) fn contains(&self, words: &str) -> bool {
        self.since(0).iter().any(|line| line.contains(words))
    }

    /// The number that comes after these words, wherever they stand.
    pub(crate) fn numbers(&self, words: &str) -> Vec<i64> {
        let lines = self.since(0).into_iter();
        let numbers = lines.filter_map(|line| {
            let (_, rest) = line.split_once(words)?;
            rest.split(' ').next()?.parse().ok()
        });
        numbers.collect()
    }
}

/// What an instance said that it runs.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) scheduled_at: String,
    pub(crate) token: i64,
}

impl Attempt {
    fn started(line: &str) -> Option<Self> {
        let (_, fields) = line.split_once("attempt started")?;
        let field = |name: &str| {
            let mut fields = fields.split(' ');
            fields.find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
        };
        Some(Self {
            scheduled_at: field("scheduled_at")?.to_owned(),
            token: field("token")?.parse().ok()?,
        })
    }
}

/// Waits until it is so.
#[track_caller]
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < end, "not within {LONG:?}: {what}");
        std::thread::sleep(LOOK);
    }
}

/// Its answers are answers, whatever their status; each question has a connection of its own.
fn agent() -> ureq::Agent {
    let config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(LONG));
    config.build().into()
}

fn answer(response: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> (u16, Value) {
    let mut response = response.expect("an answer");
    let text = response.body_mut().read_to_string().expect("a text");
    let value = serde_json::from_str(&text).unwrap_or(Value::Null);
    (response.status().as_u16(), value)
}
