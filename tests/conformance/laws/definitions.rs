//! Which definition of a job is in force while tables differ, and that nothing starts by another.

use soloist::scheduler::job::JobName;
use soloist::scheduler::lease::{
    Claim, ClaimAnswer, Definition, Enrolment, Force, Outcome, Registration, ReleaseAnswer,
    RenewalAnswer, ScheduleChange, Sighting,
};

use crate::bench::{
    Bench, Peer, SHORT_TTL, STEP, anew, claim, enrolment, job, later, release, renewal,
};
use crate::fixtures::Fixture;

fn definition(digest: &str, revision: Option<u64>) -> Definition {
    let digest = digest.to_owned();
    Definition { digest, revision }
}

fn told(job: &JobName, digest: &str, revision: Option<u64>) -> Enrolment {
    Enrolment {
        definition: definition(digest, revision),
        ..enrolment(job)
    }
}

impl Peer {
    async fn enrol(&self, enrolment: Enrolment) -> Registration {
        let answered = self.store.register(&self.caller, &[enrolment]).await;
        answered.expect("the store answers").answer.remove(0)
    }

    /// A claim to the first occurrence of a job that is new, by a definition.
    async fn first_by(&self, name: &str, digest: &str, revision: Option<u64>) -> Claim {
        let job = job(name);
        let known = self.enrol(told(&job, digest, revision)).await;
        assert!(known.new && known.outdated.is_none(), "{known:?}");
        by(&claim(&job, known.settled_until + STEP), digest)
    }
}

fn by(claim: &Claim, digest: &str) -> Claim {
    Claim {
        definition: digest.to_owned(),
        ..anew(claim)
    }
}

fn outdated_by(digest: &str, revision: Option<u64>) -> ClaimAnswer {
    let in_force = definition(digest, revision);
    ClaimAnswer::Outdated { in_force }
}

pub(crate) async fn from_the_enrolment_of_a_newer_definition_on_an_older_one_starts_nothing<
    F: Fixture,
>(
    bench: &Bench<F>,
) {
    let (old, new) = (bench.replica("old").await, bench.replica("new").await);
    let first = old.first_by("report", "aa", None).await;
    old.run(&first, Outcome::Succeeded).await;
    let known = new.enrol(told(&first.occurrence.job, "bb", None)).await;
    assert_eq!((known.outdated, known.new), (None, false));
    let next = later(&first, 1);
    let refused = old.claim_when_due(&next).await;
    assert_eq!(refused, outdated_by("bb", None));
    // It consumed nothing.
    new.run(&by(&next, "bb"), Outcome::Succeeded).await;
    assert_eq!(old.history(None).await.len(), 2);
    let again = old.enrol(told(&first.occurrence.job, "aa", None)).await;
    assert_eq!(again.outdated, Some(definition("bb", None)));
    let force = again.force.expect("one is in force");
    assert_eq!(force.digest, "bb");
}

pub(crate) async fn of_two_revisions_the_greater_is_in_force_whichever_came_first<F: Fixture>(
    bench: &Bench<F>,
) {
    let a = bench.replica("a").await;
    for (name, first, second) in [("up", 1, 2), ("down", 2, 1)] {
        let name = job(name);
        a.enrol(told(&name, &format!("of {first}"), Some(first)))
            .await;
        let known = a
            .enrol(told(&name, &format!("of {second}"), Some(second)))
            .await;
        assert_eq!(
            known.force.map(|force| force.digest).as_deref(),
            Some("of 2")
        );
        let newer = (second < first).then(|| definition("of 2", Some(2)));
        assert_eq!(known.outdated, newer);
    }
}

