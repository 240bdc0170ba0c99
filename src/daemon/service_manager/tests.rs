//! What is told when, in virtual time; the real thing is in `tests/systemd`.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram as StdDatagram};

use tokio::net::UnixDatagram;

use super::*;
use crate::health::{Phase, Refusal};
use crate::scheduler::time::Timestamp;

fn starting() -> Health {
    Health::starting("0".into(), 3, Timestamp::from_second(0))
}

fn ready() -> Health {
    Health {
        phase: Phase::Ready,
        ..starting()
    }
}

fn told(told: &mut Told, health: &Health, may_chat: bool) -> Vec<String> {
    let messages = told.news(health, may_chat);
    let text = |message: &Vec<Line>| {
        let lines: Vec<_> = message.iter().map(Line::to_string).collect();
        lines.join("|").replace('\n', "|")
    };
    messages.iter().map(text).collect()
}

#[test]
fn a_start_is_over_when_the_store_was_reached_or_was_found_to_be_away() {
    let mut one = Told::default();
    let status = "STATUS=starting: jobs are made known to the store";
    assert_eq!(told(&mut one, &starting(), true), [status]);
    let ready = told(&mut one, &ready(), false);
    assert_eq!(ready, ["READY=1|STATUS=ready: 3 jobs, 0 attempts running"]);

    let mut other = Told::default();
    let mut away = starting();
    away.store_away = Some("refused".into());
    let expected = ["READY=1|STATUS=the store is away: refused"];
    assert_eq!(told(&mut other, &away, true), expected);
    away.phase = Phase::Ready;
    assert_eq!(told(&mut other, &away, true), [""; 0]);
}

#[test]
fn every_reload_is_told_also_one_that_nobody_saw_begin_or_end() {
    let mut one = Told::default();
    let mut health = ready();
    // Read before the start was over.
    health.table.reload_began = Some(Duration::from_micros(5));
    let first = told(&mut one, &health, true);
    assert_eq!(first, ["READY=1|STATUS=ready: 3 jobs, 0 attempts running"]);
    health.table.reload_began = Some(Duration::from_micros(7));
    let unseen = told(&mut one, &health, true);
    assert_eq!(unseen, ["RELOADING=1|MONOTONIC_USEC=7", "READY=1"]);
    health.table.reloading = true;
    health.table.reload_began = Some(Duration::from_micros(8));
    let began = told(&mut one, &health, true);
    assert_eq!(began, ["RELOADING=1|MONOTONIC_USEC=8"]);
    // That one ended and another began in between.
    health.table.reload_began = Some(Duration::from_micros(9));
    let another = told(&mut one, &health, true);
    assert_eq!(another, ["RELOADING=1|MONOTONIC_USEC=9"]);
    health.table.reloading = false;
    health.table.refused = Some(Refusal {
        at: Timestamp::from_second(1),
        cause: "jobs.toml:3:1:\nunknown key".into(),
    });
    let refused = "READY=1|STATUS=ready: 3 jobs, 0 attempts running; the new table was refused: \
                   jobs.toml:3:1: unknown key";
    assert_eq!(told(&mut one, &health, false), [refused]);
    assert_eq!(told(&mut one, &health, true), [""; 0]);
}

#[test]
fn a_drain_is_told_once_and_a_reload_within_it_is_not() {
    let mut one = Told::default();
    let mut health = ready();
    told(&mut one, &health, true);
    health.phase = Phase::Draining;
    let stopping = told(&mut one, &health, false);
    assert_eq!(
        stopping,
        ["STOPPING=1|STATUS=draining: nothing new is started"]
    );
    health.table.reload_began = Some(Duration::from_micros(7));
    assert_eq!(told(&mut one, &health, true), [""; 0]);
}

#[test]
fn a_status_is_one_line_of_bounded_length() {
    let mut health = starting();
    health.store_away = Some(format!("a\nREADY=1\r{}", "ü".repeat(4096)));
    let messages = Told::default().news(&health, true);
    let [Line::Ready, Line::Status(status)] = messages[0].as_slice() else {
        panic!("{messages:?}");
    };
    assert!(status.contains("a READY=1 ü"), "{status}");
    assert!(status.len() < 520, "{}", status.len());
}

