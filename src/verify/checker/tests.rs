//! The checker finds what it is there to find: each law has evidence that breaks it, and evidence
//! beside it that doesn't.

use std::time::Duration;

use super::*;

const TTL: Duration = Duration::from_secs(3);

fn plan(name: &'static str, once: bool) -> JobPlan {
    JobPlan {
        name,
        every_seconds: 1,
        lasts: Duration::from_millis(20),
        once,
        queues: false,
    }
}

fn secs(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// A run of the occurrence of that second, with a token of its own.
fn run(second: i64, attempt: u32, lived: (f64, f64), ended: bool) -> Run {
    Run {
        job: "job".to_owned(),
        scheduled_at: Timestamp::from_second(second),
        attempt,
        token: u64::try_from(second).unwrap() * 100 + u64::from(attempt),
        replica: "verify-1".to_owned(),
        started: secs(lived.0),
        last: secs(lived.1),
        ended,
        met: false,
    }
}

fn judged(once: bool, runs: &[Run], due: &[Due], hurts: &[Hurt]) -> Findings {
    judged_after(None, once, runs, due, hurts)
}

/// The same, by a ledger that began anew then.
fn judged_after(
    forgot: Option<Timestamp>,
    once: bool,
    runs: &[Run],
    due: &[Due],
    hurts: &[Hurt],
) -> Findings {
    judge(&Evidence {
        jobs: &[plan("job", once)],
        runs,
        due,
        hurts,
        replicas: &["verify-1".to_owned(), "verify-2".to_owned()],
        deserters: &[],
        lease_ttl: TTL,
        forgot,
    })
}

fn laws(findings: &Findings) -> Vec<Law> {
    findings.violations.iter().map(|one| one.law).collect()
}

fn due(second: i64, fate: Fate) -> Due {
    Due {
        job: "job",
        at: Timestamp::from_second(second),
        fate,
    }
}

fn hurt(replica: Option<&str>, from: f64, to: f64) -> Hurt {
    Hurt {
        replica: replica.map(str::to_owned),
        from: secs(from),
        to: secs(to),
    }
}

#[test]
fn one_run_after_the_other_breaks_nothing() {
    let runs = [
        run(1, 1, (1.0, 1.5), true),
        run(2, 1, (2.0, 2.1), false),
        run(2, 2, (5.0, 5.5), true),
    ];
    let fates = [
        due(1, Fate::Succeeded),
        due(2, Fate::Succeeded),
        due(3, Fate::Skipped),
    ];
    let findings = judged(false, &runs, &fates, &[]);
    assert_eq!(findings.violations, []);
    assert_eq!(findings.takeovers.len(), 1);
}

#[test]
fn two_runs_that_live_at_once_are_found() {
    let overlap = [run(1, 1, (1.0, 3.0), true), run(2, 1, (2.9, 3.5), true)];
    assert_eq!(laws(&judged(false, &overlap, &[], &[])), [Law::Overlap]);
    // A long one is not hidden by a short one between.
    let hidden = [
        run(1, 1, (1.0, 9.0), true),
        run(2, 1, (2.0, 2.1), true),
        run(3, 1, (3.0, 3.1), true),
    ];
    let findings = judged(false, &hidden, &[], &[]);
    assert_eq!(laws(&findings), [Law::Overlap, Law::Overlap]);
}

#[test]
fn a_run_that_met_another_one_is_found_whatever_its_times() {
    let mut met = run(2, 1, (5.0, 5.1), true);
    met.met = true;
    let runs = [run(1, 1, (1.0, 1.1), false), met];
    assert_eq!(laws(&judged(false, &runs, &[], &[])), [Law::Overlap]);
}

#[test]
fn an_attempt_that_is_started_twice_is_found() {
    let mut second = run(1, 1, (4.0, 4.1), true);
    second.token += 1;
    let runs = [run(1, 1, (1.0, 1.1), false), second];
    assert_eq!(laws(&judged(false, &runs, &[], &[])), [Law::AttemptTwice]);
}

#[test]
fn what_a_ledger_that_began_anew_grants_again_is_the_stores_doing() {
    for ended in [false, true] {
        let mut second = run(1, 1, (4.0, 4.1), true);
        second.token = 2_001;
        let runs = [run(1, 1, (1.0, 1.1), ended), second];
        let born = |millis| Some(Timestamp::from_millis(millis));
        let between = judged_after(born(1), false, &runs, &[], &[]);
        assert_eq!(laws(&between), []);
        for forgot in [None, born(3)] {
            let found = laws(&judged_after(forgot, false, &runs, &[], &[]));
            assert!(found.contains(&Law::AttemptTwice), "{forgot:?}");
            assert_eq!(found.contains(&Law::RanAgain), ended, "{forgot:?}");
        }
        // What may run once may not, whatever the store forgot.
        let once = judged_after(born(1), true, &runs, &[], &[]);
        assert_eq!(laws(&once), [Law::OnceTwice]);
    }
}

#[test]
fn tokens_that_fall_or_stand_still_are_found() {
    for token in [100, 101] {
        let mut second = run(2, 1, (2.0, 2.1), true);
        second.token = token;
        let runs = [run(1, 1, (1.0, 1.1), true), second];
        assert_eq!(laws(&judged(false, &runs, &[], &[])), [Law::TokenOrder]);
    }
}

#[test]
fn a_job_that_may_run_once_and_started_twice_is_found() {
    let runs = [run(1, 1, (1.0, 1.1), false), run(1, 2, (5.0, 5.1), true)];
    assert_eq!(laws(&judged(true, &runs, &[], &[])), [Law::OnceTwice]);
    assert_eq!(laws(&judged(false, &runs, &[], &[])), []);
}

#[test]
fn what_ended_and_ran_again_needs_a_reason_of_its_own_replica() {
    let runs = [run(1, 1, (1.0, 1.1), true), run(1, 2, (5.0, 5.1), true)];
    for (hurts, found) in [
        (vec![], vec![Law::RanAgain]),
        (vec![hurt(Some("verify-1"), 1.2, 1.9)], vec![]),
        (vec![hurt(None, 0.5, 4.0)], vec![]),
        (vec![hurt(Some("verify-2"), 1.2, 1.9)], vec![Law::RanAgain]),
        (vec![hurt(Some("verify-1"), 0.1, 0.9)], vec![Law::RanAgain]),
    ] {
        let findings = judged(false, &runs, &[], &hurts);
        assert_eq!(laws(&findings), found, "{hurts:?}");
        assert_eq!(findings.again, usize::from(found.is_empty()));
    }
}

#[test]
fn what_the_ledger_lost_or_left_unfinished_is_found() {
    let why = || "why".to_owned();
    for fate in [Fate::Unrecorded(why()), Fate::Closed(why())] {
        let findings = judged(false, &[], &[due(1, fate.clone())], &[]);
        assert_eq!(laws(&findings), [Law::Lost], "{fate:?}");
    }
    // At most once is what such a job asks for.
    let findings = judged(true, &[], &[due(1, Fate::Closed(why()))], &[]);
    assert_eq!(laws(&findings), []);
}

#[test]
fn what_is_open_is_late_and_not_lost() {
    let findings = judged(false, &[], &[due(1, Fate::Open("why".to_owned()))], &[]);
    assert_eq!(laws(&findings), []);
    assert_eq!(findings.open, ["job of 1970-01-01T00:00:01Z: why"]);
}

#[test]
fn a_ledger_that_says_other_than_the_job_is_found() {
    let broken_off = [run(1, 1, (1.0, 1.1), false)];
    let findings = judged(false, &broken_off, &[due(1, Fate::Succeeded)], &[]);
    assert_eq!(laws(&findings), [Law::Contradiction]);
    for fate in [Fate::Skipped, Fate::Missed] {
        let findings = judged(false, &broken_off, &[due(1, fate)], &[]);
        assert_eq!(laws(&findings), [Law::Contradiction]);
    }
}

#[test]
fn a_takeover_has_a_bound_where_another_replica_was_well_all_the_time() {
    let runs = [
        run(9, 1, (10.0, 10.5), false),
        run(9, 2, (15.0, 15.1), true),
    ];
    for (hurts, told) in [
        (vec![], Some((secs(4.5), false))),
        (
            vec![hurt(Some("verify-1"), 10.5, 12.0)],
            Some((secs(4.5), false)),
        ),
        (vec![hurt(Some("verify-2"), 12.0, 13.0)], None),
        (vec![hurt(Some("verify-2"), 8.0, 9.6)], None),
        (
            vec![hurt(Some("verify-2"), 8.0, 9.4)],
            Some((secs(4.5), false)),
        ),
        (vec![hurt(None, 11.0, 11.5)], None),
    ] {
        let findings = judged(false, &runs, &[], &hurts);
        assert_eq!(slowest(&findings, TTL), told, "{hurts:?}");
    }
}

#[test]
fn the_plain_lock_is_judged_by_the_same_measure() {
    let runs = [
        run(1, 1, (1.0, 4.0), true),
        run(1, 1, (1.5, 1.6), true),
        run(5, 1, (5.0, 5.1), false),
    ];
    let findings = judge_plain(&[plan("job", false)], &runs);
    let expected = PlainFindings {
        ran: 2,
        ran_twice: 1,
        overlaps: 1,
        unfinished: 1,
    };
    assert_eq!(findings, expected);
}
