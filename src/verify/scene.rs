//! What a self-test needs around it, and gives back at the end: the scratch namespace, a
//! directory, the replicas.
//!
//! Must never: leave anything without saying what.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::evidence::{self, Run};
use super::fleet::{Fleet, Member, Start};
use super::plain::{self, Keeper, Memory};
use super::plan::{JobPlan, Setup};
use super::relay::Relay;
use super::stage::{Played, Stage};
use super::table::{Surroundings, table};
use super::verdict::{Cleanup, Verdict, judge};
use super::{Announcement, Event, Failure, NAMESPACE, Request};
use crate::config;
use crate::scheduler::job::JobName;
use crate::store::{self, Detour, Scratch, Store, StoreError};

/// How long the store may take to answer for the first time.
const READY: Duration = Duration::from_secs(5);
/// How long a store may take to give back what is left there.
const ERASE: Duration = Duration::from_secs(10);

/// The fleets with plain locks, by the names of their locks.
pub(super) const AGREED: &str = "agreed";
pub(super) const APART: &str = "apart";

/// Everything that is there before the first replica is.
pub(super) struct Scene {
    request: Request,
    namespace: String,
    jobs: Vec<JobPlan>,
    scratch: Scratch,
    place: String,
    detour: Option<Detour>,
    dir: PathBuf,
    not_tried: Vec<String>,
}

impl Scene {
    /// Finds out whether the store is there, tells what will be done, and makes a directory.
    pub(super) async fn set(
        mut request: Request,
        tell: &dyn Fn(Event),
    ) -> Result<(Self, Arc<dyn Store>), Failure> {
        let namespace = format!("{NAMESPACE}{:012x}", request.id & 0xffff_ffff_ffff);
        let refused = Failure::Store;
        let scratch = Scratch::open(request.store.as_deref(), &namespace, &request.options);
        let scratch = scratch.map_err(refused)?;
        let opened = store::open_with(Some(scratch.url()), &namespace, &request.options);
        let store = opened.map_err(refused)?;
        let detour = request.store.as_deref().and_then(Detour::of);
        request.setup.has_links = detour.is_some();
        let place = store.place();
        let not_tried = not_tried(request.store.as_deref(), detour.is_some());
        let mut scene = Self {
            jobs: request.setup.jobs(),
            dir: request.temporary.join(&namespace),
            request,
            namespace,
            scratch,
            place,
            detour,
            not_tried,
        };
        if let Err(error) = scene.ready(&store).await {
            let error = scene.for_any_namespace(error);
            drop(store);
            // A file may have been made, or half a ledger.
            let _ = scene.erase().await;
            return Err(Failure::Store(error));
        }
        tell(Event::Planned(scene.announcement()));
        if let Err(cause) = scene.make_dir() {
            drop(store);
            let _ = scene.erase().await;
            return Err(Failure::Host(cause));
        }
        scene.name_server();
        Ok((scene, store))
    }

    async fn ready(&self, store: &Arc<dyn Store>) -> Result<(), StoreError> {
        let asked = async {
            store.ready().await?;
            self.scratch.has_room().await
        };
        let ready = tokio::time::timeout(READY, asked).await;
        ready.unwrap_or_else(|_| {
            Err(StoreError::Unreachable {
                place: self.place.clone(),
                cause: format!("no answer within {READY:?}"),
            })
        })
    }

    /// A permission for this namespace alone would help nobody: the next self-test has another one.
    fn for_any_namespace(&self, error: StoreError) -> StoreError {
        match (error, self.scratch.permission(NAMESPACE)) {
            (StoreError::Refused { place, cause, cure }, Some(permission))
                if cure.contains(&self.namespace) =>
            {
                let cure = format!(
                    "each self-test has a namespace of its own; a user who is held to patterns may use all of them with {permission}"
                );
                StoreError::Refused { place, cause, cure }
            }
            (error, _) => error,
        }
    }

    fn announcement(&self) -> Announcement {
        let names = self.scratch.names(&[], &[]);
        let is_file = self.scratch.permission("").is_none();
        Announcement {
            setup: self.request.setup,
            place: self.place.clone(),
            scratch: match names.last() {
                Some(file) if is_file => format!("the file {file}"),
                _ => format!("the namespace {}", self.namespace),
            },
            not_tried: self.not_tried.clone(),
        }
    }

    fn make_dir(&self) -> Result<(), String> {
        let made = DirBuilder::new().mode(0o700).create(&self.dir);
        made.map_err(|error| format!("failed to make {}: {error}", self.dir.display()))
    }

    /// By way of this host, the server's certificate has to have the server's name all the same.
    fn name_server(&mut self) {
        if let Some(detour) = self.detour.as_ref().filter(|detour| detour.tls) {
            let name = &mut self.request.options.tls.server_name;
            name.get_or_insert_with(|| detour.host.clone());
        }
    }

    fn locks(&self) -> Vec<String> {
        let fleets = [AGREED, APART].into_iter();
        fleets
            .flat_map(|fleet| plain::keys(fleet, &self.jobs))
            .collect()
    }

    fn job_names(&self) -> Vec<JobName> {
        let names = self.jobs.iter();
        names
            .filter_map(|job| JobName::new(job.name).ok())
            .collect()
    }

    async fn erase(&self) -> Result<(), StoreError> {
        let (jobs, locks) = (self.job_names(), self.locks());
        let erased = tokio::time::timeout(ERASE, self.scratch.erase(&jobs, &locks)).await;
        erased.unwrap_or_else(|_| {
            Err(StoreError::Unreachable {
                place: self.place.clone(),
                cause: format!("no answer within {ERASE:?}"),
            })
        })
    }

