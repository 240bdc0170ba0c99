//! What a sequence has heard so far, and draws the next requests from.

use soloist::scheduler::job::JobName;
use soloist::scheduler::lease::{
    Claim, ClaimAnswer, Closing, Definition, Delivery, Enrolment, Force, Grant, Observation,
    Opening, Order, PublishedTable, Registration, Release, Renewal, RenewalAnswer, RunId, Sighting,
    Untold,
};
use soloist::scheduler::time::Timestamp;

use crate::steps::{Asked, Call, Reply};

/// A lease that was seen in somebody's hands.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) job: JobName,
    pub(crate) scheduled_at: Timestamp,
    pub(crate) shard: u32,
    pub(crate) sighting: Sighting,
}

/// What the replicas of one namespace know together.
#[derive(Debug, Default)]
pub(crate) struct Memories {
    pub(crate) claims: Vec<Claim>,
    pub(crate) grants: Vec<(Claim, Grant)>,
    pub(crate) renewals: Vec<Renewal>,
    pub(crate) releases: Vec<Release>,
    pub(crate) seen: Vec<Seen>,
    pub(crate) openings: Vec<Opening>,
    pub(crate) orders: Vec<Order>,
    pub(crate) closings: Vec<Closing>,
    pub(crate) untold: Vec<Untold>,
    pub(crate) deliveries: Vec<Delivery>,
    pub(crate) enrolments: Vec<Enrolment>,
    /// What the ledger has of a job that was enrolled with another schedule.
    pub(crate) former: Vec<(JobName, String)>,
    pub(crate) forces: Vec<(JobName, Force)>,
    pub(crate) in_force: Vec<(JobName, Definition)>,
    pub(crate) tables: Vec<PublishedTable>,
    pub(crate) runs: Vec<(JobName, RunId)>,
    /// The highest token that anybody was granted.
    pub(crate) token: u64,
    /// The ledger knows of a grant.
    pub(crate) is_granted: bool,
}

impl Memories {
    /// Takes in what was asked, and what came of it.
    pub(crate) fn learn(&mut self, asked: &Asked, reply: &Reply) {
        match (&asked.call, reply) {
            (Call::Claim(claims), reply) => {
                self.claims.extend(claims.iter().cloned());
                if let Reply::Claimed(answered) = reply {
                    self.close(&answered.closings);
                    for (claim, answer) in claims.iter().zip(&answered.answer) {
                        self.learn_claim(claim, answer);
                    }
                }
            }
            (Call::Renew(renewals), Reply::Renewed(answered)) => {
                for (renewal, answer) in renewals.iter().zip(&answered.answer) {
                    self.learn_renewal(renewal, answer);
                }
            }
            (Call::Release(releases), Reply::Released(answered)) => {
                self.close(&answered.closings);
                self.releases.extend(releases.iter().cloned());
            }
            (Call::Order(orders), Reply::Ordered(answered)) => {
                self.close(&answered.closings);
                self.orders.extend(orders.iter().cloned());
            }
            (Call::Deliver(deliveries), _) => self.deliveries.extend(deliveries.iter().cloned()),
            (Call::Register(jobs), Reply::Registered(answered)) => {
                self.enrolments.extend(jobs.iter().cloned());
                for (job, answer) in jobs.iter().zip(&answered.answer) {
                    self.learn_registration(job, answer);
                }
            }
            (Call::Observe(..), Reply::Observed(seen)) => self.learn_look(&seen.answer),
            (Call::Publish(table), _) => self.tables.push(table.clone()),
            _ => {}
        }
    }

    fn close(&mut self, closings: &[Closing]) {
        self.closings.extend(closings.iter().cloned());
    }

    fn learn_claim(&mut self, claim: &Claim, answer: &ClaimAnswer) {
        let job = &claim.occurrence.job;
        match answer {
            ClaimAnswer::Granted(grant) => {
                self.token = self.token.max(grant.token.get());
                self.is_granted = true;
                self.runs.push((job.clone(), claim.run_id));
                let claim = Claim {
                    shards: grant.shards,
                    ..claim.clone()
                };
                self.grants.push((claim, *grant));
            }
            ClaimAnswer::Held(held) | ClaimAnswer::Overlap(held) => self.seen.push(Seen {
                job: job.clone(),
                scheduled_at: held.scheduled_at,
                shard: held.shard,
                sighting: held.sighting,
            }),
            ClaimAnswer::Outdated { in_force } => {
                self.in_force.push((job.clone(), in_force.clone()));
            }
            _ => {}
        }
    }

    fn learn_renewal(&mut self, renewal: &Renewal, answer: &RenewalAnswer) {
        let deadline = match answer {
            RenewalAnswer::Renewed { deadline, .. } => *deadline,
            RenewalAnswer::Lost => renewal.last_deadline,
        };
        self.renewals.push(Renewal {
            last_deadline: deadline,
            ..renewal.clone()
        });
    }

    fn learn_registration(&mut self, job: &Enrolment, answer: &Registration) {
        let former = answer.former_schedule.clone();
        self.former
            .extend(former.map(|schedule| (job.job.clone(), schedule)));
        let force = answer.force.clone();
        self.forces
            .extend(force.map(|force| (job.job.clone(), force)));
        self.openings.extend(answer.openings.iter().cloned());
    }

    fn learn_look(&mut self, look: &Observation) {
        let leases = look.leases.iter().map(|lease| Seen {
            job: lease.job.clone(),
            scheduled_at: lease.held.scheduled_at,
            shard: lease.held.shard,
            sighting: lease.held.sighting,
        });
        self.seen.extend(leases);
        self.openings.extend(look.openings.iter().cloned());
        self.untold.extend(look.untold.iter().cloned());
    }
}
