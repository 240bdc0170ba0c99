//! What a self-test says to people.
//!
//! Must never: leave a figure out because it is a bad one.

use std::fmt::Write as _;

use super::plan::Fault;
use super::verdict::Plain;
use super::{Announcement, Event, Outcome, Verdict};
use crate::scheduler::time::short_duration;

/// What is said while it goes on.
pub fn event(event: &Event) -> String {
    match event {
        Event::Planned(plan) => announcement(plan),
        Event::Begun => "all replicas are at work\n".to_owned(),
        Event::GoesOn { elapsed, faults } => {
            format!("{}: {faults} faults so far\n", short_duration(*elapsed))
        }
        Event::Settles => "no more faults; waiting for what is under way\n".to_owned(),
    }
}

fn announcement(plan: &Announcement) -> String {
    let setup = &plan.setup;
    let faults: Vec<&str> = Fault::ALL
        .into_iter()
        .filter(|fault| setup.faults().any(|one| one == *fault))
        .map(Fault::words)
        .collect();
    let mut text = format!(
        "soloist verify: {} replicas for {} on {}\n",
        setup.replicas,
        short_duration(setup.duration),
        plan.place
    );
    let rows = [
        (
            "writes",
            format!("{} alone, and takes it away at the end", plan.scratch),
        ),
        (
            "starts",
            format!(
                "{} replicas of this program, and {} jobs with a lease of {}",
                setup.replicas,
                setup.jobs().len(),
                short_duration(setup.lease_ttl())
            ),
        ),
        (
            "hurts",
            format!("only these replicas: {}", faults.join(", ")),
        ),
        ("not tried", plan.not_tried.join("; ")),
        (
            "again",
            format!("--seed {} draws the same faults", setup.seed),
        ),
    ];
    for (name, what) in rows {
        let _ = writeln!(text, "  {name:<10} {what}");
    }
    text + "\n"
}

/// The verdict.
pub fn verdict(verdict: &Verdict) -> String {
    let mut text = String::from("\n");
    let head = match verdict.outcome {
        Outcome::Held => "HELD: all that soloist promises held".to_owned(),
        Outcome::Violated => "VIOLATED: a promise did not hold".to_owned(),
        Outcome::Interrupted => {
            "INTERRUPTED: nothing was violated so far, which is no verdict".to_owned()
        }
        Outcome::StoreForgot => {
            "STORE FORGOT: it lost what it had acknowledged, and there is no verdict".to_owned()
        }
        Outcome::StoreLost => "STORE LOST: it went away, and there is no verdict".to_owned(),
        Outcome::Unsettled => {
            "NOT OVER: nothing was violated, and something was so late that there is no verdict"
                .to_owned()
        }
        Outcome::NothingSeen => "NO VERDICT: too little was seen".to_owned(),
    };
    let because = verdict.because.as_ref();
    let because = because.map_or(String::new(), |why| format!(" ({why})"));
    let _ = writeln!(text, "{head}{because}\n");
    for (name, what) in figures(verdict) {
        let _ = writeln!(text, "  {name:<42} {what}");
    }
    text.push('\n');
    for violation in &verdict.violations {
        let law = violation.law.words();
        let _ = writeln!(text, "violated: {law}: {}", violation.what);
    }
    let more = verdict.laws.values().sum::<usize>();
    let more = more.saturating_sub(verdict.violations.len());
    if more > 0 {
        let _ = writeln!(text, "and {more} more");
    }
    for open in &verdict.open {
        let _ = writeln!(text, "still open: {open}");
    }
    if !verdict.violations.is_empty() || !verdict.open.is_empty() {
        text.push('\n');
    }
    for plain in &verdict.plain_locks {
        let _ = writeln!(text, "{}", told(plain));
    }
    if !verdict.warnings.is_empty() {
        text.push('\n');
    }
    for warning in &verdict.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    text.push('\n');
    text + &left(verdict)
}

fn figures(verdict: &Verdict) -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = Vec::new();
    let mut row = |name: &str, what: String| rows.push((name.to_owned(), what));
    let number = |count: usize| format!("{count:>6}");
    row("faults", number(verdict.faults.values().sum()));
    for (fault, count) in &verdict.faults {
        row(&format!("  {}", fault.words()), number(*count));
    }
    match &verdict.occurrences {
        None => row("occurrences due", "the ledger was not looked at".to_owned()),
        Some(due) => {
            row("occurrences due", number(due.due));
            for (name, count) in [
                ("  succeeded", due.succeeded),
                ("  skipped: the one before was unfinished", due.skipped),
                ("  missed: nobody could start them", due.missed),
                ("  closed unfinished: at most once", due.closed),
            ] {
                row(name, number(count));
            }
        }
    }
    let runs = &verdict.runs;
    row("attempts started", number(runs.attempts));
    row("  after one that broke off", number(runs.takeovers));
    row("  after one whose end was not recorded", number(runs.again));
    row(
        "  of before and after what is judged",
        number(runs.unjudged),
    );
    let slowest = runs.slowest_takeover_seconds;
    let slowest = slowest.map_or(
        "none while another replica was well".to_owned(),
        |slowest| format!("{slowest:>6.1}s, bound {:.1}s", runs.takeover_bound_seconds),
    );
    row("slowest takeover", slowest);
    row("promises broken", number(verdict.laws.values().sum()));
    for (law, count) in &verdict.laws {
        row(&format!("  {}", law.words()), number(*count));
    }
    let answers = &verdict.answers;
    let round_trips = format!("p50 {} ms, p99 {} ms", answers.p50_ms, answers.p99_ms);
    row("round trip to the store", round_trips);
    let ahead = answers.clock_ahead_ms;
    let side = if ahead < 0 { "behind" } else { "ahead of" };
    row(
        "the store's clock",
        format!("{} ms {side} this host's", ahead.abs()),
    );
    rows
}

fn told(plain: &Plain) -> String {
    let clocks = match plain.clocks_apart_seconds > 0.0 {
        true => format!("clocks up to {:.1}s apart", plain.clocks_apart_seconds),
        false => "clocks that agree".to_owned(),
    };
    let place = match plain.in_memory {
        true => ", in memory, as this store has no place for it",
        false => "",
    };
    match (&plain.findings, &plain.refused) {
        (Some(found), _) => format!(
            "a plain lock (SET NX PX, DEL{place}), {clocks}: of {} occurrences {} ran more than once; \
             {} runs overlapped; {} never came to an end",
            found.ran, found.ran_twice, found.overlaps, found.unfinished
        ),
        (None, refused) => format!(
            "a plain lock (SET NX PX, DEL), {clocks}: not compared ({})",
            refused.as_deref().unwrap_or("it could not be tried")
        ),
    }
}

fn left(verdict: &Verdict) -> String {
    let cleanup = &verdict.cleanup;
    let mut text = match cleanup.is_complete() {
        true => "nothing is left: no process, no file, no key\n".to_owned(),
        false => String::new(),
    };
    if let Some(evidence) = &verdict.evidence {
        text = format!("what replicas and jobs wrote down is kept in {evidence}\n");
    }
    if !cleanup.processes_gone {
        text += "processes are left that could not be killed: see `ps -ef`\n";
    }
    if !cleanup.left.is_empty() {
        let why = cleanup
            .why
            .as_deref()
            .unwrap_or("they could not be deleted");
        let _ = writeln!(text, "these may be left, to be deleted by hand ({why}):");
        for name in &cleanup.left {
            let _ = writeln!(text, "  {name}");
        }
    }
    text
}
