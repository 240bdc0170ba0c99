//! Any bytes as what a client sends over a connection, and closes its side.
//!
//! Must never: be part of a program.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::sync::{mpsc, watch};
use uuid::Uuid;

use super::access::Gate;
use super::connections::{Limits, serve};
use super::tokens::Tokens;
use super::{App, Parts};
use crate::clock::Clock;
use crate::config::{Config, Host, Strictness, parse};
use crate::driver::Request;
use crate::health::{Health, Phase};
use crate::scheduler::lease::{
    Caller, Claim, ClaimAnswer, Enrolment, FencingToken, Occurrence, Outcome, Release, Replica,
    RunId,
};
use crate::scheduler::time::{BootTime, Timestamp};
use crate::store::Store;
use crate::store::memory::MemoryStore;

/// What lets a request through, and what tells that one was: the only job's name.
const OPERATOR: &str = "operator-0123456789abcdef0123456789abcdef";
const READER: &str = "reader-0123456789abcdef0123456789abcdef";
const JOB: &str = "nightly-report";

const NOW: Timestamp = Timestamp::from_second(1_795_250_760);
const DUE: Timestamp = Timestamp::from_second(1_795_250_700);
const RUN: Uuid = Uuid::from_u128(0x0199_0000_0000_7000_8000_0000_0000_0001);

const STRANGER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 9));
const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// More than a connection takes of an answer at a time; no input is answered with as much.
const BUFFER: usize = 1 << 20;

/// A clock that stands.
#[derive(Debug)]
struct Standing;

impl Clock for Standing {
    fn wall(&self) -> Timestamp {
        NOW
    }
    fn boot(&self) -> BootTime {
        BootTime::default()
    }
}

/// Whatever is sent, the answers are valid and say so where the request was wrong; without an
/// operator's token nothing changes, and a stranger learns nothing.
pub(crate) fn requests(input: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let has = |token: &str| holds(input, token);
        let (answer, changed) = asked(input, "127.0.0.1:7373", LOCAL).await;
        let first = is_http(input, &answer);
        assert!(
            !changed || has(OPERATOR),
            "changed without a token, by {first:?}"
        );
        if !has(OPERATOR) && !has(READER) {
            let (answer, changed) = asked(input, "0.0.0.0:7373", STRANGER).await;
            is_http(input, &answer);
            assert!(!changed, "changed by a stranger");
            let learnt = holds(&answer, JOB) && !has(JOB);
            assert!(!learnt, "{}", String::from_utf8_lossy(&answer));
        }
    });
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|part| part == text.as_bytes())
}

fn table() -> Arc<Config> {
    static TABLE: OnceLock<Arc<Config>> = OnceLock::new();
    let made = TABLE.get_or_init(|| {
        let host = Host {
            env: &|_| None,
            accounts: &|_, _| Ok(()),
            now: NOW,
        };
        let text = format!("[jobs.{JOB}]\nschedule = \"* * * * *\"\ncommand = [\"true\"]\n");
        let table = parse(&text, "jobs.toml", &host, Strictness::Start);
        Arc::new(table.expect("a table"))
    });
    Arc::clone(made)
}

/// A ledger with an occurrence that ran.
async fn ledger() -> MemoryStore {
    let store = MemoryStore::new(Arc::new(Standing));
    let caller = Caller {
        replica: Replica {
            id: Uuid::from_u128(7),
            name: "r1".to_owned(),
        },
        quarantine: Duration::ZERO,
        token_floor: FencingToken::default(),
        send_by: None,
        held_back: Duration::ZERO,
    };
    let table = table();
    let job = &table.jobs[0];
    let enrolled = store.register(&caller, &[Enrolment::of(job)]).await;
    enrolled.expect("it is in memory");
    let occurrence = Occurrence {
        job: job.name.clone(),
        scheduled_at: DUE,
    };
    let claim = Claim {
        origin: crate::scheduler::lease::Origin::RunOnce,
        ..Claim::new(occurrence, RunId::new(RUN))
    };
    let claimed = store.claim(&caller, std::slice::from_ref(&claim)).await;
    let ClaimAnswer::Granted(grant) = &claimed.expect("it is in memory").answer[0] else {
        panic!("nobody else is there");
    };
    let release = Release::of(&claim, grant, Outcome::Failed);
    let released = store.release(&caller, &[release]).await;
    released.expect("it is in memory");
    store
}

