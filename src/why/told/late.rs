//! Why an attempt began late, in a sentence.
//!
//! Must never: make a reason of what isn't recorded.

use std::time::Duration;

use crate::scheduler::time::short_duration;
use crate::why::lateness::{Lateness, Reason};

pub(super) fn sentence(late: &Lateness) -> String {
    let after = format!("It began {} after its instant", length(late.seconds));
    let why = match late.reason {
        Reason::RandomDelay { until } => format!("its `random_delay` ended at {until}"),
        Reason::Turn { behind, until } => format!(
            "it waited for its turn behind the occurrence of {behind}, which was over at {until}"
        ),
        Reason::After { until } => {
            format!("what it comes after had succeeded at {until}, and not before")
        }
        Reason::Grace { until } => format!(
            "the store, which was new, had lost data or been restarted, or whose clock was set, granted nothing until {until}"
        ),
        Reason::Room => "its replica had no room for it before (`max_running`)".to_owned(),
        Reason::Away => {
            "nobody claimed it before: replicas were away or full, did not reach the store, or had no table in force that has the job"
                .to_owned()
        }
        Reason::Retry { attempt, until } => {
            format!("attempt {attempt} had failed, and its back-off ended at {until}")
        }
        Reason::Takeover { attempt } => {
            format!("it took over when the lease of attempt {attempt} had run out")
        }
        Reason::HandOver { attempt, until } => {
            format!("attempt {attempt} was handed over at {until}")
        }
        Reason::Reasserted => {
            return "Its beginning is not recorded: the store lost it, and its holder wrote it down anew at that time.".to_owned();
        }
        Reason::NotRecorded => return format!("{after}; why it started late isn't recorded."),
    };
    match late.unexplained_seconds {
        None => format!("{after}: {why}."),
        Some(rest) => format!(
            "{after}: {why}; why it started {} later than that isn't recorded.",
            length(rest)
        ),
    }
}

fn length(seconds: f64) -> String {
    short_duration(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}
