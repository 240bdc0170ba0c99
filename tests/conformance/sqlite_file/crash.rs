//! Processes killed in the middle of a batch.

use std::time::Duration;

use soloist::scheduler::lease::{BATCH_LIMIT, Claim, ClaimAnswer, Outcome};
use soloist::store::Standing;
use tempfile::TempDir;

use super::peer_at;
use super::processes::{heard, start, told};
use crate::bench::{Peer, claim, enrolment, job, release};

const KILLS: usize = 6;
/// How many answered batches of a child are waited for before it is killed in the next one.
const ANSWERED: usize = 3;

async fn whole(peer: &Peer, claims: &[Claim]) -> Vec<ClaimAnswer> {
    loop {
        let answered = peer.store.claim(&peer.caller, claims).await;
        let answers = answered.expect("the store answers").answer;
        if !matches!(answers[0], ClaimAnswer::Early { .. }) {
            return answers;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a child of a_process_killed_in_the_middle_of_a_batch_leaves_it_whole_or_undone"]
async fn child_works_in_full_batches_until_it_is_killed() {
    let Some((path, mut due)) = told() else {
        return;
    };
    let me = peer_at(&path, "child");
    loop {
        let claims: Vec<_> = (0..BATCH_LIMIT)
            .map(|number| claim(&job(&format!("job-{number}")), due))
            .collect();
        let answers = whole(&me, &claims).await;
        println!("claimed {}", due.as_millis());
        let releases: Vec<_> = claims
            .iter()
            .zip(&answers)
            .map(|(claim, answer)| match answer {
                ClaimAnswer::Granted(grant) => release(claim, grant, Outcome::Succeeded),
                other => panic!("the child was told {other:?}"),
            })
            .collect();
        let released = me.store.release(&me.caller, &releases).await;
        released.expect("the store answers");
        due = due + Duration::from_millis(1);
    }
}

/// Every job stands as every other, or a batch was torn; gives how.
async fn standing_of_all(peer: &Peer) -> (i64, bool) {
    let snapshot = peer
        .store
        .snapshot()
        .await
        .expect("the store answers")
        .answer;
    let mut standings: Vec<_> = snapshot
        .jobs
        .iter()
        .map(|job| {
            let last = job.last().expect("it was claimed");
            let runs = matches!(last.standing, Standing::Running { .. });
            (last.scheduled_at.as_millis(), runs)
        })
        .collect();
    assert_eq!(standings.len(), BATCH_LIMIT);
    standings.dedup();
    assert_eq!(standings.len(), 1, "a batch was torn: {standings:?}");
    standings[0]
}

/// Gives back, for the dead, what they hold.
async fn end_all(peer: &Peer, due_ms: i64) {
    let snapshot = peer
        .store
        .snapshot()
        .await
        .expect("the store answers")
        .answer;
    let releases: Vec<_> = snapshot
        .jobs
        .iter()
        .filter_map(|state| {
            let last = state.last()?;
            let due = soloist::scheduler::time::Timestamp::from_millis(due_ms);
            let mut claim = claim(&state.job, due);
            claim.run_id = last.run_id;
            let grant = soloist::scheduler::lease::Grant {
                token: last.token,
                attempt: last.attempt,
                failures: 0,
                shards: 1,
                deadline: due,
                remaining: Duration::ZERO,
                replayed: false,
            };
            Some(release(&claim, &grant, Outcome::Failed))
        })
        .collect();
    let released = peer.store.release(&peer.caller, &releases).await;
    released.expect("the store answers");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_killed_in_the_middle_of_a_batch_leaves_it_whole_or_undone() {
    let directory = TempDir::new().expect("a temporary directory can be made");
    let path = directory.path().join("soloist.db");
    let parent = peer_at(&path, "parent");
    let names: Vec<_> = (0..BATCH_LIMIT)
        .map(|number| job(&format!("job-{number}")))
        .collect();
    let enrolments: Vec<_> = names.iter().map(enrolment).collect();
    let registered = parent.store.register(&parent.caller, &enrolments).await;
    let mut due = registered.expect("the store answers").now + Duration::from_millis(1);
    for kill in 0..KILLS {
        let test = "sqlite_file::crash::child_works_in_full_batches_until_it_is_killed";
        let (mut child, mut output) = start(test, &path, due);
        for _ in 0..ANSWERED {
            heard(&mut output, "claimed ").expect("the child works");
        }
        // At another point of a batch each time.
        tokio::time::sleep(Duration::from_micros(900 * kill as u64)).await;
        child.kill().expect("it can be killed");
        child.wait().expect("it can be waited for");
        let mut answered = 0;
        while let Some(line) = heard(&mut output, "claimed ") {
            answered = line.parse().expect("a number");
        }
        let (last, runs) = standing_of_all(&parent).await;
        assert!(
            last >= answered,
            "an answered batch is gone: {answered}, and there is {last}"
        );
        if runs {
            end_all(&parent, last).await;
        }
        due = soloist::scheduler::time::Timestamp::from_millis(last + 1);
    }
    drop(parent);
    let connection = rusqlite::Connection::open(&path).expect("the file can be opened");
    let found: String = connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .expect("it can be checked");
    assert_eq!(found, "ok");
}
