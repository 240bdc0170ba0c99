//! Named leases: something for oneself, across hosts.
//!
//! ```text
//!  Leases ─ command ─▶ task ─▶ LeaseStore: acquire, renew, release
//!    ▲                  │ ▲
//!  Lease ◀── standing ──┘ └── news: it is your turn
//! ```
//!
//! Must never: let a lease be used for longer than it is trusted.

mod calls;
mod error;
#[doc(hidden)]
pub mod holds;
mod open;
mod task;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use uuid::Uuid;

pub use self::error::{AcquireError, LeaseLost};

use self::holds::{Holds, Patience};
use self::task::{Command, Grant, Standing, Task};
use crate::clock::Clock;
use crate::scheduler::lease::{
    FencingToken, Hold, LeaseName, Mode, NAMES_PER_HOLD_LIMIT, NameState, Replica,
};
use crate::scheduler::margins::{LONGEST_TTL, SHORTEST_TTL};
use crate::scheduler::time::BootTime;
use crate::store::{LeaseStore, StoreError};

/// How long a lease lasts by default, if its holder vanishes.
pub const DEFAULT_TTL: Duration = Duration::from_secs(15);

/// A client of named leases in one store. Cheap to clone; all clones share its connections.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use soloist::Leases;
///
/// let leases = Leases::open("memory:", "shop").await?; // for a fleet: redis://127.0.0.1:6379
/// let lease = leases.lease("migrate").acquire().await?;
/// for step in ["orders", "stock"] {
///     lease.check()?; // Is it still mine? No round trip.
///     println!("migrating {step} under token {}", lease.token());
/// }
/// lease.release().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Leases {
    shared: Arc<Shared>,
}

struct Shared {
    place: String,
    clock: Arc<dyn Clock>,
    commands: mpsc::UnboundedSender<Command>,
}

impl fmt::Debug for Leases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = &self.shared.place;
        f.debug_struct("Leases").field("store", place).finish()
    }
}

impl Leases {
    /// A client of the store that `url` names, as in `jobs.toml`. `namespace` keeps fleets apart
    /// that share a store. `memory:` is this client's alone, for tests.
    ///
    /// It lives on a thread of soloist's own, with its connections: whatever becomes of the runtime
    /// that it is used from, what is held is renewed until it is given back, or the process ends. A
    /// child that the process forks has nothing of that: it opens a client of its own.
    ///
    /// # Errors
    /// When the URL names no store, or that can't be reached or used.
    pub async fn open(url: &str, namespace: &str) -> Result<Self, StoreError> {
        open::by_url(url, namespace).await
    }

    /// A client of a store that is open, by this clock, on the runtime that it is called on; `name`
    /// is what others are told of who has a lease.
    ///
    /// # Errors
    /// When the store can't be reached or used.
    #[doc(hidden)]
    pub async fn of(
        store: Arc<dyn LeaseStore>,
        clock: Arc<dyn Clock>,
        name: &str,
    ) -> Result<Self, StoreError> {
        store.ready().await?;
        let timer = clock.timer().map_err(|error| StoreError::Refused {
            place: store.place(),
            cause: format!("this process can have no timer: {error}"),
            cure: "raise its limit of open files".to_owned(),
        })?;
        let replica = Replica {
            id: Uuid::new_v4(),
            name: name.to_owned(),
        };
        let holds = Holds::new(replica);
        let place = store.place();
        let commands = Task::spawn(store, Arc::clone(&clock), holds, timer);
        let shared = Arc::new(Shared {
            place,
            clock,
            commands,
        });
        Ok(Self { shared })
    }

    /// Begins to ask for the lease of a name. Nothing happens before it is acquired.
    pub fn lease(&self, name: &str) -> Acquisition {
        self.all([name])
    }

    /// The same for several names: all of them are granted in one step, or none. Names may come in
    /// any order, and twice; those of a `Vec<String>` by `names.iter().map(String::as_str)`.
    pub fn all<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Acquisition {
        Acquisition {
            leases: self.clone(),
            names: checked(names),
            owner: None,
            mode: Mode::Exclusive,
            ttl: DEFAULT_TTL,
        }
    }

    /// A holder whose leases are let in again: see [`Acquisition::held_by`].
    pub fn holder(&self) -> Holder {
        Holder(Uuid::new_v4())
    }

    /// How all names stand that somebody has or waits for.
    ///
    /// # Errors
    /// When the store can't be asked.
    pub async fn names(&self) -> Result<Vec<NameState>, StoreError> {
        let (answer, answered) = oneshot::channel();
        // A task that is gone drops what it would have answered by.
        let _ = self.shared.commands.send(Command::Names { answer });
        let mut names = answered.await.unwrap_or_else(|_| Err(self.closed()))?;
        names.retain(|name| !name.held.is_empty() || !name.waiting.is_empty());
        Ok(names)
    }

