//! Leases that a replica which is about to end leaves behind, because the store can't be told of their ends.
//!
//! Must never: drop a lease that is still this replica's; it could be given back yet.

use super::HeldLeases;
use super::lease::Ended;
use crate::scheduler::effect::Notice;
use crate::scheduler::time::BootTime;

impl HeldLeases {
    /// Drops the leases that ran out before their release was acknowledged: there is nothing
    /// left to give back, others take over by themselves, and a store that stays away must not
    /// keep a replica from ending.
    pub(in crate::scheduler) fn give_up(&mut self, now: BootTime) -> Vec<Notice> {
        let unheard = self.leases.extract_if(|_, lease| {
            let tried = |ended: &Ended| ended.failures > 0 && !ended.releasing;
            now >= lease.trust_until && lease.ended.as_ref().is_some_and(tried)
        });
        let given_up: Vec<_> = unheard.collect();
        for (run_id, _) in &given_up {
            self.timers.clear(*run_id);
        }
        let notices = given_up.into_iter().filter_map(|(_, lease)| {
            let ended = lease.ended?;
            Some(Notice::Unreleased {
                occurrence: lease.claim.occurrence,
                attempt: lease.grant.attempt,
                token: lease.grant.token,
                outcome: ended.outcome,
                detail: ended.ending.detail,
            })
        });
        notices.collect()
    }
}
