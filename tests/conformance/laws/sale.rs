//! The flash sale: far more contenders than items, all at once, through the lease alone.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use soloist::scheduler::lease::{Claim, ClaimAnswer, FencingToken, Outcome, ReleaseAnswer, Scope};
use tokio::sync::Semaphore;

use crate::bench::{Bench, Peer, anew, release};
use crate::fixtures::Fixture;

const CONTENDERS: usize = 10_000;
const ITEMS: usize = 100;
const REPLICAS: usize = 4;
/// How many contenders are under way at once.
const CROWD: usize = 512;

/// What a contender got.
enum Bought {
    Item(usize, FencingToken),
    Nothing,
}

/// An item that tells how many bought it: it checks nothing itself.
struct Item {
    first: Claim,
    sold: AtomicU32,
}

async fn contend(peer: &Peer, number: usize, item: &Item) -> Bought {
    let claim = anew(&item.first);
    match peer.claim_when_due(&claim).await {
        ClaimAnswer::Granted(grant) => {
            item.sold.fetch_add(1, Ordering::SeqCst);
            let answer = peer
                .release(&release(&claim, &grant, Outcome::Succeeded))
                .await;
            assert_eq!(answer, ReleaseAnswer::Released);
            Bought::Item(number, grant.token)
        }
        ClaimAnswer::Held(_) | ClaimAnswer::Finished => Bought::Nothing,
        other => panic!("a contender was told {other:?}"),
    }
}

pub(crate) async fn ten_thousand_contenders_buy_a_hundred_items_once_each<F: Fixture>(
    bench: &Bench<F>,
) {
    let peers = bench.replicas(REPLICAS).await;
    let mut items = Vec::new();
    for number in 0..ITEMS {
        let first = peers[0].first_claim(&format!("item-{number}")).await;
        let sold = AtomicU32::new(0);
        items.push(Item { first, sold });
    }
    let items = Arc::new(items);
    let crowd = Arc::new(Semaphore::new(CROWD));
    let begun = Instant::now();
    let tasks: Vec<_> = (0..CONTENDERS)
        .map(|contender| {
            let peer = peers[contender % REPLICAS].clone();
            let (items, crowd) = (Arc::clone(&items), Arc::clone(&crowd));
            // Next to each other in time, they want the same item by way of every replica.
            let number = (contender / REPLICAS) % ITEMS;
            tokio::spawn(async move {
                let _place = crowd.acquire().await.expect("it is never closed");
                contend(&peer, number, &items[number]).await
            })
        })
        .collect();
    let (mut numbers, mut tokens) = (HashSet::new(), HashSet::new());
    let mut nothing = 0;
    for task in tasks {
        match task.await.expect("no contender panics") {
            Bought::Item(number, token) => {
                assert!(numbers.insert(number), "item {number} was sold twice");
                assert!(tokens.insert(token), "token {token} was granted twice");
            }
            Bought::Nothing => nothing += 1,
        }
    }
    let took = begun.elapsed();
    let calls = CONTENDERS + ITEMS;
    let rate = calls as f64 / took.as_secs_f64();
    eprintln!(
        "{}: {CONTENDERS} contenders for {ITEMS} items took {took:.2?}: {rate:.0} calls/s",
        peers[0].store.place()
    );
    assert_eq!((numbers.len(), nothing), (ITEMS, CONTENDERS - ITEMS));
    assert!(
        items
            .iter()
            .all(|item| item.sold.load(Ordering::SeqCst) == 1)
    );
    assert_eq!(
        peers[1].observe(Scope::All).await.answer.leases,
        [],
        "a lease was left behind"
    );
    assert_eq!(peers[2].history(None).await.len(), ITEMS);
}
