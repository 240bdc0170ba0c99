//! The store in a majority of independent servers: what `redis+quorum://` opens.
//!
//! Each server holds the whole ledger. A step is decided once, by whoever asks for it, on what a
//! majority holds, and counts when a majority has taken it:
//!
//! ```text
//!  prepare: promise my ballot, show ─▶ all ─▶ a majority ─▶ what has the newest step
//!                                                              │ decide, as for one server
//!  accept: take this step after that one, as promised ─▶ all ─▶ a majority: it counts
//!                   │ outbid: again, with a higher ballot          │
//!                   └──────────────────────────────────            └─▶ the others adopt the whole
//! ```
//!
//! This is Paxos over a state (Lamport, "Paxos Made Simple", 2001; Rystsov, "CASPaxos", 2018): a
//! ballot that a majority has promised shuts out all older ones, and who has it goes on from the
//! newest step that anybody of a majority has taken. As no step can be taken after another one
//! than that, it makes the ledger one line of steps, whoever dies on the way. What the critics of
//! Redlock ask for (Kleppmann, 2016) follows: tokens rise as the ledger is one, a server that was
//! started again counts only when it has caught up with the others ([`forming`]), time is the
//! median of the servers' clocks, and who holds a lease counts from before it asked.
//!
//! Must never: answer what a majority does not hold, or let a server count that may have
//! forgotten.

mod adopting;
mod forming;
mod news;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{Mutex, broadcast, mpsc};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use self::forming::{Formed, Unformed, View, ballot, form, majority, median};
use super::RedisStore;
use super::back_off::BackOff;
use super::connector::{Login, Nodes};
use super::fault::Fault;
use super::reply::{self, Standing};
use super::request;
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{Output, Replica, RunId};
use crate::store::draft::{self, Changes, Draft, Reading};
use crate::store::engine::{Engine, Look, Survey, Terms};
use crate::store::rules::Life;
use crate::store::{
    AttemptRecord, Caller, EVENT_CAPACITY, ReplicaInfo, ReplicaState, Scope, StoreError, StoreEvent,
};
use crate::store_url::{SeveralUrl, StoreOptions, redact};

/// How often a step is begun anew where others outbid it.
const ROUNDS: u32 = 250;
/// How long a step may take with all that.
const STEP_TIMEOUT: Duration = Duration::from_millis(2500);
/// How long it pauses before that: about as long as a step takes, and longer each time, so that
/// of many who outbid each other one gets through.
const FIRST_PAUSE: Duration = Duration::from_millis(4);
const LONGEST_PAUSE: Duration = Duration::from_millis(15);
/// Asks for no promise.
const NO_BALLOT: &str = "?";
/// How long those who are slower than a majority are waited for, at least.
const LINGER: Duration = Duration::from_millis(10);

/// A store in several Redis or Valkey servers that know nothing of each other.
pub struct QuorumStore {
    shared: Arc<Shared>,
    events: broadcast::Sender<StoreEvent>,
    news: OnceLock<AbortHandle>,
    to_mend: mpsc::Sender<usize>,
}

struct Shared {
    place: String,
    members: Vec<Arc<RedisStore>>,
    /// In ballots.
    proposer: Uuid,
    /// The highest number of a ballot that was seen.
    number: AtomicU64,
    /// Steps of one process wait for each other: begun together, each would outbid the others.
    turn: Mutex<()>,
}

/// Why a round came to nothing.
enum Ended {
    /// Another one got ahead of it, or may have.
    Outbid,
    Failed(StoreError),
}

