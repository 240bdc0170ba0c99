//! The scheduler core on its own timer, with the in-memory store.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use soloist::clock::{BootTimer, Clock, SystemClock};
use soloist::scheduler::job::{CommandSpec, Job, JobName, Program};
use soloist::scheduler::lease::{AttemptDetail, Output, Replica};
use soloist::scheduler::policy::Tags;
use soloist::scheduler::schedule::{DstFold, DstGap, Schedule};
use soloist::scheduler::time::Timestamp;
use soloist::scheduler::{
    Effect, EndedHow, Ending, Event, Purpose, Scheduler, Settings, draw_replica_id,
};
use soloist::store::memory::MemoryStore;
use soloist::store::{ReplicaInfo, Store, StoreError};
use uuid::Uuid;

use crate::Scenario;
use crate::sample::{Sample, cpu_time};

const CALL_TIMEOUT: Duration = Duration::from_secs(1);

pub(crate) async fn measure(scenario: Scenario) -> Sample {
    let mut replica = InProcess::new(scenario);
    let mut timer = BootTimer::new().expect("a timer");
    let (from, until) = window(scenario).await;
    let (cpu, began) = (cpu_time(), Instant::now());
    let mut late = Vec::new();
    let end = SystemClock.boot() + until.duration_since(from).unwrap_or_default();
    while SystemClock.boot() < end {
        late.extend(replica.work().await);
        let wakeup = replica
            .scheduler
            .next_wakeup()
            .map_or(end, |at| at.min(end));
        timer.sleep_until(Some(wakeup)).await;
    }
    Sample::of(
        late,
        due_within(scenario, from, until),
        cpu_time() - cpu,
        began.elapsed(),
    )
}

/// A replica whose attempts end at once.
struct InProcess {
    scheduler: Scheduler,
    store: MemoryStore,
}

impl InProcess {
    fn new(scenario: Scenario) -> Self {
        let settings = Settings {
            replica: Replica {
                id: draw_replica_id(Uuid::new_v4().into_bytes()),
                name: "bench".to_owned(),
            },
            shutdown_grace: Duration::ZERO,
            purpose: Purpose::Table,
            tags: Tags::new(),
            max_running: None,
            digest: String::new(),
            revision: None,
        };
        let jobs = (0..scenario.jobs).map(|number| Arc::new(job(number, scenario.schedule)));
        let entropy = Box::new(|| {
            let id = Uuid::new_v4().into_bytes();
            std::array::from_fn(|index| id[index])
        });
        Self {
            scheduler: Scheduler::new(settings, jobs, entropy, SystemClock.boot()),
            store: MemoryStore::new(Arc::new(SystemClock)),
        }
    }

    /// Does what is due; gives how late each attempt started. As the driver does, it takes in
    /// what has happened before it asks what to do next.
    async fn work(&mut self) -> Vec<Duration> {
        let mut late = Vec::new();
        loop {
            self.scheduler.advance(SystemClock.boot());
            let mut events = Vec::new();
            while let Some(effect) = self.scheduler.poll_effect() {
                if let Effect::Start(attempt) = &effect {
                    late.push(lateness(attempt.scheduled_at));
                }
                events.extend(self.perform(effect).await);
            }
            if events.is_empty() {
                return late;
            }
            for event in events {
                self.scheduler.handle(event, SystemClock.boot());
            }
        }
    }

    async fn perform(&self, effect: Effect) -> Option<Event> {
        match effect {
            Effect::Start(attempt) => Some(Event::AttemptEnded {
                run_id: attempt.run_id,
                ending: Ending {
                    how: EndedHow::Succeeded,
                    detail: AttemptDetail::default(),
                    output: Output::default(),
                },
            }),
            call => self.call(call).await,
        }
    }

