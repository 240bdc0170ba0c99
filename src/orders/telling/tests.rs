//! Each answer in words, and what a second sending makes of it.

use super::*;
use crate::scheduler::job::JobName;
use crate::scheduler::lease::OrderKind;
use crate::scheduler::time::Timestamp;

const NOW: Timestamp = Timestamp::from_second(1_795_250_760);
const BEFORE: Timestamp = Timestamp::from_second(1_795_250_700);

/// What is said of an answer: done or not, and the words.
fn words(answer: OrderAnswer, again: bool) -> (bool, String) {
    let job = JobName::new("reprot").unwrap();
    let request = Request {
        what: OrderKind::Pause,
        jobs: std::slice::from_ref(&job),
        by: "alice@db1",
        id: None,
    };
    let said = Said {
        job: job.clone(),
        answer,
        now: NOW,
        again,
    };
    let names = ["report", "sweep"].map(str::to_owned);
    match tell(request, &said, &names) {
        Told::Done(text) => (true, text),
        Told::Refused { message, hint } => (false, format!("{message}; {hint}")),
    }
}

fn paused(since: Timestamp, by: &str) -> OrderAnswer {
    let by = by.to_owned();
    OrderAnswer::Paused { since, by }
}

#[test]
fn a_pause_that_was_there_is_told_with_its_beginning_and_who_asked_for_it() {
    let (done, text) = words(paused(BEFORE, "bob@db2"), false);
    let told = format!("reprot: was paused already, since {BEFORE} by bob@db2");
    assert_eq!((done, text), (true, told));
    assert!(
        words(paused(NOW, "alice@db1"), false)
            .1
            .contains("until `soloist resume reprot`")
    );
}

#[test]
fn what_an_earlier_sending_did_is_told_as_done() {
    let killed_before = words(OrderAnswer::Idle, true);
    assert_eq!(
        killed_before,
        (true, "reprot: nothing of it runs any more".to_owned())
    );
    let resumed_before = words(OrderAnswer::Resumed { since: None }, true);
    assert_eq!(
        resumed_before,
        (true, "reprot: is not paused any more".to_owned())
    );
    let own = words(paused(BEFORE, "alice@db1"), true).1;
    assert!(own.starts_with("reprot: paused"), "{own}");
    // Somebody else's stays somebody else's.
    let other = words(paused(BEFORE, "bob@db2"), true).1;
    assert!(other.contains("already"), "{other}");
}

#[test]
fn what_was_not_done_is_told_with_a_cure() {
    for (answer, parts) in [
        (
            OrderAnswer::Unknown,
            ["no job is called `reprot`", "did you mean `report`?"],
        ),
        (
            OrderAnswer::Disabled,
            ["`reprot` is disabled", "soloist run-once reprot"],
        ),
        (
            OrderAnswer::Idle,
            ["nothing of `reprot` runs", "soloist history reprot"],
        ),
        (
            OrderAnswer::Full,
            ["too many occurrences", "soloist status"],
        ),
    ] {
        let (done, text) = words(answer, false);
        assert!(!done, "{text}");
        for part in parts {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

#[test]
fn a_kill_tells_what_ran_from_what_only_waited() {
    let killed = |running, withdrawn| {
        let scheduled_at = BEFORE;
        words(
            OrderAnswer::Killed {
                scheduled_at,
                running,
                withdrawn,
            },
            false,
        )
        .1
    };
    assert!(killed(0, 1).ends_with("ran nowhere at the moment and is cancelled"));
    assert!(killed(0, 2).contains("2 occurrences that waited for their turn are cancelled"));
    assert!(killed(0, 0).ends_with("ran nowhere at the moment and is cancelled"));
    assert!(killed(1, 0).ends_with("is to end: its running attempt is told so"));
    assert!(killed(4, 0).ends_with("is to end: its 4 running attempts are told so"));
}
