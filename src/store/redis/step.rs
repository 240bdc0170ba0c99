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

use super::back_off::BackOff;
use super::fault::Fault;
use super::keys::Keys;
use super::link::Talk;
use super::reply::{self, Misread, Written};
use super::request::{self, Wish};
use crate::store::StoreError;
use crate::store::draft::{self, Draft};
use crate::store::engine::Terms;

/// How often a step is decided. Of those that meet over one record, one is written each time. Not so often
/// that all pauses together take what a call may: one that ran out of time looks like a connection that
/// is stuck.
const DECISIONS: u32 = 12;

/// How often it is decided at once. Who is still beaten then is one of many, and waits a moment before it
/// reads again: a herd that doesn't is mostly busy with what comes too late.
const AT_ONCE: u32 = 2;

/// The first such moment, and the longest; half of it is by chance.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

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
        place, keys, terms, ..
    } = &plan;
    let read = request::read(keys, &terms.jobs, Wish::Nothing);
    let mut heard = None;
    let mut back_off = BackOff::new(FIRST_PAUSE, LONGEST_PAUSE);
    for decision in 0..DECISIONS {
        if decision > AT_ONCE {
            tokio::time::sleep(back_off.pause()).await;
            heard = None;
        }
        let shown = match heard.take() {
            Some(shown) => Ok(shown),
            None => reply::shown(&talk.run(&read).await?, &terms.jobs),
        };
        let mut shown = match shown {
            Ok(shown) => shown,
            Err(found) => return Ok(Err(misread(place, &found))),
        };
        if plan.may_have_twin {
            shown.reading.life = shown.reading.life.elected();
        }
        let mut draft = Draft::of(&shown.reading);
        let answer = match step(&mut draft) {
            Ok(answer) => answer,
            Err(fault) => return Ok(Err(fault.at(place))),
        };
        let changes = draft.finish();
        let acknowledged = plan.acknowledgements > 0 && changes.promises;
        if changes.is_empty() && !acknowledged {
            return Ok(Ok(answer));
        }
        let request = request::write(keys, terms, &shown, &changes);
        let reply = talk.run(&request).await?;
        match reply::written(&reply, &terms.jobs) {
            Ok(Written::Done { fault }) => {
                warn(place, &fault);
                let wanted = if acknowledged {
                    plan.acknowledgements
                } else {
                    0
                };
                let counts = acknowledge(&mut talk, place, wanted).await?;
                return Ok(counts.map(|()| answer));
            }
            Ok(Written::Changed(now)) => heard = Some(*now),
            Err(found) => return Ok(Err(misread(place, &found))),
        }
    }
    Ok(Err(beaten(place)))
}

/// Others were faster each time.
fn beaten(place: &str) -> StoreError {
    let cause = format!("others kept changing what it was to change, {DECISIONS} times");
    Fault::unreachable(place, cause).error
}

fn misread(place: &str, misread: &Misread) -> StoreError {
    Fault::misread(place, misread).error
}

/// Waits until so many replicas have what was written. Until then it is there, and may be lost with its
/// server: it does not count. Sent again, the same request waits for the same.
async fn acknowledge(
    talk: &mut Talk,
    place: &str,
    wanted: u32,
) -> Result<Result<(), StoreError>, RedisError> {
    if wanted == 0 {
        return Ok(Ok(()));
    }
    let got = talk.wait(wanted, ACKNOWLEDGEMENT_TIMEOUT).await?;
    if got >= wanted {
        return Ok(Ok(()));
    }
    let cause = format!(
        "{got} of the {wanted} replicas of `min_replicas_ack` have acknowledged a write: bring them back, or lower it"
    );
    Ok(Err(Fault::unreachable(place, cause).error))
}

fn warn(place: &str, fault: &str) {
    if !fault.is_empty() {
        tracing::warn!(store = %place, error = fault, "failed to write history");
    }
}
