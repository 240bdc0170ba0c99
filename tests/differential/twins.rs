//! A store beside memory: both are asked the same, and have to say and hold the same.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use soloist::scheduler::job::JobName;
use soloist::scheduler::lease::{Caller, FencingToken, Replica};
use soloist::scheduler::time::Timestamp;
use soloist::store::memory::{Image, MemoryStore};
use soloist::store::{AttemptRecord, Store, StoreEvent};
use tokio::sync::broadcast::Receiver;
use tokio::time::timeout;
use uuid::Uuid;

use crate::clock::TestClock;
use crate::drawing::{BEGINNING, NAMESPACES};
use crate::engines::{Engine, Raw};
use crate::steps::{Asked, Call, Reply, Silent, Step, What};

/// How long news may take that memory has told: nobody has to hear of them at once.
const NEWS_PATIENCE: Duration = Duration::from_secs(5);

/// How many outputs are looked at when all is compared, the newest of them.
const OUTPUTS_COMPARED: usize = 12;

/// The same at the end of a sequence: more than any job's outputs are kept.
const OUTPUTS_COMPARED_AT_LAST: usize = 400;

/// Why a sequence ends before its end.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The two differ: to what, and both answers.
    Difference(String),
    /// The store did not answer in time, or somebody else kept changing what it was to change.
    Silent(String),
}

impl From<Silent> for Fault {
    fn from(silent: Silent) -> Self {
        Self::Silent(silent.0)
    }
}

/// Says that two that ought to be the same differ.
fn same<T: PartialEq + Debug>(what: &dyn Debug, memory: &T, store: &T) -> Result<(), Fault> {
    if memory == store {
        return Ok(());
    }
    let (memory, store) = (format!("{memory:?}"), format!("{store:?}"));
    Err(Fault::Difference(format!(
        "{what:?}\n  memory: {memory}\n  store:  {store}\n{}",
        first_difference(&memory, &store)
    )))
}

/// Where two texts part, with some words before.
fn first_difference(one: &str, other: &str) -> String {
    const BEFORE: usize = 120;
    const SHOWN: usize = 300;
    let same = one.chars().zip(other.chars());
    let same = same.take_while(|(one, other)| one == other).count();
    let part = |text: &str| -> String {
        let from = same.saturating_sub(BEFORE);
        text.chars().skip(from).take(BEFORE + SHOWN).collect()
    };
    format!(
        "  they part at: … {}\n        and at: … {}",
        part(one),
        part(other)
    )
}

/// What one namespace has in memory, and who listens.
struct Twin {
    memory: MemoryStore,
    told: Receiver<StoreEvent>,
    heard: Receiver<StoreEvent>,
    /// News were missed that may be: whoever listens to a file has the host's leave to, or not.
    is_deaf: bool,
}

/// Both, while a sequence lasts.
pub(crate) struct Twins<'e> {
    engine: &'e mut Engine,
    clock: Arc<TestClock>,
    all: Vec<Twin>,
    jobs: Vec<JobName>,
}

impl<'e> Twins<'e> {
    pub(crate) async fn new(engine: &'e mut Engine, seed: u64, jobs: &[JobName]) -> Self {
        let clock = Arc::new(TestClock::default());
        let beginning = Timestamp::from_millis(BEGINNING);
        clock.set(beginning);
        engine.set_clock(beginning);
        engine.empty(seed).await;
        let twin = |namespace| {
            let memory = engine.twin(clock.clone());
            Twin {
                told: memory.events(),
                heard: engine.way(namespace, 0).events(),
                memory,
                is_deaf: false,
            }
        };
        let all: Vec<Twin> = (0..NAMESPACES).map(twin).collect();
        Self {
            all,
            jobs: jobs.to_vec(),
            clock,
            engine,
        }
    }

    /// Takes a step on both sides. Answers what was asked, and said.
    pub(crate) async fn take(&mut self, step: &Step) -> Result<Vec<(Asked, Reply)>, Fault> {
        self.clock.set(step.at);
        self.engine.set_clock(step.at);
        match &step.what {
            What::Alone(asked) => {
                let reply = self.alone(asked).await?;
                Ok(vec![(asked.clone(), reply)])
            }
            What::Together(one, other) => {
                let (first, second) = self.together(one, other).await?;
                Ok(vec![(one.clone(), first), (other.clone(), second)])
            }
            What::Trouble(trouble) => {
                let memories: Vec<_> = self.all.iter().map(|twin| twin.memory.image()).collect();
                let memories: Vec<_> = memories.into_iter().map(MemoryStore::of).collect();
                self.engine.suffer(*trouble, &memories).await;
                for (namespace, memory) in memories.into_iter().enumerate() {
                    self.replace(namespace, memory);
                    self.all[namespace].heard = self.engine.way(namespace, 0).events();
                }
                Ok(Vec::new())
            }
        }
    }

