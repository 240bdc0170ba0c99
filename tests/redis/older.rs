//! A server that comes back with what it had on disk, which is older than what it acknowledged.
//! A failover that loses writes is the same to whoever asks.
//!
//! Must never: leave it to chance what is on the disk.

use std::time::Duration;

use soloist::scheduler::job::OnCrash;
use soloist::scheduler::lease::{
    Claim, ClaimAnswer, Enrolment, Outcome, RenewalAnswer, RunId, Scope,
};
use soloist::scheduler::policy::Concurrency;
use soloist::scheduler::schedule::Schedule;
use soloist::scheduler::time::Timestamp;
use soloist::store::redis::RedisStore;
use soloist::store::{Caller, Store};
use test_support::redis::RedisServer;

use crate::world::{
    RETENTION, ask, caller, claim, fresh_store, info, job, just_due, now, persist, release,
    renewal, win,
};

/// How long nothing is granted: long enough to come back within it.
const QUARANTINE: Duration = Duration::from_secs(5);

fn known(name: &str) -> Caller {
    Caller {
        quarantine: QUARANTINE,
        ..caller(name)
    }
}

/// A claim is granted, and its attempt succeeds.
async fn run(store: &RedisStore, claim: &Claim) {
    let holder = known("holder");
    let grant = win(store, &holder, claim).await;
    let done = [release(claim, &grant, Outcome::Succeeded)];
    persist(|| store.release(&holder, &done)).await;
}

/// A server that comes back with what it had on disk, which is older than what it acknowledged.
struct Older {
    _server: RedisServer,
    store: RedisStore,
    rival: Caller,
    /// Two occurrences that ran, of which the server knows the first alone.
    claims: [Claim; 2],
}

impl Older {
    async fn than_what_ran(on_crash: OnCrash) -> Self {
        let server = RedisServer::start();
        let store = fresh_store(&server).await;
        let mut claims = Vec::new();
        for saved in [true, false] {
            let claim = Claim {
                on_crash,
                ..claim("job", just_due(&store).await)
            };
            run(&store, &claim).await;
            if saved {
                assert_eq!(server.command(&["SAVE"]), "OK");
            }
            claims.push(claim);
        }
        Self::of(server, store, claims)
    }

    fn of(mut server: RedisServer, store: RedisStore, claims: Vec<Claim>) -> Self {
        server.restart();
        Self {
            _server: server,
            store,
            rival: known("rival"),
            claims: claims.try_into().expect("two"),
        }
    }

    fn ran(&self) -> [Timestamp; 2] {
        let [first, second] = &self.claims;
        [first, second].map(|claim| claim.occurrence.scheduled_at)
    }

    /// What a claim that somebody else sends is told when the grace is over.
    async fn answers(&self, claim: &Claim) -> ClaimAnswer {
        let run_id = RunId::new(uuid::Uuid::new_v4());
        let claim = [Claim {
            run_id,
            ..claim.clone()
        }];
        loop {
            let answered = persist(|| self.store.claim(&self.rival, &claim)).await;
            match &answered.answer[0] {
                ClaimAnswer::Grace { wait } => tokio::time::sleep(*wait).await,
                other => return other.clone(),
            }
        }
    }

    /// A claim to an occurrence that fell due since.
    async fn next(&self, on_crash: OnCrash) -> Claim {
        // Whoever looks at the store first finds out that it is another one.
        let info = info();
        persist(|| self.store.observe(&self.rival, &info, Scope::Overdue)).await;
        Claim {
            on_crash,
            ..claim("job", just_due(&self.store).await)
        }
    }

    /// The one line for a stretch of time: it ends with the second of them.
    async fn passes_the_second_over(&self) -> bool {
        let [_, second] = self.ran();
        let mut lines = persist(|| self.store.history(None, 10)).await;
        lines.retain(|line| line.detail.since.is_some_and(|since| since < second));
        let [line] = &lines[..] else {
            panic!("{lines:?}");
        };
        (line.scheduled_at, line.outcome) == (second, Outcome::Missed)
    }
}

