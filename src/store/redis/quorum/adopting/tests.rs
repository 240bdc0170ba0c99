//! Servers that catch up, step by step: nobody mends them here but the test.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use test_support::redis::{RedisServer, fresh_namespace};
use tokio::runtime::Runtime;

use super::super::QuorumStore;
use super::*;
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{
    BATCH_LIMIT, Captured, Claim, ClaimAnswer, FencingToken, Occurrence, Outcome, Output, Release,
    Replica, RunId, Scope,
};
use crate::scheduler::time::Timestamp;
use crate::store::{Answered, Caller, ReplicaInfo, Store, StoreError};
use crate::store_url::StoreOptions;

struct Scene {
    servers: Vec<RedisServer>,
    store: QuorumStore,
    caller: Caller,
    runtime: Runtime,
}

impl Scene {
    fn of(count: usize) -> Self {
        let servers: Vec<RedisServer> = (0..count).map(|_| RedisServer::start()).collect();
        let hosts = servers
            .iter()
            .map(|server| format!("127.0.0.1:{}", server.port()));
        let url = format!("redis+quorum://{}", Vec::from_iter(hosts).join(","));
        let namespace = fresh_namespace();
        // Opened beside a runtime, it would mend by itself.
        let store = QuorumStore::open(&url, &namespace, &StoreOptions::default()).expect("a URL");
        let caller = Caller {
            replica: Replica {
                id: Uuid::new_v4(),
                name: "one".to_owned(),
            },
            // No grace window; it knows of a grant, so that nothing was just lost.
            quarantine: Duration::ZERO,
            held_back: Duration::ZERO,
            token_floor: FencingToken::new(1),
            send_by: None,
        };
        let runtime = Runtime::new().expect("a runtime");
        let scene = Self {
            servers,
            store,
            caller,
            runtime,
        };
        let info = ReplicaInfo::default();
        let look = || scene.store.observe(&scene.caller, &info, Scope::Overdue);
        scene.runtime.block_on(persist(look));
        scene
    }

    /// Runs jobs once: each leaves a line and an output.
    fn run_jobs(&self, jobs: std::ops::Range<usize>) {
        self.runtime.block_on(async {
            let due = persist(|| self.store.snapshot()).await.now;
            let claims: Vec<Claim> = jobs.map(|number| claim(number, due)).collect();
            for batch in claims.chunks(BATCH_LIMIT) {
                let answers = persist(|| self.store.claim(&self.caller, batch))
                    .await
                    .answer;
                let ends = batch.iter().zip(&answers).map(|(claim, answer)| {
                    let ClaimAnswer::Granted(grant) = answer else {
                        panic!("{claim:?}: {answer:?}");
                    };
                    let mut end = Release::of(claim, grant, Outcome::Succeeded);
                    end.output = printed(&claim.occurrence.job);
                    end
                });
                let ends: Vec<Release> = ends.collect();
                persist(|| self.store.release(&self.caller, &ends)).await;
            }
        });
    }

    fn key(&self, part: &str) -> String {
        format!("{}{part}", self.store.shared.members[0].keys.prefix)
    }

    fn values(&self, number: usize) -> BTreeMap<String, String> {
        let told = self.servers[number].command(&["HGETALL", &self.key("jobs")]);
        let words: Vec<&str> = told.lines().collect();
        let pairs = words.chunks_exact(2);
        pairs
            .map(|pair| (pair[0].to_owned(), pair[1].to_owned()))
            .collect()
    }

    /// All that is no server's own: values, agenda, lines and outputs.
    fn ledger(&self, number: usize) -> BTreeMap<String, String> {
        let mut ledger = self.values(number);
        for own in ["#promised", "#peace_us", "#next", "#ballot", "#member"] {
            ledger.remove(own);
        }
        let server = &self.servers[number];
        let agenda = server.command(&["ZRANGE", &self.key("agenda"), "0", "-1", "WITHSCORES"]);
        ledger.insert("#agenda".to_owned(), agenda);
        let jobs: Vec<String> = ledger.keys().cloned().collect();
        for job in jobs.iter().filter(|job| !job.starts_with('#')) {
            for part in ["history", "output"] {
                let stream = self.key(&format!("{part}:{job}"));
                let told = server.command(&["XRANGE", &stream, "-", "+"]);
                ledger.insert(format!("{part}:{job}"), told);
            }
        }
        ledger
    }

    fn calls(&self, number: usize, command: &str) -> u64 {
        let stats = self.servers[number].commandstats();
        stats.get(command).map_or(0, |stat| stat.calls)
    }

