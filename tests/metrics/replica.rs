//! A replica that shows its page when it is asked to, on its output: this very test program, started
//! again.

use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use soloist::clock::{Clock as _, SystemClock};
use soloist::config::{self, Config};
use soloist::driver::{Driver, Moment, Observer, Processes, Request};
use soloist::health::{Health, Phase};
use soloist::metrics::{Format, Metrics};
use soloist::runner::OutputMode;
use soloist::scheduler::lease::Replica as Identity;
use soloist::scheduler::{Notice, Purpose, Reload, Settings};
use soloist::store;
use test_support::fleet::{Fleet, SOON};
use tokio::sync::{mpsc, watch};
use uuid::Uuid;

use crate::page::Page;

const NAME: &str = "SOLOIST_TEST_METRICS_REPLICA";
const CONFIG: &str = "SOLOIST_TEST_METRICS_CONFIG";
const STORE: &str = "SOLOIST_TEST_METRICS_STORE";

/// After the last line of a page.
const OVER: &str = "# OVER";

/// The name of the replica that this process is to be, if it is to be one.
pub(crate) fn asked_for() -> Option<String> {
    std::env::var(NAME).ok()
}

/// A replica of a fleet, in a process of its own.
pub(crate) struct Replica {
    pub(crate) name: String,
    child: Child,
    orders: Option<ChildStdin>,
    pages: BufReader<ChildStdout>,
}

impl Replica {
    pub(crate) fn start(fleet: &Fleet, store: &str, name: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .env(NAME, name)
            .env(CONFIG, fleet.config())
            .env(STORE, store)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a replica to start");
        Self {
            name: name.to_owned(),
            orders: child.stdin.take(),
            pages: BufReader::new(child.stdout.take().expect("a pipe")),
            child,
        }
    }

    /// The same, and it claims what falls due.
    pub(crate) fn start_ready(fleet: &Fleet, store: &str, name: &str) -> Self {
        let mut replica = Self::start(fleet, store, name);
        replica.wait_for("ready", |page| page.value("soloist_ready") == 1.0);
        replica
    }

    pub(crate) fn tell(&mut self, order: &str) {
        let orders = self.orders.as_mut().expect("a replica at work");
        writeln!(orders, "{order}").expect("a living replica");
    }

    fn read(&mut self) -> String {
        let mut text = String::new();
        loop {
            let mut line = String::new();
            let length = self.pages.read_line(&mut line).expect("a page");
            assert!(length > 0, "{} ended:\n{text}", self.name);
            if line.trim_end() == OVER {
                return text;
            }
            text.push_str(&line);
        }
    }

    pub(crate) fn page(&mut self) -> Page {
        self.tell("page");
        Page::of(self.read())
    }

    pub(crate) fn openmetrics(&mut self) -> String {
        self.tell("openmetrics");
        self.read()
    }

    /// Waits until its page is as wanted.
    pub(crate) fn wait_for(&mut self, what: &str, wanted: impl Fn(&Page) -> bool) -> Page {
        let end = Instant::now() + SOON;
        loop {
            let page = self.page();
            if wanted(&page) {
                return page;
            }
            let name = &self.name;
            assert!(Instant::now() < end, "{name}: not {what}:\n{}", page.text);
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Drains it; gives its last page.
    pub(crate) fn drain(&mut self) -> Page {
        self.tell("drain");
        self.wait_for("drained", |page| page.value("test_over") == 1.0)
    }

    pub(crate) fn kill9(&mut self) {
        self.child.kill().expect("a living replica");
        self.child.wait().expect("a dead replica");
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Health, as the daemon keeps it.
struct Keeper(watch::Sender<Health>);

impl Observer for Keeper {
    fn notice(&mut self, notice: &Notice, _: Moment<'_>) {
        let phase = match notice {
            Notice::Ready { .. } => Phase::Ready,
            Notice::Draining { .. } => Phase::Draining,
            _ => return,
        };
        self.0.send_modify(|health| health.phase = phase);
    }
}

fn load() -> Result<Config, config::Error> {
    let path = std::env::var(CONFIG).expect("a table");
    config::load(path.as_ref())
}

/// A replica at work, as the daemon puts one together.
async fn work(
    name: String,
    config: Config,
    health: watch::Sender<Health>,
    metrics: Metrics,
    requests: mpsc::Receiver<Request>,
) {
    let url = std::env::var(STORE).expect("a store");
    let store = store::open(Some(&url), &config.scheduler.namespace).expect("a store");
    while store.ready().await.is_err() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tokio::spawn(metrics.clone().keep_up(Arc::clone(&store)));
    let settings = Settings {
        replica: Identity {
            id: Uuid::new_v4(),
            name,
        },
        shutdown_grace: config.scheduler.shutdown_grace,
        purpose: Purpose::Table,
        tags: config.scheduler.tags.clone(),
        max_running: config.scheduler.max_running,
        digest: config.digest(),
        revision: config.scheduler.revision,
    };
    let entropy = Box::new(|| {
        let id = Uuid::new_v4().into_bytes();
        std::array::from_fn(|index| id[if index < 6 { index } else { index + 3 }])
    });
    let processes = Box::new(Processes::new(
        settings.replica.name.clone(),
        OutputMode::Capture,
    ));
    let clock = Arc::new(SystemClock);
    let driver = Driver::new(settings, config.jobs, store, processes, clock, entropy)
        .expect("timers")
        .observed_by(Box::new(Keeper(health)))
        .observed_by(Box::new(metrics.watcher()));
    driver.run(requests).await;
}

/// Is a replica until its orders end.
pub(crate) fn run(name: &str) {
    let config = load().unwrap_or_else(|_| panic!("a table that can be read"));
    let health = Health::starting(config.digest(), config.jobs.len(), SystemClock.wall());
    let health = watch::Sender::new(health);
    let page = Metrics::new(health.subscribe(), Arc::new(SystemClock));
    let (requests, received) = mpsc::channel(16);
    let (keeper, metrics, name) = (health.clone(), page.clone(), name.to_owned());
    let at_work = std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(work(name, config, keeper, metrics, received));
    });
    for order in std::io::stdin().lines().map_while(Result::ok) {
        match order.as_str() {
            "page" => {
                let text = page.render(Format::Text);
                let over = i32::from(at_work.is_finished());
                println!(
                    "{text}# HELP test_over Whether its driver ended.\n# TYPE test_over gauge\ntest_over {over}\n{OVER}"
                );
            }
            "openmetrics" => println!("{}{OVER}", page.render(Format::OpenMetrics)),
            "drain" => _ = requests.blocking_send(Request::Drain),
            "reload" => reload(&requests, &health),
            other => panic!("no order: {other}"),
        }
    }
    std::process::exit(0);
}

fn reload(requests: &mpsc::Sender<Request>, health: &watch::Sender<Health>) {
    let Ok(config) = load() else {
        return health.send_modify(|health| health.table.reloads.refused += 1);
    };
    health.send_modify(|health| {
        health.table.reloads.taken += 1;
        health.table.since = SystemClock.wall();
    });
    let reload = Reload {
        digest: config.digest(),
        revision: config.scheduler.revision,
        jobs: config.jobs.into_iter().map(Arc::new).collect(),
        tags: config.scheduler.tags,
        max_running: config.scheduler.max_running,
        shutdown_grace: config.scheduler.shutdown_grace,
    };
    let _ = requests.blocking_send(Request::Reload(Box::new(reload)));
}
