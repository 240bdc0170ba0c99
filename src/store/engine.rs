//! What an engine has to bring, and the one [`Store`] that is made of any of them.
//!
//! An engine keeps records as opaque texts beside an index of when somebody should look at
//! them (the *agenda*), appends lines, and carries out steps: each reads some records, and what
//! it decides is written all or nothing. What is decided stands in [`super::rules`], once for
//! all engines; [`batch`] is the way there.
//!
//! Must never: decide, or let an engine do so.

use async_trait::async_trait;
use tokio::sync::broadcast;

use super::draft::{Draft, Fault};
use super::limits::check_batch;
use super::rules::{Call, Group, Life, Record};
use super::shown::{peers, shown, untold};
use super::{
    ABANDONED_AFTER, Answered, AttemptRecord, Caller, Enrolment, OVERDUE_LIMIT, Observation, Order,
    OrderAnswer, Registration, ReplicaInfo, ReplicaState, SCOPE_ALL_LIMIT, Scope, Snapshot, Store,
    StoreCondition, StoreError, StoreEvent, batch,
};
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{
    BATCH_LIMIT, Claim, ClaimAnswer, Delivery, Dependent, JobDigests, Output, PublishedTable,
    Release, ReleaseAnswer, Renewal, RenewalAnswer, Replica, RunId,
};
use crate::scheduler::time::Timestamp;

/// Which of the ledgers of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// That of the jobs: of what became of each occurrence.
    Jobs,
    /// That of named leases.
    Leases,
}

/// The conditions of a step.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    /// The jobs whose records it touches.
    pub(super) jobs: Vec<JobName>,
    /// By the store's clock: decided before this, it is not written after it, but decided anew.
    pub(super) send_by: Option<Timestamp>,
    pub(super) room: Room,
}

/// What a step is to a store that has no room left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// It is refused as a whole before anything is written.
    Takes,
    /// It goes through: it writes over what is there, or frees more than it takes.
    Frees,
    /// The same, and nothing hangs on it: what leases hang on is not to wait for it.
    Tidies,
}

/// What an observer sees, at one moment.
#[derive(Clone, Debug)]
pub(super) struct Look {
    /// The store's clock, in microseconds since the Unix epoch.
    pub(super) clock_us: i64,
    pub(super) life: Life,
    pub(super) group: Group,
    /// Records in the order of their agenda.
    pub(super) records: Vec<(JobName, Record)>,
    /// The next instant on the agenda that is to come.
    pub(super) next: Option<Timestamp>,
    /// All that were heard of in the last day, the caller among them.
    pub(super) replicas: Vec<ReplicaState>,
    /// The digests of the tables that are kept.
    pub(super) published: Vec<String>,
}

/// Everything, for people.
#[derive(Clone, Debug)]
pub(super) struct Survey {
    pub(super) now: Timestamp,
    pub(super) group: Group,
    pub(super) conditions: Vec<StoreCondition>,
    pub(super) records: Vec<(JobName, Record)>,
    pub(super) replicas: Vec<ReplicaState>,
    /// The tables that are kept, each by its digest.
    pub(super) tables: Vec<(String, String)>,
}

/// The part of the agenda that an observation shows: (`after`, `until`], at most `limit`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) after: Timestamp,
    pub(super) until: Timestamp,
    pub(super) limit: usize,
}

/// Later than anything.
pub(super) const FOR_EVER: Timestamp = Timestamp::from_millis(i64::MAX);

impl Window {
    pub(super) fn of(scope: Scope, now: Timestamp) -> Self {
        let (after, until, limit) = match scope {
            Scope::Overdue => (now - ABANDONED_AFTER, now, OVERDUE_LIMIT),
            // Who has watched nothing yet has to hear of what stands in a job's way, however long
            // its holder has been gone.
            Scope::All => (Timestamp::from_millis(i64::MIN), FOR_EVER, SCOPE_ALL_LIMIT),
        };
        Self {
            after,
            until,
            limit,
        }
    }

