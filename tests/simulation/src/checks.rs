//! What must hold of every world.

use std::collections::{BTreeMap, BTreeSet};

use soloist::scheduler::lease::Outcome;

use crate::world::{Run, World};

/// No two attempts of a job overlap, tokens rise in the order of starts, no attempt number
/// comes twice, nothing completes twice.
pub fn check(world: &World) {
    let mut by_job: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for run in world.runs.values() {
        by_job.entry(&run.job).or_default().push(run);
    }
    for runs in by_job.values_mut() {
        runs.sort_by_key(|run| run.token);
        for pair in runs.windows(2) {
            let end = pair[0].ended.expect("the one before has ended");
            assert!(
                end <= pair[1].started,
                "two alive at once\n{pair:#?}\n{world:?}"
            );
        }
        let mut seen = BTreeSet::new();
        for run in runs.iter() {
            assert!(
                seen.insert((run.scheduled_at, run.attempt)),
                "started twice\n{world:?}"
            );
        }
    }
    for (name, alive) in world.alive() {
        assert!(alive <= 1, "{name}: {alive} alive\n{world:?}");
    }
}

/// Never two attempts of one shard alive at once, never one attempt of a shard twice, and never
/// two occurrences of one job alive at once.
pub fn check_shards(world: &World) {
    let mut jobs: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for run in world.runs.values() {
        jobs.entry(&run.job).or_default().push(run);
        let attempt = (&run.job, run.scheduled_at, run.shard, run.attempt);
        assert!(seen.insert(attempt), "{attempt:?} started twice\n{world:?}");
    }
    for runs in jobs.values() {
        for (index, run) in runs.iter().enumerate() {
            for other in &runs[..index] {
                let end = |run: &Run| run.ended.unwrap_or(world.now);
                let apart = end(run) <= other.started || end(other) <= run.started;
                let shards = run.scheduled_at == other.scheduled_at && run.shard != other.shard;
                assert!(
                    apart || shards,
                    "two alive at once\n{run:#?}{other:#?}\n{world:?}"
                );
            }
        }
    }
}

/// Each occurrence of a job that the ledger settled has one final line.
pub fn check_ledger(world: &World) {
    let mut finals: BTreeMap<_, Vec<Outcome>> = BTreeMap::new();
    for line in world.history() {
        let open = matches!(line.outcome, Outcome::HandedOver);
        let rerun = line.outcome == Outcome::Lost
            && line
                .detail
                .reason
                .as_deref()
                .is_some_and(|reason| reason.contains("run again as"));
        if !open && !rerun {
            finals
                .entry((line.job, line.scheduled_at))
                .or_default()
                .push(line.outcome);
        }
    }
    for (occurrence, outcomes) in finals {
        assert_eq!(
            outcomes.len(),
            1,
            "{occurrence:?} ended as {outcomes:?}\n{world:?}"
        );
    }
}
