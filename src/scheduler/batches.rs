//! Requests that go to the store together.
//!
//! Must never: leave one out, or send two for one shard of a job at once: neither comes first.

use std::collections::HashSet;

use super::job::JobName;
use super::lease::BATCH_LIMIT;

/// Cuts items into batches that a store takes: none too large, and no shard of a job twice in
/// one.
pub(super) fn batches<T>(items: Vec<T>, shard: impl Fn(&T) -> (&JobName, u32)) -> Vec<Vec<T>> {
    let mut batches: Vec<Vec<T>> = Vec::new();
    let mut shards: Vec<HashSet<(JobName, u32)>> = Vec::new();
    let mut full = 0;
    for item in items {
        // Those before it are full: of a hundred thousand jobs there are hundreds.
        while batches
            .get(full)
            .is_some_and(|batch| batch.len() >= BATCH_LIMIT)
        {
            full += 1;
        }
        let (job, index) = shard(&item);
        let key = (job.clone(), index);
        let fits = |number: &usize| {
            batches[*number].len() < BATCH_LIMIT && !shards[*number].contains(&key)
        };
        let number = (full..batches.len()).find(fits).unwrap_or_else(|| {
            batches.push(Vec::new());
            shards.push(HashSet::new());
            batches.len() - 1
        });
        shards[number].insert(key);
        batches[number].push(item);
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_out_and_no_batch_is_too_large_or_names_a_shard_twice() {
        let names = (0..3 * BATCH_LIMIT / 2).chain([0, 1, 0]);
        let items: Vec<JobName> = names
            .map(|number| JobName::new(&format!("job-{number}")).unwrap())
            .collect();
        let cut = batches(items.clone(), |job| (job, 0));
        let sizes: Vec<usize> = cut.iter().map(Vec::len).collect();
        assert_eq!(sizes, [BATCH_LIMIT, BATCH_LIMIT / 2 + 2, 1]);
        for batch in &cut {
            let names: HashSet<&JobName> = batch.iter().collect();
            assert_eq!(names.len(), batch.len());
        }
        assert_eq!(cut.concat().len(), items.len());
    }
}