#[test]
fn a_watchdog_of_another_process_is_not_fed() {
    let own = std::process::id().to_string();
    let asked = |usec: &str, pid: Option<&str>| {
        watchdog(|name| match name {
            "WATCHDOG_USEC" => Some(usec.to_owned()),
            _ => pid.map(str::to_owned),
        })
    };
    let second = Some(Duration::from_secs(1));
    assert_eq!(asked("1000000", Some(&own)), second);
    assert_eq!(asked("1000000", None), second);
    assert_eq!(asked("1000000", Some("1")), None);
    assert_eq!(asked("0", None), None);
    assert_eq!(asked("soon", None), None);
}

/// A socket to hear on, and how it is named.
fn ear() -> (tempfile::TempDir, UnixDatagram, Arc<Socket>) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("notify");
    let ear = StdDatagram::bind(&path).expect("bound");
    ear.set_nonblocking(true).expect("set");
    let ear = UnixDatagram::from_std(ear).expect("on a runtime");
    let socket = Socket::named(path.as_os_str()).expect("a name");
    (dir, ear, Arc::new(socket))
}

async fn heard(ear: &UnixDatagram) -> String {
    let mut text = [0; 4096];
    let length = ear.recv(&mut text).await.expect("a message");
    String::from_utf8_lossy(&text[..length]).into_owned()
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_does_not_answer_is_not_said_to_be_well() {
    let (_dir, ear, socket) = ear();
    let (requests, mut asked) = mpsc::channel(16);
    let within = Duration::from_secs(30);
    tokio::spawn(feed_watchdog(socket, within, requests));
    for _ in 0..3 {
        let Some(Request::Ping(answer)) = asked.recv().await else {
            panic!("not a ping");
        };
        answer.send(()).expect("somebody waits");
        assert_eq!(heard(&ear).await, "WATCHDOG=1");
    }
    // Stuck: whatever is asked stays where it is, for longer than the watchdog waits.
    let silence = tokio::time::timeout(within * 20, heard(&ear)).await;
    assert!(silence.is_err(), "{silence:?}");
    // And turning again: what is heard is an answer, not the questions that piled up.
    while let Ok(Request::Ping(answer)) = asked.try_recv() {
        let _ = answer.send(());
    }
    while let Some(Request::Ping(answer)) = asked.recv().await {
        if answer.send(()).is_ok() {
            break;
        }
    }
    assert_eq!(heard(&ear).await, "WATCHDOG=1");
}

#[tokio::test(start_paused = true)]
async fn time_is_asked_for_while_the_loop_drains_and_up_to_a_limit() {
    let (_dir, ear, socket) = ear();
    let (requests, mut asked) = mpsc::channel(16);
    let answering = tokio::spawn(async move {
        while let Some(Request::Ping(answer)) = asked.recv().await {
            let _ = answer.send(());
        }
    });
    let asking = ask_for_time(Arc::clone(&socket), Duration::from_secs(22), requests);
    asking.await;
    answering.await.expect("all were answered");
    for seconds in [15, 15, 12, 7, 2] {
        let expected = format!("EXTEND_TIMEOUT_USEC={}", seconds * 1_000_000);
        assert_eq!(heard(&ear).await, expected);
    }

    let (requests, _stuck) = mpsc::channel(16);
    ask_for_time(socket, Duration::from_secs(3600), requests).await;
    assert_eq!(heard(&ear).await, "EXTEND_TIMEOUT_USEC=15000000");
    let more = tokio::time::timeout(Duration::from_secs(60), heard(&ear)).await;
    assert!(more.is_err(), "{more:?}");
}

#[tokio::test]
async fn a_name_in_the_abstract_is_as_good_as_a_path() {
    let name = format!("soloist-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let ear = StdDatagram::bind_addr(&address).expect("bound");
    let socket = Socket::named(format!("@{name}").as_ref()).expect("a name");
    socket.tell(&[Line::Ready, Line::Status("up".into())]).await;
    let mut text = [0; 64];
    let length = ear.recv(&mut text).expect("a message");
    assert_eq!(&text[..length], b"READY=1\nSTATUS=up");
    for other in ["relative", "vsock:2:9999", ""] {
        assert!(Socket::named(other.as_ref()).is_err(), "{other}");
    }
}
