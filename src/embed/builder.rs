//! From jobs and settings to a scheduler at work.
//!
//! Must never: start anything when anything is wrong.

use std::collections::HashMap;
use std::fmt;
#[cfg(feature = "tls")]
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::check::{self, Defaults, Findings};
use super::error::{Error, Faults};
use super::events::{Events, Subscribers};
use super::functions::Functions;
use super::handle::{Handle, Scheduler};
use super::home::Home;
use super::job::Job;
use super::store::SharedStore;
use super::supervisor;
use crate::clock::{Clock, SystemClock};
use crate::driver::{Driver, Place, entropy};
use crate::jobs::{digest, limits};
use crate::scheduler::job::{self, check_name};
use crate::scheduler::lease::Replica;
use crate::scheduler::policy::Tags;
use crate::scheduler::{Purpose, Settings, draw_replica_id};
use crate::store::{self, Store};
#[cfg(feature = "tls")]
use crate::store_url::TlsFiles;
use crate::store_url::{StoreOptions, redact};

/// The namespace where none is named, as in jobs.toml.
const NAMESPACE: &str = "default";

/// What a replica is called whose host's name can't be one.
const REPLICA: &str = "replica";

/// Says what a [`Scheduler`] is to run, and where. Made by [`Scheduler::builder`].
#[must_use = "nothing runs before `start`"]
pub struct Builder {
    store: Where,
    options: StoreOptions,
    require_store: bool,
    namespace: String,
    replica: Option<String>,
    tags: Tags,
    max_running: Option<u32>,
    lease_ttl: Duration,
    shutdown_grace: Duration,
    revision: Option<u64>,
    clock: Arc<dyn Clock>,
    jobs: Vec<Job>,
    subscribers: Subscribers,
}

/// The store.
enum Where {
    Nowhere,
    Url(String),
    Open(SharedStore),
}

impl Builder {
    pub(super) fn new() -> Self {
        Self {
            store: Where::Nowhere,
            options: StoreOptions::default(),
            require_store: false,
            namespace: NAMESPACE.to_owned(),
            replica: None,
            tags: Tags::new(),
            max_running: None,
            lease_ttl: limits::LEASE_TTL,
            shutdown_grace: limits::SHUTDOWN_GRACE,
            revision: None,
            clock: Arc::new(SystemClock),
            jobs: Vec::new(),
            subscribers: Subscribers::default(),
        }
    }

    /// Where leases and the ledger live, by a URL as in jobs.toml: `redis://HOST:PORT` and its kin
    /// (feature `redis`), `sqlite:PATH` (feature `sqlite`), `memory:`. There is no default.
    pub fn store(mut self, url: impl Into<String>) -> Self {
        self.store = Where::Url(url.into());
        self
    }

    /// The same, in a store that is open already, under its namespace: what is said here of the
    /// namespace, TLS and acknowledgements doesn't concern it.
    pub fn store_in(mut self, store: &SharedStore) -> Self {
        self.store = Where::Open(store.clone());
        self
    }

    /// Fails to start where the store is away. Default: what is away is waited for, in the
    /// background, as the rest of a service has its work to do.
    pub fn require_store(mut self, required: bool) -> Self {
        self.require_store = required;
        self
    }

    /// Keeps fleets apart that share a store: all replicas of one service have the same, and no other
    /// program has it, nor a `soloist run`. Default `default`.
    pub fn namespace(mut self, name: impl Into<String>) -> Self {
        self.namespace = name.into();
        self
    }

    /// What this process is called, for people. Default: the host's name.
    pub fn replica(mut self, name: impl Into<String>) -> Self {
        self.replica = Some(name.into());
        self
    }

    /// What this replica has, for jobs that ask for it by [`Job::run_on`]. Default: nothing.
    pub fn tag(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.tags.insert(name.into(), value.into());
        self
    }

    /// How many attempts may run here at once; from 1 to 100,000. Default: no limit.
    pub fn max_running(mut self, most: u32) -> Self {
        self.max_running = Some(most);
        self
    }

    /// How long a lease of a job lasts that doesn't say; from 1 s to 1 h. Default 15 s.
    pub fn lease_ttl(mut self, ttl: Duration) -> Self {
        self.lease_ttl = ttl;
        self
    }