impl QuorumStore {
    /// The store in the servers that `url` names, under keys of `namespace`. Nothing is connected
    /// yet.
    ///
    /// # Errors
    /// [`StoreError::BadUrl`] when the URL, the namespace, or a file for TLS can't be one.
    pub fn open(url: &str, namespace: &str, options: &StoreOptions) -> Result<Self, StoreError> {
        let bad = |cause: String| StoreError::BadUrl {
            url: redact(url),
            cause,
        };
        let parsed = SeveralUrl::parse(url);
        let parsed = parsed.map_err(|error| bad(format!("{error}; {}", error.hint())))?;
        let place = parsed.to_string();
        let nodes = Nodes {
            place: place.clone(),
            tls: parsed.tls.then(|| options.tls.clone()),
            login: Login {
                user: parsed.user,
                password: parsed.password,
                db: parsed.db,
            },
        };
        let member = |(host, port): &(String, u16)| {
            let server = nodes.server(host, *port).map_err(|fault| fault.error)?;
            RedisStore::reached_by(Arc::new(server), namespace, 0)
        };
        let members: Result<Vec<RedisStore>, StoreError> =
            parsed.hosts.iter().map(member).collect();
        Ok(Self::new(place, members?))
    }

    /// The store in these servers.
    fn new(place: String, members: Vec<RedisStore>) -> Self {
        let shared = Arc::new(Shared {
            place,
            members: members.into_iter().map(Arc::new).collect(),
            proposer: Uuid::new_v4(),
            number: AtomicU64::new(0),
            turn: Mutex::new(()),
        });
        let (to_mend, mending) = mpsc::channel(16);
        if tokio::runtime::Handle::try_current().is_ok() {
            tokio::spawn(adopting::mend(Arc::downgrade(&shared), mending));
        }
        Self {
            shared,
            events: broadcast::Sender::new(EVENT_CAPACITY),
            news: OnceLock::new(),
            to_mend,
        }
    }

    /// Has those who are behind catch up.
    fn mend(&self, members: impl IntoIterator<Item = usize>) {
        for member in members {
            // One that is waiting already need not wait twice.
            let _ = self.to_mend.try_send(member);
        }
    }

    async fn take<R, S>(&self, terms: &Terms, step: &mut S) -> Result<R, Ended>
    where
        R: Send + 'static,
        S: FnMut(&mut Draft<'_>) -> Result<R, draft::Fault> + Send + 'static,
    {
        let shared = &self.shared;
        // Most who ask are told that somebody was faster, for which nobody has to promise anything.
        let round = shared.look_in(terms).await?;
        let (answer, changes) = shared.decide(&round, step)?;
        if changes.is_empty() && round.is_settled(shared.members.len()) {
            self.mend(round.behind());
            return Ok(answer);
        }
        let round = shared.prepare(terms).await?;
        let (answer, changes) = shared.decide(&round, step)?;
        shared.accept(terms, &round, changes).await?;
        self.mend(round.behind());
        Ok(answer)
    }
}

/// A ballot that a majority has promised.
struct Round {
    ballot: String,
    views: Vec<View>,
    formed: Formed,
    reading: Reading,
}

impl Round {
    /// A majority has taken the last step, and is known to count: nothing has to be written for
    /// an answer to hold.
    fn is_settled(&self, all: usize) -> bool {
        !self.formed.after_loss && self.formed.newest(&self.views).count() >= majority(all)
    }

    /// Who answered and does not have the last step.
    fn behind(&self) -> Vec<usize> {
        let newest: Vec<usize> = self.formed.newest(&self.views).collect();
        let views = self.views.iter().enumerate();
        views
            .filter(|(at, _)| !newest.contains(at))
            .map(|(_, view)| view.number)
            .collect()
    }
}

impl Shared {
    fn next_ballot(&self) -> String {
        let number = self.number.fetch_add(1, Ordering::Relaxed) + 1;
        ballot(number, self.proposer)
    }

    fn outbid(&self, number: u64) -> Ended {
        self.number.fetch_max(number, Ordering::Relaxed);
        Ended::Outbid
    }

