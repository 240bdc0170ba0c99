//! One attempt of a function: a task that runs it, and one that watches over it.
//!
//! The watch goes by the guard, so that a driver's loop that is stuck, or a store that is away, keeps
//! no function running past its lease. A task can be aborted only where it awaits: one that never
//! does runs on, and its end is told when it has one, however late. Told earlier, another replica
//! would be given what still runs here.
//!
//! Must never: tell an end while the function runs.

use std::any::Any;
use std::error::Error as StdError;
use std::fmt::Write as _;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};
use tracing::Instrument as _;

use super::context::{CancelReason, Context, LeaseInUse};
use super::course::{Course, CutShort, Limits};
use crate::clock::{Clock, Timer};
use crate::scheduler::lease::{AttemptDetail, Output};
use crate::scheduler::time::{BootTime, format_duration};
use crate::scheduler::{Attempt, EndedHow, Ending};

/// Any error of a function.
pub(super) type BoxError = Box<dyn StdError + Send + Sync>;

/// A job's function, called once an attempt.
pub(super) type Function =
    Arc<dyn Fn(Context) -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync>;

/// How much of an error's text the ledger keeps, in bytes.
const REASON_LIMIT: usize = 4096;

/// How long a function may take to notice that it was aborted before it is told of.
const ABORT_PATIENCE: Duration = Duration::from_secs(1);

/// How long a function may take to begin on a runtime of its own. Then another replica may have one
/// that is less busy.
const BEGIN_PATIENCE: Duration = Duration::from_secs(1);

/// How often a timer is asked for that the kernel refuses, and how long after one another:
/// descriptors come back. Whoever gave up at once would have the occurrence again at once.
const TIMER_TRIES: u32 = 10;
const TIMER_RETRY: Duration = Duration::from_millis(100);

/// What an attempt takes beside its function.
pub(super) struct Setting {
    pub(super) attempt: Attempt,
    pub(super) replica: Arc<str>,
    pub(super) lease: Arc<LeaseInUse>,
    pub(super) limits: watch::Receiver<Limits>,
    pub(super) clock: Arc<dyn Clock>,
    /// Where the function runs, if not here.
    pub(super) runtime: Option<Handle>,
}

/// Runs a function to its end, one way or the other.
pub(super) async fn run(function: Function, setting: Setting) -> Ending {
    let job = Arc::clone(&setting.attempt.job);
    let timer = match timer_for(&setting).await {
        Ok(timer) => timer,
        Err(error) => {
            let reason = format!(
                "never started: this process can have no timer: {error}; raise its limit of open \
                 files"
            );
            return ending(EndedHow::NotStarted, Some(reason));
        }
    };
    let now = setting.clock.boot();
    let course = Course::new(now, job.timeout, job.kill_grace);
    if now >= setting.limits.borrow().guard.stop_at {
        let reason =
            "never started: its lease had run out by then, as this replica or its host was frozen";
        return ending(EndedHow::NotStarted, Some(reason.to_owned()));
    }
    let context = Context::new(
        setting.attempt.clone(),
        Arc::clone(&setting.replica),
        Arc::clone(&setting.lease),
    );
    let begins = Begins::default();
    let work = spawn(function, context, &setting, Arc::clone(&begins));
    Watch {
        begin_by: setting.runtime.is_some().then(|| now + BEGIN_PATIENCE),
        begins,
        setting,
        course,
        timer,
        abort: Abort::NotYet,
    }
    .over(work)
    .await
}

/// A timer to watch an attempt by: nothing is started without.
async fn timer_for(setting: &Setting) -> io::Result<Timer> {
    let mut tries = 1;
    loop {
        let refused = match setting.clock.timer() {
            Ok(timer) => return Ok(timer),
            Err(error) if tries == TIMER_TRIES => return Err(error),
            Err(error) => error,
        };
        tries += 1;
        tokio::select! {
            () = setting.lease.cancelled() => return Err(refused),
            // Not by the clock: it has no timer to give.
            () = tokio::time::sleep(TIMER_RETRY) => {}
        }
    }
}

/// What a function came back with.
struct Returned {
    own: Own,
    /// It had been asked to end by then. What comes back before has ended by itself: also past the
    /// end of its lease, as the store knows whether another replica has it.
    was_cancelled: bool,
}

/// How a function ended, by its own account.
#[derive(Clone, Debug)]
enum Own {
    Done,
    Failed(String),
    Panicked(String),
    Aborted,
}

impl Own {
    fn panicked(panic: &(dyn Any + Send)) -> Self {
        Own::Panicked(format!("panicked: {}", text_of_panic(panic)))
    }
}

type Work = JoinHandle<Returned>;

/// Whether a function begins, or is not to any more: who says so first.
type Begins = Arc<OnceLock<bool>>;

