//! Replicas that claim jobs, hold them and give them back, with more or less patience.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use super::law::{AskedAt, Law, Stage};
use super::servers::{BEGAN_US, Servers};
use super::{happens, millis_below, throw};
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{
    Claim, ClaimAnswer, FencingToken, Grant, Occurrence, Outcome, Release, ReleaseAnswer, Renewal,
    RenewalAnswer, Replica as Identity, Retention, RunId, Scope,
};
use crate::scheduler::time::Timestamp;
use crate::store::redis::chance;
use crate::store::redis::quorum::QuorumStore;
use crate::store::{Caller, ReplicaInfo, Store as _};

/// Longer than all that happens here.
const TTL: Duration = Duration::from_secs(24 * 3600);

/// How long anybody waits for an answer once messages arrive again.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

/// How long after the beginning all occurrences are due.
const DUE_AFTER: Duration = Duration::from_secs(1);

/// What fails at once is not sent again at once: the runtime's time would stand still.
const AGAIN_AFTER: Duration = Duration::from_millis(5);

/// How many jobs are claimed at a time: several claim the same.
const IN_PLAY: u64 = 4;

/// A replica, with its own store.
pub(super) struct Replica {
    number: usize,
    store: QuorumStore,
    caller: Caller,
    law: Rc<Law>,
}

impl Replica {
    pub(super) fn new(number: usize, servers: &Arc<Servers>, law: &Rc<Law>) -> Self {
        Self {
            number,
            store: servers.store(),
            caller: Caller {
                replica: Identity {
                    id: chance::uuid(),
                    name: format!("replica-{number}"),
                },
                quarantine: TTL,
                token_floor: FencingToken::default(),
                // What comes late has to be refused by its ballot.
                send_by: Some(Timestamp::from_millis(BEGAN_US / 1000) + TTL),
                held_back: Duration::ZERO,
            },
            law: Rc::clone(law),
        }
    }

    /// Has the ledger begin, past its first grace window.
    pub(super) async fn open_the_ledger(&self) -> Result<(), String> {
        let impatient = Caller {
            quarantine: Duration::ZERO,
            token_floor: FencingToken::new(1),
            ..self.caller.clone()
        };
        let info = ReplicaInfo::default();
        let seen = self.store.observe(&impatient, &info, Scope::Overdue).await;
        seen.map_err(|error| error.to_string())?;
        // What was due before it began is nothing that it can tell of.
        sleep(2 * DUE_AFTER).await;
        Ok(())
    }

    /// Claims one job after another.
    pub(super) async fn work(&self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until && !self.law.is_broken() {
            sleep(millis_below(100)).await;
            let job = self.choose();
            let claim = claim(job);
            let asked = self.law.ask();
            let patience = patience();
            let answer = timeout(patience, self.claim(job, asked, &claim, until)).await;
            let Ok(Some(grant)) = answer else { continue };
            if happens(30) {
                self.renew(job, &claim, &grant).await;
            }
            sleep(millis_below(100)).await;
            if happens(80) {
                self.release(job, &claim, &grant, until).await;
            }
        }
    }

    /// One that others may be about as well, or have done.
    fn choose(&self) -> usize {
        let jobs = self.law.jobs();
        match usize::try_from(throw(IN_PLAY)).expect("a small number") {
            back @ 1.. if back <= jobs => jobs - back,
            _ => self.law.new_job(),
        }
    }

    /// Sends the same claim until it is answered.
    async fn claim(
        &self,
        job: usize,
        asked: AskedAt,
        claim: &Claim,
        until: Instant,
    ) -> Option<Grant> {
        while Instant::now() < until {
            let claims = std::slice::from_ref(claim);
            if let Ok(mut answered) = self.store.claim(&self.caller, claims).await {
                return self.told(job, asked, answered.answer.remove(0));
            }
            if happens(20) {
                return None;
            }
            sleep(AGAIN_AFTER).await;
        }
        None
    }

    fn told(&self, job: usize, asked: AskedAt, answer: ClaimAnswer) -> Option<Grant> {
        match answer {
            ClaimAnswer::Granted(grant) => {
                self.law.granted_to(self.number, job, asked, grant.token);
                return Some(grant);
            }
            ClaimAnswer::Held(held) => {
                let token = Some(held.sighting.token);
                self.law.told(self.number, job, asked, Stage::Held, token);
            }
            ClaimAnswer::Finished => {
                self.law
                    .told(self.number, job, asked, Stage::Finished, None);
            }
            other => self.law.breaks(format!("job {job}: {other:?}")),
        }
        None
    }

    async fn renew(&self, job: usize, claim: &Claim, grant: &Grant) {
        let asked = self.law.ask();
        let renewal = Renewal::of(claim, grant);
        let renewed = self
            .store
            .renew(&self.caller, std::slice::from_ref(&renewal));
        let Ok(Ok(answered)) = timeout(patience(), renewed).await else {
            return;
        };
        match &answered.answer[0] {
            RenewalAnswer::Renewed { .. } => {
                let token = Some(grant.token);
                self.law.told(self.number, job, asked, Stage::Held, token);
            }
            RenewalAnswer::Lost => self.law.breaks(format!("job {job}: {grant:?} was lost")),
        }
    }

    async fn release(&self, job: usize, claim: &Claim, grant: &Grant, until: Instant) {
        let release = Release::of(claim, grant, Outcome::Succeeded);
        let releases = std::slice::from_ref(&release);
        let asked = self.law.ask();
        while Instant::now() < until {
            let released = self.store.release(&self.caller, releases);
            let Ok(Ok(answered)) = timeout(patience(), released).await else {
                sleep(AGAIN_AFTER).await;
                continue;
            };
            match &answered.answer[0] {
                ReleaseAnswer::Released => {
                    let token = Some(grant.token);
                    self.law
                        .told(self.number, job, asked, Stage::Finished, token);
                }
                ReleaseAnswer::Superseded => {
                    self.law
                        .breaks(format!("job {job}: {grant:?} was superseded"));
                }
            }
            return;
        }
    }

    /// Claims every job once more, and one that is new, when messages arrive again.
    pub(super) async fn look_at_all_jobs(&self) -> Result<(), String> {
        let fresh = self.law.new_job();
        for job in 0..=fresh {
            let claim = claim(job);
            let asked = self.law.ask();
            let until = Instant::now() + ANSWERED_WITHIN;
            let before = self.law.answered();
            while self.law.answered() == before && !self.law.is_broken() {
                if Instant::now() > until {
                    return Err(format!(
                        "job {job} is not answered within {ANSWERED_WITHIN:?}"
                    ));
                }
                self.claim(job, asked, &claim, until).await;
                sleep(AGAIN_AFTER).await;
            }
        }
        Ok(())
    }
}

/// From that of one who hardly waits to that of one who waits longer than a call takes.
fn patience() -> Duration {
    match throw(3) {
        0 => millis_below(50),
        1 => millis_below(600),
        _ => Duration::from_secs(3),
    }
}

fn claim(job: usize) -> Claim {
    let due = Timestamp::from_millis(BEGAN_US / 1000) + DUE_AFTER;
    let occurrence = Occurrence {
        job: JobName::new(&format!("job-{job}")).expect("a name"),
        scheduled_at: due,
    };
    let later = due + TTL;
    Claim {
        claim_by: later,
        start_by: later,
        ttl: TTL,
        retention: Retention {
            limit: 1000,
            age: TTL,
        },
        ..Claim::new(occurrence, RunId::new(run_id()))
    }
}

fn run_id() -> Uuid {
    chance::uuid()
}
