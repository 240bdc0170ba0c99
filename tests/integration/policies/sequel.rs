//! `after`: jobs that come after others and work on what these left.

use soloist::scheduler::lease::{Cause, Origin, Outcome};

use super::scene::{Scene, fate};
use crate::fleet::SOON;
use crate::together;

const TABLE: &str = r#"
[defaults]
lease_ttl = "5s"

[jobs.first]
schedule = "@manual"
shell = 'NOTES; note start; echo first >"DIR/first.$SOLOIST_SCHEDULED_AT"; sleep 0.3; note end; [ ! -e "DIR/fail" ]'

[jobs.second]
after = ["first"]
shell = 'NOTES; note start; { cat "DIR/first.$SOLOIST_SCHEDULED_AT" && echo second; } >"DIR/second.$SOLOIST_SCHEDULED_AT"; note end'

[jobs.third]
after = ["second"]
shell = 'NOTES; note start; { cat "DIR/second.$SOLOIST_SCHEDULED_AT" && echo third; } >"DIR/third.$SOLOIST_SCHEDULED_AT"; note end'
"#;

#[test]
fn each_job_finds_what_the_one_before_it_left() {
    let _machine = together();
    let scene = Scene::on_redis(TABLE);
    let _replicas = scene.three();
    let at = scene.trigger("first");
    let end = scene.wait_for_end("third", SOON);
    assert_eq!(
        (end.outcome, end.scheduled_at.to_string()),
        (Outcome::Succeeded, at.clone())
    );
    assert_eq!(end.detail.origin, Origin::After);
    let left = std::fs::read_to_string(scene.fleet.dir().join(format!("third.{at}")));
    assert_eq!(left.expect("a file"), "first\nsecond\nthird\n");
    let notes = scene.notes();
    let order: Vec<_> = notes.iter().map(|note| (&*note.job, &*note.what)).collect();
    let expected = ["first", "second", "third"].map(|job| [(job, "start"), (job, "end")]);
    assert_eq!(order, expected.concat());
    let waits = [1, 3].map(|end| (notes[end + 1].at_ns - notes[end].at_ns) / 1_000_000);
    let on: Vec<_> = notes.iter().step_by(2).map(|note| &*note.replica).collect();
    eprintln!(
        "{}: three in a row on {on:?}, from one to the next {waits:?} ms",
        scene.store_name()
    );

    std::fs::write(scene.fleet.dir().join("fail"), "").expect("a file");
    let at = scene.trigger("first");
    for job in ["second", "third"] {
        let skipped = scene.wait_for_lines(job, SOON, |lines| {
            let own = lines
                .iter()
                .find(|line| line.scheduled_at.to_string() == at);
            own.cloned()
        });
        assert_eq!(
            fate(&skipped),
            (Outcome::Skipped, Some(Cause::After)),
            "{job}"
        );
        eprintln!("  {job}: {}", skipped.detail.reason.unwrap_or_default());
    }
    let more = scene.notes().split_off(notes.len());
    assert!(more.iter().all(|note| note.job == "first"), "{more:#?}");
}
