//! What a dead-man's switch is told: the start of each attempt, and the end of its occurrence.
//!
//! ```text
//!  attempt 1 ─ start ─▶ fails, or moves on      nothing: another one follows
//!  attempt 2 ─ start ─▶ ends ─▶ success, the exit code, or fail
//! ```
//!
//! A switch takes the last start that it heard of for what runs, and a success under the id of
//! another run does not end that. So a start that nobody took is forgotten where its attempt has
//! no end of its own to come after it.
//!
//! Must never: tell of what never started; that nothing came is what the switch is there for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Teller;
use super::courier::{Parcel, Ping, Receiver};
use super::message::tail;
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{
    AttemptDetail, Cause, Closing, FencingToken, Outcome, Output, RunId,
};

/// How much of what an attempt printed goes with a ping, in bytes of each stream: such services
/// take 10 to 100 kB.
const PING_TAIL: usize = 5 * 1000;

impl Teller {
    pub(super) fn ping_start(&mut self, job: &JobName, run_id: Option<RunId>, token: FencingToken) {
        let Some((mut ping, _)) = self.ping_of(job) else {
            return;
        };
        self.starts.insert(token, Arc::clone(&ping.counts));
        ping.step = Some("start".to_owned());
        ping.run_id = run_id.map(|id| id.to_string());
        self.send(ping);
    }

    /// An attempt is over. Where the occurrence is not, its start is not told late: the switch
    /// would take it for that of an attempt which runs, and wait for an end that never comes.
    pub(super) fn attempt_over(&mut self, token: FencingToken, goes_on: bool) {
        if let Some(counts) = self.starts.remove(&token).filter(|_| goes_on) {
            counts.store(false, Ordering::Relaxed);
        }
    }

    pub(super) fn ping_end(&mut self, closing: &Closing, output: &Output) {
        let step = match (closing.outcome, closing.detail.exit_code) {
            (Outcome::Succeeded, _) => None,
            // What never started is what the switch itself is there to notice.
            (Outcome::Skipped | Outcome::Missed | Outcome::HandedOver, _) => return,
            // It makes room for a newer one, by the job's own policy: that one's end counts.
            _ if closing.detail.cause == Some(Cause::Replaced) => return,
            (Outcome::Failed, Some(code @ 1..=255)) => Some(code.to_string()),
            _ => Some("fail".to_owned()),
        };
        let Some((mut ping, with_output)) = self.ping_of(&closing.occurrence.job) else {
            return;
        };
        let is_whole = closing.detail.shard.is_none();
        let run_id = closing.run_id.filter(|_| is_whole);
        ping.step = step;
        ping.run_id = run_id.map(|id| id.to_string());
        if with_output {
            ping.output = Some(printed(&closing.detail, output));
        }
        self.send(ping);
    }

    /// A ping that says nothing yet, and whether what was printed goes with an end.
    fn ping_of(&mut self, job: &JobName) -> Option<(Ping, bool)> {
        let ping = self.route(job)?.ping.clone()?;
        let blank = Ping {
            job: job.clone(),
            url: ping.url,
            step: None,
            run_id: None,
            output: None,
            counts: Arc::new(AtomicBool::new(true)),
        };
        Some((blank, ping.output))
    }

    fn send(&self, ping: Ping) {
        let receiver = Receiver::Switch(ping.job.clone());
        self.courier.take(receiver, Parcel::Ping(ping));
    }
}

/// What an attempt printed last, and how it ended, for the body of a ping.
fn printed(detail: &AttemptDetail, output: &Output) -> String {
    let streams = [&output.stdout, &output.stderr];
    let mut parts: Vec<String> = streams
        .into_iter()
        .filter_map(|stream| tail(stream, PING_TAIL))
        .collect();
    parts.extend(detail.reason.clone());
    parts.join("\n")
}
