//! What people are told: each notice of the scheduler as one log line, readable alone and by
//! its fields.

use tracing::{debug, error, info, warn};

use crate::scheduler::Notice;
use crate::scheduler::lease::Outcome;

/// Logs a notice.
pub(super) fn tell(notice: &Notice, replica: &str) {
    match notice {
        Notice::Started { .. }
        | Notice::Ended { .. }
        | Notice::Stopping { .. }
        | Notice::Superseded { .. }
        | Notice::Unreleased { .. } => tell_of_attempt(notice, replica),
        Notice::Skipped { .. }
        | Notice::Missed { .. }
        | Notice::Closed { .. }
        | Notice::FellBehind { .. }
        | Notice::SettledAhead { .. }
        | Notice::NewJob { .. } => tell_of_job(notice, replica),
        _ => tell_of_replica(notice, replica),
    }
}

/// A line about an occurrence, with the fields that name it.
macro_rules! line {
    ($level:ident, $occurrence:expr, $replica:expr, $($rest:tt)+) => {
        $level!(job = %$occurrence.job, scheduled_at = %$occurrence.scheduled_at,
            replica = $replica, $($rest)+)
    };
}

fn tell_of_attempt(notice: &Notice, replica: &str) {
    match notice {
        Notice::Started {
            occurrence,
            grant,
            takeover,
        } => {
            let what = if *takeover { ": takes over" } else { "" };
            line!(
                info,
                occurrence,
                replica,
                attempt = grant.attempt,
                token = grant.token.get(),
                "attempt started{what}"
            );
        }
        Notice::Ended { .. } => tell_of_end(notice, replica),
        Notice::Stopping {
            occurrence,
            attempt,
            token,
            reason,
        } => {
            line!(
                warn,
                occurrence,
                replica,
                attempt,
                token = token.get(),
                "stopping the attempt: {}",
                reason.as_str()
            );
        }
        other => tell_of_unrecorded_end(other, replica),
    }
}

/// The end of an attempt that the ledger doesn't have.
fn tell_of_unrecorded_end(notice: &Notice, replica: &str) {
    match notice {
        Notice::Superseded {
            occurrence,
            attempt,
            token,
        } => {
            line!(
                warn,
                occurrence,
                replica,
                attempt,
                token = token.get(),
                "attempt ended after its lease was another replica's"
            );
        }
        Notice::Unreleased {
            occurrence,
            attempt,
            token,
            outcome,
            ..
        } => {
            line!(error, occurrence, replica, attempt, token = %token,
                "attempt {}, and the store could not be told: it will be taken for lost",
                in_words(*outcome));
        }
        _ => {}
    }
}

fn tell_of_end(notice: &Notice, replica: &str) {
    let Notice::Ended {
        occurrence,
        attempt,
        token,
        outcome,
        detail,
    } = notice
    else {
        return;
    };
    macro_rules! ended {
        ($level:ident) => {
            line!(
                $level,
                occurrence,
                replica,
                attempt,
                token = token.get(),
                exit_code = detail.exit_code,
                signal = detail.signal,
                reason = detail.reason.as_deref(),
                "attempt {}",
                in_words(*outcome)
            )
        };
    }
    match outcome {
        Outcome::Succeeded => ended!(info),
        Outcome::Failed | Outcome::TimedOut | Outcome::Lost => ended!(error),
        _ => ended!(warn),
    }
}

fn tell_of_job(notice: &Notice, replica: &str) {
    match notice {
        Notice::Skipped {
            occurrence,
            unfinished,
        } => {
            line!(
                warn,
                occurrence,
                replica,
                "skipped: the occurrence of {} is unfinished",
                unfinished.scheduled_at
            );
        }
        Notice::Missed { occurrence } => {
            line!(
                error,
                occurrence,
                replica,
                "missed: it could not be claimed in time"
            );
        }
        Notice::Closed { occurrence } => {
            line!(
                error,
                occurrence,
                replica,
                "lost: its holder vanished and it may not run again"
            );
        }
        Notice::FellBehind { job, first, newest } => {
            warn!(job = %job, scheduled_at = %newest, replica,
                "this replica fell behind: from {first} on, only the newest is claimed");
        }
        Notice::SettledAhead { job, until } => {
            error!(job = %job, replica, "the ledger has it settled until {until}, which is in the \
                future: a clock was set wrong; it won't run before");
        }
        Notice::NewJob { job } => debug!(job = %job, replica, "new to the ledger"),
        _ => {}
    }
}

fn tell_of_replica(notice: &Notice, replica: &str) {
    match notice {
        Notice::Grace { wait } => {
            warn!(
                replica,
                "the ledger is new or lost data, or its clock stepped back: nothing is \
                started for {wait:?}, so that running holders can re-assert their leases"
            );
        }
        Notice::StoreAway { cause } => error!(replica, "the store is away, trying again: {cause}"),
        Notice::StoreBack { after } => info!(replica, "the store is back after {after:?}"),
        Notice::ClockJumped(jump) => {
            warn!(replica, millis = jump.millis, "the store's clock jumped");
        }
        Notice::Ready { jobs, next } => match next {
            Some(next) => info!(replica, jobs, next = %next, "ready"),
            None => info!(replica, jobs, "ready; nothing is due ever again"),
        },
        Notice::Draining { running } => info!(replica, running, "draining: nothing new is started"),
        other => debug!(replica, ?other, "notice"),
    }
}

fn in_words(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Succeeded => "succeeded",
        Outcome::Failed => "failed",
        Outcome::TimedOut => "timed out",
        Outcome::Lost => "was lost",
        Outcome::Cancelled => "was cancelled",
        Outcome::HandedOver => "was handed over",
        Outcome::Skipped => "was skipped",
        Outcome::Missed => "was missed",
    }
}
