//! A self-test of soloist against a store of the user's own: what `soloist verify` does.
//!
//! ```text
//!  seed ─▶ plan ──▶ stage ─── starts, hurts ──▶ fleet: real replicas, real jobs ──▶ evidence
//!                     │                             │ by a relay, if there is one       │
//!                     │                             ▼                                   ▼
//!                     ├── pulse ───────────────▶ the store ──▶ ledger ──────────────▶ checker
//!                     └── plain: the lock that everybody writes ────────────────────────┤
//!                                                                                       ▼
//!                                                                        verdict ──▶ words, JSON
//! ```
//!
//! Replicas are this very program, executed again, in a scratch namespace of the store; so are
//! their jobs, which write down when they lived (`part`). All that is hurt is on this side:
//! processes that this one has started, and their own links to the store.
//!
//! Must never: do to the store's server what a replica doesn't, touch what is not of the scratch
//! namespace, or call a test passed in which nothing was seen.

mod checker;
mod dice;
mod evidence;
mod fleet;
mod ledger;
mod outcome;
pub mod part;
mod plain;
pub mod plan;
mod pulse;
mod relay;
mod scene;
mod stage;
mod table;
mod verdict;
pub mod words;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

pub use self::checker::{Law, PlainFindings, Violation};
pub use self::outcome::Outcome;
pub use self::plan::{Fault, Setup};
pub use self::verdict::{Answers, Cleanup, Occurrences, Plain, Runs, Verdict};

use crate::clock::Clock;
use crate::store::StoreError;
use crate::store_url::StoreOptions;

/// What every scratch namespace begins with.
pub const NAMESPACE: &str = "soloist-verify-";

/// What a self-test starts from.
pub struct Request {
    /// What is to be done; whether links can be cut is found out.
    pub setup: Setup,
    /// The store; none for the embedded one.
    pub store: Option<String>,
    /// What the URL leaves unsaid.
    pub options: StoreOptions,
    /// How long a lease of the user's own jobs lasts: what the store's answers are measured by.
    pub own_lease_ttl: Duration,
    /// This program.
    pub program: PathBuf,
    /// Where a directory for evidence is made.
    pub temporary: PathBuf,
    /// A number that nobody had before: names the namespace.
    pub id: u64,
    /// This host's.
    pub clock: Arc<dyn Clock>,
    /// Told when it is to end now.
    pub interrupted: Arc<Notify>,
}

/// What is told while it goes on.
#[derive(Clone, Debug)]
pub enum Event {
    /// What will be done; nothing was done yet, but for asking whether the store is there.
    Planned(Announcement),
    /// All replicas are at work.
    Begun,
    /// How far it is.
    GoesOn {
        /// Since the beginning.
        elapsed: Duration,
        /// Faults so far.
        faults: usize,
    },
    /// Nobody is hurt any more; what is under way comes to its end.
    Settles,
}

/// What will be done.
#[derive(Clone, Debug)]
pub struct Announcement {
    /// The plan.
    pub setup: Setup,
    /// The store, without secrets.
    pub place: String,
    /// The scratch namespace, or file.
    pub scratch: String,
    /// What can't be tried here, and why.
    pub not_tried: Vec<String>,
}

/// Why there is no verdict.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Failure {
    /// The store could not be used from the start.
    #[error("{0}")]
    Store(StoreError),
    /// Something of this host: a directory, a process.
    #[error("{0}")]
    Host(String),
}

/// Does it all, and cleans up behind itself, whatever comes of it. To be called on the first
/// thread of the process: replicas die with it.
///
/// # Errors
/// Where it could not begin. What happens later is in the verdict.
pub async fn run(request: Request, tell: &dyn Fn(Event)) -> Result<Verdict, Failure> {
    let (scene, store) = scene::Scene::set(request, tell).await?;
    scene.play(store, tell).await
}