    fn decide<R, S>(&self, round: &Round, step: &mut S) -> Result<(R, Changes), Ended>
    where
        S: FnMut(&mut Draft<'_>) -> Result<R, draft::Fault>,
    {
        let mut draft = Draft::of(&round.reading);
        let answer = step(&mut draft).map_err(|fault| Ended::Failed(fault.at(&self.place)))?;
        Ok((answer, draft.finish()))
    }

    /// Asks one server how things are, and for its promise.
    fn ask(
        &self,
        number: usize,
        ballot: &str,
        terms: &Terms,
    ) -> impl Future<Output = Result<View, Fault>> + Send + 'static {
        let member = Arc::clone(&self.members[number]);
        let request = request::prepare(&member.keys, &terms.jobs, ballot);
        let (jobs, room) = (terms.jobs.clone(), terms.room);
        async move {
            let reply = member.link(room).run(request).await?;
            let read = reply::prepared(&reply, &jobs);
            let (shown, standing) =
                read.map_err(|misread| Fault::misread(&member.place, &misread))?;
            Ok(View {
                number,
                shown,
                standing,
            })
        }
    }

    /// How things are, without a promise.
    async fn look_in(&self, terms: &Terms) -> Result<Round, Ended> {
        let all = self.members.len();
        let asked = (0..all).map(|number| self.ask(number, NO_BALLOT, terms));
        let enough = |views: &[View]| form(&Vec::from_iter(views), all).is_ok();
        let (views, faults) = gather(asked, enough).await;
        self.round(String::new(), views, faults)
    }

    /// Asks all for a promise, until a majority has given it.
    async fn prepare(&self, terms: &Terms) -> Result<Round, Ended> {
        let ballot = self.next_ballot();
        let all = self.members.len();
        // The first that answers is asked alone: of many who come at once one gets its promise, and
        // not each that of another server.
        let (mut views, mut faults) = (Vec::new(), Vec::new());
        let mut others = 0..all;
        for number in others.by_ref() {
            let asked = std::iter::once(self.ask(number, &ballot, terms));
            let (view, fault) = gather(asked, |_| false).await;
            views.extend(view);
            faults.extend(fault);
            if let Some(View { standing, .. }) = views.first() {
                if !standing.granted {
                    return Err(self.outbid(forming::number_of(&standing.promised)));
                }
                break;
            }
        }
        let enough = |more: &[View]| form(&Vec::from_iter(views.iter().chain(more)), all).is_ok();
        let asked = others.map(|number| self.ask(number, &ballot, terms));
        let (more, failed) = gather(asked, enough).await;
        views.extend(more);
        faults.extend(failed);
        self.round(ballot, views, faults)
    }

    fn round(&self, ballot: String, views: Vec<View>, faults: Vec<Fault>) -> Result<Round, Ended> {
        let all = self.members.len();
        let seen = views
            .iter()
            .map(|view| forming::number_of(&view.standing.promised));
        self.number
            .fetch_max(seen.max().unwrap_or(0), Ordering::Relaxed);
        let formed = match form(&Vec::from_iter(&views), all) {
            Ok(formed) => formed,
            Err(Unformed::Outbid(number)) => {
                self.give_back(&views);
                return Err(self.outbid(number));
            }
            Err(Unformed::TooFew { answered, counted }) => {
                return Err(Ended::Failed(self.too_few(answered, counted, faults)));
            }
        };
        let newest = formed.newest(&views).next();
        let newest = newest.ok_or(Ended::Outbid)?;
        let clocks = formed
            .counted
            .iter()
            .map(|at| views[*at].shown.reading.clock_us);
        let reading = Reading {
            clock_us: median(clocks.collect()),
            life: match formed.after_loss {
                true => Life::AfterLoss,
                false => Life::Steady,
            },
            ..views[newest].shown.reading.clone()
        };
        Ok(Round {
            ballot,
            views,
            formed,
            reading,
        })
    }

    /// Lets others have what was promised in vain, at once.
    fn give_back(&self, views: &[View]) {
        for view in views.iter().filter(|view| view.standing.granted) {
            let member = Arc::clone(&self.members[view.number]);
            tokio::spawn(async move {
                let mut commands = redis::pipe();
                let field = commands.cmd("HSET").arg(&member.keys.jobs);
                field.arg("#promised_us").arg("0");
                // Else it lapses by itself.
                let _ = member.keeping.send(commands).await;
            });
        }
    }