fn spawn(function: Function, context: Context, setting: &Setting, begins: Begins) -> Work {
    let lease = Arc::clone(&setting.lease);
    let span = tracing::info_span!(
        "attempt",
        job = context.job(),
        scheduled_at = %context.scheduled_at(),
        attempt = context.attempt(),
        token = context.fencing_token(),
    );
    let work = async move {
        // Where nobody waits for it any more, or all stood still since its lease was looked at.
        if begins.set(true).is_err() || lease.check().is_err() {
            return Returned {
                own: Own::Aborted,
                was_cancelled: true,
            };
        }
        // The function makes its future in here, so that a panic in there is the attempt's too.
        let run = async { function(context).await.map_err(|error| text_of(&*error)) };
        let own = match AssertUnwindSafe(run).catch_unwind().await {
            Ok(Ok(())) => Own::Done,
            Ok(Err(text)) => Own::Failed(text),
            Err(panic) => Own::panicked(&*panic),
        };
        // Here and not by whoever watches: who is asked to end after this was faster.
        let was_cancelled = lease.is_cancelled();
        Returned { own, was_cancelled }
    };
    let work = work.instrument(span);
    match &setting.runtime {
        Some(runtime) => runtime.spawn(work),
        None => tokio::spawn(work),
    }
}

/// Watches over one attempt.
struct Watch {
    /// Until when the function has to begin.
    begin_by: Option<BootTime>,
    begins: Begins,
    setting: Setting,
    course: Course,
    timer: Timer,
    abort: Abort,
}

/// Whether a function was aborted, and what came of it.
#[derive(Clone, Copy)]
enum Abort {
    NotYet,
    /// When it is told that it runs on.
    Told {
        complain_at: BootTime,
    },
    InVain,
}

impl Watch {
    async fn over(mut self, mut work: Work) -> Ending {
        let mut told = true;
        loop {
            let limits = *self.setting.limits.borrow_and_update();
            let mut next_at = self.mind(limits, &work);
            if let Some(by) = self.begin_by.filter(|_| self.begins.get().is_none()) {
                if let Some(ending) = self.withdraw(by) {
                    return ending;
                }
                next_at = next_at.map(|next| next.min(by)).or(Some(by));
            }
            tokio::select! {
                // What ended before it was cut short has ended by itself.
                biased;
                ended = &mut work => return self.judge(ended),
                changed = self.setting.limits.changed(), if told => {
                    // Nobody is left to give orders: the guard holds on its own.
                    told = changed.is_ok();
                }
                () = self.timer.sleep_until(next_at) => {}
            }
        }
    }

    /// What has not begun, and is not to any more: as that took too long, or it was to end.
    fn withdraw(&self, begin_by: BootTime) -> Option<Ending> {
        let is_late = self.setting.clock.boot() >= begin_by;
        let ends = self.setting.lease.is_cancelled();
        if !(is_late || ends) || self.begins.set(false).is_err() {
            return None;
        }
        if ends {
            let aborted = Returned {
                own: Own::Aborted,
                was_cancelled: true,
            };
            return Some(self.judge(Ok(aborted)));
        }
        self.setting.lease.cancel(CancelReason::Ended);
        let reason = format!(
            "never started: the threads of the program's runtime were busy for {}; what computes \
             belongs into `spawn_blocking`",
            format_duration(BEGIN_PATIENCE)
        );
        Some(ending(EndedHow::NotStarted, Some(reason)))
    }

    fn judge(&self, ended: Result<Returned, JoinError>) -> Ending {
        let lease = &self.setting.lease;
        let Returned { own, was_cancelled } = ended.unwrap_or_else(|error| Returned {
            own: match error.try_into_panic() {
                // Of a destructor: the function's own was caught.
                Ok(panic) => Own::panicked(&*panic),
                Err(_) => Own::Aborted,
            },
            was_cancelled: lease.is_cancelled(),
        });
        // It may have heard of it, and ended, before this task had its turn.
        let why = || self.course.cut_short.unwrap_or_else(|| self.unseen());
        let ending = judge(own, was_cancelled.then(why), lease.reason());
        // What it left behind holds no lease from here on.
        lease.cancel(CancelReason::Ended);
        ending
    }

    /// Why it was asked to end, where not by this task.
    fn unseen(&self) -> CutShort {
        let told = self.setting.limits.borrow().kill_at.is_some();
        match self.setting.lease.reason() {
            // It looked at its lease itself.
            CancelReason::LeaseExpiring if !told => CutShort::LeaseExpired,
            _ => CutShort::Stopped,
        }
    }

