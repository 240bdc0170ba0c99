//! What is left when a replica ends.

use std::time::Duration;

use super::*;
use crate::clock::SystemClock;
use crate::config::{Host, Strictness, parse};
use crate::scheduler::lease::{Caller, Replica};
use crate::store::memory::MemoryStore;

/// Nobody listens at these addresses.
const TABLE: &str = "[notify.ops]\nwebhook = \"http://127.0.0.1:1/x\"\n[notify.chat]\nwebhook = \"http://127.0.0.1:1/y\"\n[jobs.x]\nschedule = \"@manual\"\nshell = \"x\"\n";

#[tokio::test]
async fn at_the_end_notifications_are_counted_as_such_and_the_news_apart() {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let host = Host {
        env: &|_| None,
        accounts: &|_, _| Ok(()),
        now: clock.wall(),
    };
    let config = parse(TABLE, "jobs.toml", &host, Strictness::Start).unwrap();
    let config = watch::Sender::new(Arc::new(config));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::clone(&clock)));
    let (teller, rest) = start(Setting {
        config: config.subscribe(),
        store: Arc::clone(&store),
        clock,
        replica: "a".to_owned(),
        counts: Arc::default(),
    });
    let ledger = Ledger {
        store,
        caller: Caller {
            replica: Replica {
                id: uuid::Uuid::nil(),
                name: "a".to_owned(),
            },
            quarantine: Duration::ZERO,
            token_floor: FencingToken::default(),
            send_by: None,
            held_back: Duration::ZERO,
        },
    };
    let to: Arc<[String]> = ["ops", "chat"].map(str::to_owned).into();
    let message = Message::sample("because", "");
    tokio::spawn(tell(Arc::clone(&teller.courier), ledger, message, to));
    let mut open = teller.courier.open.subscribe();
    open.wait_for(|open| *open > 0).await.unwrap();
    assert_eq!(rest.left(Duration::ZERO).await, (2, 1));
}