    /// What is to come next.
    pub(super) fn next(now: Timestamp) -> Self {
        Self {
            after: now,
            until: FOR_EVER,
            limit: 1,
        }
    }
}

/// How many jobs one step forgets at most: each may have a thousand lines, and other steps wait
/// meanwhile.
const FORGOTTEN_AT_ONCE: usize = 8;

/// What keeps records. See the module; the methods without a word are [`Store`]'s.
#[async_trait]
pub(super) trait Engine: Send + Sync + 'static {
    fn place(&self) -> String;

    async fn ready(&self) -> Result<(), StoreError>;

    /// Takes a step atomically. `step` may be called several times; the last answer counts.
    async fn transact<R, S>(&self, terms: Terms, step: S) -> Result<R, StoreError>
    where
        R: Send + 'static,
        S: FnMut(&mut Draft<'_>) -> Result<R, Fault> + Send + 'static;

    /// Lists the caller as living, forgets replicas that were not heard of for long, and tables
    /// that no listed replica names, and shows the agenda.
    async fn look(
        &self,
        caller: &Caller,
        info: &ReplicaInfo,
        scope: Scope,
    ) -> Result<Look, StoreError>;

    /// The jobs of which it has a record.
    async fn names(&self) -> Result<Vec<JobName>, StoreError>;

    /// Keeps a table by its digest: an opaque text, on which no lease hangs.
    async fn keep_table(&self, digest: &str, text: &str) -> Result<(), StoreError>;

    async fn table(&self, digest: &str) -> Result<Option<String>, StoreError>;

    /// Takes a replica off the list.
    async fn strike_off(&self, replica: &Replica) -> Result<(), StoreError>;

    async fn survey(&self) -> Result<Survey, StoreError>;

    async fn history(
        &self,
        job: Option<&JobName>,
        limit: usize,
    ) -> Result<Vec<AttemptRecord>, StoreError>;

    async fn output(&self, job: &JobName, run_id: RunId) -> Result<Option<Output>, StoreError>;

    fn events(&self) -> broadcast::Receiver<StoreEvent>;
}

/// As it is kept. Names and digests always make a text.
fn text_of(table: &PublishedTable) -> String {
    serde_json::to_string(&table.jobs).unwrap_or_default()
}

/// What a request is about: its job, the shard, and the jobs that come after.
type Subject<'a> = (&'a JobName, u32, &'a [Dependent]);

/// The conditions of a batch of requests, which every engine holds it to before any of it.
fn terms<'a>(
    engine: &impl Engine,
    subjects: impl Iterator<Item = Subject<'a>> + Clone,
    room: Room,
) -> Result<Terms, StoreError> {
    let shards = subjects.clone().map(|(job, shard, _)| (job, shard));
    check_batch(&Engine::place(engine), shards)?;
    let jobs = subjects.map(|(job, _, dependents)| (job, dependents));
    Ok(Terms {
        jobs: batch::touched(jobs),
        send_by: None,
        room,
    })
}

#[async_trait]
impl<E: Engine> Store for E {
    fn place(&self) -> String {
        Engine::place(self)
    }

    async fn ready(&self) -> Result<(), StoreError> {
        Engine::ready(self).await
    }

    async fn register(
        &self,
        caller: &Caller,
        jobs: &[Enrolment],
    ) -> Result<Answered<Vec<Registration>>, StoreError> {
        let subjects = jobs.iter().map(|one| (&one.job, 0, &[][..]));
        let terms = terms(self, subjects, Room::Takes)?;
        let (caller, jobs) = (caller.clone(), jobs.to_vec());
        self.transact(terms, move |draft| batch::register(draft, &caller, &jobs))
            .await
    }

