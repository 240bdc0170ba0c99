//! What became of an attempt: from the facts that its keeper tells to the [`Ending`] that the
//! scheduler is told.

use crate::guardian::wire::{self, End, Used};
use crate::guardian::{CutShort, Exit};
use crate::scheduler::lease::{AttemptDetail, MeasuredOf, Output, PeakMemory, Usage};
use crate::scheduler::time::format_duration;
use crate::scheduler::{EndedHow, Ending};

/// Judges the facts: the ending without its output.
pub(super) fn judge(end: &End, success_codes: &[i32]) -> Ending {
    let mut ending = judge_exit(&end.exit, end.cut_short, success_codes);
    ending.detail.usage = usage(&end.used);
    ending
}

fn usage(used: &Used) -> Option<Usage> {
    let peak_memory = used.peak_memory.map(|peak| match peak {
        wire::PeakMemory::OfAll(bytes) => PeakMemory {
            bytes,
            of: MeasuredOf::AllProcesses,
        },
        wire::PeakMemory::OfLargest(bytes) => PeakMemory {
            bytes,
            of: MeasuredOf::LargestProcess,
        },
    });
    let cpu = used.cpu;
    (cpu.is_some() || peak_memory.is_some()).then_some(Usage { cpu, peak_memory })
}

fn judge_exit(exit: &Exit, cut_short: Option<CutShort>, success_codes: &[i32]) -> Ending {
    let how = match (exit, cut_short) {
        (Exit::NotStarted(_), _) => EndedHow::Failed,
        (Exit::Withdrawn, _) | (_, Some(CutShort::Stopped | CutShort::LeaseExpired)) => {
            EndedHow::Stopped
        }
        (_, Some(CutShort::TimedOut { .. })) => EndedHow::TimedOut,
        (Exit::Exited { code }, None) if success_codes.contains(code) => EndedHow::Succeeded,
        (Exit::Answered { failure: None }, None) => EndedHow::Succeeded,
        (_, None) => EndedHow::Failed,
    };
    Ending {
        how,
        detail: AttemptDetail {
            exit_code: match exit {
                Exit::Exited { code } => Some(*code),
                _ => None,
            },
            signal: match exit {
                Exit::Signaled { signal, .. } => Some(*signal),
                _ => None,
            },
            reason: reason(exit, cut_short),
            ..AttemptDetail::default()
        },
        output: Output::default(),
    }
}

/// What code and signal don't say. For a stop the scheduler knows the reason better, and fills
/// it in where there is none.
fn reason(exit: &Exit, cut_short: Option<CutShort>) -> Option<String> {
    match (exit, cut_short) {
        (Exit::Withdrawn, Some(CutShort::LeaseExpired)) => Some(
            "not started: its lease had run out by then, as this replica or its host was frozen"
                .to_owned(),
        ),
        (Exit::Withdrawn, _) => Some("stopped before it was started".to_owned()),
        (Exit::NotStarted(error), _) => Some(error.to_string()),
        (_, Some(CutShort::TimedOut { after })) => {
            let after = format_duration(after);
            Some(format!("ran over its timeout of {after}: {exit}"))
        }
        (_, Some(CutShort::LeaseExpired)) => Some(
            "ended by its guardian: its lease was not renewed in time, as this replica was \
             frozen, or cut off from the store"
                .to_owned(),
        ),
        (Exit::Unknown { .. }, _) | (Exit::Signaled { .. }, None) => Some(exit.to_string()),
        (Exit::Answered { failure }, None) => failure.clone(),
        (Exit::Exited { .. }, None) | (_, Some(CutShort::Stopped)) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::guardian::{SpawnError, SpawnErrorKind};

    const EXITED: Exit = Exit::Exited { code: 0 };
    const TIMED_OUT: Option<CutShort> = Some(CutShort::TimedOut {
        after: Duration::from_secs(50),
    });

    fn not_started() -> Exit {
        let kind = SpawnErrorKind::ProgramNotFound;
        Exit::NotStarted(SpawnError::new(kind, "foo", "it is not there"))
    }

    #[test]
    fn only_an_exit_of_its_own_with_a_success_code_succeeds() {
        let how = |exit: &Exit| judge_exit(exit, None, &[0, 3]).how;
        assert_eq!(how(&EXITED), EndedHow::Succeeded);
        assert_eq!(how(&Exit::Exited { code: 3 }), EndedHow::Succeeded);
        assert_eq!(how(&Exit::Exited { code: 1 }), EndedHow::Failed);
        assert_eq!(judge_exit(&EXITED, None, &[3]).how, EndedHow::Failed);
        let signaled = Exit::Signaled {
            signal: 9,
            core_dumped: false,
        };
        assert_eq!(how(&signaled), EndedHow::Failed);
        let cause = String::new();
        assert_eq!(how(&Exit::Unknown { cause }), EndedHow::Failed);
        assert_eq!(how(&not_started()), EndedHow::Failed);
    }

    #[test]
    fn what_was_cut_short_is_no_success_even_with_a_success_code() {
        let timed_out = judge_exit(&EXITED, TIMED_OUT, &[0]);
        assert_eq!(timed_out.how, EndedHow::TimedOut);
        assert_eq!(timed_out.detail.exit_code, Some(0));
        let stopped = judge_exit(&EXITED, Some(CutShort::Stopped), &[0]);
        assert_eq!(stopped.how, EndedHow::Stopped);
        assert_eq!(
            stopped.detail.reason, None,
            "that is the scheduler's to say"
        );
    }

    #[test]
    fn what_was_withdrawn_is_stopped_and_what_could_not_start_has_failed() {
        let withdrawn = judge_exit(&Exit::Withdrawn, Some(CutShort::Stopped), &[0]);
        assert_eq!(withdrawn.how, EndedHow::Stopped);
        assert_eq!(withdrawn.detail.exit_code, None);
        let failed = judge_exit(&not_started(), None, &[0]);
        assert_eq!(failed.how, EndedHow::Failed);
        let reason = failed.detail.reason.unwrap();
        assert_eq!(reason, "can't start `foo`: it is not there");
    }

    #[test]
    fn signals_are_named() {
        let reason = |signal| {
            let core_dumped = signal == 11;
            let exit = Exit::Signaled {
                signal,
                core_dumped,
            };
            judge_exit(&exit, None, &[0]).detail.reason.unwrap()
        };
        assert_eq!(reason(15), "killed by SIGTERM");
        assert_eq!(reason(11), "killed by SIGSEGV (core dumped)");
        assert_eq!(reason(31), "killed by SIGSYS");
        assert_eq!(reason(40), "killed by signal 40");
    }

    #[test]
    fn a_timeout_is_told_with_how_it_ended() {
        let exit = Exit::Signaled {
            signal: 9,
            core_dumped: false,
        };
        let detail = judge_exit(&exit, TIMED_OUT, &[0]).detail;
        assert_eq!(detail.signal, Some(9));
        let reason = "ran over its timeout of 50s: killed by SIGKILL";
        assert_eq!(detail.reason.unwrap(), reason);
    }
}
