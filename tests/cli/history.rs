//! What `history` shows of what attempts used, from a ledger that a replica left.

use std::sync::Arc;
use std::time::Duration;

use soloist::clock::SystemClock;
use soloist::scheduler::job::JobName;
use soloist::scheduler::lease::{
    AttemptDetail, Caller, Claim, ClaimAnswer, Enrolment, FencingToken, MeasuredOf, Occurrence,
    Outcome, PeakMemory, Release, Replica, Retention, RunId, Usage,
};
use soloist::scheduler::time::Timestamp;
use soloist::store::Store;
use soloist::store::sqlite::SqliteStore;
use uuid::Uuid;

use crate::soloist::Place;

/// One attempt of each of these is in the ledger, the first one the newest.
const USAGES: [(&str, Option<Usage>); 4] = [
    (
        "in-a-cgroup",
        Some(Usage {
            cpu: Some(Duration::from_micros(1_250_000)),
            peak_memory: Some(PeakMemory {
                bytes: 34 << 20,
                of: MeasuredOf::AllProcesses,
            }),
        }),
    ),
    (
        "without-one",
        Some(Usage {
            cpu: Some(Duration::from_micros(2_999)),
            peak_memory: Some(PeakMemory {
                bytes: 9_999_999,
                of: MeasuredOf::LargestProcess,
            }),
        }),
    ),
    (
        "without-a-peak",
        Some(Usage {
            cpu: Some(Duration::from_secs(125)),
            peak_memory: None,
        }),
    ),
    ("unmeasured", None),
];

/// A place with a ledger, and the option that names it.
fn place_with_a_ledger() -> (Place, String) {
    let place = Place::empty();
    let path = place.path("soloist.db");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let store = SqliteStore::open(&path, "default", Arc::new(SystemClock)).expect("a file");
        store.ready().await.expect("the file can be used");
        for (name, usage) in USAGES.into_iter().rev() {
            write_attempt(&store, name, usage).await;
        }
    });
    (place, format!("--store=sqlite:{}", path.display()))
}

async fn write_attempt(store: &SqliteStore, name: &str, usage: Option<Usage>) {
    let caller = Caller {
        replica: Replica {
            id: Uuid::nil(),
            name: "r1".to_owned(),
        },
        quarantine: Duration::ZERO,
        token_floor: FencingToken::default(),
        send_by: None,
        held_back: Duration::ZERO,
    };
    let job = JobName::new(name).expect("a name");
    let jobs = [Enrolment {
        job: job.clone(),
        schedule: "@manual".to_owned(),
        enabled: true,
        definition: Default::default(),
        over: None,
        change: None,
        retention: RETENTION,
        again: false,
        seen: Default::default(),
    }];
    let known = store.register(&caller, &jobs).await.expect("an answer");
    let due = known.answer[0].settled_until + Duration::from_millis(1);
    let claim = claim(job, due);
    let granted = loop {
        let claims = std::slice::from_ref(&claim);
        let answered = store.claim(&caller, claims).await.expect("an answer");
        match &answered.answer[0] {
            ClaimAnswer::Granted(grant) => break *grant,
            ClaimAnswer::Early { wait } => tokio::time::sleep(*wait).await,
            other => panic!("{name}: {other:?}"),
        }
    };
    let release = Release {
        detail: AttemptDetail {
            usage,
            ..AttemptDetail::default()
        },
        ..Release::of(&claim, &granted, Outcome::Succeeded)
    };
    let released = store.release(&caller, &[release]).await;
    released.expect("an answer");
}

const RETENTION: Retention = Retention {
    limit: 10,
    age: Duration::from_secs(3600),
};

fn claim(job: JobName, scheduled_at: Timestamp) -> Claim {
    let occurrence = Occurrence { job, scheduled_at };
    Claim {
        retention: RETENTION,
        ..Claim::new(occurrence, RunId::new(Uuid::new_v4()))
    }
}

#[test]
fn history_shows_what_each_attempt_used() {
    let (place, store) = place_with_a_ledger();
    let ended = place.run(&[&store, "history"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let mut lines = ended.stdout.lines();
    let head = lines.next().expect("a head");
    let at = |word: &str| head.find(word).expect("a column");
    let shown: Vec<_> = lines
        .map(|line| {
            let job = &line[at("JOB")..at("ATTEMPT")];
            let used = &line[at("CPU")..at("REPLICA")];
            (job.trim_end(), used.split("  ").map(str::trim).collect())
        })
        .map(|(job, used): (_, Vec<_>)| {
            let used = used.into_iter().filter(|part| !part.is_empty());
            (job, used.collect::<Vec<_>>())
        })
        .collect();
    let expected = [
        ("in-a-cgroup", vec!["1.2s", "34 MiB"]),
        ("without-one", vec!["2ms", "9.5 MiB"]),
        ("without-a-peak", vec!["2m 5s", "-"]),
        ("unmeasured", vec!["-", "-"]),
    ];
    assert_eq!(shown, expected, "{}", ended.stdout);
}

#[test]
fn history_gives_programs_what_was_used_in_seconds_and_bytes_and_says_of_whom() {
    let (place, store) = place_with_a_ledger();
    let ended = place.run(&[&store, "history", "--json"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let lines: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let keys = ["cpu_seconds", "peak_memory_bytes", "peak_memory_of"];
    let used = |number: usize| keys.map(|key| lines[number].get(key).cloned());
    let some = |value: serde_json::Value| Some(value);
    let expected = [
        [
            some(1.25.into()),
            some((34 << 20).into()),
            some("all_processes".into()),
        ],
        [
            some(0.002_999.into()),
            some(9_999_999.into()),
            some("largest_process".into()),
        ],
        [some(125.0.into()), None, None],
        [None, None, None],
    ];
    for (number, (name, _)) in USAGES.into_iter().enumerate() {
        assert_eq!(lines[number]["job"], name, "{lines:#}");
        assert_eq!(used(number), expected[number], "{name}");
    }
}

#[test]
fn status_is_no_wider_for_what_was_used() {
    let (place, store) = place_with_a_ledger();
    for args in [
        &[store.as_str(), "status"][..],
        &[&store, "status", "--json"],
    ] {
        let ended = place.run(args);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        for word in ["CPU", "MEMORY", "cpu", "memory"] {
            assert!(!ended.stdout.contains(word), "{word}: {}", ended.stdout);
        }
    }
}