    fn too_few(&self, answered: usize, counted: usize, faults: Vec<Fault>) -> StoreError {
        let all = self.members.len();
        let needed = majority(all);
        let first = faults
            .into_iter()
            .next()
            .map(|fault| fault.error.to_string());
        let first = first.map_or(String::new(), |error| format!(" ({error})"));
        let cause = match answered < needed {
            true => format!("{answered} of {all} servers answer, and {needed} have to{first}"),
            false => format!(
                "of {all} servers {counted} have the ledger, and {needed} have to, or all have to answer: bring the others back{first}"
            ),
        };
        Fault::unreachable(&self.place, cause).error
    }

    /// Has a majority take a step.
    async fn accept(&self, terms: &Terms, round: &Round, changes: Changes) -> Result<(), Ended> {
        let all = self.members.len();
        let newest: Vec<usize> = round.formed.newest(&round.views).collect();
        if newest.len() < majority(all) {
            // They are behind, and who is up to date alone is no majority.
            let source = *newest.first().ok_or(Ended::Outbid)?;
            let others = round
                .formed
                .counted
                .iter()
                .filter(|at| !newest.contains(at));
            for other in others {
                let (from, to) = (round.views[source].number, round.views[*other].number);
                let done = adopting::adopt(self, from, to, &round.formed.ballot, &round.ballot);
                // Whoever can't is no part of the majority.
                let _ = done.await;
            }
        }
        let changes = Arc::new(changes);
        let ask = |at: &usize| {
            let view = &round.views[*at];
            let member = Arc::clone(&self.members[view.number]);
            let terms = Terms {
                // By that server's own clock.
                send_by: terms.send_by.map(|limit| {
                    let ahead_us = view.shown.reading.clock_us - round.reading.clock_us;
                    let ahead = ahead_us.div_euclid(1000);
                    crate::scheduler::time::Timestamp::from_millis(limit.as_millis() + ahead)
                }),
                ..terms.clone()
            };
            let ballots = [round.formed.ballot.as_str(), round.ballot.as_str()];
            let mut shown = view.shown.as_written();
            shown.reading = Reading {
                clock_us: shown.reading.clock_us,
                ..round.reading.clone()
            };
            let request = request::accept(&member.keys, &terms, &shown, &changes, ballots);
            async move {
                let reply = member.link(terms.room).run(request).await?;
                Ok(reply::taken(&reply))
            }
        };
        let enough = |taken: &[bool]| taken.iter().filter(|taken| **taken).count() >= majority(all);
        let (taken, faults) = gather(round.formed.counted.iter().map(ask), enough).await;
        if enough(&taken) {
            return Ok(());
        }
        match faults
            .into_iter()
            .find(|fault| fault.denied || !fault.disconnect)
        {
            Some(fault) if taken.iter().all(|taken| !taken) => Err(Ended::Failed(fault.error)),
            _ => Err(Ended::Outbid),
        }
    }
}

/// Collects answers until there are enough, and for a moment longer. Those who are slower go on:
/// what they were asked to do they shall do.
async fn gather<T, F>(
    asked: impl Iterator<Item = F>,
    enough: impl Fn(&[T]) -> bool,
) -> (Vec<T>, Vec<Fault>)
where
    T: Send + 'static,
    F: Future<Output = Result<T, Fault>> + Send + 'static,
{
    let began = Instant::now();
    let mut waiting: FuturesUnordered<_> = asked.map(tokio::spawn).collect();
    let (mut answers, mut faults) = (Vec::new(), Vec::new());
    let mut until = None;
    loop {
        let next = match until {
            None => Ok(waiting.next().await),
            Some(until) => timeout_at(until, waiting.next()).await,
        };
        match next {
            Err(_) | Ok(None) => return (answers, faults),
            Ok(Some(Ok(Ok(answer)))) => answers.push(answer),
            Ok(Some(Ok(Err(fault)))) => faults.push(fault),
            // It panicked, which is told by the runtime.
            Ok(Some(Err(_))) => {}
        }
        if until.is_none() && enough(&answers) {
            until = Some(Instant::now() + LINGER.max(began.elapsed()));
        }
    }
}

#[async_trait]
impl Engine for QuorumStore {
    fn place(&self) -> String {
        self.shared.place.clone()
    }