    fn replace(&mut self, namespace: usize, memory: MemoryStore) {
        let twin = &mut self.all[namespace];
        twin.told = memory.events();
        twin.memory = memory;
    }

    async fn alone(&mut self, asked: &Asked) -> Result<Reply, Fault> {
        let store = self.engine.way(asked.namespace, asked.way);
        let twin = &mut self.all[asked.namespace];
        drain(&mut twin.told);
        drain(&mut twin.heard);
        let memory = asked.of(&twin.memory).await?;
        let reply = asked.of(&**store).await?;
        same(asked, &memory, &reply)?;
        let may_be_missed = self.engine.tells_if_it_can();
        let told = all_of(&mut twin.told);
        twin.hear(asked, told, may_be_missed).await?;
        Ok(reply)
    }

    /// Two calls at once come to what one after the other would, in one of both orders.
    async fn together(&mut self, one: &Asked, other: &Asked) -> Result<(Reply, Reply), Fault> {
        let namespace = one.namespace;
        let ways = [one, other].map(|asked| self.engine.way(namespace, asked.way).clone());
        drain(&mut self.all[namespace].heard);
        let (first, second) = tokio::join!(one.of(&*ways[0]), other.of(&*ways[1]));
        let said = (first?, second?);
        let before = self.all[namespace].memory.image();
        let mut faults = Vec::new();
        for order in Order::ALL {
            let (would, memory, told) = order.take(one, other, &before).await?;
            self.replace(namespace, memory);
            let mut compared = same(&(one, other), &would, &said);
            if compared.is_ok() {
                compared = self.compare(namespace, OUTPUTS_COMPARED).await;
            }
            match compared {
                Ok(()) => {
                    let may_be_missed = self.engine.tells_if_it_can();
                    let twin = &mut self.all[namespace];
                    twin.hear(&(one, other), told, may_be_missed).await?;
                    return Ok(said);
                }
                Err(Fault::Difference(difference)) => faults.push(difference),
                Err(silent) => return Err(silent),
            }
        }
        Err(Fault::Difference(format!(
            "together, in no order\n{}",
            faults.join("\nor, in another one\n")
        )))
    }

    /// Whether all news were heard that there were.
    pub(crate) fn heard_all(&self) -> bool {
        self.all.iter().all(|twin| !twin.is_deaf)
    }

    /// Compares all that both hold, of many outputs the newest.
    pub(crate) async fn compare_all(&mut self) -> Result<(), Fault> {
        for namespace in 0..NAMESPACES {
            self.compare(namespace, OUTPUTS_COMPARED).await?;
        }
        Ok(())
    }

    /// Compares all that both hold, for the last time.
    pub(crate) async fn compare_at_last(&mut self) -> Result<(), Fault> {
        for namespace in 0..NAMESPACES {
            self.compare(namespace, OUTPUTS_COMPARED_AT_LAST).await?;
        }
        Ok(())
    }

    async fn compare(&self, namespace: usize, outputs: usize) -> Result<(), Fault> {
        let twin = &self.all[namespace];
        let store = self.engine.way(namespace, 0);
        let snapshot = Call::Snapshot;
        self.compare_call(namespace, snapshot).await?;
        let raw = self.engine.raw(namespace);
        same(&"what is kept", &Raw::of_memory(&twin.memory), &raw)?;
        let mut lines: Vec<AttemptRecord> = Vec::new();
        let few = [None, self.jobs.first(), self.jobs.get(1), self.jobs.get(2)];
        for (number, job) in few.into_iter().enumerate() {
            if number > 0 && job.is_none() {
                continue;
            }
            let of =
                |asked: Result<Vec<_>, _>| asked.map_err(|error| Fault::Silent(format!("{error}")));
            let memory = of(twin.memory.history(job, usize::MAX).await)?;
            let kept = of(store.history(job, usize::MAX).await)?;
            same(&("history", job), &memory, &kept)?;
            lines.extend(memory);
        }
        let mut seen = BTreeSet::new();
        lines.retain(|line| seen.insert((line.job.clone(), line.run_id)));
        for line in lines.into_iter().take(outputs) {
            self.compare_call(namespace, Call::Output(line.job, line.run_id))
                .await?;
        }
        Ok(())
    }

