//! What every engine holds a batch to before it does any of it.
//!
//! Must never: depend on an engine; a batch that one store takes, all take.

use std::collections::HashSet;

use super::StoreError;
use crate::scheduler::job::JobName;
use crate::scheduler::lease::BATCH_LIMIT;

/// Refuses a batch that is too large, or that names a job twice: of two requests for one job
/// in one atomic step neither comes first.
pub(super) fn check_batch<'a>(
    place: &str,
    jobs: impl Iterator<Item = &'a JobName>,
) -> Result<(), StoreError> {
    let refused = |cause: String, cure: &str| StoreError::Refused {
        place: place.to_owned(),
        cause,
        cure: cure.to_owned(),
    };
    let mut seen = HashSet::new();
    for job in jobs {
        if seen.len() == BATCH_LIMIT {
            let cause = format!("a batch holds at most {BATCH_LIMIT} jobs");
            return Err(refused(cause, "cut it into several"));
        }
        if !seen.insert(job) {
            let cause = format!("job `{job}` comes twice in one batch");
            return Err(refused(cause, "send its requests one after the other"));
        }
    }
    Ok(())
}