    /// Whether a server counts, and holds what it held before, or what another one holds.
    fn is_whole(&self, number: usize, before: &BTreeMap<String, String>) -> bool {
        let shared = |mut values: BTreeMap<String, String>| {
            values.retain(|field, _| {
                !["#promised", "#peace_us", "#next", "#member"].contains(&&**field)
            });
            values
        };
        let now = self.values(number);
        let counts = now.get("#member") == before.get("#member");
        let now = shared(now);
        let others = (0..self.servers.len()).filter(|other| *other != number);
        let mut known = others.map(|other| shared(self.values(other)));
        counts && (now == shared(before.clone()) || known.any(|known| known == now))
    }

    fn approach(&self, number: usize) -> Approached {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            // Who was restarted is found by a call that fails.
            match self.runtime.block_on(self.store.shared.approach(number)) {
                Ok(Some(approached)) => return approached,
                _ => assert!(Instant::now() < deadline, "it can't be approached"),
            }
        }
    }

    /// Has all catch up: on a busy machine one may have been too slow for a step.
    fn settle(&self) {
        let deadline = Instant::now() + Duration::from_secs(30);
        let ballots = || {
            let numbers = 0..self.servers.len();
            let ballots = numbers.map(|number| self.values(number).remove("#ballot"));
            ballots.collect::<BTreeSet<_>>()
        };
        while ballots().len() > 1 {
            assert!(Instant::now() < deadline, "{:?}", ballots());
            for number in 0..self.servers.len() {
                // Whoever couldn't will the next time.
                let _ = self.runtime.block_on(self.store.shared.mend(number));
            }
        }
    }

    /// On a busy machine it may take longer than others are kept waiting for: then it joins the
    /// next time.
    fn join(&self, number: usize, approached: &Approached) -> Adopting {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let joined = self.store.shared.join(number, approached);
            match self.runtime.block_on(joined) {
                Ok(adopting) => return adopting,
                Err(Ended::Outbid) => assert!(Instant::now() < deadline, "nobody else is there"),
                Err(Ended::Failed(error)) => panic!("{error}"),
            }
        }
    }
}

/// Asks until it is answered, as replicas do.
async fn persist<T, F>(mut ask: impl FnMut() -> F) -> Answered<T>
where
    F: Future<Output = Result<Answered<T>, StoreError>>,
{
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        match ask().await {
            Ok(answered) => return answered,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        sleep(Duration::from_millis(10)).await;
    }
}

fn claim(number: usize, due: Timestamp) -> Claim {
    let occurrence = Occurrence {
        job: JobName::new(&format!("job-{number}")).expect("a name"),
        scheduled_at: due,
    };
    let later = due + Duration::from_secs(3600);
    Claim {
        claim_by: later,
        start_by: later,
        ttl: Duration::from_secs(60),
        retention: crate::scheduler::lease::Retention {
            limit: 1000,
            age: Duration::from_secs(3600),
        },
        ..Claim::new(occurrence, RunId::new(Uuid::new_v4()))
    }
}

fn printed(job: &JobName) -> Output {
    let text = format!("{job} was here");
    Output {
        stdout: Captured {
            total: text.len() as u64,
            head: text.into_bytes(),
            tail: Vec::new(),
        },
        stderr: Captured::default(),
    }
}

/// How many of them die.
const FOR_A_STEP: Peace = Peace::ForAStep(UNDER_BALLOT);

const MENDERS: usize = 13;

/// What the group shares beside the records, and may change.
const OF_THE_GROUP: usize = 2;

#[test]
fn a_server_that_missed_fifty_of_ten_thousand_jobs_is_written_those_alone() {
    let scene = Scene::of(3);
    scene.run_jobs(0..10_000);
    scene.settle();
    scene.servers[2].freeze();
    scene.run_jobs(100..150);
    scene.servers[2].thaw();
    let before = scene.values(2);
    scene.servers[2].command(&["CONFIG", "RESETSTAT"]);
    let began = Instant::now();
    let approached = scene.approach(2);
    let approach = began.elapsed();
    assert_eq!(
        scene.values(2)["#ballot"],
        before["#ballot"],
        "it learnt lines alone"
    );
    let joining = Instant::now();
    let adopting = scene.join(2, &approached);
    println!(
        "50 of 10,000 jobs missed: {approach:?} beside the others, {:?} under a ballot",
        joining.elapsed()
    );
    assert!(adopting.values <= 50 + OF_THE_GROUP, "{adopting:?}");
    assert_eq!(adopting.lines, 100, "a line and an output each");
    assert_eq!(scene.calls(2, "xadd"), 100);
    assert_eq!(scene.calls(2, "rename"), 0);
    assert_eq!(scene.ledger(2), scene.ledger(0));
    assert_eq!(scene.values(2)["#ballot"], scene.values(0)["#ballot"]);
}

