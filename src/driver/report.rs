//! What people are told: each notice of the scheduler as one log line, readable alone and by
//! its fields.

mod tables;

use tracing::{debug, error, info, warn};

use crate::scheduler::Notice;
use crate::scheduler::lease::Outcome;
use crate::scheduler::schedule::told_apart;
use crate::scheduler::time::{format_duration, short_duration};

/// Logs a notice.
pub(super) fn tell(notice: &Notice, replica: &str) {
    match notice {
        Notice::Started { .. }
        | Notice::Ended { .. }
        | Notice::Slow { .. }
        | Notice::Stopping { .. }
        | Notice::Superseded { .. }
        | Notice::Unreleased { .. } => tell_of_attempt(notice, replica),
        Notice::Skipped { .. }
        | Notice::Missed { .. }
        | Notice::Closed { .. }
        | Notice::NotStarted { .. }
        | Notice::Waiting { .. }
        | Notice::ScheduleChanged { .. }
        | Notice::FellBehind { .. }
        | Notice::SettledAhead { .. }
        | Notice::NewJob { .. } => tell_of_job(notice, replica),
        Notice::Drift { .. }
        | Notice::DriftOver { .. }
        | Notice::RevisionsMixed(_)
        | Notice::Outdated { .. }
        | Notice::Withdrawn { .. }
        | Notice::InForceAgain { .. } => tables::tell(notice, replica),
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
            ..
        } => {
            let what = match (takeover, grant.attempt) {
                (true, _) => ": takes over",
                (false, 1) => "",
                (false, _) => ": next attempt",
            };
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
        Notice::Slow {
            occurrence,
            attempt,
            token,
            warn_after,
            ..
        } => {
            line!(
                warn,
                occurrence,
                replica,
                attempt,
                token = token.get(),
                "the attempt runs for longer than {} (`warn_after`)",
                format_duration(*warn_after)
            );
        }
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
        retry_after,
        detail,
    } = notice
    else {
        return;
    };
    let usage = detail.usage.unwrap_or_default();
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
                cpu_seconds = usage.cpu.map(|time| time.as_secs_f64()),
                peak_memory_bytes = usage.peak_memory.map(|peak| peak.bytes),
                retry_after_seconds = retry_after.map(|wait| wait.as_secs_f64()),
                "attempt {}",
                in_words(*outcome)
            )
        };
    }
    match outcome {
        Outcome::Succeeded => ended!(info),
        _ if retry_after.is_some() => ended!(warn),
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
        Notice::NotStarted { occurrence, cause } => {
            line!(
                warn,
                occurrence,
                replica,
                cause = cause.as_str(),
                "skipped: {}",
                cause.as_str()
            );
        }
        Notice::Waiting { occurrence } => {
            line!(info, occurrence, replica, "waits for its turn");
        }
        Notice::ScheduleChanged { job, from, to } => {
            let [from, to] = told_apart(from, to);
            warn!(job = %job, replica, from, to, "another schedule than the ledger had: what fell \
                due by both is still run, what by the ledger's alone and nobody claimed is missed");
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
        Notice::LedgerLost { jobs } => warn!(
            jobs,
            replica,
            "the store lost the ledger of jobs: they were enrolled anew; what waited is gone"
        ),
        Notice::PauseCameBack { job, pause } => warn!(
            job = %job,
            replica,
            "the store lost the pause of {} by {}: the job is paused again",
            pause.since,
            pause.by
        ),
        Notice::Forgotten { jobs } => {
            let names: Vec<&str> = jobs.iter().map(|job| job.as_str()).collect();
            let names = names.join(", ");
            info!(
                replica,
                jobs = jobs.len(),
                names,
                "forgot jobs that no table has had for long"
            );
        }
        Notice::NotSwept { cause } => {
            debug!(replica, "jobs that no table has are kept for now: {cause}");
        }
        Notice::Grace { wait } => {
            warn!(
                replica,
                "the ledger is new or lost data, or its clock stepped back: nothing is \
                started for {}, so that running holders can re-assert their leases",
                short_duration(*wait)
            );
        }
        Notice::StoreAway { cause } => error!(replica, "the store is away, trying again: {cause}"),
        Notice::StoreBack { after } => {
            info!(
                replica,
                "the store is back after {}",
                short_duration(*after)
            );
        }
        Notice::ClockJumped(jump) => {
            warn!(replica, millis = jump.millis, "the store's clock jumped");
        }
        Notice::ClockSkewed { ahead_ms, over } => tell_of_skew(*ahead_ms, *over, replica),
        Notice::Ready { .. } | Notice::Reloaded { .. } => tell_of_table(notice, replica),
        // What is over was told by its own line.
        Notice::Over { .. } => {}
        Notice::Draining { running } => info!(replica, running, "draining: nothing new is started"),
        other => debug!(replica, ?other, "notice"),
    }
}