    async fn claim(
        &self,
        caller: &Caller,
        claims: &[Claim],
    ) -> Result<Answered<Vec<ClaimAnswer>>, StoreError> {
        let subjects = claims.iter().map(|claim| {
            let dependents = &*claim.dependents;
            (&claim.occurrence.job, claim.shard, dependents)
        });
        let terms = Terms {
            send_by: caller.send_by,
            ..terms(self, subjects, Room::Takes)?
        };
        let (caller, claims) = (caller.clone(), claims.to_vec());
        self.transact(terms, move |draft| {
            let answered = batch::claim(draft, &caller, &claims)?;
            let granted = |answer: &ClaimAnswer| matches!(answer, ClaimAnswer::Granted(_));
            if answered.answer.iter().any(granted) {
                draft.promise();
            }
            Ok(answered)
        })
        .await
    }

    async fn renew(
        &self,
        caller: &Caller,
        renewals: &[Renewal],
    ) -> Result<Answered<Vec<RenewalAnswer>>, StoreError> {
        let subjects = renewals
            .iter()
            .map(|renewal| (&renewal.occurrence.job, renewal.shard, &[][..]));
        let terms = terms(self, subjects, Room::Frees)?;
        let (caller, renewals) = (caller.clone(), renewals.to_vec());
        self.transact(terms, move |draft| {
            draft.promise();
            batch::renew(draft, &caller, &renewals)
        })
        .await
    }

    async fn release(
        &self,
        caller: &Caller,
        releases: &[Release],
    ) -> Result<Answered<Vec<ReleaseAnswer>>, StoreError> {
        let subjects = releases.iter().map(|release| {
            let dependents = &*release.dependents;
            (&release.occurrence.job, release.shard, dependents)
        });
        let terms = terms(self, subjects, Room::Frees)?;
        let (caller, releases) = (caller.clone(), releases.to_vec());
        self.transact(terms, move |draft| {
            draft.promise();
            batch::release(draft, &caller, &releases)
        })
        .await
    }

    async fn order(
        &self,
        caller: &Caller,
        orders: &[Order],
    ) -> Result<Answered<Vec<OrderAnswer>>, StoreError> {
        let subjects = orders
            .iter()
            .map(|order| (&order.job, 0, &*order.dependents));
        let terms = terms(self, subjects, Room::Takes)?;
        let (caller, orders) = (caller.clone(), orders.to_vec());
        self.transact(terms, move |draft| {
            draft.promise();
            batch::order(draft, &caller, &orders)
        })
        .await
    }

    async fn deliver(
        &self,
        caller: &Caller,
        deliveries: &[Delivery],
    ) -> Result<Answered<Vec<bool>>, StoreError> {
        let subjects = deliveries.iter().map(|one| (&one.job, 0, &[][..]));
        let terms = terms(self, subjects, Room::Frees)?;
        let (caller, deliveries) = (caller.clone(), deliveries.to_vec());
        self.transact(terms, move |draft| {
            batch::deliver(draft, &caller, &deliveries)
        })
        .await
    }

    async fn observe(
        &self,
        caller: &Caller,
        info: &ReplicaInfo,
        scope: Scope,
    ) -> Result<Answered<Observation>, StoreError> {
        let look = self.look(caller, info, scope).await?;
        let mut group = look.group.clone();
        let call = Call::begin(&mut group, caller, look.clock_us, &look.life);
        let (now, mut grace) = (call.now(), call.grace());
        // A grace window begins with whoever notices its cause; one that only observes would
        // otherwise see it begin anew each time.
        if group != look.group {
            let terms = terms(self, std::iter::empty(), Room::Frees)?;
            let caller = caller.clone();
            let entered = self.transact(terms, move |draft| Ok(batch::enter(draft, &caller)));
            (grace, group) = entered.await?;
        }
        let (leases, openings) = shown(&look.records, scope, now);
        let untold = untold(&look.records, now);
        // What a record has to wait for behind what is due in it now: whoever sees to that writes it
        // anew, and nobody else would hear of it.
        let behind = look.records.iter();
        let behind = behind.filter_map(|(_, record)| record.next_instant(now));
        let next_look = behind.chain(look.next).min();
        let answer = Observation {
            leases,
            openings,
            untold,
            next_look,
            peers: peers(look.replicas.iter(), now),
            grace,
            token: group.token,
            born: group.born,
            tables: group.tables,
            published: look.published,
        };
        Ok(Answered::new(now, answer))
    }

