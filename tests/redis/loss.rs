//! What a server forgets: its scripts, its data, or who it was.

use std::time::{Duration, Instant};

use soloist::scheduler::lease::{
    Claim, ClaimAnswer, FencingToken, Grant, Origin, Outcome, Release, ReleaseAnswer,
    RenewalAnswer, RunId, Scope,
};
use soloist::store::redis::RedisStore;
use soloist::store::{Answered, Caller, Observation, Standing, Store, StoreEvent};
use test_support::clock_shim::SteppingClock;
use test_support::machine::while_it_runs_async;
use test_support::redis::RedisServer;

use crate::world::{
    TTL, ask, caller, claim, fresh_store, info, job, just_due, observe, persist, release, renewal,
    until, win,
};

/// Long enough to look at several things before it is over on a busy machine.
const SHORT_QUARANTINE: Duration = Duration::from_secs(5);

/// How data is lost.
#[derive(Clone, Copy, Debug)]
enum Loss {
    Killed,
    Flushed,
}

impl Loss {
    fn strike(self, server: &mut RedisServer) {
        match self {
            Loss::Killed => server.restart(),
            Loss::Flushed => assert_eq!(server.command(&["FLUSHALL"]), "OK"),
        }
    }
}

/// A lease that was granted before the loss, and somebody who wants it after.
struct Scene {
    server: RedisServer,
    store: RedisStore,
    holder: Caller,
    rival: Caller,
    claim: Claim,
    grant: Grant,
}

impl Scene {
    async fn after(loss: Loss) -> Self {
        let mut server = RedisServer::start();
        let store = fresh_store(&server).await;
        let mut holder = caller("holder");
        let mut rival = caller("rival");
        let claim = claim("job", just_due(&store).await);
        // The token is far above the clock, so only who saw it can keep the next one above it.
        holder.token_floor = FencingToken::new(1 << 52);
        let grant = win(&store, &holder, &claim).await;
        holder.quarantine = SHORT_QUARANTINE;
        rival.quarantine = SHORT_QUARANTINE;
        rival.token_floor = grant.token;
        loss.strike(&mut server);
        Self {
            server,
            store,
            holder,
            rival,
            claim,
            grant,
        }
    }

    /// The rival's own claim to the occurrence that the holder has.
    fn rival_claim(&self) -> Claim {
        Claim {
            run_id: RunId::new(uuid::Uuid::new_v4()),
            ..self.claim.clone()
        }
    }

    async fn rival_asks(&self) -> ClaimAnswer {
        let claim = [self.rival_claim()];
        let answered = persist(|| self.store.claim(&self.rival, &claim)).await;
        answered
            .answer
            .into_iter()
            .next()
            .expect("an answer for each claim")
    }

    async fn sit_grace_out(&self) {
        loop {
            let left = observe(&self.store, &self.rival).await.answer.grace;
            if left.is_zero() {
                return;
            }
            assert!(left <= SHORT_QUARANTINE);
            tokio::time::sleep(left).await;
        }
    }
}

#[tokio::test]
async fn nothing_is_granted_until_holders_had_time_to_come_back() {
    for loss in [Loss::Killed, Loss::Flushed] {
        let scene = Scene::after(loss).await;
        let answer = scene.rival_asks().await;
        assert!(
            matches!(answer, ClaimAnswer::Grace { .. }),
            "{loss:?} {answer:?}"
        );

        let (store, holder) = (&scene.store, &scene.holder);
        let renewal = [renewal(&scene.claim, &scene.grant)];
        let renewed = persist(|| store.renew(holder, &renewal)).await.answer;
        assert!(
            matches!(renewed[0], RenewalAnswer::Renewed { .. }),
            "{loss:?}"
        );

        scene.sit_grace_out().await;
        let ClaimAnswer::Held(held) = scene.rival_asks().await else {
            panic!("{loss:?}: the holder came back in time");
        };
        assert_eq!(held.sighting.token, scene.grant.token);
    }
}

#[tokio::test]
async fn tokens_rise_over_a_loss_while_one_witness_lives() {
    for loss in [Loss::Killed, Loss::Flushed] {
        let scene = Scene::after(loss).await;
        scene.rival_asks().await;
        scene.sit_grace_out().await;
        let next = claim("job", just_due(&scene.store).await);
        let next = win(&scene.store, &scene.rival, &next).await;
        assert!(next.token > scene.grant.token, "{loss:?}");
    }
}

