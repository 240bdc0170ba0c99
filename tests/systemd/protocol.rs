//! A real daemon under a real notify socket: sd_notify(3), systemd.service(5).

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use rustix::time::{ClockId, clock_gettime};
use test_support::fleet::{Fleet, SOON};
use test_support::hold::hold;
use test_support::machine::{together, while_it_runs};
use test_support::redis::RedisServer;

use crate::manager::{Manager, Message};

const IDLE: &str = "[jobs.idle]\nschedule = \"@manual\"\ncommand = [\"true\"]\n";

fn fleet(table: &str) -> (tempfile::TempDir, Fleet) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let store = format!("sqlite:{}", dir.path().join("soloist.db").display());
    (dir, Fleet::new(store, table))
}

fn monotonic_us() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec * 1_000_000 + now.tv_nsec / 1000).expect("since the boot")
}

#[test]
fn a_start_is_over_when_the_jobs_are_known_to_the_store_and_an_end_is_told() {
    let _machine = together();
    let (_dir, fleet) = fleet(IDLE);
    let manager = Manager::in_the_abstract(&format!("soloist-start-{}", std::process::id()));
    let mut replica = manager.start(&fleet, &[]);
    let ready = manager.hear_line("READY=1");
    let is_ready = |message: &Message| message.status() == "ready: 1 jobs, 0 attempts running";
    // A disk that takes a second for the first step is a store that is away.
    if !is_ready(&ready) {
        let is_away = ready.status().starts_with("the store is away: ");
        assert!(is_away, "{ready:?}");
        manager.hear_until(is_ready);
    }
    replica.signal(Signal::TERM);
    let stopping = manager.hear_line("STOPPING=1");
    assert_eq!(stopping.status(), "draining: nothing new is started");
    assert!(replica.wait(SOON).success(), "{}", replica.tail());
}

#[test]
fn a_store_that_is_away_holds_up_no_start_and_shows_in_the_status_until_it_is_back() {
    let _machine = together();
    let mut redis = RedisServer::start();
    let fleet = Fleet::new(redis.url(), IDLE);
    redis.kill();
    let manager = Manager::at(fleet.dir());
    let mut replica = manager.start(&fleet, &[]);
    let ready = manager.hear_line("READY=1");
    assert!(
        ready.status().starts_with("the store is away: "),
        "{ready:?}"
    );
    redis.restart();
    let works = |message: &Message| message.status() == "ready: 1 jobs, 0 attempts running";
    let heard = manager.hear_until(works);
    // A start is over once.
    assert!(!heard.iter().any(|one| one.says("READY=1")), "{heard:#?}");
    replica.drain();
}

#[test]
fn a_reload_is_told_when_it_begins_and_when_it_is_over() {
    let _machine = together();
    let (_dir, fleet) = fleet(IDLE);
    let manager = Manager::at(fleet.dir());
    let mut replica = manager.start(&fleet, &[]);
    manager.hear_line("READY=1");
    let more = format!("{IDLE}[jobs.other]\nschedule = \"@manual\"\ncommand = [\"true\"]\n");
    let broken = format!("{IDLE}shedule = \"* * * * *\"\n");
    for (table, told) in [
        (&more, "ready: 2 jobs, 0 attempts running"),
        (&broken, "the new table was refused: "),
        (&more, "ready: 2 jobs, 0 attempts running"),
    ] {
        fleet.set_table(table);
        let asked = monotonic_us();
        replica.signal(Signal::HUP);
        let heard = manager.hear_until(|message| message.says("READY=1"));
        let reloading = heard.iter().find(|one| one.says("RELOADING=1"));
        let stamp = reloading.and_then(|one| one.value("MONOTONIC_USEC"));
        let stamp: u64 = stamp.and_then(|stamp| stamp.parse().ok()).expect("a stamp");
        assert!((asked..monotonic_us()).contains(&stamp), "{heard:#?}");
        let told_by = |message: &Message| message.status().contains(told);
        if !heard.iter().any(told_by) {
            manager.hear_until(told_by);
        }
    }
    replica.drain();
}

const SLOW: &str = "[scheduler]\nshutdown_grace = \"40s\"\n[jobs.slow]\n\
    schedule = \"* * * * * *\"\nkill_grace = \"7s\"\n\
    shell = \"env > $0.env; mv $0.env ENVIRONMENT; while [ ! -e DONE ]; do sleep 0.05; done\"\n";

