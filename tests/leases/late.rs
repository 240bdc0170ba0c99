//! What reaches its server, or its asker, later than it was meant to.

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use soloist::scheduler::lease::{
    Caller, FencingToken, HeldName, Hold, LeaseAnswer, LeaseName, LeaseRequest, Mode, Replica,
};
use soloist::store::{LeaseStore, open_leases};
use soloist::store_url::StoreOptions;
use test_support::redis::{RedisServer, fresh_namespace};
use test_support::relay::Relay;
use uuid::Uuid;

use crate::LONG;
use crate::scene::{Scene, code, ends, stderr, stdout};

fn store(url: &str, namespace: &str) -> Arc<dyn LeaseStore> {
    open_leases(Some(url), namespace, &StoreOptions::default()).expect("the URL is good")
}

fn hold(names: &[&str]) -> Hold {
    let id = Uuid::new_v4();
    let names = names.iter().map(|text| LeaseName::new(text));
    Hold {
        id,
        owner: id,
        names: names.map(|name| name.expect("a name")).collect(),
        mode: Mode::Exclusive,
        ttl: LONG,
    }
}

/// Whoever asks, of a ledger in which nothing is waited for.
fn caller() -> Caller {
    Caller {
        replica: Replica {
            id: Uuid::new_v4(),
            name: "ann".to_owned(),
        },
        quarantine: Duration::ZERO,
        token_floor: FencingToken::default(),
        send_by: None,
        held_back: Duration::ZERO,
    }
}

async fn asks(store: &dyn LeaseStore, request: LeaseRequest) -> LeaseAnswer {
    let answered = store.ask(&caller(), &[request]).await;
    answered.expect("the store answers").answer.remove(0)
}

async fn token(store: &dyn LeaseStore, hold: &Hold) -> FencingToken {
    let request = LeaseRequest::Acquire {
        hold: hold.clone(),
        waits: None,
        dead: Vec::<HeldName>::new(),
    };
    match asks(store, request).await {
        LeaseAnswer::Granted { token, .. } => token,
        other => panic!("{hold:?} was not granted: {other:?}"),
    }
}

/// One has read that nobody has its names, and drawn a token, and its write is on its way. Meanwhile
/// another one has a name of them, gives it back, and has it forgotten.
#[tokio::test(flavor = "multi_thread")]
async fn who_read_that_a_name_was_free_has_it_by_a_token_above_that_of_who_had_it_meanwhile() {
    let server = RedisServer::start();
    let relay = Relay::to(server.port());
    let namespace = fresh_namespace();
    let (late, quick) = (
        store(&relay.url(), &namespace),
        store(&server.url(), &namespace),
    );
    for store in [&late, &quick] {
        store.ready().await.expect("the server answers");
        let hold = hold(&["first"]);
        asks(&**store, LeaseRequest::Release { hold }).await;
    }
    let (slow, other) = (hold(&["a", "b"]), hold(&["b", "c"]));
    // What is read names no hold; what is written does.
    relay.cut_at_request(&slow.id.to_string());
    let asked = slow.clone();
    let asking = tokio::spawn(async move { token(&*late, &asked).await });
    let cut = relay.clone();
    let waiting = tokio::task::spawn_blocking(move || cut.wait_until_cut());
    waiting.await.expect("no panic");
    let meanwhile = token(&*quick, &other).await;
    asks(
        &*quick,
        LeaseRequest::Release {
            hold: other.clone(),
        },
    )
    .await;
    let tidied = quick.tidy(&caller(), &other.names, &[]).await;
    tidied.expect("the store answers");
    relay.mend();
    let granted = asking.await.expect("no panic");
    assert!(granted > meanwhile, "{granted} after {meanwhile}");
    let names = quick.names().await.expect("the store answers").answer;
    let held = names.iter().flat_map(|name| &name.held);
    let held: Vec<(&str, Uuid)> = held.map(|one| (one.name.as_str(), one.hold)).collect();
    assert_eq!(held, [("a", slow.id), ("b", slow.id)]);
}

/// Of a lease of 15 s, 5 s are for the command to end in. Less is left than that when its grant is told
/// again, so that its command could not even begin.
#[test]
fn a_command_begins_when_the_grant_that_was_told_again_is_renewed() {
    const NO_TIME_LEFT: Duration = Duration::from_millis(9200);
    let server = RedisServer::start();
    let relay = Relay::to(server.port());
    let direct = Scene::of(&server);
    // The first grant of a ledger waits for a while.
    assert_eq!(code(&direct.runs(&["b", "--", "true"])), Some(0));
    let scene = Scene {
        url: relay.url(),
        namespace: direct.namespace.clone(),
        ..Scene::of(&server)
    };
    // What is written says how it is held; what is read doesn't.
    relay.cut_at_reply_to("\"exclusive\"");
    let child = scene.starts(&["a", "--", "sh", "-c", "echo $SOLOIST_FENCING_TOKEN"]);
    relay.wait_until_cut();
    let granted = Instant::now();
    let list = direct.lists("has it alone");
    sleep(NO_TIME_LEFT.saturating_sub(granted.elapsed()));
    relay.mend();
    let output = ends(child);
    println!("it ran {:?} after its grant", granted.elapsed());
    assert_eq!(code(&output), Some(0), "{}", stderr(&output));
    let token = stdout(&output);
    let is_it = list.split_whitespace().any(|word| word == token.trim());
    assert!(is_it, "{token} is another grant than in\n{list}");
}