#[tokio::test]
async fn an_occurrence_from_before_the_loss_is_not_run_as_if_it_were_new() {
    let scene = Scene::after(Loss::Flushed).await;
    scene.rival_asks().await;
    scene.sit_grace_out().await;
    assert_eq!(scene.rival_asks().await, ClaimAnswer::TooLate);
    let lines = persist(|| scene.store.history(None, 10)).await;
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].outcome, Outcome::Missed);
}

#[tokio::test]
async fn an_attempt_that_ends_in_the_grace_window_stays_ended() {
    let scene = Scene::after(Loss::Killed).await;
    scene.rival_asks().await;
    let release = [release(&scene.claim, &scene.grant, Outcome::Succeeded)];
    let released = persist(|| scene.store.release(&scene.holder, &release)).await;
    assert_eq!(released.answer, [ReleaseAnswer::Released]);
    scene.sit_grace_out().await;
    assert_eq!(scene.rival_asks().await, ClaimAnswer::Finished);
}

#[tokio::test]
async fn a_holder_that_comes_back_after_the_grace_window_has_lost() {
    let scene = Scene::after(Loss::Flushed).await;
    scene.rival_asks().await;
    scene.sit_grace_out().await;
    let renewal = [renewal(&scene.claim, &scene.grant)];
    let renewed = persist(|| scene.store.renew(&scene.holder, &renewal)).await;
    assert_eq!(renewed.answer, [RenewalAnswer::Lost]);
    let release = [release(&scene.claim, &scene.grant, Outcome::Succeeded)];
    let released = persist(|| scene.store.release(&scene.holder, &release)).await;
    assert_eq!(released.answer, [ReleaseAnswer::Superseded]);
}

#[tokio::test]
async fn a_grace_window_begins_once_however_many_look() {
    let scene = Scene::after(Loss::Killed).await;
    scene.rival_asks().await;
    let mut patient = caller("patient");
    patient.quarantine = Duration::from_secs(3600);
    let left = observe(&scene.store, &patient).await.answer.grace;
    assert!(left <= SHORT_QUARANTINE);
    let mut other = scene.claim.clone();
    other.occurrence.job = job("other");
    let answer = ask(&scene.store, &patient, &other).await;
    assert!(matches!(answer, ClaimAnswer::Grace { wait } if wait <= SHORT_QUARANTINE));
    drop(scene.server);
}

#[tokio::test]
async fn a_first_start_waits_for_a_second_at_most() {
    while_it_runs_async(async || {
        let server = RedisServer::start();
        let store = RedisStore::open(&server.url(), "new").unwrap();
        let left = observe(&store, &caller("first")).await.answer.grace;
        assert!(left <= Duration::from_secs(1), "{left:?}");
        match left.is_zero() {
            true => Err("there was none".to_owned()),
            false => Ok(()),
        }
    })
    .await;
}

/// Those who know of grants have to look before the newcomer's second is over.
#[tokio::test]
async fn a_newcomer_to_a_lost_ledger_is_held_back_by_those_who_know_of_grants() {
    while_it_runs_async(async || {
        let scene = Scene::after(Loss::Flushed).await;
        let mut news = scene.store.events();
        until("somebody listens", async || {
            let channels = scene.server.command(&["PUBSUB", "CHANNELS"]);
            (!channels.is_empty()).then_some(())
        })
        .await;
        let newcomer = Caller {
            quarantine: SHORT_QUARANTINE,
            ..caller("newcomer")
        };
        let short = observe(&scene.store, &newcomer).await.answer.grace;
        assert!(short <= Duration::from_secs(1), "{short:?}");
        // The birth is told, so that who holds a lease looks before that second is over.
        let told = async { while news.recv().await.unwrap() != StoreEvent::Opening {} };
        tokio::time::timeout(TTL, told).await.unwrap();
        let full = observe(&scene.store, &scene.holder).await.answer.grace;
        let mut claim = scene.claim.clone();
        claim.occurrence.job = job("another");
        let answer = ask(&scene.store, &newcomer, &claim).await;
        match (full > short, &answer) {
            (true, ClaimAnswer::Grace { wait }) if *wait > short => Ok(()),
            _ => Err(format!("{full:?} {answer:?}")),
        }
    })
    .await;
}