    async fn call(&self, effect: Effect) -> Option<Event> {
        let sent = SystemClock.boot();
        let caller = self.scheduler.caller(sent, CALL_TIMEOUT);
        let store = &self.store;
        Some(match effect {
            Effect::Register(jobs) => {
                let result = told(store.register(&caller, &jobs)).await;
                Event::Registered { jobs, sent, result }
            }
            Effect::Claim(claims) => {
                let result = told(store.claim(&caller, &claims)).await;
                Event::Claimed {
                    claims,
                    sent,
                    result,
                }
            }
            Effect::Renew(renewals) => {
                let result = told(store.renew(&caller, &renewals)).await;
                Event::Renewed {
                    renewals,
                    sent,
                    result,
                }
            }
            Effect::Release(releases) => {
                let result = told(store.release(&caller, &releases)).await;
                let runs = releases.iter().map(|release| release.run_id).collect();
                Event::Released { runs, sent, result }
            }
            Effect::Observe(scope) => {
                let result = told(store.observe(&caller, &info(), scope)).await;
                Event::Observed {
                    scope,
                    sent,
                    result,
                }
            }
            other => return self.call_rarely(other).await,
        })
    }

    /// The calls that no claim waits for.
    async fn call_rarely(&self, effect: Effect) -> Option<Event> {
        let sent = SystemClock.boot();
        let caller = self.scheduler.caller(sent, CALL_TIMEOUT);
        let store = &self.store;
        Some(match effect {
            Effect::Sweep => Event::Swept {
                result: told(store.sweep(&caller)).await,
            },
            Effect::Publish(table) => Event::Published {
                sent,
                result: told(store.publish(&caller, &table)).await,
            },
            Effect::ReadTable(digest) => Event::TableRead {
                result: store
                    .table(&digest)
                    .await
                    .map_err(|error| error.to_string()),
                digest,
            },
            _ => return None,
        })
    }
}

fn lateness(due: Timestamp) -> Duration {
    let due = Duration::from_millis(u64::try_from(due.as_millis()).unwrap_or(0));
    since_epoch(SystemTime::now()).saturating_sub(due)
}

fn info() -> ReplicaInfo {
    ReplicaInfo {
        version: String::new(),
        host: String::new(),
        pid: 0,
        skew_ms: 0,
        running: 0,
        jobs: 0,
        draining: false,
        ..ReplicaInfo::default()
    }
}

/// The answer as the core takes it: a failure is a text.
async fn told<T>(call: impl Future<Output = Result<T, StoreError>>) -> Result<T, String> {
    call.await.map_err(|error| error.to_string())
}

pub(crate) fn job(number: usize, schedule: &str) -> Job {
    let name = JobName::new(&format!("job-{number}")).expect("a name");
    let zone = jiff::tz::TimeZone::UTC;
    let schedule = Schedule::parse(
        schedule,
        name.as_str(),
        zone,
        DstGap::default(),
        DstFold::default(),
    )
    .expect("a schedule");
    let program = Program::Command(vec!["true".to_owned()]);
    Job {
        command: CommandSpec {
            output_limit: 0,
            ..CommandSpec::new(program.clone())
        },
        ..Job::new(name, schedule, program)
    }
}

/// Waits for a quiet moment, then says from when to when is measured: from half a second before
/// the first instant to half a second before the one after the last.
pub(crate) async fn window(scenario: Scenario) -> (SystemTime, SystemTime) {
    // A grace window of the new store, and what the other does at its start, are over by then.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let step = Duration::from_secs(5);
    let into =
        Duration::from_nanos((since_epoch(SystemTime::now()).as_nanos() % step.as_nanos()) as u64);
    let wait = step + Duration::from_millis(4_500) - into;
    let from = SystemTime::now() + wait;
    tokio::time::sleep(wait).await;
    (from, from + Duration::from_secs(scenario.seconds))
}

pub(crate) fn period(scenario: Scenario) -> Duration {
    match scenario.schedule {
        "* * * * * *" => Duration::from_secs(1),
        "*/5 * * * * *" => Duration::from_secs(5),
        _ => Duration::from_secs(365 * 24 * 3600),
    }
}

pub(crate) fn due_within(scenario: Scenario, from: SystemTime, until: SystemTime) -> usize {
    let period = period(scenario).as_nanos();
    let instants = |at: SystemTime| since_epoch(at).as_nanos() / period;
    (instants(until) - instants(from)) as usize * scenario.jobs
}

fn since_epoch(at: SystemTime) -> Duration {
    at.duration_since(UNIX_EPOCH).unwrap_or_default()
}
