//! Servers of a quorum that come back without their data, and what they know then.

use std::time::Instant;

use soloist::scheduler::lease::{BATCH_LIMIT, Claim, ClaimAnswer, Outcome, Release};
use soloist::store::Store;
use soloist::store::redis::quorum::QuorumStore;
use test_support::redis::{RedisServer, fresh_namespace};

use crate::quorum::{fresh, now, servers, wait_until_all_have_the_same};
use crate::world::{caller, claim, persist, printed, release};

const JOBS: usize = 300;

/// Runs each job once, with an output of its own.
async fn run_all(store: &QuorumStore) -> Vec<Claim> {
    let one = caller("one");
    let due = now(store).await;
    let claims: Vec<Claim> = (0..JOBS).map(|n| claim(&format!("job-{n}"), due)).collect();
    for batch in claims.chunks(BATCH_LIMIT) {
        let answers = persist(|| store.claim(&one, batch)).await.answer;
        let ends = batch.iter().zip(&answers).map(|(claim, answer)| {
            let ClaimAnswer::Granted(grant) = answer else {
                panic!("{claim:?}: {answer:?}");
            };
            let mut end = release(claim, grant, Outcome::Succeeded);
            end.output = printed(claim.run_id.to_string().as_bytes());
            end
        });
        let ends: Vec<Release> = ends.collect();
        persist(|| store.release(&one, &ends)).await;
    }
    claims
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_emptied_one_after_the_other_keep_every_line_and_every_output() {
    let mut servers = servers(5);
    let namespace = fresh_namespace();
    let store = fresh(&servers, &namespace).await;
    let mut ran = run_all(&store).await;
    for emptied in 0..servers.len() {
        servers[emptied].restart();
        // What ends while it catches up is missed by nobody either.
        ran.extend(run_all(&store).await);
        let began = Instant::now();
        wait_until_all_have_the_same(&servers, &namespace, &store).await;
        println!("server {emptied} has caught up after {:?}", began.elapsed());
    }
    // Any two may be away then.
    servers[..2].iter_mut().for_each(RedisServer::kill);
    assert_all_is_told(&store, &ran).await;
}

async fn assert_all_is_told(store: &QuorumStore, ran: &[Claim]) {
    let history = persist(|| store.history(None, 10 * ran.len())).await;
    let attempts = history.iter().filter(|line| line.attempt > 0);
    let mut told: Vec<_> = attempts.map(|line| line.run_id).collect();
    let mut all: Vec<_> = ran.iter().map(|claim| claim.run_id).collect();
    let (lines, expected) = (told.len(), all.len());
    told.sort();
    all.sort();
    assert!(told == all, "{lines} lines are told of {expected}");
    for claim in ran {
        let output = persist(|| store.output(&claim.occurrence.job, claim.run_id)).await;
        let expected = printed(claim.run_id.to_string().as_bytes());
        assert_eq!(output, Some(expected), "{claim:?}");
    }
}
