//! One atomic step as a conversation: read, decide, write; and again where somebody was faster.
//!
//! ```text
//!  read ─▶ decide ─┬─▶ nothing to write: over
//!            ▲     └─▶ write ─┬─▶ written: over
//!            └──── changed ◀──┘
//! ```
//!
//! Must never: answer what was not written, or go on for ever.

use std::time::Duration;

use redis::RedisError;

use super::fault::Fault;
use super::keys::Keys;
use super::link::Talk;
use super::reply::{self, Misread, Written};
use super::request::{self, Wish};
use crate::store::StoreError;
use crate::store::draft::{self, Draft};
use crate::store::engine::Terms;

/// How often a step is decided. Of those that meet over one record, one is written each time.
const DECISIONS: u32 = 32;

/// What a step takes beside itself.
pub(super) struct Plan {
    pub(super) place: String,
    pub(super) keys: Keys,
    pub(super) terms: Terms,
    /// How many replicas have to have what is written before it counts.
    pub(super) acknowledgements: u32,
    /// Another server may be taken for this one, or have been until a moment ago.
    pub(super) may_have_twin: bool,
}

/// How long replicas get to acknowledge. A part of a call, which waits for them no longer.
const ACKNOWLEDGEMENT_TIMEOUT: Duration = Duration::from_millis(400);

/// Takes a step. The outer error is of the connection.
pub(super) async fn take<R, S>(
    mut talk: Talk,
    plan: Plan,
    mut step: S,
) -> Result<Result<R, StoreError>, RedisError>
where
    R: Send,
    S: FnMut(&mut Draft<'_>) -> Result<R, draft::Fault> + Send,
{
    let Plan {
        place,
        keys,
        terms,
        acknowledgements,
        may_have_twin,
    } = plan;
    let misread = |misread: Misread| Fault::misread(&place, &misread).error;
    let reply = talk
        .run(&request::read(&keys, &terms.jobs, Wish::Nothing))
        .await?;
    let mut shown = match reply::shown(&reply, &terms.jobs) {
        Ok(shown) => shown,
        Err(found) => return Ok(Err(misread(found))),
    };
    for _ in 0..DECISIONS {
        if may_have_twin {
            shown.reading.life = shown.reading.life.elected();
        }
        let mut draft = Draft::of(&shown.reading);
        let answer = match step(&mut draft) {
            Ok(answer) => answer,
            Err(fault) => return Ok(Err(fault.at(&place))),
        };
        let changes = draft.finish();
        let acknowledged = acknowledgements > 0 && changes.promises;
        if changes.is_empty() && !acknowledged {
            return Ok(Ok(answer));
        }
        let request = request::write(&keys, &terms, &shown, &changes);
        let reply = talk.run(&request).await?;
        match reply::written(&reply, &terms.jobs) {
            Ok(Written::Done { fault }) => {
                warn(&place, &fault);
                if acknowledged {
                    let got = talk.wait(acknowledgements, ACKNOWLEDGEMENT_TIMEOUT).await?;
                    if got < acknowledgements {
                        return Ok(Err(unacknowledged(&place, got, acknowledgements)));
                    }
                }
                return Ok(Ok(answer));
            }
            Ok(Written::Changed(now)) => shown = *now,
            Err(found) => return Ok(Err(misread(found))),
        }
    }
    let cause = format!("others kept changing what it was to change, {DECISIONS} times");
    let mut fault = Fault::unreachable(&place, cause);
    fault.disconnect = false;
    Ok(Err(fault.error))
}

/// What was written is there, and may be lost with its server: it does not count. Sent again, the
/// same request waits for the same.
fn unacknowledged(place: &str, got: u32, wanted: u32) -> StoreError {
    let cause = format!(
        "{got} of the {wanted} replicas of `min_replicas_ack` have acknowledged a write: bring them back, or lower it"
    );
    Fault::unreachable(place, cause).error
}

fn warn(place: &str, fault: &str) {
    if !fault.is_empty() {
        tracing::warn!(store = %place, error = fault, "failed to write history");
    }
}