    async fn ready(&self) -> Result<(), StoreError> {
        let members = self.shared.members.iter().map(|member| {
            let member = Arc::clone(member);
            async move { Ok(Engine::ready(&*member).await) }
        });
        let enough = |_: &[Result<(), StoreError>]| false;
        let (answers, _) = gather(members, enough).await;
        let all = self.shared.members.len();
        let well = answers.iter().filter(|answer| answer.is_ok()).count();
        let error = answers.into_iter().find_map(Result::err);
        match error {
            Some(error) if well < majority(all) => Err(error),
            Some(error) => {
                let store = &self.shared.place;
                tracing::warn!(store, %error, "{well} of {all} servers answer, which is enough");
                Ok(())
            }
            None => Ok(()),
        }
    }

    async fn transact<R, S>(&self, terms: Terms, mut step: S) -> Result<R, StoreError>
    where
        R: Send + 'static,
        S: FnMut(&mut Draft<'_>) -> Result<R, draft::Fault> + Send + 'static,
    {
        let _turn = self.shared.turn.lock().await;
        let deadline = Instant::now() + STEP_TIMEOUT;
        let mut back_off = BackOff::new(FIRST_PAUSE, LONGEST_PAUSE);
        for _ in 0..ROUNDS {
            match self.take(&terms, &mut step).await {
                Ok(answer) => return Ok(answer),
                Err(Ended::Failed(error)) => return Err(error),
                Err(Ended::Outbid) if Instant::now() > deadline => break,
                Err(Ended::Outbid) => tokio::time::sleep(back_off.pause()).await,
            }
        }
        let cause = "others kept getting ahead of it";
        Err(Fault::unreachable(&self.shared.place, cause).error)
    }

    async fn look(
        &self,
        caller: &Caller,
        info: &ReplicaInfo,
        scope: Scope,
    ) -> Result<Look, StoreError> {
        let shared = &self.shared;
        let all = shared.members.len();
        let ask = |member: &Arc<RedisStore>| {
            let member = Arc::clone(member);
            let (caller, info) = (caller.clone(), info.clone());
            async move {
                let stood = member.standing().await?;
                let request = request::observe(&member.keys, &caller, &info, scope);
                let reply = member.asking.run(request).await?;
                let look = reply::look(&reply);
                let look = look.map_err(|misread| Fault::misread(&member.place, &misread))?;
                Ok((stood, look))
            }
        };
        let enough = |looks: &[(Standing, Look)]| looks.len() >= majority(all);
        let (looks, faults) = gather(shared.members.iter().map(ask), enough).await;
        if looks.len() < majority(all) {
            return Err(shared.too_few(looks.len(), looks.len(), faults));
        }
        let clocks = looks.iter().map(|(_, look)| look.clock_us).collect();
        let replicas = together(looks.iter().map(|(_, look)| &look.replicas));
        let newest = looks
            .into_iter()
            .max_by(|(one, _), (other, _)| one.ballot.cmp(&other.ballot));
        let Some((stood, newest)) = newest else {
            return Err(shared.too_few(0, 0, Vec::new()));
        };
        Ok(Look {
            clock_us: median(clocks),
            // A ledger that nobody has written yet begins with a step.
            life: match stood.ballot.is_empty() {
                true => Life::AfterLoss,
                false => Life::Steady,
            },
            replicas,
            ..newest
        })
    }

    async fn strike_off(&self, replica: &Replica) -> Result<(), StoreError> {
        let ask = |member: &Arc<RedisStore>| {
            let (member, replica) = (Arc::clone(member), replica.clone());
            async move { Ok(member.strike_off(&replica).await) }
        };
        let enough = |_: &[Result<(), StoreError>]| false;
        let (answers, _) = gather(self.shared.members.iter().map(ask), enough).await;
        let failed = answers.iter().filter(|answer| answer.is_err()).count();
        let all = self.shared.members.len();
        match answers.into_iter().find_map(Result::err) {
            Some(error) if all - failed < majority(all) => Err(error),
            _ => Ok(()),
        }
    }

    async fn survey(&self) -> Result<Survey, StoreError> {
        let shared = &self.shared;
        let all = shared.members.len();
        let ask = |member: &Arc<RedisStore>| {
            let member = Arc::clone(member);
            async move { Ok((member.standing().await?, member.reader.survey().await?)) }
        };
        let enough = |_: &[(Standing, Survey)]| false;
        let (surveys, faults) = gather(shared.members.iter().map(ask), enough).await;
        if surveys.len() < majority(all) {
            return Err(shared.too_few(surveys.len(), surveys.len(), faults));
        }
        let replicas = together(surveys.iter().map(|(_, survey)| &survey.replicas));
        let clocks = surveys
            .iter()
            .map(|(_, survey)| survey.now.as_millis())
            .collect();
        let newest = surveys
            .into_iter()
            .max_by(|(one, _), (other, _)| one.ballot.cmp(&other.ballot));
        let Some((_, newest)) = newest else {
            return Err(shared.too_few(0, 0, Vec::new()));
        };
        Ok(Survey {
            now: crate::scheduler::time::Timestamp::from_millis(median(clocks)),
            replicas,
            ..newest
        })
    }

    async fn history(
        &self,
        job: Option<&JobName>,
        limit: usize,
    ) -> Result<Vec<AttemptRecord>, StoreError> {
        let shared = &self.shared;
        let all = shared.members.len();
        let ask = |member: &Arc<RedisStore>| {
            let (member, job) = (Arc::clone(member), job.cloned());
            async move { member.reader.history(job.as_ref(), limit).await }
        };
        let enough = |_: &[Vec<AttemptRecord>]| false;
        let (histories, faults) = gather(shared.members.iter().map(ask), enough).await;
        if histories.len() < majority(all) {
            return Err(shared.too_few(histories.len(), histories.len(), faults));
        }
        // Each line is on a majority, and so on one of these at least.
        let mut lines: Vec<AttemptRecord> = Vec::new();
        for history in histories {
            for line in history {
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
        }
        lines.sort_by_key(|line| std::cmp::Reverse(line.ended_at));
        lines.truncate(limit);
        Ok(lines)
    }

    async fn output(&self, job: &JobName, run_id: RunId) -> Result<Option<Output>, StoreError> {
        let shared = &self.shared;
        let all = shared.members.len();
        let ask = |member: &Arc<RedisStore>| {
            let (member, job) = (Arc::clone(member), job.clone());
            async move { member.reader.output(&job, run_id).await }
        };
        let enough = |found: &[Option<Output>]| found.iter().any(Option::is_some);
        let (found, faults) = gather(shared.members.iter().map(ask), enough).await;
        let answered = found.len();
        match found.into_iter().flatten().next() {
            Some(output) => Ok(Some(output)),
            None if answered >= majority(all) => Ok(None),
            None => Err(shared.too_few(answered, answered, faults)),
        }
    }

    fn events(&self) -> broadcast::Receiver<StoreEvent> {
        let events = self.events.subscribe();
        if tokio::runtime::Handle::try_current().is_ok() {
            self.news.get_or_init(|| {
                let members = self.shared.members.iter();
                let heard = members.map(|member| Engine::events(&**member)).collect();
                tokio::spawn(news::forward(heard, self.events.clone())).abort_handle()
            });
        }
        events
    }
}

impl Drop for QuorumStore {
    fn drop(&mut self) {
        if let Some(news) = self.news.get() {
            news.abort();
        }
    }
}

/// What servers know of replicas, together: the newest of each.
fn together<'r>(lists: impl Iterator<Item = &'r Vec<ReplicaState>>) -> Vec<ReplicaState> {
    let mut newest: BTreeMap<Uuid, ReplicaState> = BTreeMap::new();
    for state in lists.flatten() {
        let known = newest
            .entry(state.replica.id)
            .or_insert_with(|| state.clone());
        if state.seen_at > known.seen_at {
            *known = state.clone();
        }
    }
    newest.into_values().collect()
}