/// As of an old host that comes back with a file from before `revision` was used.
pub(crate) async fn a_revision_is_in_force_over_none_whichever_came_first<F: Fixture>(
    bench: &Bench<F>,
) {
    let a = bench.replica("a").await;
    for (name, first, second) in [("older", Some(5), None), ("newer", None, Some(5))] {
        let name = job(name);
        let of = |revision: Option<u64>| revision.map_or("without", |_| "with");
        a.enrol(told(&name, of(first), first)).await;
        let known = a.enrol(told(&name, of(second), second)).await;
        let force = known.force.expect("one is in force");
        assert_eq!(force.definition(), definition("with", Some(5)));
        let newer = second.is_none().then(|| definition("with", Some(5)));
        assert_eq!(known.outdated, newer);
        // To do without it again, all who have it have to be gone.
        let over = Enrolment {
            over: Some("with".to_owned()),
            again: true,
            ..told(&name, "without", None)
        };
        assert_eq!(a.enrol(over).await.outdated, None);
        let next = a.enrol(told(&name, "next", None)).await;
        assert_eq!(next.force.expect("one").digest, "next");
    }
}

/// Else the first that comes back to an empty ledger would decide, whatever it has.
pub(crate) async fn what_the_ledger_lost_begins_with_the_definition_that_the_caller_saw<
    F: Fixture,
>(
    bench: &Bench<F>,
) {
    let a = bench.replica("a").await;
    let mut seen = Force::default();
    seen.put(&definition("aa", None));
    seen.put(&definition("bb", None));
    let lost = job("lost");
    let mut back = told(&lost, "aa", None);
    back.again = true;
    back.seen.force = Some(seen.clone());
    let known = a.enrol(back.clone()).await;
    assert_eq!(known.outdated, Some(definition("bb", None)));
    assert_eq!(known.force, Some(seen));
    // Where the ledger knows the job, it knows better.
    let kept = job("kept");
    a.enrol(told(&kept, "aa", None)).await;
    back.job = kept;
    let known = a.enrol(back).await;
    assert_eq!(known.outdated, None);
    assert_eq!(known.force.map(|force| force.digest).as_deref(), Some("aa"));
}

pub(crate) async fn an_outdated_definition_changes_nothing_of_a_job<F: Fixture>(bench: &Bench<F>) {
    let a = bench.replica("a").await;
    let name = job("report");
    a.enrol(told(&name, "aa", Some(2))).await;
    let state = async || {
        let snapshot = a.store.snapshot().await.expect("the store answers").answer;
        snapshot.jobs.into_iter().find(|state| state.job == name)
    };
    let before = state().await;
    for again in [false, true] {
        let older = Enrolment {
            schedule: "0 0 1 1 *".to_owned(),
            enabled: false,
            change: Some(ScheduleChange {
                from: "* * * * * *".to_owned(),
                run: Vec::new(),
            }),
            again,
            ..told(&name, "bb", Some(1))
        };
        let known = a.enrol(older).await;
        assert_eq!(known.outdated, Some(definition("aa", Some(2))));
        assert_eq!(known.former_schedule, None);
    }
    assert_eq!(state().await, before);
    assert_eq!(a.history(None).await, []);
}

pub(crate) async fn what_runs_by_an_older_definition_is_renewed_and_released<F: Fixture>(
    bench: &Bench<F>,
) {
    let (old, new) = (bench.replica("old").await, bench.replica("new").await);
    let first = old.first_by("report", "aa", None).await;
    let grant = old.win(&first).await;
    new.enrol(told(&first.occurrence.job, "bb", None)).await;
    let renewed = old.renew(&renewal(&first, &grant)).await;
    assert!(
        matches!(renewed, RenewalAnswer::Renewed { .. }),
        "{renewed:?}"
    );
    let released = old
        .release(&release(&first, &grant, Outcome::Succeeded))
        .await;
    assert_eq!(released, ReleaseAnswer::Released);
    assert_eq!(
        old.outcomes(&first.occurrence.job).await,
        [Outcome::Succeeded]
    );
}

/// Its reply may have been lost: the attempt has its lease already.
pub(crate) async fn a_grant_by_an_older_definition_is_told_again<F: Fixture>(bench: &Bench<F>) {
    let (old, new) = (bench.replica("old").await, bench.replica("new").await);
    let first = old.first_by("report", "aa", None).await;
    let grant = old.win(&first).await;
    new.enrol(told(&first.occurrence.job, "bb", None)).await;
    let again = old.win(&first).await;
    assert_eq!((again.token, again.attempt), (grant.token, 1));
}