#[tokio::test]
async fn a_restart_that_kept_its_data_opens_a_grace_window_too() {
    let mut server = RedisServer::options().appendonly().start();
    let store = fresh_store(&server).await;
    let (holder, rival) = (caller("holder"), caller("rival"));
    let claim = claim("job", just_due(&store).await);
    let grant = win(&store, &holder, &claim).await;
    server.restart();

    let takeover = [Claim {
        run_id: RunId::new(uuid::Uuid::new_v4()),
        watched: Some(soloist::scheduler::lease::Sighting {
            token: grant.token,
            deadline: grant.deadline,
        }),
        ..claim.clone()
    }];
    let answered = persist(|| store.claim(&rival, &takeover)).await;
    assert!(matches!(answered.answer[0], ClaimAnswer::Grace { .. }));
    let jobs = persist(|| store.snapshot()).await.answer.jobs;
    let last = jobs[0].last().unwrap();
    assert_eq!(last.token, grant.token);
    assert!(matches!(last.standing, Standing::Running { .. }));
}

#[tokio::test]
async fn a_clock_set_back_a_little_stands_still_and_far_opens_a_grace_window() {
    let clock = SteppingClock::new();
    clock.set(7_200_000);
    let server = RedisServer::options()
        .environment(clock.environment())
        .start();
    let store = fresh_store(&server).await;
    let mut one = caller("one");
    one.quarantine = SHORT_QUARANTINE;
    let waits = claim("waits", just_due(&store).await);
    let grant = win(&store, &one, &waits).await;
    let handed_over = [release(&waits, &grant, Outcome::HandedOver)];
    persist(|| store.release(&one, &handed_over)).await;
    let first = claim("first", just_due(&store).await);
    let first = win(&store, &one, &first).await;
    let then = observe(&store, &one).await.now;
    clock.set(7_200_000 - 30_000);
    let still = observe(&store, &one).await;
    assert!(still.now <= then && still.now + SHORT_QUARANTINE > then);
    assert_eq!(still.answer.grace, Duration::ZERO);
    assert_eq!(
        still.answer.openings[0].occurrence.job,
        job("waits"),
        "what was due is due"
    );
    // Tokens rise though time stands still.
    let mut second = claim("second", still.now);
    second.origin = Origin::RunOnce;
    let won = win(&store, &one, &second).await;
    assert!(won.token > first.token);
    let done = [release(&second, &won, Outcome::Succeeded)];
    persist(|| store.release(&one, &done)).await;

    clock.set(0);
    let back = observe(&store, &one).await;
    assert!(back.now + Duration::from_secs(3600) < then);
    assert_eq!(back.answer.grace, SHORT_QUARANTINE);
    // Of a job that the ledger knows: to this clock, it begins in two hours only.
    let third = [Claim {
        occurrence: claim("second", just_due(&store).await).occurrence,
        run_id: RunId::new(uuid::Uuid::new_v4()),
        ..second
    }];
    let mut graces = 0;
    let third = loop {
        graces += 1;
        assert!(graces < 10, "the window opens again and again");
        match &persist(|| store.claim(&one, &third)).await.answer[0] {
            ClaimAnswer::Grace { wait } => tokio::time::sleep(*wait).await,
            ClaimAnswer::Granted(grant) => break *grant,
            other => panic!("{other:?}"),
        }
    };
    assert!(third.token > won.token, "whatever the clock does");
}

/// A retry waits for its time, and not for the clock's way back.
#[tokio::test]
async fn a_retry_waits_out_a_small_step_back_and_a_grace_window_after_a_far_one() {
    const WAIT: Duration = Duration::from_secs(300);
    const DAY_MS: i64 = 86_400_000;
    let clock = SteppingClock::new();
    let server = RedisServer::options()
        .environment(clock.environment())
        .start();
    let store = fresh_store(&server).await;
    let mut one = caller("one");
    one.quarantine = SHORT_QUARANTINE;
    let first = claim("flaky", just_due(&store).await);
    let grant = win(&store, &one, &first).await;
    let failed = [Release {
        retry_after: Some(WAIT),
        ..release(&first, &grant, Outcome::Failed)
    }];
    persist(|| store.release(&one, &failed)).await;
    let again = Claim {
        run_id: RunId::new(uuid::Uuid::new_v4()),
        ..first
    };

    clock.set(-30_000);
    let answer = ask(&store, &one, &again).await;
    assert!(
        matches!(answer, ClaimAnswer::Early { wait } if wait <= WAIT + SHORT_QUARANTINE),
        "{answer:?}"
    );

    clock.set(-DAY_MS);
    let far = observe_all(&store, &one).await.answer;
    assert_eq!(far.grace, SHORT_QUARANTINE);
    assert_eq!(far.openings[0].occurrence, again.occurrence);
    tokio::time::sleep(far.grace).await;
    let next = win(&store, &one, &again).await;
    assert!(next.token > grant.token && next.attempt == 2, "{next:?}");
}