    async fn publish(
        &self,
        caller: &Caller,
        table: &PublishedTable,
    ) -> Result<Answered<()>, StoreError> {
        let text = text_of(table);
        self.keep_table(&table.table.digest, &text).await?;
        // After that, as others look when they hear of it.
        let terms = terms(self, std::iter::empty(), Room::Takes)?;
        let (caller, table) = (caller.clone(), table.table.clone());
        self.transact(terms, move |draft| {
            Ok(batch::note_table(draft, &caller, &table))
        })
        .await
    }

    async fn table(&self, digest: &str) -> Result<Option<JobDigests>, StoreError> {
        let text = Engine::table(self, digest).await?;
        // What another version wrote is as good as nothing.
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    async fn depart(&self, caller: &Caller) -> Result<(), StoreError> {
        self.strike_off(&caller.replica).await?;
        // What it alone could run others may now.
        let terms = terms(self, std::iter::empty(), Room::Frees)?;
        let tell = |draft: &mut Draft<'_>| {
            draft.announce(StoreEvent::Opening);
            Ok(())
        };
        self.transact(terms, tell).await
    }

    async fn sweep(&self, caller: &Caller) -> Result<Answered<Vec<JobName>>, StoreError> {
        let mut jobs = self.names().await?;
        jobs.sort();
        let (mut forgotten, mut rest) = (Vec::new(), &jobs[..]);
        loop {
            let some = &rest[..rest.len().min(BATCH_LIMIT)];
            let terms = Terms {
                jobs: some.to_vec(),
                send_by: None,
                room: Room::Tidies,
            };
            let (caller, some) = (caller.clone(), some.to_vec());
            let step =
                move |draft: &mut Draft<'_>| batch::sweep(draft, &caller, &some, FORGOTTEN_AT_ONCE);
            let Answered { now, answer, .. } = self.transact(terms, step).await?;
            // As many as are forgotten at once: there may be more of them among these.
            if answer.len() < FORGOTTEN_AT_ONCE {
                rest = &rest[rest.len().min(BATCH_LIMIT)..];
            }
            forgotten.extend(answer);
            if rest.is_empty() {
                return Ok(Answered::new(now, forgotten));
            }
        }
    }

    async fn snapshot(&self) -> Result<Answered<Snapshot>, StoreError> {
        let mut survey = self.survey().await?;
        survey.records.sort_by(|a, b| a.0.cmp(&b.0));
        survey
            .replicas
            .sort_by(|a, b| (&a.replica.name, a.replica.id).cmp(&(&b.replica.name, b.replica.id)));
        let jobs = survey.records.iter();
        let Group {
            grace_until,
            born,
            tables: lineage,
            ..
        } = survey.group;
        let tables = survey.tables.into_iter();
        let read =
            |(digest, text): (String, String)| Some((digest, serde_json::from_str(&text).ok()?));
        let answer = Snapshot {
            grace: grace_until.saturating_since(survey.now),
            born: (born > Timestamp::default()).then_some(born),
            conditions: survey.conditions,
            jobs: jobs.map(|(job, record)| record.to_state(job)).collect(),
            replicas: survey.replicas,
            tables: tables.filter_map(read).collect(),
            lineage,
        };
        Ok(Answered::new(survey.now, answer))
    }

    async fn history(
        &self,
        job: Option<&JobName>,
        limit: usize,
    ) -> Result<Vec<AttemptRecord>, StoreError> {
        Engine::history(self, job, limit).await
    }

    async fn output(&self, job: &JobName, run_id: RunId) -> Result<Option<Output>, StoreError> {
        Engine::output(self, job, run_id).await
    }

    fn events(&self) -> broadcast::Receiver<StoreEvent> {
        Engine::events(self)
    }
}
