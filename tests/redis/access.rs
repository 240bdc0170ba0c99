//! What a user has to be allowed, and what is told of one who isn't.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use soloist::scheduler::lease::{Outcome, Scope};
use soloist::store::redis::RedisStore;
use soloist::store::{Caller, Store, StoreError};
use test_support::acl::{rule, set_user};
use test_support::redis::{RedisServer, fresh_namespace};

use crate::world::{
    answered, caller, claim, impatient, info, just_due, observe, persist, printed, refusal_of,
    release, renewal, until, win,
};

pub(crate) fn refusal<T: std::fmt::Debug>(result: Result<T, StoreError>) -> String {
    match result {
        Err(error @ StoreError::Refused { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

/// The same of what is sent until the server answers.
pub(crate) async fn refused<T: std::fmt::Debug, F>(send: impl FnMut() -> F) -> String
where
    F: Future<Output = Result<T, StoreError>>,
{
    refusal(answered(send).await)
}

/// Does everything that a store can do.
pub(crate) async fn use_all_of(store: &RedisStore) {
    persist(|| store.ready()).await;
    let caller = Caller {
        replica: caller("one").replica,
        ..impatient()
    };
    observe(store, &caller).await;
    let mut news = store.events();
    let claim = claim("job", just_due(store).await);
    let grant = win(store, &caller, &claim).await;
    let renewals = [renewal(&claim, &grant)];
    persist(|| store.renew(&caller, &renewals)).await;
    let mut release = release(&claim, &grant, Outcome::HandedOver);
    release.output = printed(b"x");
    let releases = [release];
    persist(|| store.release(&caller, &releases)).await;
    let heard = tokio::time::timeout(Duration::from_secs(20), news.recv()).await;
    heard.expect("news").expect("the store is there");
    assert_eq!(persist(|| store.history(None, 10)).await.len(), 1);
    let job = &claim.occurrence.job;
    assert_eq!(persist(|| store.history(Some(job), 10)).await.len(), 1);
    assert!(persist(|| store.output(job, claim.run_id)).await.is_some());
    let info = info();
    persist(|| store.observe(&caller, &info, Scope::All)).await;
    persist(|| store.snapshot()).await;
    persist(|| store.depart(&caller)).await;
}

#[tokio::test]
async fn the_rule_in_the_manual_is_enough_and_nothing_is_denied() {
    let server = RedisServer::start();
    let namespace = fresh_namespace();
    let url = set_user(&server, "me", &rule(&namespace));
    for db in ["", "/3"] {
        let store = RedisStore::open(&format!("{url}{db}"), &namespace).unwrap();
        use_all_of(&store).await;
    }
    assert_eq!(server.command(&["ACL", "LOG"]), "");
}

#[tokio::test]
async fn the_rule_that_an_error_names_is_enough() {
    let server = RedisServer::start();
    let namespace = fresh_namespace();
    let url = set_user(&server, "me", &[]);
    let mut granted: Vec<String> = Vec::new();
    // What is denied first hides the rest: each start tells more.
    let store = loop {
        let store = RedisStore::open(&url, &namespace).unwrap();
        match store.ready().await {
            Ok(()) => break store,
            Err(StoreError::Unreachable { .. }) => {}
            told => {
                let said = refusal(told);
                assert!(granted.len() < 40, "{said}");
                let (_, rules) = said.split_once("ACL SETUSER me ").unwrap();
                let (rules, _) = rules.split_once(';').unwrap();
                granted.extend(rules.split(' ').map(str::to_owned));
                set_user(&server, "me", &granted);
            }
        }
    };
    let whole = rule(&namespace);
    assert!(
        granted.iter().all(|rule| whole.contains(rule)),
        "{granted:?}"
    );
    let of_news = ["+publish", "+subscribe"].map(str::to_owned);
    granted.extend(of_news);
    granted.extend(whole.iter().find(|rule| rule.starts_with('&')).cloned());
    set_user(&server, "me", &granted);
    drop(store);
    use_all_of(&RedisStore::open(&url, &namespace).unwrap()).await;
}

#[tokio::test]
async fn each_permission_that_is_missing_is_named_at_the_start() {
    let server = RedisServer::start();
    let namespace = fresh_namespace();
    let whole = rule(&namespace);
    assert!(whole.len() > 20, "{whole:?}");
    for missing in &whole {
        let rest: Vec<String> = whole
            .iter()
            .filter(|rule| *rule != missing)
            .cloned()
            .collect();
        let url = set_user(&server, "me", &rest);
        let url = if missing == "+select" {
            url + "/1"
        } else {
            url
        };
        let store = RedisStore::open(&url, &namespace).unwrap();
        let said = match missing.as_str() {
            "+publish" | "+subscribe" => warned(&store).await,
            channel if channel.starts_with('&') => warned(&store).await,
            _ => refused(|| store.ready()).await,
        };
        assert!(said.contains("`me`"), "{said}");
        assert!(
            said.contains(&format!("ACL SETUSER me {missing}")) || said.contains(missing),
            "{missing}: {said}"
        );
        let others = rest
            .iter()
            .filter(|rule| rule.starts_with('+') && *rule != "+publish");
        let told = said.split("; all that").next().unwrap();
        for other in others.filter(|rule| *rule != "+subscribe") {
            assert!(
                !told
                    .split(' ')
                    .any(|word| word.trim_end_matches(';') == *other),
                "{other}: {told}"
            );
        }
    }
}

/// What a store warns of that is ready all the same.
pub(crate) async fn warned(store: &RedisStore) -> String {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_max_level(tracing::Level::WARN)
        .with_writer(move || writer.clone())
        .finish();
    // With one dispatcher alone, tracing asks whichever thread comes first to a line of code
    // whether anybody listens, and remembers the answer for all; with two it asks them.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let _guard = tracing::subscriber::set_default(subscriber);
    persist(|| store.ready()).await;
    until("a warning", async || {
        let text = log.text();
        text.contains("news").then_some(text)
    })
    .await
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        let bytes = self.0.lock().expect("nobody panicked with it").clone();
        String::from_utf8(bytes).expect("text")
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0
            .lock()
            .expect("a server that answers")
            .extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_permission_that_is_taken_away_is_named_by_the_call_that_needs_it() {
    let server = RedisServer::start();
    let namespace = fresh_namespace();
    let whole = rule(&namespace);
    let url = set_user(&server, "me", &whole);
    let store = RedisStore::open(&url, &namespace).unwrap();
    persist(|| store.ready()).await;
    observe(&store, &impatient()).await;
    let caller = caller("one");
    let held = claim("held", just_due(&store).await);
    let grant = win(&store, &caller, &held).await;
    let renewals = [renewal(&held, &grant)];
    for (taken, given) in [
        ("-hset", "+hset"),
        ("-evalsha", "+evalsha"),
        ("-time", "+time"),
        ("-zadd", "+zadd"),
    ] {
        assert_eq!(server.command(&["ACL", "SETUSER", "me", taken]), "OK");
        let said = refused(|| store.renew(&caller, &renewals)).await;
        assert!(said.contains(&format!("ACL SETUSER me {given};")), "{said}");
        assert_eq!(server.command(&["ACL", "SETUSER", "me", given]), "OK");
        persist(|| store.renew(&caller, &renewals)).await;
    }
    server.command(&["ACL", "SETUSER", "me", "resetkeys"]);
    let said = refused(|| store.renew(&caller, &renewals)).await;
    assert!(
        said.contains(&format!("ACL SETUSER me ~soloist:{{{namespace}}}:*;")),
        "{said}"
    );
    set_user(&server, "me", &whole);
    persist(|| store.renew(&caller, &renewals)).await;
    // A user who is gone may come back.
    server.command(&["ACL", "DELUSER", "me"]);
    let said = refusal_of(|| store.renew(&caller, &renewals)).await;
    assert!(said.to_string().contains("`me`"), "{said}");
    set_user(&server, "me", &whole);
    let renewed = async || store.renew(&caller, &renewals).await.ok();
    until("the user is back", renewed).await;
}