#[test]
fn an_empty_server_is_filled_beside_the_others_and_counts_at_once() {
    let mut scene = Scene::of(3);
    scene.run_jobs(0..10_000);
    scene.settle();
    scene.servers[2].restart();
    let began = Instant::now();
    let approached = scene.approach(2);
    let approach = began.elapsed();
    assert!(approach >= REJOINS_AFTER, "it may have promised something");
    assert!(!scene.values(2).contains_key("job-1"), "it is put aside");
    assert!(
        !scene.values(2).contains_key("#ballot"),
        "it counts for nothing"
    );
    // The others go on meanwhile.
    scene.run_jobs(9_990..10_010);
    let joining = Instant::now();
    scene.join(2, &approached);
    println!(
        "10,000 jobs and as many lines and outputs, from empty: {approach:?} beside the others \
         ({REJOINS_AFTER:?} of that waited), {:?} under a ballot",
        joining.elapsed()
    );
    assert_eq!(scene.calls(2, "xadd"), 20_000 + 40);
    assert_eq!(scene.ledger(2), scene.ledger(0));
    let now = scene.values(2);
    assert_eq!(now["#ballot"], scene.values(0)["#ballot"]);
    let aside =
        scene.servers[2].command(&["EXISTS", &scene.key("aside"), &scene.key("aside_agenda")]);
    assert_eq!(aside, "0");
    // It counts: one of the others may go.
    scene.servers[1].freeze();
    scene.run_jobs(0..1);
    scene.servers[1].thaw();
}

#[test]
fn a_server_that_counts_counts_whenever_its_mender_dies() {
    let scene = Scene::of(5);
    scene.run_jobs(0..300);
    scene.settle();
    let mut cut = 0;
    for turn in 0..MENDERS {
        scene.servers[4].freeze();
        scene.run_jobs(turn..turn + 50);
        scene.servers[4].thaw();
        let before = scene.values(4);
        let approached = scene.approach(4);
        assert!(scene.is_whole(4, &before), "approached");
        let dies = Duration::from_millis(3) * u32::try_from(turn).expect("a small number");
        let join = async { timeout(dies, scene.store.shared.join(4, &approached)).await };
        cut += usize::from(scene.runtime.block_on(join).is_err());
        assert!(scene.is_whole(4, &before), "dead after {dies:?}");
        if turn % 4 == 0 {
            // Two others fail, and with it there is a majority.
            scene.servers[..2].iter().for_each(RedisServer::freeze);
            scene.run_jobs(299..300);
            scene.servers[..2].iter().for_each(RedisServer::thaw);
        }
        scene.settle();
    }
    println!("{cut} of {MENDERS} menders died half-way");
    assert!((1..=MENDERS).contains(&cut), "{cut}");
}

#[test]
fn what_a_step_comes_after_counts_as_newer_than_what_a_minority_took_meanwhile() {
    let scene = Scene::of(5);
    scene.run_jobs(0..3);
    let shared = &scene.store.shared;
    // Two proposers, of whom each has its step taken by one server alone.
    let take_alone = async |number: usize| {
        let round = shared
            .prepare(&nothing(), FOR_A_STEP)
            .await
            .ok()
            .expect("nobody is there");
        let at = round.views.iter().position(|view| view.number == number);
        let at = at.expect("it answers");
        let request = request::accept(
            &shared.members[number].keys,
            &nothing(),
            &round.views[at].shown,
            &Changes::default(),
            [&round.formed.ballot, &round.ballot],
        );
        let taken = shared.members[number].keeping.run(request).await;
        assert!(crate::store::redis::reply::taken(
            &taken.expect("it answers")
        ));
    };
    scene.runtime.block_on(take_alone(0));
    scene.servers[0].freeze();
    scene.runtime.block_on(take_alone(4));
    scene.servers[0].thaw();
    scene.servers[4].freeze();
    // A third one goes on from the first of them, and dies before its own step.
    let settled = scene.runtime.block_on(async {
        let patience = Instant::now() + Duration::from_secs(20);
        loop {
            let round = shared.prepare(&nothing(), FOR_A_STEP).await;
            // A link that waited for the frozen server is made anew.
            if let Ok(round) = round
                && round.views.iter().any(|view| view.number == 0)
            {
                let levelled = shared.level_all(&round).await;
                assert!(levelled.is_ok_and(|levelled| levelled.len() >= 2));
                let seen = shared.look_in(&nothing()).await;
                break seen.is_ok_and(|seen| seen.is_settled(5));
            }
            assert!(Instant::now() < patience, "server 0 does not answer");
        }
    });
    scene.servers[4].thaw();
    let ballots = [0, 1, 2, 3, 4].map(|number| scene.values(number)["#ballot"].clone());
    let newest = ballots.iter().max().expect("five");
    let have_it = ballots.iter().filter(|ballot| *ballot == newest).count();
    assert!(have_it >= 2 && ballots[4] != *newest, "{ballots:?}");
    assert!(!settled || have_it >= 3, "{ballots:?}");
}

