//! A request made by a process of its own, in surroundings of its own: this test program again,
//! told to run one test.

use std::process::{Child, Command, Stdio};

use super::super::{HttpCall, perform};

/// Holds the call, as JSON.
const CALL: &str = "TEST_HTTP_CALL";
/// What a line with the outcome begins with.
const OUTCOME: &str = "outcome: ";

/// Starts a process that makes the request.
pub(super) fn start(call: &HttpCall, adjust: impl FnOnce(&mut Command)) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    let this = concat!(module_path!(), "::makes_the_request_of_its_environment");
    let this = this.split_once("::").expect("a crate").1;
    command
        .args([this, "--exact", "--ignored", "--nocapture"])
        .env(CALL, serde_json::to_string(call).expect("JSON"))
        .stdout(Stdio::piped());
    adjust(&mut command);
    command.spawn().expect("a process")
}

/// Makes the request in a process, and tells its outcome.
pub(super) fn perform_in(call: &HttpCall, adjust: impl FnOnce(&mut Command)) -> Result<(), String> {
    let output = start(call, adjust).wait_with_output().expect("its output");
    let output = String::from_utf8(output.stdout).expect("text");
    let outcome = output.lines().find_map(|line| line.split_once(OUTCOME));
    let (_, outcome) = outcome.unwrap_or_else(|| panic!("no outcome in {output}"));
    serde_json::from_str(outcome).expect("JSON")
}

#[test]
#[ignore = "run by other tests, in a process of its own"]
fn makes_the_request_of_its_environment() {
    let call = std::env::var(CALL).expect("a call");
    let call = serde_json::from_str(&call).expect("JSON");
    let outcome = perform(&call, &mut Vec::new());
    println!(
        "\n{OUTCOME}{}",
        serde_json::to_string(&outcome).expect("JSON")
    );
}