#[tokio::test]
async fn what_may_run_at_most_once_is_not_run_again_where_its_grant_was_forgotten() {
    let older = Older::than_what_ran(OnCrash::Skip).await;
    let answer = older.answers(&older.claims[1]).await;
    assert_eq!(answer, ClaimAnswer::TooLate);
}

#[tokio::test]
async fn what_may_run_at_most_once_is_not_caught_up_with_where_its_grant_was_forgotten() {
    let older = Older::than_what_ran(OnCrash::Skip).await;
    let [first, second] = older.ran();
    let mut next = older.next(OnCrash::Skip).await;
    next.backlog = vec![second];
    next.missed_until = Some(first);
    let answer = older.answers(&next).await;
    assert!(matches!(answer, ClaimAnswer::Granted(_)), "{answer:?}");
    assert!(older.passes_the_second_over().await);
}

#[tokio::test]
async fn what_may_run_at_most_once_is_not_run_when_its_turn_was_forgotten() {
    let server = RedisServer::start();
    let store = fresh_store(&server).await;
    let holder = known("holder");
    let first = claim("job", just_due(&store).await);
    let grant = win(&store, &holder, &first).await;
    let second = Claim {
        on_crash: OnCrash::Skip,
        concurrency: Concurrency::Queue { limit: 1 },
        ..claim("job", just_due(&store).await)
    };
    let answer = ask(&store, &holder, &second).await;
    assert_eq!(answer, ClaimAnswer::Waiting);
    let done = [release(&first, &grant, Outcome::Succeeded)];
    persist(|| store.release(&holder, &done)).await;
    // It is its turn, and what comes of that is forgotten.
    assert_eq!(server.command(&["SAVE"]), "OK");
    run(&store, &second).await;
    let older = Older::of(server, store, vec![first, second]);
    let answer = older.answers(&older.claims[1]).await;
    assert_eq!(answer, ClaimAnswer::TooLate);
}

/// Replicas know that something was settled, and the ledger doesn't any more: nobody runs it
/// again, and it is told all the same.
#[tokio::test]
async fn what_a_ledger_has_forgotten_gets_a_line_when_the_next_one_is_claimed() {
    let older = Older::than_what_ran(OnCrash::Rerun).await;
    let [_, second] = older.ran();
    let mut next = older.next(OnCrash::Rerun).await;
    next.follows = Some(second);
    let answer = older.answers(&next).await;
    assert!(matches!(answer, ClaimAnswer::Granted(_)), "{answer:?}");
    assert!(older.passes_the_second_over().await);
}

/// The lease comes back from its holder. That what was due before it was settled, the ledger
/// doesn't know any more.
#[tokio::test]
async fn what_was_due_before_a_lease_that_comes_back_gets_a_line() {
    let mut server = RedisServer::start();
    let store = fresh_store(&server).await;
    let holder = known("holder");
    let schedule = "* * * * * * zone=UTC gap=run_after fold=first days=all";
    assert!(Schedule::from_identity(schedule, "job").is_some());
    let enrolment = Enrolment {
        job: job("job"),
        schedule: schedule.to_owned(),
        enabled: true,
        definition: Default::default(),
        over: None,
        change: None,
        retention: RETENTION,
        again: false,
        seen: Default::default(),
    };
    let enrolments = [enrolment];
    persist(|| store.register(&holder, &enrolments)).await;
    assert_eq!(server.command(&["SAVE"]), "OK");
    let one_later = now(&store).await + Duration::from_millis(1100);
    while now(&store).await < one_later {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let claim = claim("job", just_due(&store).await);
    let grant = win(&store, &holder, &claim).await;
    server.restart();
    let mine = [renewal(&claim, &grant)];
    let renewed = persist(|| store.renew(&holder, &mine)).await;
    let answer = &renewed.answer[0];
    assert!(
        matches!(answer, RenewalAnswer::Renewed { .. }),
        "{answer:?}"
    );
    let lines = persist(|| store.history(None, 10)).await;
    let [line] = &lines[..] else {
        panic!("{lines:?}");
    };
    assert!(line.detail.since.is_some_and(|since| since < one_later));
    assert!(line.scheduled_at < claim.occurrence.scheduled_at);
    assert_eq!(line.outcome, Outcome::Missed);
}
