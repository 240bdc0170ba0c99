//! What every engine holds a batch to before it does any of it.
//!
//! Must never: depend on an engine; a batch that one store takes, all take.

use std::collections::HashSet;

use super::StoreError;
use crate::scheduler::job::JobName;
use crate::scheduler::lease::BATCH_LIMIT;

/// Refuses a batch that is too large, or that names a shard of a job twice: of two requests for
/// one in one atomic step neither comes first.
pub(super) fn check_batch<'a>(
    place: &str,
    jobs: impl Iterator<Item = (&'a JobName, u32)>,
) -> Result<(), StoreError> {
    let refused = |cause: String, cure: &str| StoreError::Refused {
        place: place.to_owned(),
        cause,
        cure: cure.to_owned(),
    };
    let mut seen = HashSet::new();
    for job in jobs {
        if seen.len() == BATCH_LIMIT {
            let cause = format!("a batch holds at most {BATCH_LIMIT} items");
            return Err(refused(cause, "cut it into several"));
        }
        if !seen.insert(job) {
            let cause = format!("job `{}` comes twice in one batch", job.0);
            return Err(refused(cause, "send its requests one after the other"));
        }
    }
    Ok(())
}
