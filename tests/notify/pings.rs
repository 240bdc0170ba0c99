//! Dead-man's switches: they hear of each start and end, in order.

use crate::receiver::{Manner, Receiver};
use crate::scene::Scene;

#[test]
fn a_switch_hears_of_start_and_end_in_order_with_the_exit_code_and_the_attempt() {
    // The first ping fails, and the one after it waits for it.
    let receiver = Receiver::start([Manner::Status(500, "")]);
    let url = receiver.url("/key/${SOLOIST_JOB}?create=1");
    let scene = Scene::new(&format!(
        r#"
[jobs.report]
schedule = "@manual"
shell = "echo $SOLOIST_RUN_ID; test -e DIR/well || exit 3"
notify = {{ ping = "{url}", ping_output = true }}
"#
    ));
    let [mut replica] = scene.fleet.start_ready(["a"]);
    scene.trigger("report");
    receiver.wait_for_taken(2);
    scene.set("well", true);
    scene.trigger("report");
    let taken = receiver.wait_for_taken(4);
    replica.drain();
    assert_eq!(receiver.requests().len(), 5);

    let paths: Vec<&str> = taken
        .iter()
        .map(|one| one.path.split_once("&rid=").expect("an attempt").0)
        .collect();
    assert_eq!(
        paths,
        [
            "/key/report/start?create=1",
            "/key/report/3?create=1",
            "/key/report/start?create=1",
            "/key/report?create=1"
        ]
    );
    for (start, end) in [(0, 1), (2, 3)] {
        let run_id = |at: usize| taken[at].path.split_once("&rid=").expect("an attempt").1;
        assert_eq!(run_id(start), run_id(end));
        assert_eq!((&*taken[start].method, &*taken[start].body), ("GET", ""));
        assert_eq!(taken[end].method, "POST");
        assert!(taken[end].body.starts_with(run_id(end)), "{taken:#?}");
    }
}

#[test]
fn an_attempt_that_another_one_follows_is_no_failure_to_a_switch() {
    let receiver = Receiver::start([]);
    let url = receiver.url("/uuid");
    let scene = Scene::new(&format!(
        r#"
[jobs.report]
schedule = "@manual"
shell = "test $SOLOIST_ATTEMPT = 2"
retry = {{ max = 1, backoff = "10ms" }}
notify = {{ ping = "{url}" }}
"#
    ));
    let [mut replica] = scene.fleet.start_ready(["a"]);
    scene.trigger("report");
    receiver.wait_for_taken(3);
    replica.drain();
    let taken = receiver.taken();
    let paths: Vec<&str> = taken
        .iter()
        .map(|one| one.path.split('?').next().expect("a path"))
        .collect();
    assert_eq!(paths, ["/uuid/start", "/uuid/start", "/uuid"]);
    assert!(taken.iter().all(|one| one.body.is_empty()));
}

#[test]
fn a_start_that_nobody_took_is_not_told_when_its_attempt_is_over_and_another_one_follows() {
    // What comes first is refused, which is the start of the first attempt, until that is over.
    let receiver = Receiver::start([Manner::Status(503, "retry-after: 5\r\n")]);
    let url = receiver.url("/uuid");
    let scene = Scene::new(&format!(
        r#"
[jobs.report]
schedule = "@manual"
shell = "echo $SOLOIST_RUN_ID >>DIR/runs; test $SOLOIST_ATTEMPT = 2"
retry = {{ max = 1, backoff = "10ms" }}
notify = {{ ping = "{url}" }}
"#
    ));
    let [mut replica] = scene.fleet.start_ready(["a"]);
    scene.trigger("report");
    let taken = receiver.wait_for_taken(2);
    replica.drain();
    assert_eq!(receiver.requests().len(), 3);
    let runs = std::fs::read_to_string(scene.fleet.dir().join("runs")).expect("a file");
    let second = runs.lines().nth(1).expect("an attempt");
    let paths: Vec<&str> = taken.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            format!("/uuid/start?rid={second}"),
            format!("/uuid?rid={second}")
        ]
    );
}

#[test]
fn what_a_newer_occurrence_replaces_is_no_failure_to_a_switch() {
    let receiver = Receiver::start([]);
    let url = receiver.url("/uuid");
    let scene = Scene::new(&format!(
        r#"
[jobs.report]
schedule = "@manual"
shell = "while ! test -e DIR/well; do sleep 0.05; done"
concurrency_policy = "replace"
notify = {{ ping = "{url}" }}
"#
    ));
    let [mut replica] = scene.fleet.start_ready(["a"]);
    scene.trigger("report");
    receiver.wait_for_taken(1);
    scene.trigger("report");
    receiver.wait_for_taken(2);
    scene.set("well", true);
    let taken = receiver.wait_for_taken(3);
    replica.drain();
    assert_eq!(receiver.requests().len(), 3);
    let paths: Vec<&str> = taken
        .iter()
        .map(|one| one.path.split('?').next().expect("a path"))
        .collect();
    assert_eq!(paths, ["/uuid/start", "/uuid/start", "/uuid"]);
}