    /// How long attempts may go on once a shutdown began, before they are cancelled; up to a day.
    /// Default 30 s.
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.shutdown_grace = grace;
        self
    }

    /// A number that grows with each change of the jobs, such as that of a build: while a deploy has
    /// two versions at work, the greater one's jobs are run. Default: the version seen last counts.
    pub fn revision(mut self, revision: u64) -> Self {
        self.revision = Some(revision);
        self
    }

    /// How many replicas of a Redis must have a grant before it counts; up to 20. Default 0.
    pub fn min_replicas_ack(mut self, count: u32) -> Self {
        self.options.min_replicas_ack = count;
        self
    }

    /// Certificates (PEM) of those who may sign that of a `rediss://` store. Default: the system's.
    #[cfg(feature = "tls")]
    pub fn tls_ca(mut self, path: impl Into<PathBuf>) -> Self {
        self.tls().ca = Some(path.into());
        self
    }

    /// The certificate and the private key (PEM) that a `rediss://` store is shown. Default: none.
    #[cfg(feature = "tls")]
    pub fn tls_client(mut self, cert: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.tls().cert = Some(cert.into());
        self.tls().key = Some(key.into());
        self
    }

    #[cfg(feature = "tls")]
    fn tls(&mut self) -> &mut TlsFiles {
        &mut self.options.tls
    }

    /// Another clock, for tests: see [`ManualClock`](crate::ManualClock). Default: the host's.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    #[cfg(feature = "tokio-cron-scheduler")]
    pub(super) fn its_clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    #[cfg(feature = "tokio-cron-scheduler")]
    pub(super) fn add(&mut self, job: Job) {
        self.jobs.push(job);
    }

    /// Adds a job.
    pub fn job(mut self, job: Job) -> Self {
        self.jobs.push(job);
        self
    }

    /// Adds jobs.
    pub fn jobs(mut self, jobs: impl IntoIterator<Item = Job>) -> Self {
        self.jobs.extend(jobs);
        self
    }

    /// What is going to happen, from the start on. [`Scheduler::events`] tells what happens after it
    /// was asked for: [`Event::Ready`](crate::Event::Ready) may have been before that.
    pub fn events(&self) -> Events {
        self.subscribers.subscribe()
    }

    /// Checks all that was said, and sets to work. Functions run on the runtime that it is called on,
    /// with which the scheduler ends; itself it has a thread. A store that is away is waited for in
    /// the background: whether it is there, [`Event::Ready`](crate::Event::Ready) says.
    ///
    /// # Errors
    /// [`Error::Invalid`] with all that is wrong with jobs and settings; [`Error::Store`] when the
    /// store refuses, or is away and was required; [`Error::NoRuntime`] where it is polled outside of
    /// tokio.
    pub async fn start(mut self) -> Result<Scheduler, Error> {
        let jobs = self.checked().map_err(Error::Invalid)?;
        let home = Home::of(&*self.clock)?;
        let store = self.open(&home)?;
        let asked = Arc::clone(&store);
        let ready = home.run(async move { asked.ready().await }).await?;
        let is_there = match ready.map_err(Error::from) {
            Ok(()) => true,
            Err(Error::Store {
                is_temporary: true, ..
            }) if !self.require_store => false,
            Err(error) => return Err(error),
        };
        let settings = self.settings(&jobs);
        tracing::info!(replica = %settings.replica, id = %settings.replica.id,
            store = store.place(), namespace = self.namespace, digest = settings.digest,
            revision = settings.revision, version = env!("CARGO_PKG_VERSION"), "starting");
        let name = settings.replica.name.clone();
        let said = std::mem::take(&mut self.jobs).into_iter();
        let functions = said.filter_map(|one| {
            let name = job::JobName::new(&one.name).ok()?;
            Some((name, one.function))
        });
        let functions: HashMap<_, _> = functions.collect();
        let kept = functions.values().cloned().collect();
        let runtime = home.programs().cloned();
        let clock = Arc::clone(&self.clock);
        let (functions, watches) = Functions::new(functions, &name, clock, runtime);
        let subscribers = self.subscribers.clone();
        let (attempts, clock) = (Box::new(functions), Arc::clone(&self.clock));
        let table = jobs.clone();
        let shared = Arc::clone(&store);
        let driver = {
            let _there = home.enter();
            Driver::new(settings, table, shared, attempts, clock, entropy())
        };
        let driver = driver.map_err(Error::Timers)?;
        let mut driver = driver.observed_by(Box::new(subscribers.clone()));
        if let Some(runtime) = home.programs() {
            driver = driver.claiming_on(runtime.clone());
        }
        let handle = Handle::new(home.clone(), store, jobs, name, subscribers);
        Ok(supervisor::start(
            home, driver, watches, handle, kept, is_there,
        ))
    }

    fn settings(&self, jobs: &[job::Job]) -> Settings {
        Settings {
            replica: Replica {
                id: draw_replica_id(Uuid::new_v4().into_bytes()),
                name: self.replica.clone().unwrap_or_else(name_of_host),
            },
            shutdown_grace: self.shutdown_grace,
            purpose: Purpose::Table,
            tags: self.tags.clone(),
            max_running: self.max_running,
            digest: digest::table_digest(jobs),
            revision: self.revision,
        }
    }

    fn open(&self, home: &Home) -> Result<Arc<dyn Store>, Error> {
        let _there = home.enter();
        match &self.store {
            Where::Open(store) => Ok(Arc::clone(&store.0)),
            Where::Url(url) => {
                let clock = Arc::clone(&self.clock);
                let opened = store::open_at(clock, Some(url), &self.namespace, &self.options);
                Ok(opened?)
            }
            // It was checked.
            Where::Nowhere => Err(Error::Broken("there is no store".to_owned())),
        }
    }

    /// The jobs as a table has them, or all that is wrong.
    fn checked(&self) -> Result<Vec<job::Job>, Faults> {
        let mut faults = Vec::new();
        self.check_settings(&mut Findings {
            job: None,
            faults: &mut faults,
        });
        let defaults = Defaults {
            lease_ttl: self.lease_ttl,
            now: self.clock.wall(),
        };
        let mut jobs = check::jobs(&self.jobs, &defaults, &mut faults);
        if !faults.is_empty() {
            return Err(Faults(faults));
        }
        digest::define(&mut jobs, self.revision);
        Ok(jobs)
    }

    fn check_store(&self, findings: &mut Findings<'_>) {
        match &self.store {
            Where::Nowhere => {
                let cure = "name one, such as `.store(\"redis://127.0.0.1:6379\")`, or `.store(\"memory:\")` for a try";
                findings.add("store", "there is none", cure);
            }
            Where::Url(url) => {
                if let Err((cause, cure)) = store::check_url(url) {
                    let cause = format!("`{}` is no store: {cause}", redact(url));
                    findings.add("store", cause, cure);
                }
            }
            Where::Open(_) => {}
        }
    }

    fn check_settings(&self, findings: &mut Findings<'_>) {
        self.check_store(findings);
        let names = [
            ("namespace", Some(&self.namespace)),
            ("replica", self.replica.as_ref()),
        ];
        for (key, name) in names {
            if let Some(Err(error)) = name.map(|name| check_name(name)) {
                findings.add(key, error.to_string(), "choose another");
            }
        }
        findings.tags("tag", &self.tags);
        findings.number("max_running", self.max_running, &limits::RUNNING_LIMITS);
        findings.duration("lease_ttl", Some(self.lease_ttl), &limits::LEASE_TTLS);
        let graces = Duration::ZERO..=limits::LONGEST_SHUTDOWN_GRACE;
        findings.duration("shutdown_grace", Some(self.shutdown_grace), &graces);
        let acks = Some(self.options.min_replicas_ack);
        findings.number("min_replicas_ack", acks, &limits::ACKNOWLEDGEMENTS);
        if self
            .revision
            .is_some_and(|one| one > limits::LARGEST_REVISION)
        {
            let cause = format!("it is a number from 0 to {}", limits::LARGEST_REVISION);
            findings.add("revision", cause, "give it the number of a build");
        }
        if self.jobs.is_empty() {
            findings.add("jobs", "there are none", "add one: `.job(Job::new(…))`");
        }
    }
}

/// This host, as a replica may be called.
fn name_of_host() -> String {
    let host = Place::here().host;
    match check_name(&host) {
        Ok(()) => host,
        Err(_) => REPLICA.to_owned(),
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("namespace", &self.namespace)
            .field("replica", &self.replica)
            .field("jobs", &self.jobs)
            .finish_non_exhaustive()
    }
}
