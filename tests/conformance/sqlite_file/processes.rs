//! Replicas in processes of their own.
//!
//! A child is this very test program, started again for one test that does a child's work and
//! nothing when it is not told to.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use soloist::scheduler::lease::{ClaimAnswer, Outcome, Scope};
use soloist::scheduler::time::Timestamp;
use tempfile::TempDir;

use super::peer_at;
use crate::bench::{claim, enrolment, job, release};

const PATH: &str = "SOLOIST_TEST_CHILD_PATH";
const DUE: &str = "SOLOIST_TEST_CHILD_DUE";
const ITEMS: usize = 60;
const CHILDREN: usize = 4;

/// Starts this program for `test` as a child that works on the file at `path`.
pub(crate) fn start(test: &str, path: &Path, due: Timestamp) -> (Child, BufReader<ChildStdout>) {
    let program = std::env::current_exe().expect("this program has a path");
    let mut child = Command::new(program)
        .args([test, "--exact", "--ignored", "--nocapture"])
        .env(PATH, path)
        .env(DUE, due.as_millis().to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("a child can be started");
    let stdout = child.stdout.take().expect("it is piped");
    (child, BufReader::new(stdout))
}

/// What a child was told, in a child.
pub(crate) fn told() -> Option<(PathBuf, Timestamp)> {
    let number = |text: OsString| text.to_str()?.parse().ok();
    let path = std::env::var_os(PATH)?;
    let due = std::env::var_os(DUE).and_then(number)?;
    Some((path.into(), Timestamp::from_millis(due)))
}

/// What a child says on a line that begins with `word`; none at its end.
pub(crate) fn heard(output: &mut BufReader<ChildStdout>, word: &str) -> Option<String> {
    for line in output.lines() {
        let line = line.expect("a child speaks in text");
        if let Some((_, rest)) = line.split_once(word) {
            return Some(rest.trim().to_owned());
        }
    }
    None
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a child of processes_that_share_a_file_divide_the_work"]
async fn child_buys_all_it_can() {
    let Some((path, due)) = told() else { return };
    let me = peer_at(&path, "child");
    for number in 0..ITEMS {
        let claim = claim(&job(&format!("item-{number}")), due);
        match me.claim_when_due(&claim).await {
            ClaimAnswer::Granted(grant) => {
                println!("bought {number} {}", grant.token);
                me.release(&release(&claim, &grant, Outcome::Succeeded))
                    .await;
            }
            ClaimAnswer::Held(_) | ClaimAnswer::Finished => {}
            other => panic!("a child was told {other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_share_a_file_divide_the_work() {
    let directory = TempDir::new().expect("a temporary directory can be made");
    let path = directory.path().join("soloist.db");
    let parent = peer_at(&path, "parent");
    let names: Vec<_> = (0..ITEMS)
        .map(|number| job(&format!("item-{number}")))
        .collect();
    let enrolments: Vec<_> = names.iter().map(enrolment).collect();
    let registered = parent.store.register(&parent.caller, &enrolments).await;
    let due = registered.expect("the store answers").now + Duration::from_millis(1);
    let test = "sqlite_file::processes::child_buys_all_it_can";
    let children: Vec<_> = (0..CHILDREN).map(|_| start(test, &path, due)).collect();
    let mut bought = Vec::new();
    for (mut child, mut output) in children {
        while let Some(item) = heard(&mut output, "bought ") {
            bought.push(item);
        }
        assert!(child.wait().expect("it can be waited for").success());
    }
    let field = |at: usize| {
        let mut all: Vec<&str> = bought
            .iter()
            .filter_map(|line| line.split(' ').nth(at))
            .collect();
        all.sort_unstable();
        all.dedup();
        all.len()
    };
    assert_eq!(bought.len(), ITEMS, "each item once: {bought:?}");
    assert_eq!(
        (field(0), field(1)),
        (ITEMS, ITEMS),
        "no item and no token twice"
    );
    assert_eq!(parent.observe(Scope::All).await.answer.leases, []);
    assert_eq!(parent.history(None).await.len(), ITEMS);
}