    /// Gives everything back and waits until the store has heard of it, for some seconds at most.
    /// Whoever waits is told [`AcquireError::Closed`], whoever holds that it is lost. Dropping the
    /// last clone and lease does the same without waiting.
    pub async fn close(self) {
        let (done, ended) = oneshot::channel();
        if self.shared.commands.send(Command::Close { done }).is_ok() {
            // It may have been closed before.
            let _ = ended.await;
        }
    }
}

fn checked<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<Arc<[LeaseName]>, AcquireError> {
    let name = |text: &str| {
        LeaseName::new(text).map_err(|why| AcquireError::Name {
            text: text.to_owned(),
            why,
        })
    };
    let names: Result<Vec<LeaseName>, AcquireError> = names.into_iter().map(name).collect();
    let mut names = names?;
    names.sort();
    names.dedup();
    match names.len() {
        1..=NAMES_PER_HOLD_LIMIT => Ok(names.into()),
        other => Err(AcquireError::Names(other)),
    }
}

/// Somebody whose leases don't stand in each other's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Holder(Uuid);

impl Holder {
    /// As a text that another process can be given, to be let in again: see [`Holder::parse`].
    pub fn as_text(&self) -> String {
        self.0.to_string()
    }

    /// The holder of a text that [`Holder::as_text`] made; none for any other.
    pub fn parse(text: &str) -> Option<Self> {
        Uuid::try_parse(text).ok().map(Self)
    }
}

/// A lease in the making. It can be cloned and used again: each time it is another holder's, unless
/// one is named.
#[must_use = "nothing is asked for until it is acquired"]
#[derive(Clone, Debug)]
pub struct Acquisition {
    leases: Leases,
    names: Result<Arc<[LeaseName]>, AcquireError>,
    /// Somebody new each time, where nobody is named.
    owner: Option<Uuid>,
    mode: Mode,
    ttl: Duration,
}

impl Acquisition {
    /// Shared with all others who share it; who wants it alone waits for all of them.
    pub fn shared(mut self) -> Self {
        self.mode = Mode::Shared;
        self
    }

    /// How long it lasts if its holder vanishes: 1 s to 1 h, by default 15 s. It is renewed each
    /// sixth of that. All who want a name should use the same: after a loss of the store's data,
    /// who holds it has as long to come back as whoever notices it first allows.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Let in again where `holder` has it already, at once and before all who wait. All leases of
    /// one holder count by themselves: the name is free when the last of them is given back. Where
    /// all the names are held already, the token stays that of the holder; where some are not, or
    /// were only shared, it is a new one, above all others: what the holder writes by its first one
    /// afterwards is then refused by whatever has seen the second.
    pub fn held_by(mut self, holder: &Holder) -> Self {
        self.owner = Some(holder.0);
        self
    }

    /// Waits for it as long as it takes. Who comes first is first served, but that those who
    /// share go together. Dropping the future gives the place in line up.
    ///
    /// # Errors
    /// When it can't be waited for: see [`AcquireError`]. A store that is away is waited for.
    pub async fn acquire(self) -> Result<Lease, AcquireError> {
        self.ask(Patience::Endless).await
    }

    /// Waits for it for so long. Those who come behind need not hear that it was in vain: the store
    /// knows until when, and keeps its place no longer.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] when somebody else has it still, or came first; when it can't be
    /// waited for.
    pub async fn acquire_within(self, wait: Duration) -> Result<Lease, AcquireError> {
        let until = self.leases.shared.clock.boot() + wait;
        self.ask(Patience::Until(until)).await
    }

    /// Takes it, if it is free now and nobody waits for it.
    ///
    /// # Errors
    /// [`AcquireError::Busy`] when it is not; when the store is away.
    pub async fn try_acquire(self) -> Result<Lease, AcquireError> {
        self.ask(Patience::None).await
    }

    async fn ask(self, patience: Patience) -> Result<Lease, AcquireError> {
        if !(SHORTEST_TTL..=LONGEST_TTL).contains(&self.ttl) {
            return Err(AcquireError::Ttl(self.ttl));
        }
        let names = self.names.clone()?;
        let since = self.leases.shared.clock.boot();
        loop {
            let hold = Hold {
                // A new one each time: the release of one that came late may come late too.
                id: Uuid::new_v4(),
                owner: self.owner.unwrap_or_else(Uuid::new_v4),
                names: Arc::clone(&names),
                mode: self.mode,
                ttl: self.ttl,
            };
            match self.ask_once(hold, patience, since).await {
                Err(AcquireError::Late) => {}
                other => return other,
            }
        }
    }

