//! What calls cost the server: printed for people (`--nocapture`), and the number of commands
//! held to what it should be.

use std::time::Instant;

use soloist::scheduler::lease::{BATCH_LIMIT, Claim, ClaimAnswer, Grant, Outcome, RunId, Scope};
use soloist::store::{Answered, Store, StoreError};
use test_support::machine::while_it_runs_async;
use test_support::redis::RedisServer;

use crate::world::{caller, claim, fresh_store, info, just_due, printed, release, renewal};

const JOBS: usize = 1_000;

/// Prints what the scripts cost since the last time, and answers how many were run.
fn report(server: &RedisServer, what: &str, items: usize) -> u64 {
    let stats = server.commandstats();
    server.command(&["CONFIG", "RESETSTAT"]);
    let scripts = stats.get("evalsha").copied().unwrap_or_default();
    let each = scripts.usec as f64 / items as f64;
    println!(
        "{what}: {each:.1} µs of the server each, {} calls for {items}",
        scripts.calls
    );
    scripts.calls
}

#[tokio::test]
async fn a_thousand_jobs_due_in_one_second_cost_sixteen_calls_to_who_wins_them_and_eight_to_who_loses()
 {
    while_it_runs_async(a_thousand_jobs).await;
}

/// The error is of a call that took too long.
async fn a_thousand_jobs() -> Result<(), String> {
    let server = RedisServer::start();
    let store = fresh_store(&server).await;
    let (one, other) = (caller("one"), caller("other"));
    let due = just_due(&store).await;
    let claims: Vec<Claim> = (0..JOBS).map(|n| claim(&format!("job-{n}"), due)).collect();
    let batches = JOBS.div_ceil(BATCH_LIMIT) as u64;
    assert_eq!(batches, 8);
    // What is to be written is read first.
    let written = 2 * batches;
    server.command(&["CONFIG", "RESETSTAT"]);

    let won = in_batches(&claims, async |batch| store.claim(&one, batch).await).await?;
    let grants: Vec<Grant> = won
        .into_iter()
        .map(|answer| match answer {
            ClaimAnswer::Granted(grant) => grant,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(report(&server, "claims won", JOBS), written);

    let rivals = claims.iter().map(|claim| Claim {
        run_id: RunId::new(uuid::Uuid::new_v4()),
        ..claim.clone()
    });
    let rivals: Vec<Claim> = rivals.collect();
    let lost = in_batches(&rivals, async |batch| store.claim(&other, batch).await).await?;
    assert!(
        lost.iter()
            .all(|answer| matches!(answer, ClaimAnswer::Held(_)))
    );
    assert_eq!(report(&server, "claims lost", JOBS), batches);

    let held = || claims.iter().zip(&grants);
    let renewals: Vec<_> = held().map(|(claim, grant)| renewal(claim, grant)).collect();
    in_batches(&renewals, async |batch| store.renew(&one, batch).await).await?;
    assert_eq!(report(&server, "renewals", JOBS), written);

    for (scope, what) in [
        (Scope::Overdue, "what is overdue"),
        (Scope::All, "1,000 leases"),
    ] {
        let seen = store.observe(&one, &info(), scope).await;
        seen.map_err(|error| error.to_string())?;
        report(&server, &format!("observation of {what}"), 1);
    }

    let releases: Vec<_> = held()
        .map(|(claim, grant)| {
            let mut release = release(claim, grant, Outcome::Succeeded);
            release.output = printed(&[b'x'; 200]);
            release
        })
        .collect();
    in_batches(&releases, async |batch| store.release(&one, batch).await).await?;
    assert_eq!(report(&server, "releases with output", JOBS), written);
    Ok(())
}

#[tokio::test]
async fn a_claim_that_comes_alone_costs_two_calls() {
    while_it_runs_async(async || {
        let server = RedisServer::start();
        let store = fresh_store(&server).await;
        let one = caller("one");
        let due = just_due(&store).await;
        let alone: Vec<Claim> = (0..100)
            .map(|n| claim(&format!("alone-{n}"), due))
            .collect();
        server.command(&["CONFIG", "RESETSTAT"]);
        let mut took = Vec::new();
        for claim in &alone {
            let begun = Instant::now();
            let claims = std::slice::from_ref(claim);
            let claimed = store.claim(&one, claims).await;
            claimed.map_err(|error| error.to_string())?;
            took.push(begun.elapsed());
        }
        took.sort();
        println!(
            "a claim alone: {:?} (p50) from end to end",
            took[took.len() / 2]
        );
        assert_eq!(report(&server, "claims alone", alone.len()), 200);
        Ok(())
    })
    .await;
}

/// Sends batches as large as a store takes, one after the other.
async fn in_batches<I, A>(
    items: &[I],
    send: impl AsyncFn(&[I]) -> Result<Answered<Vec<A>>, StoreError>,
) -> Result<Vec<A>, String> {
    let mut answers = Vec::new();
    for batch in items.chunks(BATCH_LIMIT) {
        let answered = send(batch).await.map_err(|error| error.to_string())?;
        answers.extend(answered.answer);
    }
    Ok(answers)
}