    /// Asks it to end or makes it, if that is due; answers when to look again.
    fn mind(&mut self, limits: Limits, work: &Work) -> Option<BootTime> {
        let now = self.setting.clock.boot();
        if let Some(reason) = self.course.go_on(now, limits) {
            self.setting.lease.cancel(reason);
        }
        if !self.course.is_over(now, limits) {
            return Some(self.course.next_at(limits));
        }
        match self.abort {
            Abort::NotYet => {
                work.abort();
                let complain_at = now + ABORT_PATIENCE;
                self.abort = Abort::Told { complain_at };
                Some(complain_at)
            }
            Abort::Told { complain_at } if now < complain_at => Some(complain_at),
            Abort::Told { .. } => {
                self.abort = Abort::InVain;
                self.complain();
                None
            }
            Abort::InVain => None,
        }
    }

    fn complain(&self) {
        let attempt = &self.setting.attempt;
        tracing::error!(job = %attempt.job.name, scheduled_at = %attempt.scheduled_at,
            attempt = attempt.number, token = attempt.token.get(),
            "the function was aborted and runs on: it does not await, or waits in a \
             destructor; another replica may run it too once its lease is over");
    }
}

/// What became of it, as the scheduler is told. What was cut short is no success, whatever it came
/// back with: it may have ended in the middle of its work. Nor is it a failure: another attempt goes
/// on where nobody asked for the end of the occurrence.
fn judge(own: Own, cut_short: Option<CutShort>, asked: CancelReason) -> Ending {
    match (cut_short, own) {
        (None, Own::Done) => ending(EndedHow::Succeeded, None),
        (None, Own::Failed(text) | Own::Panicked(text)) => ending(EndedHow::Failed, Some(text)),
        // Nobody here did it.
        (None, Own::Aborted) => {
            let reason = "ended with the runtime that it ran on: that was shut down";
            ending(EndedHow::Stopped, Some(reason.to_owned()))
        }
        // An error is the cancellation, mostly; a panic may be more.
        (Some(CutShort::Stopped), Own::Panicked(text)) => {
            ending(EndedHow::Stopped, Some(format!("{asked}; {text}")))
        }
        // The scheduler knows why, and says so.
        (Some(CutShort::Stopped), _) => ending(EndedHow::Stopped, None),
        (Some(CutShort::LeaseExpired), own) => {
            let mut reason = "its lease was over: it was not renewed in time, as this process \
                              was frozen, or cut off from the store"
                .to_owned();
            if let Own::Panicked(text) = own {
                reason = format!("{reason}; {text}");
            }
            ending(EndedHow::Stopped, Some(reason))
        }
        (Some(CutShort::TimedOut { after }), own) => {
            let after = format_duration(after);
            let own = match &own {
                Own::Done => "it returned",
                Own::Failed(text) | Own::Panicked(text) => text,
                Own::Aborted => ABORTED,
            };
            let reason = format!("ran over its timeout of {after}: {own}");
            ending(EndedHow::TimedOut, Some(reason))
        }
    }
}

const ABORTED: &str = "aborted";

fn ending(how: EndedHow, reason: Option<String>) -> Ending {
    Ending {
        how,
        detail: reason.map_or_else(AttemptDetail::default, |text| {
            AttemptDetail::reason(cut(text))
        }),
        output: Output::default(),
    }
}

/// An error with all that is behind it, each part once.
fn text_of(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            // Writing to a string can't fail.
            let _ = write!(text, ": {more}");
        }
        cause = error.source();
        if text.len() > REASON_LIMIT {
            break;
        }
    }
    text
}

fn text_of_panic(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    let text = owned.or_else(|| panic.downcast_ref::<&'static str>().copied());
    text.unwrap_or("with something that is no text")
}

fn cut(mut text: String) -> String {
    if text.len() > REASON_LIMIT {
        text.truncate(text.floor_char_boundary(REASON_LIMIT));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("failed to close orders")]
    struct Outer(#[source] std::io::Error);

    #[test]
    fn an_error_is_told_with_what_is_behind_it() {
        let error = Outer(std::io::Error::other("the database is away"));
        let text = text_of(&error);
        assert_eq!(text, "failed to close orders: the database is away");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let text = cut("ä".repeat(REASON_LIMIT));
        assert!(text.len() <= REASON_LIMIT + '…'.len_utf8() && text.ends_with("ä…"));
    }

    #[test]
    fn what_was_cut_short_is_no_success_whatever_it_came_back_with() {
        let text = || "no".to_owned();
        let all = [Own::Done, Own::Failed(text()), Own::Panicked(text())];
        for own in all {
            for cut_short in [CutShort::Stopped, CutShort::LeaseExpired] {
                let judged = judge(own.clone(), Some(cut_short), CancelReason::LeaseExpiring);
                assert_eq!(judged.how, EndedHow::Stopped);
            }
            let after = Duration::from_secs(50);
            let timed_out = Some(CutShort::TimedOut { after });
            let judged = judge(own, timed_out, CancelReason::TimedOut);
            assert_eq!(judged.how, EndedHow::TimedOut);
        }
    }
}
