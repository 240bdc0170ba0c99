//! What is said of leases that are held, or were, or never were.

use std::time::Duration;

use soloist::scheduler::lease::{
    AttemptDetail, Claim, FencingToken, Grant, MeasuredOf, Outcome, PeakMemory, Release, Renewal,
    RunId, Usage,
};

use super::Drawing;
use crate::steps::Call;
use crate::words;

impl Drawing {
    /// A grant, mostly one of the last.
    fn grant(&mut self, of: usize) -> Option<(Claim, Grant)> {
        let all = &self.memories[of].grants;
        let one = match self.chance.one_in(5) {
            true => self.chance.of(all),
            false => self.chance.recent(all),
        };
        one.cloned()
    }

    pub(super) fn renew(&mut self, of: usize) -> Call {
        let mut renewals: Vec<Renewal> = Vec::new();
        for _ in 0..self.batch() {
            let Some(one) = self.one_renewal(of) else {
                break;
            };
            self.put(&mut renewals, one, |one| (&one.occurrence.job, one.shard));
        }
        Call::Renew(renewals)
    }

    fn one_renewal(&mut self, of: usize) -> Option<Renewal> {
        let mut renewal = match self.chance.one_in(3) {
            true => self.chance.recent(&self.memories[of].renewals).cloned(),
            false => None,
        };
        if renewal.is_none() {
            let (claim, grant) = self.grant(of)?;
            renewal = Some(Renewal::of(&claim, &grant));
        }
        let mut renewal = renewal?;
        let more = Duration::from_millis(self.chance.below(20_000));
        match self.chance.below(40) {
            0 => renewal.run_id = RunId::new(self.chance.uuid()),
            1 => renewal.token = FencingToken::new(renewal.token.get() + 1),
            2 => renewal.token = FencingToken::new(renewal.token.get() - 1),
            3 => renewal.last_deadline = renewal.last_deadline + more,
            4 => renewal.last_deadline = renewal.last_deadline - more,
            5 => renewal.shard += 1,
            6..10 => renewal.ttl = more,
            _ => {}
        }
        Some(renewal)
    }

    pub(super) fn release(&mut self, of: usize) -> Call {
        let mut releases: Vec<Release> = Vec::new();
        for _ in 0..self.batch() {
            let Some(one) = self.one_release(of) else {
                break;
            };
            self.put(&mut releases, one, |one| (&one.occurrence.job, one.shard));
        }
        Call::Release(releases)
    }

    fn one_release(&mut self, of: usize) -> Option<Release> {
        if self.chance.one_in(6)
            && let Some(again) = self.chance.recent(&self.memories[of].releases)
        {
            return Some(again.clone());
        }
        let (claim, grant) = self.grant(of)?;
        let outcome = match self.chance.below(12) {
            0..4 => Outcome::Succeeded,
            4..7 => Outcome::Failed,
            7 => Outcome::TimedOut,
            8 => Outcome::Cancelled,
            9 => Outcome::Lost,
            _ => Outcome::HandedOver,
        };
        let mut release = Release::of(&claim, &grant, outcome);
        if outcome.is_failure() {
            let retry = |wait| Duration::from_millis(wait);
            release.retry_after = self.chance.some(2, |chance| retry(chance.below(5000)));
        }
        release.detail = self.detail();
        release.output = words::output(&mut self.chance);
        match self.chance.below(30) {
            0 => release.run_id = RunId::new(self.chance.uuid()),
            1 => release.token = FencingToken::new(release.token.get() - 1),
            2 => release.attempt += 1,
            3 => release.dependents = self.dependents(&claim.occurrence.job, 3),
            _ => {}
        }
        Some(release)
    }

    fn detail(&mut self) -> AttemptDetail {
        let chance = &mut self.chance;
        let bytes = |chance: &mut crate::chance::Chance| match chance.one_in(4) {
            true => u64::MAX,
            false => chance.below(1 << 40),
        };
        AttemptDetail {
            exit_code: chance.some(3, |chance| chance.below(256) as i32 - 1),
            signal: chance.some(6, |chance| chance.below(64) as i32),
            reason: chance.some(2, words::text),
            usage: chance.some(3, |chance| Usage {
                cpu: chance.some(2, |chance| Duration::from_micros(chance.below(1 << 54))),
                peak_memory: chance.some(2, |chance| PeakMemory {
                    bytes: bytes(chance),
                    of: MeasuredOf::AllProcesses,
                }),
            }),
            ..AttemptDetail::default()
        }
    }
}
