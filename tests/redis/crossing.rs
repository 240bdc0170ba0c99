//! Steps whose writes are held back on their way, and what has changed when they arrive.

use std::time::Duration;

use soloist::scheduler::lease::{
    Claim, ClaimAnswer, FencingToken, Grant, Outcome, ReleaseAnswer, RunId,
};
use soloist::scheduler::time::Timestamp;
use soloist::store::redis::RedisStore;
use soloist::store::{Answered, Store, StoreError};
use test_support::clock_shim::SteppingClock;
use test_support::redis::{RedisServer, fresh_namespace};
use test_support::relay::Relay;
use uuid::Uuid;

use crate::world::{
    caller, claim, job, just_due, now, persist, printed, release, renewal, store_in, win,
};

/// A server with two ways in: one that may be cut, and one that may not.
struct Crossing {
    server: RedisServer,
    relay: Relay,
    cut_off: RedisStore,
    direct: RedisStore,
    due: Timestamp,
}

impl Crossing {
    async fn new() -> Self {
        Self::of(RedisServer::start()).await
    }

    async fn of(server: RedisServer) -> Self {
        let namespace = fresh_namespace();
        let direct = store_in(&server, &namespace).await;
        let relay = Relay::to(server.port());
        let cut_off = RedisStore::open(&relay.url(), &namespace).expect("a good URL");
        cut_off.ready().await.expect("a server that answers");
        let due = just_due(&direct).await;
        Self {
            server,
            relay,
            cut_off,
            direct,
            due,
        }
    }

    /// Sends claims whose write is held back; answers once it is, and `meanwhile` is over.
    async fn hold<T>(
        &self,
        claims: &[Claim],
        meanwhile: impl AsyncFnOnce() -> T,
    ) -> (Result<Vec<ClaimAnswer>, StoreError>, T) {
        self.relay.cut_at_request(&claims[0].run_id.to_string());
        let caller = caller("cut-off");
        tokio::join!(
            async {
                let answered = self.cut_off.claim(&caller, claims).await;
                answered.map(|answered| answered.answer)
            },
            async {
                self.until_cut().await;
                let done = meanwhile().await;
                self.relay.mend();
                done
            }
        )
    }

    /// Waits until the write is held back.
    async fn until_cut(&self) {
        let relay = self.relay.clone();
        let cut = tokio::task::spawn_blocking(move || relay.wait_until_cut());
        cut.await.expect("a relay doesn't panic");
    }

    fn scripts_run(&self) -> u64 {
        let stats = self.server.commandstats();
        stats.get("evalsha").map_or(0, |stat| stat.calls)
    }