async fn observe_all(store: &RedisStore, caller: &Caller) -> Answered<Observation> {
    let info = info();
    persist(|| store.observe(caller, &info, Scope::All)).await
}

#[tokio::test]
async fn forgotten_scripts_cost_no_call_and_grant_nothing_twice() {
    const CALLERS: usize = 8;
    const OCCURRENCES: usize = 40;
    let server = RedisServer::start();
    let store = fresh_store(&server).await;
    let claims: Vec<Claim> = {
        let due = just_due(&store).await;
        (0..OCCURRENCES)
            .map(|n| claim(&format!("job-{n}"), due))
            .collect()
    };
    let grants = tokio::task::spawn_blocking({
        let handle = tokio::runtime::Handle::current();
        move || handle.block_on(race(store, claims, CALLERS))
    });
    while !grants.is_finished() {
        server.command(&["SCRIPT", "FLUSH"]);
        tokio::task::yield_now().await;
    }
    assert_eq!(grants.await.unwrap(), OCCURRENCES);
    let forgotten = server.command(&["INFO", "errorstats"]);
    assert!(forgotten.contains("errorstat_NOSCRIPT"), "{forgotten}");
}

/// How many grants come of so many callers who all claim all occurrences, one at a time.
async fn race(store: RedisStore, claims: Vec<Claim>, callers: usize) -> usize {
    let asked = (0..callers).map(|n| {
        let (store, claims, caller) = (&store, &claims, caller(&format!("caller-{n}")));
        async move {
            let mut won = 0;
            for claim in claims {
                let mut claim = claim.clone();
                claim.run_id = RunId::new(uuid::Uuid::new_v4());
                let answer = ask(store, &caller, &claim).await;
                won += usize::from(matches!(answer, ClaimAnswer::Granted(_)));
            }
            won
        }
    });
    futures_util::future::join_all(asked)
        .await
        .into_iter()
        .sum()
}

#[tokio::test]
async fn a_connection_that_was_lost_is_told_to_those_who_listen() {
    let mut server = RedisServer::start();
    let store = fresh_store(&server).await;
    let mut news = store.events();
    until("somebody listens", async || {
        let channels = server.command(&["PUBSUB", "CHANNELS"]);
        (!channels.is_empty()).then_some(())
    })
    .await;
    server.restart();
    let told = async {
        // The birth of the ledger may be told only now.
        while news.recv().await.unwrap() != StoreEvent::Reconnected {}
    };
    tokio::time::timeout(TTL, told).await.unwrap();
    persist(|| async { store.observe(&caller("one"), &info(), Scope::All).await }).await;
}

/// Two failovers, one there and one back, before anything was written in between: the process is
/// the same, and its last writes are gone.
#[tokio::test]
async fn a_master_that_was_replaced_and_came_back_without_its_last_writes_is_noticed() {
    let (first, second) = (RedisServer::start(), RedisServer::start());
    let store = fresh_store(&first).await;
    let due = just_due(&store).await;
    win(&store, &caller("holder"), &claim("before", due)).await;
    follow(&second, &first);
    assert_eq!(second.command(&["REPLICAOF", "NO", "ONE"]), "OK");
    // The other one has not seen this any more.
    let lost = claim("job", due);
    win(&store, &caller("holder"), &lost).await;
    follow(&first, &second);
    assert_eq!(first.command(&["REPLICAOF", "NO", "ONE"]), "OK");
    let answer = ask(&store, &caller("rival"), &lost).await;
    assert!(matches!(answer, ClaimAnswer::Grace { .. }), "{answer:?}");
}

/// Has a server become the replica of another one; returns when it has its data.
fn follow(replica: &RedisServer, master: &RedisServer) {
    let port = master.port().to_string();
    assert_eq!(replica.command(&["REPLICAOF", "127.0.0.1", &port]), "OK");
    let deadline = Instant::now() + Duration::from_secs(20);
    let is_up = || {
        let info = replica.command(&["INFO", "replication"]);
        info.contains("master_link_status:up")
    };
    while !is_up() {
        assert!(Instant::now() < deadline, "it does not follow");
        std::thread::sleep(Duration::from_millis(20));
    }
}