fn tell_of_table(notice: &Notice, replica: &str) {
    match notice {
        Notice::Ready { jobs, next } => match next {
            Some(next) => info!(replica, jobs, next = %next, "ready"),
            None => info!(replica, jobs, "ready; nothing is due ever again"),
        },
        Notice::Reloaded {
            jobs,
            changed,
            removed,
        } => match changed + removed {
            // Whoever read it has told what else it changes, if anything.
            0 => debug!(replica, jobs, "goes on with a table of the same jobs"),
            _ => info!(
                replica,
                jobs,
                enrolled = changed,
                removed,
                "goes on with another table"
            ),
        },
        _ => {}
    }
}

fn tell_of_skew(ahead_ms: i64, over: bool, replica: &str) {
    match over {
        true => info!(
            replica,
            ahead_ms, "this host's wall clock agrees with the store's again"
        ),
        false => warn!(
            replica,
            ahead_ms,
            "this host's wall clock is far from the store's: nothing is started early or late for \
            it, but jobs that look at the time see another; look after NTP here and on the store's host"
        ),
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt::Debug;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    use super::*;
    use crate::scheduler::job::JobName;
    use crate::scheduler::lease::{
        AttemptDetail, FencingToken, MeasuredOf, Occurrence, PeakMemory, Usage,
    };
    use crate::scheduler::time::Timestamp;

    /// The fields of a line, in text.
    type Fields = BTreeMap<&'static str, String>;

    /// Keeps the lines that are logged.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<Fields>>>);

    impl Subscriber for Lines {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }
        fn event(&self, event: &Event<'_>) {
            let mut line = Line(Fields::new());
            event.record(&mut line);
            self.0.lock().unwrap().push(line.0);
        }
        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }
        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }

    struct Line(Fields);

    impl Visit for Line {
        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            self.0.insert(field.name(), format!("{value:?}"));
        }
    }

    /// What is logged of an end with this usage.
    fn told(usage: Option<Usage>) -> Fields {
        let lines = Lines::default();
        let notice = Notice::Ended {
            occurrence: Occurrence {
                job: JobName::new("report").unwrap(),
                scheduled_at: Timestamp::from_second(0),
            },
            attempt: 1,
            token: FencingToken::new(7),
            outcome: Outcome::Succeeded,
            retry_after: None,
            detail: AttemptDetail {
                usage,
                ..AttemptDetail::default()
            },
        };
        tracing::subscriber::with_default(lines.clone(), || tell(&notice, "r1"));
        let mut told = lines.0.lock().unwrap();
        assert_eq!(told.len(), 1);
        told.remove(0)
    }

    #[test]
    fn the_line_of_an_ended_attempt_has_what_it_used_in_seconds_and_bytes() {
        let line = told(Some(Usage {
            cpu: Some(Duration::from_micros(1_250_001)),
            peak_memory: Some(PeakMemory {
                bytes: 34 << 20,
                of: MeasuredOf::LargestProcess,
            }),
        }));
        assert_eq!(line["message"], "attempt succeeded");
        assert_eq!(line["cpu_seconds"], "1.250001");
        assert_eq!(line["peak_memory_bytes"], "35651584");
    }

    #[test]
    fn another_schedule_is_told_as_it_was_written() {
        let lines = Lines::default();
        let identity = |rule| format!("{rule} zone=UTC gap=run_after fold=first days=all");
        let notice = Notice::ScheduleChanged {
            job: JobName::new("report").unwrap(),
            from: identity("@every 20s"),
            to: identity("@every 30s"),
        };
        tracing::subscriber::with_default(lines.clone(), || tell(&notice, "r1"));
        let told = &lines.0.lock().unwrap()[0];
        assert_eq!(
            [&told["from"], &told["to"]],
            ["\"@every 20s\"", "\"@every 30s\""]
        );
    }

    #[test]
    fn what_was_not_measured_is_no_field_of_the_line() {
        for usage in [None, Some(Usage::default())] {
            let line = told(usage);
            assert!(line.contains_key("message"), "{line:?}");
            assert!(!line.contains_key("cpu_seconds"), "{line:?}");
            assert!(!line.contains_key("peak_memory_bytes"), "{line:?}");
        }
    }
}
