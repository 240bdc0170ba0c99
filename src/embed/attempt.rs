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
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};
use tracing::Instrument as _;

use super::context::{Context, LeaseInUse};
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

/// What an attempt takes beside its function.
pub(super) struct Setting {
    pub(super) attempt: Attempt,
    pub(super) replica: Arc<str>,
    pub(super) lease: Arc<LeaseInUse>,
    pub(super) limits: watch::Receiver<Limits>,
    pub(super) clock: Arc<dyn Clock>,
}

/// Runs a function to its end, one way or the other.
pub(super) async fn run(function: Function, setting: Setting) -> Ending {
    let job = Arc::clone(&setting.attempt.job);
    let now = setting.clock.boot();
    let course = Course::new(now, job.timeout, job.kill_grace);
    let timer = match setting.clock.timer() {
        Ok(timer) => timer,
        Err(error) => {
            let reason = format!("could not be started: its timer was refused: {error}");
            return ending(EndedHow::Failed, Some(reason));
        }
    };
    if now >= setting.limits.borrow().guard.stop_at {
        let reason =
            "not started: its lease had run out by then, as this replica or its host was frozen";
        return ending(EndedHow::Stopped, Some(reason.to_owned()));
    }
    let context = Context::new(
        setting.attempt.clone(),
        Arc::clone(&setting.replica),
        Arc::clone(&setting.lease),
    );
    let work = spawn(function, context, Arc::clone(&setting.lease));
    Watch {
        setting,
        course,
        timer,
        abort: Abort::NotYet,
    }
    .over(work)
    .await
}

/// What a function came back with.
struct Returned {
    result: Result<(), String>,
    /// It had been asked to end by then. What comes back before has ended by itself: also past the
    /// end of its lease, as the store knows whether another replica has it.
    was_cancelled: bool,
}

type Work = JoinHandle<Returned>;

fn spawn(function: Function, context: Context, lease: Arc<LeaseInUse>) -> Work {
    let span = tracing::info_span!(
        "attempt",
        job = context.job(),
        scheduled_at = %context.scheduled_at(),
        attempt = context.attempt(),
        token = context.fencing_token(),
    );
    // The function makes its future within the task, so that a panic in there is the attempt's too.
    let work = async move {
        let result = function(context).await.map_err(|error| text_of(&*error));
        // Here and not by whoever watches: who is asked to end after this was faster.
        let was_cancelled = lease.is_cancelled();
        Returned {
            result,
            was_cancelled,
        }
    };
    tokio::spawn(work.instrument(span))
}

/// Watches over one attempt.
struct Watch {
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
            let next_at = self.mind(limits, &work);
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

    fn judge(&self, ended: Result<Returned, JoinError>) -> Ending {
        let asked = self.course.cut_short;
        let (own, cut_short) = match ended {
            // It may have heard of it, and ended, before this task had its turn.
            Ok(Returned {
                result,
                was_cancelled: true,
            }) => (result.err(), Some(asked.unwrap_or_else(|| self.unseen()))),
            Ok(Returned { result, .. }) => (result.err(), None),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => {
                    let text = text_of_panic(&*panic);
                    (Some(format!("panicked: {text}")), asked)
                }
                Err(_) => (Some("aborted".to_owned()), asked),
            },
        };
        judge(own, cut_short)
    }

    /// Why it was asked to end, where not by this task.
    fn unseen(&self) -> CutShort {
        match self.setting.limits.borrow().kill_at {
            Some(_) => CutShort::Stopped,
            None => CutShort::LeaseExpired,
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
/// back with: it may have ended in the middle of its work.
fn judge(own: Option<String>, cut_short: Option<CutShort>) -> Ending {
    match (cut_short, own) {
        (None, None) => ending(EndedHow::Succeeded, None),
        (None, Some(error)) => ending(EndedHow::Failed, Some(error)),
        // The scheduler knows why, and says so.
        (Some(CutShort::Stopped), _) => ending(EndedHow::Stopped, None),
        (Some(CutShort::LeaseExpired), _) => {
            let reason = "ended by its guard: its lease was not renewed in time, as this replica was \
                          frozen, or cut off from the store";
            ending(EndedHow::Stopped, Some(reason.to_owned()))
        }
        (Some(CutShort::TimedOut { after }), own) => {
            let after = format_duration(after);
            let own = own.unwrap_or_else(|| "it returned".to_owned());
            let reason = format!("ran over its timeout of {after}: {own}");
            ending(EndedHow::TimedOut, Some(reason))
        }
    }
}

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
        for own in [None, Some("no".to_owned())] {
            let judged = judge(own.clone(), Some(CutShort::Stopped));
            assert_eq!(judged.how, EndedHow::Stopped);
            let after = Duration::from_secs(50);
            let judged = judge(own, Some(CutShort::TimedOut { after }));
            assert_eq!(judged.how, EndedHow::TimedOut);
        }
    }
}