#[test]
fn a_drain_asks_for_the_time_that_it_takes_and_jobs_know_no_service_manager() {
    let _machine = together();
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (environment, done) = (dir.path().join("environment"), dir.path().join("done"));
    let table = SLOW
        .replace("$0.env", &dir.path().join("env").display().to_string())
        .replace("ENVIRONMENT", &environment.display().to_string())
        .replace("DONE", &done.display().to_string());
    let (_store, fleet) = fleet(&table);
    let manager = Manager::at(fleet.dir());
    let watchdog = [("WATCHDOG_USEC", "60000000")];
    let mut replica = manager.start(&fleet, &watchdog);
    manager.hear_until(|message| message.status() == "ready: 1 jobs, 1 attempts running");
    replica.signal(Signal::TERM);
    manager.hear_line("STOPPING=1");
    let asks = |message: &Message| message.value("EXTEND_TIMEOUT_USEC").is_some();
    let heard = manager.hear_until(asks);
    let asked = heard
        .last()
        .and_then(|one| one.value("EXTEND_TIMEOUT_USEC"));
    assert_eq!(asked, Some("15000000"), "{heard:#?}");
    fs::write(&done, "").expect("written");
    assert!(replica.wait(SOON).success(), "{}", replica.tail());
    let given = fs::read_to_string(environment).expect("of the job");
    assert!(given.contains("SOLOIST_JOB=slow"), "{given}");
    for hidden in ["NOTIFY_SOCKET", "WATCHDOG_"] {
        assert!(!given.contains(hidden), "{given}");
    }
}

#[test]
fn a_watchdog_is_fed_at_half_its_time_and_not_by_a_daemon_that_is_frozen() {
    const WITHIN: Duration = Duration::from_secs(2);
    let _machine = together();
    let (_dir, fleet) = fleet(IDLE);
    let manager = Manager::at(fleet.dir());
    let within = WITHIN.as_micros().to_string();
    let mut replica = manager.start(&fleet, &[("WATCHDOG_USEC", &within)]);
    manager.hear_line("READY=1");
    while_it_runs(|| {
        let first = manager.hear_line("WATCHDOG=1");
        manager.hear_line("WATCHDOG=1");
        let took = manager.hear_line("WATCHDOG=1").at - first.at;
        println!("a watchdog of {WITHIN:?}: two beats in {took:?}");
        let in_time = (WITHIN / 2..WITHIN * 2).contains(&took);
        in_time.then_some(()).ok_or_else(|| format!("{took:?}"))
    });

    replica.process().freeze();
    while manager.hear(Duration::from_millis(1)).is_some() {}
    let silence = manager.hear(WITHIN);
    assert!(silence.is_none(), "{silence:?}");
    replica.process().thaw();
    manager.hear_line("WATCHDOG=1");
    replica.drain();
}

#[test]
fn a_loop_that_is_stuck_feeds_no_watchdog_however_well_the_rest_of_the_daemon_is() {
    const WITHIN: Duration = Duration::from_secs(1);
    let _machine = together();
    let (_dir, fleet) = fleet(IDLE);
    let manager = Manager::at(fleet.dir());
    let within = WITHIN.as_micros().to_string();
    let holder = hold().display().to_string();
    // The loop is on the daemon's first thread, and what feeds the watchdog on others.
    let mut replica = manager.start_by(&fleet, &[&holder], &[("WATCHDOG_USEC", &within)]);
    manager.hear_line("WATCHDOG=1");
    replica.signal(Signal::USR1);
    replica.wait_for_line(&["the scheduler's loop has not answered for 500ms"]);
    while manager.hear(Duration::from_millis(1)).is_some() {}
    let silence = manager.hear(WITHIN);
    assert!(silence.is_none(), "{silence:?}");
    // It is not that nobody is there to speak.
    let end = Instant::now() + SOON;
    while replica.lines_with("loop has not answered") < 2 {
        assert!(Instant::now() < end, "{}", replica.tail());
        std::thread::sleep(Duration::from_millis(10));
    }
    replica.signal(Signal::USR2);
    manager.hear_line("WATCHDOG=1");
    replica.drain();
}

#[test]
fn a_table_with_an_error_ends_with_the_code_that_is_not_started_again() {
    let _machine = together();
    let (_dir, fleet) = fleet("[jobs.a]\nschedule = \"30 February\"\ncommand = [\"true\"]\n");
    let manager = Manager::at(fleet.dir());
    let mut replica = manager.start(&fleet, &[]);
    assert_eq!(replica.wait(SOON).code(), Some(2));
    assert!(manager.hear(Duration::from_millis(1)).is_none());
}

#[test]
fn without_a_service_manager_and_with_a_wrong_name_it_works_all_the_same() {
    let _machine = together();
    let (_dir, fleet) = fleet(IDLE);
    let run = |name: &str| {
        let mut replica = fleet.start_with("r1", |command: &mut Command| {
            command.env("NOTIFY_SOCKET", name).stdin(Stdio::null());
        });
        replica.wait_until_ready();
        replica.drain();
        replica.log()
    };
    assert!(!run("").contains("service manager"));
    assert!(run("nonsense").contains("NOTIFY_SOCKET is nonsense"));
    assert!(run("/no/such/socket").contains("the service manager could not be told"));
}
