//! Several replicas: one of them tells, whichever it is, and another where that one vanishes.

use std::collections::BTreeMap;
use std::time::Duration;

use test_support::machine::while_it_runs;

use crate::receiver::{Manner, Receiver, Request};
use crate::scene::Scene;

/// How often each of the news was taken.
fn counted(requests: &[Request]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for request in requests {
        let id = request.header("webhook-id").expect("an id").to_owned();
        *counts.entry(id).or_default() += 1;
    }
    counts
}

/// The one of these that tells of that event. Several are under way at once: they come in any order.
fn telling_of<'r>(requests: &'r [Request], event: &str) -> Option<&'r Request> {
    requests.iter().find(|request| request.event() == event)
}

#[test]
fn a_fleet_tells_once_that_a_job_fails_each_second_and_once_that_it_is_well() {
    while_it_runs(fail_each_second_and_be_well);
}

/// Where the machine stands still, instants are missed, which count as well.
fn fail_each_second_and_be_well() -> Result<(), String> {
    let receiver = Receiver::start([]);
    let url = receiver.url("/hook");
    let scene = Scene::new(&format!(
        r#"
[notify.ops]
webhook = "{url}"
[jobs.report]
schedule = "* * * * * *"
shell = "test -e DIR/well || {{ echo >>DIR/runs; exit 3; }}"
notify = {{ to = ["ops"], on = ["failure", "recovery"] }}
"#
    ));
    let mut replicas = scene.fleet.start_ready(["a", "b", "c"]);
    let runs = || std::fs::read_to_string(scene.fleet.dir().join("runs")).unwrap_or_default();
    while runs().lines().count() < 5 {
        std::thread::sleep(Duration::from_millis(20));
    }
    scene.set("well", true);
    let taken = receiver.wait_for_taken(2);
    for replica in &mut replicas {
        replica.drain();
    }
    assert_eq!(receiver.requests().len(), 2);
    let [failure, recovery] = ["failure", "recovery"].map(|event| {
        let told = telling_of(&taken, event);
        told.unwrap_or_else(|| panic!("no {event}: {taken:#?}"))
            .json()["data"]
            .clone()
    });
    assert_eq!(failure["exit_code"], 3);
    assert!(recovery["count"].as_u64() >= Some(5), "{recovery}");
    assert_eq!(recovery["outcome"], "succeeded");
    let is_first = failure["count"] == 1 && recovery["since"] == failure["scheduled_at"];
    is_first
        .then_some(())
        .ok_or_else(|| format!("it was the first that failed: {failure} {recovery}"))
}

#[test]
fn news_whose_teller_is_killed_are_told_by_another_replica_though_its_table_has_not_the_job() {
    let receiver = Receiver::start([]);
    receiver.always(Some(Manner::Status(503, "")));
    let url = receiver.url("/hook");
    let target = format!("[notify.ops]\nwebhook = \"{url}\"\n");
    let job = |name: &str| {
        format!(
            "[jobs.{name}]\nschedule = \"@manual\"\nshell = \"echo last words; exit 3\"\nnotify = [\"ops\"]\n"
        )
    };
    let scene = Scene::new(&format!("{target}{}{}", job("kept"), job("removed")));
    let [mut teller] = scene.fleet.start_ready(["a"]);
    scene.trigger("kept");
    scene.trigger("removed");
    let tried = receiver.wait_for(|requests| {
        let ids = counted(requests);
        (ids.len() == 2).then_some(ids)
    });
    teller.kill9();
    // Two that never had the other job.
    scene.fleet.set_table(&format!("{target}{}", job("kept")));
    let mut others = scene.fleet.start_ready(["b", "c"]);
    receiver.always(None);
    let taken = receiver.wait_for_taken(2);
    for one in &taken {
        let data = one.json()["data"].clone();
        assert_ne!(data["told_by"], "a");
        assert_eq!(data["replica"], "a", "who ran it");
        assert_eq!(data["stdout"], "last words\n");
        assert_eq!((&data["exit_code"], &data["count"]), (&3.into(), &1.into()));
    }
    for replica in &mut others {
        replica.drain();
    }
    let told = counted(&receiver.taken());
    assert!(told.keys().eq(tried.keys()), "{told:?}, not {tried:?}");
    assert!(told.values().all(|times| *times == 1), "{told:?}");
}