    async fn ask_once(
        &self,
        hold: Hold,
        patience: Patience,
        since: BootTime,
    ) -> Result<Lease, AcquireError> {
        let (answer, answered) = oneshot::channel();
        let mut given_up = GivenUp {
            leases: &self.leases,
            id: Some(hold.id),
        };
        let asked = Command::Acquire {
            hold: hold.clone(),
            patience,
            since,
            answer,
        };
        let sent = self.leases.shared.commands.send(asked);
        sent.map_err(|_| AcquireError::Closed)?;
        let answer = answered.await;
        given_up.id = None;
        let Grant { granted, standing } = answer.map_err(|_| AcquireError::Closed)??;
        Ok(Lease {
            leases: self.leases.clone(),
            hold,
            token: granted.token,
            standing,
            released: false,
        })
    }
}

/// Gives up what is waited for when the future is dropped.
struct GivenUp<'l> {
    leases: &'l Leases,
    id: Option<Uuid>,
}

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.leases.release(id, None);
        }
    }
}

impl Leases {
    fn closed(&self) -> StoreError {
        StoreError::Refused {
            place: self.shared.place.clone(),
            cause: "this client of leases was shut down".to_owned(),
            cure: "open another one".to_owned(),
        }
    }

    fn release(&self, id: Uuid, done: Option<oneshot::Sender<()>>) {
        // A task that is gone has given back all that there was.
        let _ = self.shared.commands.send(Command::Release { id, done });
    }
}

/// A lease that is held, and renewed in the background. Dropping it gives it back, without waiting
/// for the store to hear of it.
#[must_use = "a lease that is dropped is given back"]
pub struct Lease {
    leases: Leases,
    hold: Hold,
    token: FencingToken,
    standing: watch::Receiver<Standing>,
    released: bool,
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("names", &self.hold.names)
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}

impl Lease {
    /// Its fencing token: it rises at every grant, for ever. Whoever writes under the lease sends
    /// it along, and whatever is written to refuses a lower one than it has seen
    /// (Kleppmann, "How to do distributed locking", 2016).
    pub fn token(&self) -> FencingToken {
        self.token
    }

    /// What it is of, in order.
    pub fn names(&self) -> &[LeaseName] {
        &self.hold.names
    }

    /// Who holds it: [`Acquisition::held_by`] is let in again beside it.
    pub fn holder(&self) -> Holder {
        Holder(self.hold.owner)
    }

    /// For how long it may be used still if it is not renewed any more; zero when it is lost. It is
    /// less than others are kept out for.
    pub fn remaining(&self) -> Duration {
        let standing = *self.standing.borrow();
        match standing.lost {
            true => Duration::ZERO,
            false => {
                let now = self.leases.shared.clock.boot();
                standing.trust.until.saturating_since(now)
            }
        }
    }

    /// Asks whether it may still be used, before a write. Goes by this host's clock, and asks
    /// nobody: a host that stands still between this and the write has the token alone.
    ///
    /// # Errors
    /// When it may not.
    pub fn check(&self) -> Result<(), LeaseLost> {
        match self.remaining().is_zero() {
            true => Err(LeaseLost(Arc::clone(&self.hold.names))),
            false => Ok(()),
        }
    }

    /// Completes when it is not to be used any more: it could not be renewed in time, or the store
    /// says that it is somebody else's. That is before anybody else may have it, by the time that
    /// a process takes to be killed (a tenth of the TTL, at most 1 s).
    pub async fn lost(&self) {
        let mut standing = self.standing.clone();
        // A task that is gone renews nothing.
        let _ = standing.wait_for(|standing| standing.lost).await;
    }

    /// Gives it back and waits until the store has heard of it, for some seconds at most: a store
    /// that is away lets it run out.
    pub async fn release(mut self) {
        self.released = true;
        let (done, ended) = oneshot::channel();
        self.leases.release(self.hold.id, Some(done));
        // A task that is gone has given it back.
        let _ = ended.await;
    }

    #[cfg(feature = "daemon")]
    /// Until when it is trusted, and each later instant as it is renewed; none once it is lost.
    pub(crate) fn trusted_until(&self) -> Option<BootTime> {
        let standing = *self.standing.borrow();
        (!standing.lost).then_some(standing.trust.until)
    }

    #[cfg(feature = "daemon")]
    /// Completes when it was renewed, or lost, since the last time.
    pub(crate) async fn changed(&mut self) {
        // A task that is gone renews nothing.
        if self.standing.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.released {
            self.leases.release(self.hold.id, None);
        }
    }
}
