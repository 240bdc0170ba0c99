//! Jobs that no table has any more: nothing of them is left on the server, and nothing is scanned
//! to find them.

use soloist::scheduler::lease::{Enrolment, Outcome, Release};
use soloist::store::Store;
use soloist::store::redis::RedisStore;
use test_support::acl::{rule, set_user};
use test_support::clock_shim::SteppingClock;
use test_support::redis::{RedisServer, fresh_namespace};

use crate::world::{
    RETENTION, caller, claim, impatient, job, just_due, observe, persist, printed, release, win,
};

const DAY_MS: i64 = 24 * 3600 * 1000;

/// More than one step forgets.
const GONE: usize = 20;

fn enrolment(name: &str, again: bool) -> Enrolment {
    Enrolment {
        job: job(name),
        schedule: "* * * * * UTC".to_owned(),
        enabled: true,
        definition: Default::default(),
        over: None,
        change: None,
        retention: RETENTION,
        again,
        seen: Default::default(),
    }
}

fn keys(server: &RedisServer, part: &str) -> usize {
    let keys = server.command(&["KEYS", &format!("*{part}*")]);
    keys.lines().filter(|key| !key.is_empty()).count()
}

#[tokio::test]
async fn nothing_is_left_of_jobs_that_no_table_has_and_nothing_is_scanned_for_them() {
    let clock = SteppingClock::new();
    let server = RedisServer::options()
        .environment(clock.environment())
        .start();
    let namespace = fresh_namespace();
    let url = set_user(&server, "minimal", &rule(&namespace));
    let store = RedisStore::open(&url, &namespace).unwrap();
    persist(|| store.ready()).await;
    observe(&store, &impatient()).await;
    let caller = caller("one");

    let gone: Vec<String> = (0..GONE).map(|n| format!("gone-{n}")).collect();
    let names = gone.iter().map(String::as_str);
    let all: Vec<Enrolment> = names
        .chain(["held", "stays"])
        .map(|name| enrolment(name, false))
        .collect();
    persist(|| store.register(&caller, &all)).await;
    let due = just_due(&store).await;
    for name in &gone {
        let claim = claim(name, due);
        let grant = win(&store, &caller, &claim).await;
        let done = Release {
            output: printed(b"something"),
            ..release(&claim, &grant, Outcome::Succeeded)
        };
        store.release(&caller, &[done]).await.unwrap();
    }
    assert_eq!(keys(&server, "history:gone-"), GONE);
    assert_eq!(keys(&server, "output:gone-"), GONE);

    clock.set(29 * DAY_MS);
    assert!(persist(|| store.sweep(&caller)).await.answer.is_empty());
    let stays = [enrolment("stays", true)];
    persist(|| store.register(&caller, &stays)).await;
    let held = claim("held", just_due(&store).await);
    win(&store, &caller, &held).await;
    clock.set(30 * DAY_MS + 60_000);
    server.command(&["CONFIG", "RESETSTAT"]);
    let mut forgotten = persist(|| store.sweep(&caller)).await.answer;
    let used = server.commandstats();
    forgotten.sort();
    let mut expected: Vec<_> = gone.iter().map(|name| job(name)).collect();
    expected.sort();
    assert_eq!(forgotten, expected);
    assert!(!used.contains_key("keys") && !used.contains_key("scan"));
    assert_eq!(keys(&server, "gone-"), 0, "neither lines nor outputs");
    let left = server.command(&["HKEYS", &format!("soloist:{{{namespace}}}:jobs")]);
    assert!(!left.contains("gone-"), "{left}");
    assert!(left.contains("held") && left.contains("stays"), "{left}");
    assert!(persist(|| store.sweep(&caller)).await.answer.is_empty());

    let again = [enrolment("gone-0", false)];
    let back = persist(|| store.register(&caller, &again)).await;
    assert!(back.answer[0].new, "it is a new one");
    assert_eq!(back.answer[0].settled_until, back.now);
}