    /// Compares what both say to a call that asks for nothing but to be shown.
    async fn compare_call(&self, namespace: usize, call: Call) -> Result<(), Fault> {
        let asked = Asked {
            namespace,
            way: 0,
            caller: nobody(),
            call,
        };
        let memory = asked.of(&self.all[namespace].memory).await?;
        let store = asked.of(&**self.engine.way(namespace, 0)).await?;
        same(&asked.call, &memory, &store)
    }
}

/// A replica that has nothing to wait for.
fn nobody() -> Caller {
    let replica = Replica {
        id: Uuid::nil(),
        name: String::new(),
    };
    Caller {
        replica,
        quarantine: Duration::ZERO,
        token_floor: FencingToken::default(),
        send_by: None,
        held_back: Duration::ZERO,
    }
}

/// In which order two calls at once may have been carried out.
#[derive(Clone, Copy)]
struct Order {
    is_turned: bool,
    /// The later one was decided before the earlier one was written. It stands where that changed
    /// no record that it hangs on; its tokens may not be above those of the earlier one, which are
    /// of other jobs.
    is_blind: bool,
}

impl Order {
    const ALL: [Self; 4] = [
        Self::new(false, false),
        Self::new(true, false),
        Self::new(false, true),
        Self::new(true, true),
    ];

    const fn new(is_turned: bool, is_blind: bool) -> Self {
        Self {
            is_turned,
            is_blind,
        }
    }

    /// What memory says, holds and tells.
    async fn take(
        self,
        one: &Asked,
        other: &Asked,
        before: &Image,
    ) -> Result<((Reply, Reply), MemoryStore, BTreeSet<StoreEvent>), Fault> {
        let (earlier, later) = match self.is_turned {
            false => (one, other),
            true => (other, one),
        };
        let mut memory = MemoryStore::of(before.clone());
        let mut events = memory.events();
        let first = earlier.of(&memory).await?;
        let mut told = all_of(&mut events);
        let (token, _) = memory.image().marks();
        if self.is_blind {
            memory = MemoryStore::of(memory.image().with_token(before.marks().0));
            events = memory.events();
        }
        let second = later.of(&memory).await?;
        told.extend(all_of(&mut events));
        let highest = token.max(memory.image().marks().0);
        let memory = MemoryStore::of(memory.image().with_token(highest));
        let said = match self.is_turned {
            false => (first, second),
            true => (second, first),
        };
        Ok((said, memory, told))
    }
}

fn all_of(events: &mut Receiver<StoreEvent>) -> BTreeSet<StoreEvent> {
    let mut all = BTreeSet::new();
    while let Ok(event) = events.try_recv() {
        all.insert(event);
    }
    all
}

fn drain(events: &mut Receiver<StoreEvent>) {
    use tokio::sync::broadcast::error::TryRecvError;
    while !matches!(
        events.try_recv(),
        Err(TryRecvError::Empty | TryRecvError::Closed)
    ) {}
}

impl Twin {
    /// Waits until the store has told what memory has.
    async fn hear(
        &mut self,
        asked: &dyn Debug,
        mut awaited: BTreeSet<StoreEvent>,
        may_be_missed: bool,
    ) -> Result<(), Fault> {
        while !awaited.is_empty() && !self.is_deaf {
            match timeout(NEWS_PATIENCE, self.heard.recv()).await {
                // Then what was told meanwhile was not heard.
                Ok(Ok(StoreEvent::Reconnected)) => awaited.clear(),
                Ok(Ok(event)) => {
                    awaited.remove(&event);
                }
                Ok(Err(error)) => return Err(Fault::Silent(format!("news: {error}"))),
                Err(_) if may_be_missed => self.is_deaf = true,
                Err(_) => {
                    let told = format!("{asked:?}\n  memory told {awaited:?}, the store did not");
                    return Err(Fault::Difference(told));
                }
            }
        }
        Ok(())
    }
}
