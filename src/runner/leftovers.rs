//! placeholder until joined
use crate::scheduler::lease::RunId;
pub(super) async fn end_run(_run: &RunId) -> Vec<u32> {
    Vec::new()
}