#[test]
fn an_occurrence_whose_replica_is_killed_is_told_as_lost_by_another() {
    let receiver = Receiver::start([]);
    let url = receiver.url("");
    let scene = Scene::new(&format!(
        r#"
[notify.ops]
webhook = "{url}/hook"
[scheduler]
lease_ttl = "3s"
[jobs.report]
schedule = "@manual"
shell = "echo $SOLOIST_REPLICA $SOLOIST_RUN_ID >DIR/who; sleep 60"
on_crash = "skip"
notify = {{ to = ["ops"], ping = "{url}/ping" }}
"#
    ));
    let mut replicas = scene.fleet.start_ready(["a", "b"]);
    scene.trigger("report");
    receiver.wait_for_taken(1);
    let who = scene.fleet.dir().join("who");
    let (holder, run_id) = loop {
        let text = std::fs::read_to_string(&who).unwrap_or_default();
        if let Some((holder, run_id)) = text.trim().split_once(' ') {
            break (holder.to_owned(), run_id.to_owned());
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let [a, b] = &mut replicas;
    let (victim, witness) = match holder == "a" {
        true => (a, b),
        false => (b, a),
    };
    victim.kill9();
    let taken = receiver.wait_for_taken(3);
    witness.drain();
    let hook = taken.iter().find(|one| one.path == "/hook").expect("news");
    let data = hook.json()["data"].clone();
    assert_eq!(
        (&data["event"], &data["outcome"]),
        (&"failure".into(), &"lost".into())
    );
    assert_eq!(
        (&data["replica"], &data["told_by"]),
        (&holder.as_str().into(), &witness.name.as_str().into())
    );
    assert_eq!(data["run_id"], run_id, "the one that was lost");
    let ping = format!("/ping/fail?rid={run_id}");
    assert!(taken.iter().any(|one| one.path == ping), "{taken:#?}");
    assert_eq!(receiver.requests().len(), 3);
}

#[test]
fn what_nobody_ran_while_all_were_away_is_told_as_one() {
    while_it_runs(go_away_and_come_back);
}

/// Where the machine stands still, more is missed than while nobody was there.
fn go_away_and_come_back() -> Result<(), String> {
    let receiver = Receiver::start([]);
    let url = receiver.url("/hook");
    let scene = Scene::new(&format!(
        r#"
[notify.ops]
webhook = "{url}"
[jobs.report]
schedule = "* * * * * *"
shell = "echo >>DIR/runs"
catch_up = "none"
notify = ["ops"]
"#
    ));
    let [mut replica] = scene.fleet.start_ready(["a"]);
    replica.wait_for_line(&["attempt succeeded"]);
    replica.drain();
    // Of the three instants or more of this time, nobody claims one.
    std::thread::sleep(Duration::from_millis(3500));
    let [mut replica] = scene.fleet.start_ready(["b"]);
    receiver.wait_for_taken(2);
    replica.drain();
    let requests = receiver.requests();
    let is_of_that_time = |missed: &Request| {
        let data = missed.json()["data"].clone();
        data["after"].is_string() && data["cause"] == "catch_up" && data["attempt"] == 0
    };
    let missed = telling_of(&requests, "missed").is_some_and(is_of_that_time);
    let recovered = telling_of(&requests, "recovery").is_some();
    (requests.len() == 2 && missed && recovered)
        .then_some(())
        .ok_or_else(|| format!("it is told once, and that it is over: {requests:#?}"))
}

#[test]
fn a_job_that_takes_long_on_one_replica_after_another_is_told_of_once() {
    let receiver = Receiver::start([]);
    let url = receiver.url("/hook");
    let scene = Scene::new(&format!(
        r#"
[notify.ops]
webhook = "{url}"
[scheduler]
shutdown_grace = "0s"
[jobs.report]
schedule = "@manual"
shell = "while ! test -e DIR/well; do sleep 0.05; done"
warn_after = "100ms"
notify = ["ops"]
"#
    ));
    let [mut first] = scene.fleet.start_ready(["a"]);
    scene.trigger("report");
    receiver.wait_for_taken(1);
    let [mut second] = scene.fleet.start_ready(["b"]);
    first.drain();
    second.wait_for_line(&["the attempt runs for longer than 100ms"]);
    scene.set("well", true);
    second.wait_for_line(&["attempt succeeded"]);
    second.drain();
    let told: Vec<String> = receiver.requests().iter().map(Request::event).collect();
    assert_eq!(told, ["slow"]);
}