pub(crate) async fn an_older_definition_takes_nothing_over<F: Fixture>(bench: &Bench<F>) {
    let (old, new) = (bench.replica("old").await, bench.replica("new").await);
    let first = Claim {
        ttl: SHORT_TTL,
        ..old.first_by("report", "aa", None).await
    };
    old.win(&first).await;
    new.enrol(told(&first.occurrence.job, "bb", None)).await;
    let held = new.when_overdue(&first.occurrence.job).await;
    let takeover = |digest| Claim {
        watched: Some(Sighting {
            token: held.sighting.token,
            deadline: held.sighting.deadline,
        }),
        ..by(&first, digest)
    };
    assert_eq!(old.claim(&takeover("aa")).await, outdated_by("bb", None));
    assert_eq!(old.history(None).await, []);
    assert_eq!(new.win(&takeover("bb")).await.attempt, 2);
}

pub(crate) async fn an_older_definition_comes_back_over_the_one_that_is_named<F: Fixture>(
    bench: &Bench<F>,
) {
    let a = bench.replica("a").await;
    let first = a.first_by("report", "aa", Some(1)).await;
    let name = &first.occurrence.job;
    a.enrol(told(name, "bb", Some(2))).await;
    let over = |digest: &str| Enrolment {
        over: Some(digest.to_owned()),
        again: true,
        ..told(name, "aa", Some(1))
    };
    let other = a.enrol(over("cc")).await;
    assert_eq!(other.outdated, Some(definition("bb", Some(2))));
    let known = a.enrol(over("bb")).await;
    assert_eq!(known.outdated, None);
    assert_eq!(known.force.map(|force| force.digest).as_deref(), Some("aa"));
    a.run(&first, Outcome::Succeeded).await;
    let refused = a.claim_when_due(&by(&later(&first, 1), "bb")).await;
    assert_eq!(refused, outdated_by("aa", Some(1)));
}

pub(crate) async fn what_gave_way_is_newer_again_when_it_comes_back<F: Fixture>(bench: &Bench<F>) {
    let a = bench.replica("a").await;
    let first = a.first_by("report", "aa", None).await;
    let name = &first.occurrence.job;
    a.enrol(told(name, "bb", None)).await;
    let over = Enrolment {
        over: Some("bb".to_owned()),
        ..told(name, "aa", None)
    };
    a.enrol(over).await;
    a.run(&first, Outcome::Succeeded).await;
    let back = Enrolment {
        again: true,
        ..told(name, "bb", None)
    };
    assert_eq!(a.enrol(back).await.outdated, None);
    let refused = a.claim_when_due(&later(&first, 1)).await;
    assert_eq!(refused, outdated_by("bb", None));
}

pub(crate) async fn the_same_definition_under_a_greater_revision_is_as_new_as_that<F: Fixture>(
    bench: &Bench<F>,
) {
    let a = bench.replica("a").await;
    let name = job("report");
    for (digest, revision) in [("aa", 1), ("aa", 3)] {
        a.enrol(told(&name, digest, Some(revision))).await;
    }
    let stray = a.enrol(told(&name, "bb", Some(2))).await;
    assert_eq!(stray.outdated, Some(definition("aa", Some(3))));
}

pub(crate) async fn who_has_no_say_is_granted_whatever_is_in_force<F: Fixture>(bench: &Bench<F>) {
    let a = bench.replica("a").await;
    let first = a.first_by("report", "aa", None).await;
    let unsaid = Enrolment {
        schedule: String::new(),
        ..enrolment(&first.occurrence.job)
    };
    let known = a.enrol(unsaid).await;
    assert_eq!(known.outdated, None);
    a.run(&by(&first, ""), Outcome::Succeeded).await;
    a.run(&later(&first, 1), Outcome::Succeeded).await;
}