#[test]
fn promises_that_were_not_given_at_one_time_do_not_count_together() {
    let scene = Scene::of(3);
    scene.run_jobs(0..3);
    // The first that is asked is the last one that was well.
    let number = scene
        .store
        .shared
        .first
        .load(std::sync::atomic::Ordering::Relaxed);
    let slow = |at: &&usize| **at != number;
    let promised = || scene.values(number)["#promised"].clone();
    let before = promised();
    let servers = [0, 1, 2];
    servers
        .iter()
        .filter(slow)
        .for_each(|at| scene.servers[*at].freeze());
    let counted = scene.runtime.block_on(async {
        let shared = std::sync::Arc::clone(&scene.store.shared);
        let prepared =
            tokio::spawn(async move { shared.prepare(&nothing(), FOR_A_STEP).await.is_ok() });
        let patience = Instant::now() + Duration::from_secs(20);
        while promised() == before {
            assert!(Instant::now() < patience, "the first promises nothing");
            sleep(Duration::from_millis(2)).await;
        }
        sleep(PROMISED_WITHIN + Duration::from_millis(100)).await;
        servers
            .iter()
            .filter(slow)
            .for_each(|at| scene.servers[*at].thaw());
        prepared.await.expect("it does not panic")
    });
    assert!(!counted, "the first may have forgotten its promise");
}

#[test]
fn a_script_refuses_what_was_read_of_another_state() {
    let scene = Scene::of(3);
    scene.run_jobs(0..3);
    let target = &scene.store.shared.members[2];
    let values = scene.values(2);
    let (process, ballot) = (values["#member"].clone(), values["#ballot"].clone());
    let promised = values["#promised"].clone();
    let run = |process: &str, mark: Option<&str>, how: Adopted<'_>| {
        let gone = [b"job-0".as_slice()];
        let adoption = Adoption {
            process,
            mark,
            values: &[(b"job-1", b"-|x")],
            gone: &gone,
            how,
        };
        scene
            .runtime
            .block_on(super::run(target, &adoption))
            .expect("it answers")
    };
    let counts = |promised, after| Adopted::Counts {
        ballots: [promised, after, "step"],
        joins: true,
    };
    let aside = Adopted::Aside { next_mark: "m" };
    assert!(!run(&process, Some(""), aside), "it counts");
    assert!(!run("another", None, counts(&promised, &ballot)));
    assert!(!run(&process, None, counts("another", &ballot)));
    assert!(!run(&process, None, counts(&promised, "another")));
    assert!(!run(&process, Some("m"), counts(&promised, &ballot)));
    assert!(!run(&process, Some(""), counts(&promised, &ballot)));
    let same = scene.values(2);
    assert_eq!(same, values, "nothing was done");
    assert!(run(&process, None, counts(&promised, &ballot)));
    let now = scene.values(2);
    assert_eq!(
        (now["#ballot"].as_str(), now["job-1"].as_str()),
        ("step", "-|x")
    );
    let streams = [scene.key("history:job-0"), scene.key("output:job-0")];
    let gone = scene.servers[2].command(&["EXISTS", &streams[0], &streams[1]]);
    assert!(
        !now.contains_key("job-0") && gone == "0",
        "its lines go with it"
    );
    // One that doesn't count is filled by one at a time.
    scene.servers[2].command(&["HSET", &scene.key("jobs"), "#member", "another"]);
    assert!(run(&process, Some(""), aside));
    assert!(!run(&process, Some(""), Adopted::Aside { next_mark: "n" }));
    assert!(!run(&process, Some("n"), counts(&promised, "step")));
    assert!(run(&process, Some("m"), counts(&promised, "step")));
    assert_eq!(scene.values(2)["#member"], process);
    assert_eq!(scene.values(2)["#promised"], promised);
}