    /// Plays, judges, and clears away. The store is let go of before that: whoever has a file of
    /// it open makes it anew.
    pub(super) async fn play(
        self,
        store: Arc<dyn Store>,
        tell: &dyn Fn(Event),
    ) -> Result<Verdict, Failure> {
        let start = Start {
            program: &self.request.program,
            dir: &self.dir,
            namespace: &self.namespace,
        };
        let begun = match self.members().await {
            Ok(members) => Fleet::new(start, members).map_err(|error| error.to_string()),
            Err(cause) => Err(cause),
        };
        let mut fleet = match begun {
            Ok(fleet) => fleet,
            Err(cause) => {
                drop(store);
                self.clear(true, true).await;
                return Err(Failure::Host(cause));
            }
        };
        let played = self.stage(&store, &mut fleet, tell).await;
        drop(store);
        let processes_gone = fleet.end_all().await;
        let played = match played {
            Ok(played) => played,
            Err(failure) => {
                self.clear(processes_gone, true).await;
                return Err(failure);
            }
        };
        let (runs, senseless) = self.evidence();
        let mut verdict = self.judged(&played, &runs, senseless);
        let files_go = verdict.violations.is_empty() && verdict.open.is_empty();
        verdict.cleanup = self.clear(processes_gone, files_go).await;
        if !files_go {
            verdict.evidence = Some(self.dir.display().to_string());
        }
        Ok(verdict)
    }

    async fn stage(
        &self,
        store: &Arc<dyn Store>,
        fleet: &mut Fleet<'_>,
        tell: &dyn Fn(Event),
    ) -> Result<Played, Failure> {
        let memory = Memory::default();
        let table = self.load_table().map_err(Failure::Host)?;
        let stage = Stage {
            setup: &self.request.setup,
            jobs: &self.jobs,
            table: &table,
            store,
            clock: &self.request.clock,
            keeper: match self.scratch.plain_lock() {
                Some(lock) => Keeper::Server(lock),
                None => Keeper::Memory(&memory),
            },
            interrupted: &self.request.interrupted,
            tell,
        };
        stage.play(fleet).await
    }

    /// The replicas, each with its own way to the store.
    async fn members(&self) -> Result<Vec<Member>, String> {
        let options = &self.request.options;
        let text = table(
            &self.request.setup,
            &Surroundings {
                namespace: &self.namespace,
                program: &self.request.program,
                dir: &self.dir,
                options,
            },
        );
        let text = text.ok_or("the path of this program, or of its directory, is no UTF-8")?;
        let written = fs::write(self.dir.join("jobs.toml"), text);
        written.map_err(|error| format!("failed to write a table: {error}"))?;
        let mut members = Vec::new();
        for number in 0..usize::try_from(self.request.setup.replicas).unwrap_or_default() {
            let (url, relay) = match &self.detour {
                None => (self.scratch.url().to_owned(), None),
                Some(detour) => {
                    let relay = Relay::to(detour).await;
                    let relay = relay.map_err(|error| format!("failed to make a link: {error}"))?;
                    let url = Detour::url(self.scratch.url(), relay.port());
                    (url, Some(relay))
                }
            };
            members.push(Member::new(number, url, relay));
        }
        Ok(members)
    }

    fn load_table(&self) -> Result<Vec<crate::scheduler::job::Job>, String> {
        let loaded = config::load(&self.dir.join("jobs.toml"));
        let loaded = loaded.map_err(|error| format!("the self-test's own table: {error:?}"))?;
        Ok(loaded.jobs)
    }

    /// What all jobs wrote down.
    fn evidence(&self) -> (Vec<Run>, usize) {
        let (mut all, mut senseless) = (Vec::new(), 0);
        for job in &self.jobs {
            let path = self.dir.join(format!("{}.log", job.name));
            // A job that never ran has none.
            let text = fs::read(path).unwrap_or_default();
            let (runs, lines) = evidence::read(job.name, &String::from_utf8_lossy(&text));
            all.extend(runs);
            senseless += lines;
        }
        (all, senseless)
    }

    fn judged(&self, played: &Played, runs: &[Run], senseless: usize) -> Verdict {
        let setup: &Setup = &self.request.setup;
        let mut verdict = judge(setup, &self.jobs, played, runs, self.request.own_lease_ttl);
        if senseless > 0 {
            let warning = format!("{senseless} lines of what jobs wrote down make no sense");
            verdict.warnings.push(warning);
        }
        verdict.store.clone_from(&self.place);
        verdict.namespace.clone_from(&self.namespace);
        verdict.not_tried.clone_from(&self.not_tried);
        verdict
    }

    /// Takes away what is left, and says what could not be.
    async fn clear(&self, processes_gone: bool, files_go: bool) -> Cleanup {
        let erased = self.erase().await;
        let mut left = Vec::new();
        if erased.is_err() {
            left = self.scratch.names(&self.job_names(), &self.locks());
        }
        let why = erased.err().map(|error| error.to_string());
        if files_go && fs::remove_dir_all(&self.dir).is_err() && self.dir.exists() {
            left.push(self.dir.display().to_string());
        }
        Cleanup {
            processes_gone,
            left,
            why,
        }
    }
}

/// What is not tried with this store, and why.
fn not_tried(url: Option<&str>, has_links: bool) -> Vec<String> {
    let mut found = Vec::new();
    if !has_links {
        let scheme = url.and_then(|url| url.split_once(':'));
        let why = match scheme.map(|(scheme, _)| scheme) {
            None | Some("sqlite") => "a file has no link that could be cut",
            Some("unix" | "redis+unix") => "the link is a socket of this host",
            _ => "with several servers each replica finds its own way",
        };
        found.push(format!("cut links: {why}"));
    }
    found.push("faults of the store's server, of its network, and of hosts' clocks".to_owned());
    found
}
