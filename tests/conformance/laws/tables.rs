//! What replicas show each other of their tables.

use std::time::Duration;

use soloist::scheduler::lease::{Definition, JobDigests, Observation, PublishedTable, Scope};
use soloist::store::{ReplicaInfo, StoreEvent};

use crate::bench::{Bench, PATIENCE, Peer, info, job};
use crate::fixtures::Fixture;

fn table(digest: &str, revision: Option<u64>) -> PublishedTable {
    let jobs = [("report", "aa"), ("import", digest)];
    PublishedTable {
        table: Definition {
            digest: digest.to_owned(),
            revision,
        },
        jobs: JobDigests::from(jobs.map(|(name, digest)| (job(name), digest.to_owned()))),
    }
}

impl Peer {
    /// A sign of life of a replica with a table.
    async fn look_with(&self, digest: &str, revision: Option<u64>) -> Observation {
        let info = ReplicaInfo {
            digest: digest.to_owned(),
            revision,
            beat: 7,
            alive_ms: 60_000,
            ..info()
        };
        let looked = self
            .store
            .observe(&self.caller, &info, Scope::Overdue)
            .await;
        looked.expect("the store answers").answer
    }

    async fn publish(&self, table: &PublishedTable) {
        let published = self.store.publish(&self.caller, table).await;
        published.expect("the store answers");
    }

    async fn table(&self, digest: &str) -> Option<JobDigests> {
        self.store.table(digest).await.expect("the store answers")
    }
}

pub(crate) async fn a_table_is_shown_until_no_listed_replica_has_it<F: Fixture>(bench: &Bench<F>) {
    let (a, b) = (bench.replica("a").await, bench.replica("b").await);
    let (one, two) = ("1111111111111111", "2222222222222222");
    let published = table(one, Some(5));
    assert_eq!(a.look_with(one, Some(5)).await.published, [""; 0]);
    a.publish(&published).await;
    let seen = b.look_with(two, None).await;
    assert_eq!(seen.published, [one]);
    assert_eq!(b.table(one).await, Some(published.jobs.clone()));
    let peer = seen
        .peers
        .iter()
        .find(|peer| peer.name == "a")
        .expect("it is there");
    assert_eq!((peer.table.clone(), peer.beat), (published.table, 7));
    assert_eq!(peer.alive_for, Duration::from_secs(60));
    assert!(!peer.draining);
    let snapshot = a.store.snapshot().await.expect("the store answers").answer;
    assert_eq!(snapshot.tables.get(one), Some(&published.jobs));
    a.store.depart(&a.caller).await.expect("the store answers");
    assert_eq!(b.look_with(two, None).await.published, [""; 0]);
    assert_eq!(b.table(one).await, None);
}

pub(crate) async fn tables_are_known_in_the_order_in_which_they_were_published<F: Fixture>(
    bench: &Bench<F>,
) {
    let (a, b) = (bench.replica("a").await, bench.replica("b").await);
    let (one, two) = ("1111111111111111", "2222222222222222");
    let revised = "3333333333333333";
    for (peer, digest, revision) in [
        (&a, revised, Some(1)),
        (&a, one, None),
        (&b, two, None),
        (&a, one, None),
    ] {
        peer.look_with(digest, revision).await;
        peer.publish(&table(digest, revision)).await;
    }
    let known = b.look_with(two, None).await.tables;
    let [one, two] = [one, two].map(|digest| table(digest, None).table);
    assert!(known.is_newer(&two, &one));
    assert!(!known.is_newer(&two, &table(revised, Some(1)).table));
    let snapshot = a.store.snapshot().await.expect("the store answers").answer;
    assert_eq!(snapshot.lineage, known);
}

pub(crate) async fn what_was_never_published_is_not_there<F: Fixture>(bench: &Bench<F>) {
    let a = bench.replica("a").await;
    a.look_with("1111111111111111", None).await;
    assert_eq!(a.table("1111111111111111").await, None);
}

pub(crate) async fn a_departure_and_a_table_are_announced<F: Fixture>(bench: &Bench<F>) {
    let (a, b) = (bench.replica("a").await, bench.replica("b").await);
    let mut events = b.store.events();
    b.store.ready().await.expect("the store answers");
    a.look_with("1111111111111111", None).await;
    // What is told before anybody listens is lost.
    let told = async {
        loop {
            a.publish(&table("1111111111111111", None)).await;
            let moment = Duration::from_millis(100);
            if tokio::time::timeout(moment, opening(&mut events))
                .await
                .is_ok()
            {
                return;
            }
        }
    };
    let news = tokio::time::timeout(PATIENCE, told).await;
    news.expect("a table is announced");
    let quiet = Duration::from_millis(100);
    while tokio::time::timeout(quiet, opening(&mut events))
        .await
        .is_ok()
    {}
    a.store.depart(&a.caller).await.expect("the store answers");
    let news = tokio::time::timeout(PATIENCE, opening(&mut events)).await;
    news.expect("a departure is announced");
}

/// Waits for news that there is something to look at.
async fn opening(events: &mut tokio::sync::broadcast::Receiver<StoreEvent>) {
    while events.recv().await.expect("the store is there") != StoreEvent::Opening {}
}