async fn state(store: &MemoryStore) -> String {
    let snapshot = store.snapshot().await.expect("it is in memory");
    format!("{:?}", snapshot.answer)
}

/// All that is answered, and whether the ledger is another one then.
async fn asked(input: &[u8], address: &str, peer: IpAddr) -> (Vec<u8>, bool) {
    let store = Arc::new(ledger().await);
    let before = state(&store).await;
    let (requests, mut receiver) = mpsc::channel(16);
    let driver = tokio::spawn(async move {
        while let Some(request) = receiver.recv().await {
            if let Request::Ping(sign) = request {
                let _ = sign.send(());
            }
        }
    });
    let mut health = Health::starting("0".into(), 1, NOW);
    health.phase = Phase::Ready;
    let parts = Parts {
        replica: "r1".to_owned(),
        config: watch::Sender::new(table()).subscribe(),
        health: watch::Sender::new(health),
        requests,
        store: Arc::clone(&store) as Arc<dyn Store>,
        clock: Arc::new(Standing),
        metrics: Some(Arc::new(|_| ("text/plain", format!("{JOB}\n")))),
    };
    let tokens = Tokens::parse(&format!("operator ops {OPERATOR}\nread grafana {READER}\n"));
    let tokens = watch::Sender::new(Arc::new(tokens.expect("tokens")));
    let gate = Gate::new(address.parse().expect("an address"), tokens.subscribe());
    let app = Arc::new(App::new(parts, gate));
    let (_stop, stopped) = watch::channel(false);
    let (server, mut client) = duplex(BUFFER);
    let serving = serve(server, peer, app, Limits::default(), stopped);
    let mut answer = Vec::new();
    let asking = async {
        // Whoever was refused may find the other side closed.
        let _ = client.write_all(input).await;
        let _ = client.shutdown().await;
        let _ = client.read_to_end(&mut answer).await;
    };
    tokio::join!(serving, asking);
    driver.abort();
    let after = state(&store).await;
    (answer, before != after)
}

/// Reads the answers one after the other, up to one that may have no body for all that its head
/// says; tells the first one's status.
fn is_http(input: &[u8], answer: &[u8]) -> Option<u16> {
    let mut rest = answer;
    let mut first = None;
    while !rest.is_empty() {
        let shown = || String::from_utf8_lossy(rest);
        let end = rest.windows(4).position(|part| part == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("half a head: {}", shown()));
        let head = std::str::from_utf8(&rest[..end]);
        let head = head.unwrap_or_else(|_| panic!("no text: {}", shown()));
        let status = status_of(head);
        first = first.or(Some(status));
        rest = &rest[end + 4..];
        if status == 100 {
            continue;
        }
        assert!((200..500).contains(&status) || status == 505, "{head}");
        if holds(input, "HEAD") {
            break;
        }
        let length = length_of(head);
        assert!(rest.len() >= length, "half a body: {head}");
        let body = &rest[..length];
        if status >= 400 && length > 0 {
            let problem = serde_json::from_slice::<serde_json::Value>(body);
            let problem = problem.unwrap_or_else(|_| panic!("no problem: {head}"));
            assert_eq!(problem["status"], status, "{head}");
        }
        rest = &rest[length..];
    }
    first
}

fn status_of(head: &str) -> u16 {
    let line = head.lines().next().unwrap_or_default();
    let words = line
        .strip_prefix("HTTP/1.1 ")
        .or(line.strip_prefix("HTTP/1.0 "));
    let status = words.and_then(|words| words.get(..3)?.parse().ok());
    status.unwrap_or_else(|| panic!("no status: {line:?}"))
}

/// The length of a body, as its head says; nothing here is sent in chunks.
fn length_of(head: &str) -> usize {
    assert!(
        !head.to_ascii_lowercase().contains("transfer-encoding"),
        "{head}"
    );
    let mut fields = head.lines().filter_map(|line| line.split_once(": "));
    let length = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    length.map_or(0, |(_, value)| value.parse().expect("a length"))
}