    /// Waits until the server has run more scripts than that.
    async fn until_run(&self, before: u64) {
        while self.scripts_run() <= before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn jobs(&self) -> Vec<String> {
        let snapshot = self.direct.snapshot().await.expect("a server that answers");
        let jobs = snapshot.answer.jobs.iter();
        jobs.map(|state| state.job.to_string()).collect()
    }

    async fn token_of(&self, name: &str) -> Option<FencingToken> {
        let snapshot = self.direct.snapshot().await.expect("a server that answers");
        let mut jobs = snapshot.answer.jobs.into_iter();
        let state = jobs.find(|state| state.job == job(name))?;
        state.last().map(|last| last.token)
    }
}

fn anew(claim: &Claim) -> Claim {
    Claim {
        run_id: RunId::new(Uuid::new_v4()),
        ..claim.clone()
    }
}

fn granted(answer: &ClaimAnswer) -> Grant {
    match answer {
        ClaimAnswer::Granted(grant) => *grant,
        other => panic!("{other:?}"),
    }
}

/// Longer than a test takes.
const LATER: Duration = Duration::from_secs(3600);

/// Whoever asks waits in vain: the write is on its way when the call is given up.
async fn give_up(crossing: &Crossing, claims: &[Claim], send_by: Option<Timestamp>) {
    crossing.relay.cut_at_request(&claims[0].run_id.to_string());
    let mut caller = caller("cut-off");
    caller.send_by = send_by;
    let answered = crossing.cut_off.claim(&caller, claims).await;
    assert!(
        matches!(answered, Err(StoreError::Unreachable { .. })),
        "{answered:?}"
    );
    crossing.until_cut().await;
}

#[tokio::test]
async fn a_step_that_meets_a_changed_record_writes_nothing_of_its_batch() {
    let crossing = Crossing::new().await;
    let batch = ["first", "contested", "last"].map(|name| claim(name, crossing.due));
    give_up(&crossing, &batch, Some(crossing.due + LATER)).await;
    let taken = win(&crossing.direct, &caller("rival"), &anew(&batch[1])).await;
    let before = crossing.scripts_run();
    crossing.relay.mend();
    crossing.until_run(before).await;
    assert_eq!(crossing.jobs().await, ["contested"]);
    assert_eq!(crossing.token_of("contested").await, Some(taken.token));
}

#[tokio::test]
async fn a_step_that_arrives_in_time_is_carried_out_though_nobody_waits() {
    let crossing = Crossing::new().await;
    let batch = ["one", "other"].map(|name| claim(name, crossing.due));
    give_up(&crossing, &batch, Some(crossing.due + LATER)).await;
    let before = crossing.scripts_run();
    crossing.relay.mend();
    crossing.until_run(before).await;
    assert_eq!(crossing.jobs().await, ["one", "other"]);
}

#[tokio::test]
async fn a_claim_of_who_does_not_know_the_time_is_not_carried_out_when_nobody_waits() {
    let crossing = Crossing::new().await;
    let first = [claim("first", crossing.due)];
    give_up(&crossing, &first, None).await;
    // It was decided before that, and lasts for no longer than a call.
    let given_up = now(&crossing.direct).await;
    while now(&crossing.direct).await <= given_up + Duration::from_secs(1) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let before = crossing.scripts_run();
    crossing.relay.mend();
    crossing.until_run(before).await;
    assert_eq!(crossing.jobs().await, [""; 0]);
}

#[tokio::test]
async fn a_claim_that_was_stuck_on_its_way_does_not_come_alive_later() {
    let crossing = Crossing::new().await;
    let late = [claim("late", crossing.due)];
    let send_by = now(&crossing.direct).await + Duration::from_millis(500);
    give_up(&crossing, &late, Some(send_by)).await;
    assert!(now(&crossing.direct).await > send_by, "a call lasts longer");
    let before = crossing.scripts_run();
    crossing.relay.mend();
    crossing.until_run(before).await;
    assert_eq!(crossing.jobs().await, [""; 0]);
}

#[tokio::test]
async fn who_came_too_late_hears_so_in_the_same_call() {
    let crossing = Crossing::new().await;
    let batch = ["contested", "free"].map(|name| claim(name, crossing.due));
    let rival = anew(&batch[0]);
    let before = crossing.scripts_run();
    let (answer, taken) = crossing
        .hold(&batch, async || {
            win(&crossing.direct, &caller("rival"), &rival).await
        })
        .await;
    let answer = answer.expect("a server that answers");
    assert!(matches!(&answer[0], ClaimAnswer::Held(held) if held.sighting.token == taken.token));
    let free = granted(&answer[1]);
    assert_eq!(crossing.token_of("free").await, Some(free.token));
    // Two of the rival; a read, a write in vain, and a write.
    assert_eq!(crossing.scripts_run() - before, 5);
}

/// As many decisions as a step has, and some more.
const MANY: usize = 40;

#[tokio::test]
async fn a_step_whose_record_keeps_changing_is_given_up_and_has_written_nothing() {
    let crossing = Crossing::new().await;
    let rival = caller("rival");
    let running = claim("job", crossing.due);
    let grant = win(&crossing.direct, &rival, &running).await;
    let mut next = claim("job", just_due(&crossing.direct).await);
    next.run_id = RunId::new(Uuid::new_v4());
    let needle = next.run_id.to_string();
    let claims = [next];
    let one = caller("cut-off");
    crossing.relay.cut_at_request(&needle);
    let asking = crossing.cut_off.claim(&one, &claims);
    let changing = async {
        for _ in 0..MANY {
            crossing.until_cut().await;
            let renewals = [renewal(&running, &grant)];
            crossing.direct.renew(&rival, &renewals).await.unwrap();
            crossing.relay.mend_and_cut_at_request(&needle);
        }
    };
    let answered = tokio::select! {
        answered = asking => answered,
        () = changing => panic!("it went on and on"),
    };
    crossing.relay.mend();
    match answered {
        Err(StoreError::Unreachable { cause, .. }) => {
            assert!(cause.contains("kept changing"), "{cause}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(crossing.direct.history(None, 10).await.unwrap(), []);
    // The connection is as good as before.
    let answered = crossing.cut_off.claim(&one, &claims).await.unwrap();
    assert!(matches!(answered.answer[0], ClaimAnswer::Overlap(_)));
}

#[tokio::test]
async fn grants_of_different_jobs_do_not_get_in_each_others_way() {
    let crossing = Crossing::new().await;
    let mine = [claim("mine", crossing.due)];
    let theirs = claim("theirs", crossing.due);
    let mut far = caller("far");
    far.token_floor = FencingToken::new(1 << 52);
    let before = crossing.scripts_run();
    let (answer, taken) = crossing
        .hold(&mine, async || win(&crossing.direct, &far, &theirs).await)
        .await;
    let mine = granted(&answer.expect("a server that answers")[0]);
    assert_eq!(crossing.scripts_run() - before, 4, "two calls each");
    // The mark is that of the higher one, though the lower one was written later.
    assert!(mine.token < taken.token);
    let next = claim("another", just_due(&crossing.direct).await);
    let next = win(&crossing.direct, &caller("new"), &next).await;
    assert!(next.token > taken.token);
}

#[tokio::test]
async fn what_was_decided_before_a_loss_is_not_written_after_it() {
    let crossing = Crossing::new().await;
    let claims = [claim("job", crossing.due)];
    let (answer, ()) = crossing
        .hold(&claims, async || {
            assert_eq!(crossing.server.command(&["FLUSHALL"]), "OK");
        })
        .await;
    let answer = answer.expect("a server that answers");
    assert!(matches!(answer[0], ClaimAnswer::Grace { .. }), "{answer:?}");
    assert_eq!(crossing.jobs().await, [""; 0]);
}

#[tokio::test]
async fn what_was_decided_before_a_far_step_back_of_the_clock_is_not_written_after_it() {
    let clock = SteppingClock::new();
    clock.set(3_600_000);
    let server = RedisServer::options()
        .environment(clock.environment())
        .start();
    let crossing = Crossing::of(server).await;
    // A grant, so that the ledger knows how late it was.
    win(
        &crossing.direct,
        &caller("one"),
        &claim("before", crossing.due),
    )
    .await;
    let claims = [claim("job", crossing.due)];
    let (answer, ()) = crossing.hold(&claims, async || clock.set(0)).await;
    let answer = answer.expect("a server that answers");
    // Decided anew: an hour ago it was not due, and nothing is granted.
    assert!(matches!(answer[0], ClaimAnswer::Early { .. }), "{answer:?}");
    assert_eq!(crossing.jobs().await, ["before"]);
}

#[tokio::test]
async fn a_grant_whose_reply_was_lost_is_found_by_the_same_request() {
    let crossing = Crossing::new().await;
    let claims = [claim("job", crossing.due)];
    let caller = caller("cut-off");
    crossing
        .relay
        .cut_at_reply_to(&claims[0].run_id.to_string());
    let lost = crossing.cut_off.claim(&caller, &claims).await;
    assert!(
        matches!(lost, Err(StoreError::Unreachable { .. })),
        "{lost:?}"
    );
    let token = crossing.token_of("job").await.expect("it was granted");
    crossing.relay.mend();
    let Answered { answer, .. } = persist(|| crossing.cut_off.claim(&caller, &claims)).await;
    let grant = granted(&answer[0]);
    assert_eq!((grant.token, grant.attempt), (token, 1));

    let mut release = release(&claims[0], &grant, Outcome::Succeeded);
    release.output = printed(b"done");
    let releases = [release];
    crossing
        .relay
        .cut_at_reply_to(&claims[0].run_id.to_string());
    let lost = crossing.cut_off.release(&caller, &releases).await;
    assert!(
        matches!(lost, Err(StoreError::Unreachable { .. })),
        "{lost:?}"
    );
    crossing.relay.mend();
    let again = persist(|| crossing.cut_off.release(&caller, &releases)).await;
    assert_eq!(again.answer, [ReleaseAnswer::Released]);
    let lines = crossing.direct.history(None, 10).await.unwrap();
    assert_eq!(lines.len(), 1, "one line, however often it is sent");
}
