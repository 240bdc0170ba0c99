//! What is made of answers, without a store.

use super::super::{Effect, Replica};
use super::*;
use crate::scheduler::lease::{Hold, LeaseName, Mode, NameState};

const TTL: Duration = Duration::from_secs(10);

fn at(millis: u64) -> BootTime {
    BootTime::since_boot(Duration::from_millis(100_000 + millis))
}

fn store(millis: i64) -> Timestamp {
    Timestamp::from_millis(1_000_000 + millis)
}

fn nobody_yet() -> Holds {
    Holds::new(Replica {
        id: Uuid::nil(),
        name: "one".to_owned(),
    })
}

fn hold() -> Hold {
    Hold {
        id: Uuid::new_v4(),
        owner: Uuid::new_v4(),
        names: [LeaseName::new("a").expect("a name")].into(),
        mode: Mode::Exclusive,
        ttl: TTL,
    }
}

fn answer(millis: i64, answer: LeaseAnswer) -> Result<Answered<Vec<LeaseAnswer>>, StoreError> {
    Ok(Answered::new(store(millis), vec![answer]))
}

/// What is wanted done by then: the requests of calls, and what is told.
fn effects(holds: &mut Holds, now: BootTime) -> (Vec<LeaseRequest>, Vec<Word>) {
    holds.advance(now);
    let (mut asked, mut told) = (Vec::new(), Vec::new());
    while let Some(effect) = holds.poll_effect() {
        match effect {
            Effect::Call { requests, .. } => asked.extend(requests),
            Effect::Tell(_, word) => told.push(word),
            Effect::Survey | Effect::Tidy { .. } => {}
        }
    }
    (asked, told)
}

/// Since a moment after 0.
fn who_has_a_lease(ttl: Duration) -> Holds {
    let mut holds = nobody_yet();
    let hold = Hold { ttl, ..hold() };
    holds.acquire(hold, Patience::Endless, at(0), at(0));
    let (asked, _) = effects(&mut holds, at(0));
    let granted = LeaseAnswer::Granted {
        token: FencingToken::new(7),
        deadline: store(0) + ttl,
        remaining: ttl,
        replayed: false,
    };
    holds.answered(Kind::Asking, &asked, answer(0, granted), at(0), at(1));
    let (_, told) = effects(&mut holds, at(1));
    assert!(matches!(told[..], [Word::Granted(_)]), "{told:?}");
    holds
}

/// Whoever stands in line for what nobody has may have died there; nobody else may ever ask for it.
#[test]
fn what_nobody_has_is_put_in_order_also_where_somebody_waits_for_it() {
    let mut holds = nobody_yet();
    let state = |name: &str, waiting: &[&str]| NameState {
        name: LeaseName::new(name).expect("a name"),
        mode: Mode::Exclusive,
        held: Vec::new(),
        waiting: waiting
            .iter()
            .map(|who| ((*who).to_owned(), Mode::Exclusive))
            .collect(),
    };
    holds.surveyed(Some(vec![state("a", &[]), state("b", &["two"])]), at(0));
    let mut tidied = Vec::new();
    while let Some(effect) = holds.poll_effect() {
        if let Effect::Tidy { names, .. } = effect {
            tidied.extend(names);
        }
    }
    assert_eq!(
        tidied,
        ["a", "b"].map(|name| LeaseName::new(name).expect("a name"))
    );
}

/// What was renewed a moment before the news is renewed a moment after them: by what it was told
/// then, it might go on for seconds without being written down.
#[test]
fn news_of_another_ledger_are_not_passed_over_where_a_lease_was_just_renewed() {
    // A short one is due before that.
    for (ttl, due) in [(TTL, 500), (Duration::from_secs(1), 167)] {
        let mut holds = who_has_a_lease(ttl);
        holds.opening(at(100));
        let mut asked = |millis| effects(&mut holds, at(millis)).0;
        assert_eq!(asked(due - 1), [], "{ttl:?}");
        let soon = asked(due);
        assert!(matches!(soon[..], [LeaseRequest::Renew { .. }]), "{soon:?}");
    }
}

/// Who asked in between was told that it is lost, and has stopped: others may have seen to it that
/// what it did was undone.
#[test]
fn what_was_over_once_is_not_a_lease_again() {
    let mut holds = who_has_a_lease(TTL);
    // Renewals fail, and the last one is answered while the process stands still.
    let (asked, _) = effects(&mut holds, at(8_500));
    assert!(
        matches!(asked[..], [LeaseRequest::Renew { .. }]),
        "{asked:?}"
    );
    let renewed = LeaseAnswer::Renewed {
        deadline: store(18_600),
        remaining: TTL,
    };
    let renewed = answer(8_600, renewed);
    holds.answered(Kind::Keeping, &asked, renewed, at(8_500), at(9_500));
    let (asked, told) = effects(&mut holds, at(9_500));
    assert!(matches!(told[..], [Word::Lost]), "{told:?}");
    assert!(
        matches!(asked[..], [LeaseRequest::Release { .. }]),
        "{asked:?}"
    );
}

/// What somebody is told who is answered `now` that the name is somebody else's, having begun to
/// want it at `since` with this patience.
fn told_that_it_is_busy(patience: Patience, since: BootTime, now: BootTime) -> Vec<Word> {
    let mut holds = nobody_yet();
    holds.acquire(hold(), patience, since, now);
    let (asked, _) = effects(&mut holds, now);
    let busy = Busy {
        held: Vec::new(),
        ahead: 1,
        ahead_until: None,
    };
    let busy = answer(0, LeaseAnswer::Busy(busy));
    holds.answered(Kind::Asking, &asked, busy, now, now);
    effects(&mut holds, now).1
}

#[test]
fn who_waited_is_told_that_its_time_is_over_and_who_never_did_that_it_is_busy() {
    let (since, over) = (at(0), at(1_000));
    let is_over = |told: Vec<Word>| matches!(told[..], [Word::Refused(AcquireError::TimedOut(_))]);
    let is_busy = |told: Vec<Word>| matches!(told[..], [Word::Refused(AcquireError::Busy(_))]);
    // Its first grant came too late to be used, and it is asked again when its time is over.
    let until = Patience::Until;
    assert!(is_over(told_that_it_is_busy(until(over), since, over)));
    assert!(is_busy(told_that_it_is_busy(until(since), since, since)));
    assert!(is_busy(told_that_it_is_busy(Patience::None, since, over)));
    let goes_on = |patience, now| told_that_it_is_busy(patience, since, now).is_empty();
    assert!(goes_on(until(over), since));
    assert!(goes_on(Patience::Endless, over));
}
