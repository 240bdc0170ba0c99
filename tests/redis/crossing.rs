//! Steps whose writes are held back on their way, and what has changed when they arrive.

use std::pin::pin;
use std::time::{Duration, Instant};

use soloist::scheduler::lease::{
    Claim, ClaimAnswer, FencingToken, Grant, Outcome, ReleaseAnswer, RunId,
};
use soloist::scheduler::time::Timestamp;
use soloist::store::redis::RedisStore;
use soloist::store::{Answered, Store, StoreError};
use test_support::clock_shim::SteppingClock;
use test_support::machine::while_it_runs_async;
use test_support::redis::{RedisServer, fresh_namespace};
use test_support::relay::Relay;
use uuid::Uuid;

use crate::world::{
    caller, claim, job, just_due, now, persist, printed, release, renewal, store_in, until, win,
};

/// How long a call is sent again until it gets as far as it is to.
const PATIENCE: Duration = Duration::from_secs(60);

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
        persist(|| cut_off.ready()).await;
        let due = just_due(&direct).await;
        Self {
            server,
            relay,
            cut_off,
            direct,
            due,
        }
    }

    /// Sends claims whose write is held back; answers once `meanwhile` is over, and what was held back has
    /// gone on. The error is of a call that took too long.
    async fn hold<T>(
        &self,
        claims: &[Claim],
        meanwhile: impl AsyncFnOnce() -> T,
    ) -> Result<(Vec<ClaimAnswer>, T), String> {
        self.relay.cut_at_request(&claims[0].run_id.to_string());
        let caller = caller("cut-off");
        let mut asking = pin!(self.cut_off.claim(&caller, claims));
        tokio::select! {
            early = &mut asking => return Err(format!("it never wrote: {early:?}")),
            () = self.until_cut() => {}
        }
        let done = meanwhile().await;
        self.relay.mend();
        match asking.await {
            Ok(answered) => Ok((answered.answer, done)),
            Err(error @ StoreError::Unreachable { .. }) => Err(error.to_string()),
            Err(other) => panic!("{other}"),
        }
    }

    /// Waits until the write is held back.
    async fn until_cut(&self) {
        let cut = async || self.relay.is_cut().then_some(());
        until("the write is held back", cut).await;
    }

    fn scripts_run(&self) -> u64 {
        let stats = self.server.commandstats();
        stats.get("evalsha").map_or(0, |stat| stat.calls)
    }

    /// Waits until the server has run more scripts than that.
    async fn until_run(&self, before: u64) {
        let more = async || (self.scripts_run() > before).then_some(());
        until("another script is run", more).await;
    }

    async fn jobs(&self) -> Vec<String> {
        let snapshot = persist(|| self.direct.snapshot()).await;
        let jobs = snapshot.answer.jobs.iter();
        jobs.map(|state| state.job.to_string()).collect()
    }

    async fn token_of(&self, name: &str) -> Option<FencingToken> {
        let snapshot = persist(|| self.direct.snapshot()).await;
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

/// That it was so many, which on a machine that stood still may be more.
fn same(what: &str, came: u64, expected: u64) -> Result<(), String> {
    match came == expected {
        true => Ok(()),
        false => Err(format!("{came} {what} and not {expected}")),
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

/// Whoever asks waits in vain: the write is on its way when the call is given up. Answers until when it
/// was to be sent, where that is to be said.
async fn give_up(
    crossing: &Crossing,
    claims: &[Claim],
    within: Option<Duration>,
) -> Option<Timestamp> {
    let mut caller = caller("cut-off");
    crossing.relay.cut_at_request(&claims[0].run_id.to_string());
    // A busy machine may have it end before it came to write.
    let patience = Instant::now() + PATIENCE;
    while !crossing.relay.is_cut() {
        assert!(Instant::now() < patience, "it never came to write");
        let now = now(&crossing.direct).await;
        caller.send_by = within.map(|within| now + within);
        match crossing.cut_off.claim(&caller, claims).await {
            Err(StoreError::Unreachable { .. }) => {}
            Ok(answered) if answered.answer[0] == ClaimAnswer::RequestExpired => {}
            other => panic!("{other:?}"),
        }
    }
    caller.send_by
}

#[tokio::test]
async fn a_step_that_meets_a_changed_record_writes_nothing_of_its_batch() {
    let crossing = Crossing::new().await;
    let batch = ["first", "contested", "last"].map(|name| claim(name, crossing.due));
    give_up(&crossing, &batch, Some(LATER)).await;
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
    give_up(&crossing, &batch, Some(LATER)).await;
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
    let send_by = give_up(&crossing, &late, Some(Duration::from_millis(500))).await;
    assert!(
        Some(now(&crossing.direct).await) > send_by,
        "a call lasts longer"
    );
    let before = crossing.scripts_run();
    crossing.relay.mend();
    crossing.until_run(before).await;
    assert_eq!(crossing.jobs().await, [""; 0]);
}

#[tokio::test]
async fn who_came_too_late_hears_so_in_the_same_call() {
    while_it_runs_async(async || {
        let crossing = Crossing::new().await;
        let batch = ["contested", "free"].map(|name| claim(name, crossing.due));
        let rival = anew(&batch[0]);
        let before = crossing.scripts_run();
        let wins = async || win(&crossing.direct, &caller("rival"), &rival).await;
        let (answer, taken) = crossing.hold(&batch, wins).await?;
        let run = crossing.scripts_run() - before;
        assert!(
            matches!(&answer[0], ClaimAnswer::Held(held) if held.sighting.token == taken.token)
        );
        let free = granted(&answer[1]);
        assert_eq!(crossing.token_of("free").await, Some(free.token));
        // Two of the rival; a read, a write in vain, and a write.
        same("scripts", run, 5)
    })
    .await;
}

/// As many decisions as a step has, and some more.
const MANY: usize = 40;

#[tokio::test]
async fn a_step_whose_record_keeps_changing_is_given_up_and_has_written_nothing() {
    // On a busy machine, there may be no time left for so many decisions.
    until("it is given up", step_whose_record_keeps_changing).await;
}

async fn step_whose_record_keeps_changing() -> Option<()> {
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
            persist(|| crossing.direct.renew(&rival, &renewals)).await;
            crossing.relay.mend_and_cut_at_request(&needle);
        }
    };
    let answered = tokio::select! {
        answered = asking => answered,
        () = changing => panic!("it went on and on"),
    };
    match answered {
        Err(StoreError::Unreachable { cause, .. }) => {
            println!("{cause}");
            cause.contains("kept changing").then_some(())?;
        }
        other => panic!("{other:?}"),
    }
    crossing.relay.mend();
    let lines = persist(|| crossing.direct.history(None, 10)).await;
    assert_eq!(lines, []);
    // The connection is as good as before.
    let answered = persist(|| crossing.cut_off.claim(&one, &claims)).await;
    assert!(matches!(answered.answer[0], ClaimAnswer::Overlap(_)));
    Some(())
}

#[tokio::test]
async fn grants_of_different_jobs_do_not_get_in_each_others_way() {
    while_it_runs_async(async || {
        let crossing = Crossing::new().await;
        let mine = [claim("mine", crossing.due)];
        let theirs = claim("theirs", crossing.due);
        let mut far = caller("far");
        far.token_floor = FencingToken::new(1 << 52);
        let before = crossing.scripts_run();
        let wins = async || win(&crossing.direct, &far, &theirs).await;
        let (answer, taken) = crossing.hold(&mine, wins).await?;
        let run = crossing.scripts_run() - before;
        let mine = granted(&answer[0]);
        // The mark is that of the higher one, though the lower one was written later.
        assert!(mine.token < taken.token);
        let next = claim("another", just_due(&crossing.direct).await);
        let next = win(&crossing.direct, &caller("new"), &next).await;
        assert!(next.token > taken.token);
        // Two calls each.
        same("scripts", run, 4)
    })
    .await;
}

#[tokio::test]
async fn what_was_decided_before_a_loss_is_not_written_after_it() {
    while_it_runs_async(async || {
        let crossing = Crossing::new().await;
        let claims = [claim("job", crossing.due)];
        let flush = async || assert_eq!(crossing.server.command(&["FLUSHALL"]), "OK");
        let (answer, ()) = crossing.hold(&claims, flush).await?;
        assert!(matches!(answer[0], ClaimAnswer::Grace { .. }), "{answer:?}");
        assert_eq!(crossing.jobs().await, [""; 0]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn what_was_decided_before_a_far_step_back_of_the_clock_is_not_written_after_it() {
    while_it_runs_async(async || {
        let clock = SteppingClock::new();
        clock.set(3_600_000);
        let server = RedisServer::options().environment(clock.environment());
        let crossing = Crossing::of(server.start()).await;
        // A grant, so that the ledger knows how late it was.
        let first = claim("before", crossing.due);
        win(&crossing.direct, &caller("one"), &first).await;
        let claims = [claim("job", crossing.due)];
        let (answer, ()) = crossing.hold(&claims, async || clock.set(0)).await?;
        // Decided anew: an hour ago it was not due, and nothing is granted.
        assert!(matches!(answer[0], ClaimAnswer::Early { .. }), "{answer:?}");
        assert_eq!(crossing.jobs().await, ["before"]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_grant_whose_reply_was_lost_is_found_by_the_same_request() {
    let crossing = Crossing::new().await;
    let claims = [claim("job", crossing.due)];
    let caller = caller("cut-off");
    crossing
        .relay
        .cut_at_reply_to(&claims[0].run_id.to_string());
    let patience = Instant::now() + PATIENCE;
    while !crossing.relay.is_cut() {
        assert!(Instant::now() < patience, "it never came to a reply");
        let lost = crossing.cut_off.claim(&caller, &claims).await;
        assert!(
            matches!(lost, Err(StoreError::Unreachable { .. })),
            "{lost:?}"
        );
    }
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
    let patience = Instant::now() + PATIENCE;
    while !crossing.relay.is_cut() {
        assert!(Instant::now() < patience, "it never came to a reply");
        let lost = crossing.cut_off.release(&caller, &releases).await;
        assert!(
            matches!(lost, Err(StoreError::Unreachable { .. })),
            "{lost:?}"
        );
    }
    crossing.relay.mend();
    let again = persist(|| crossing.cut_off.release(&caller, &releases)).await;
    assert_eq!(again.answer, [ReleaseAnswer::Released]);
    let lines = crossing.direct.history(None, 10).await.unwrap();
    assert_eq!(lines.len(), 1, "one line, however often it is sent");
}
