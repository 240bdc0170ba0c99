//! How an attempt that ends by itself, or can't begin, is told.

use super::*;

#[tokio::test]
async fn code_zero_succeeds_and_any_other_fails() {
    let bench = Bench::new();
    let ending = bench.run(bench.shell("true")).await;
    assert_eq!(ending.how, EndedHow::Succeeded);
    assert_eq!(
        (ending.detail.exit_code, ending.detail.reason),
        (Some(0), None)
    );
    let ending = bench.run(bench.shell("exit 7")).await;
    assert_eq!(ending.how, EndedHow::Failed);
    assert_eq!(
        (ending.detail.exit_code, ending.detail.signal),
        (Some(7), None)
    );
}

#[tokio::test]
async fn success_codes_replace_zero() {
    let bench = Bench::new();
    let with_codes = |script| {
        let mut job = bench.shell(script);
        job.command.success_codes = vec![3, 255];
        job
    };
    assert_eq!(
        bench.run(with_codes("exit 3")).await.how,
        EndedHow::Succeeded
    );
    assert_eq!(
        bench.run(with_codes("exit 255")).await.how,
        EndedHow::Succeeded
    );
    assert_eq!(bench.run(with_codes("exit 0")).await.how, EndedHow::Failed);
}

#[tokio::test]
async fn death_by_signal_is_a_failure_that_names_the_signal() {
    let bench = Bench::new();
    let ending = bench.run(bench.shell("kill -USR1 $$")).await;
    assert_eq!(ending.how, EndedHow::Failed);
    assert_eq!(
        (ending.detail.exit_code, ending.detail.signal),
        (None, Some(10))
    );
    assert_eq!(reason_of(&ending), "killed by SIGUSR1");
}

#[tokio::test]
async fn arguments_reach_a_command_as_they_are() {
    let bench = Bench::new();
    let job = bench.command(&["printf", "<%s>", "a b", "", "$HOME", "*", "'\""]);
    assert_eq!(stdout_of(&bench.run(job).await), "<a b><><$HOME><*><'\">");
}

async fn refusal(bench: &Bench, job: Job) -> String {
    let ending = bench.run(job).await;
    assert_eq!(ending.how, EndedHow::Failed);
    assert_eq!(
        (ending.detail.exit_code, ending.detail.signal),
        (None, None)
    );
    assert_eq!(ending.output, Output::default());
    reason_of(&ending).to_owned()
}

/// Asserts that a reason holds each of these.
fn assert_says(reason: &str, parts: &[&str]) {
    for part in parts {
        assert!(reason.contains(part), "`{part}` is missing in: {reason}");
    }
}

#[tokio::test]
async fn a_missing_program_is_told_with_where_it_was_looked_for() {
    let bench = Bench::new();
    let mut job = bench.command(&["no-such-program"]);
    job.command
        .env
        .insert("PATH".to_owned(), "/opt/a:/opt/b".to_owned());
    let reason = refusal(&bench, job).await;
    assert_says(
        &reason,
        &[
            "can't start `no-such-program`: ",
            "PATH (/opt/a:/opt/b)",
            "install it",
        ],
    );
    let reason = refusal(&bench, bench.command(&["./gone"])).await;
    assert_says(
        &reason,
        &["can't start `./gone`: ", "/gone` does not exist"],
    );
    let reason = refusal(&bench, bench.command(&["echo hello"])).await;
    assert_says(&reason, &["`shell`"]);
}

#[tokio::test]
async fn what_can_not_be_executed_is_told_apart_from_what_is_missing() {
    let bench = Bench::new();
    std::fs::write(bench.path("plain"), "#!/bin/sh\n").unwrap();
    let reason = refusal(&bench, bench.command(&["./plain"])).await;
    assert_says(&reason, &["plain` can't be executed", "chmod +x"]);
    let reason = refusal(&bench, bench.command(&["/"])).await;
    assert_says(&reason, &["is a directory"]);
}

/// Writes a program by way of another process: one that this process has open for writing
/// could be refused as busy while some other test forks.
async fn install(bench: &Bench, name: &str, text: &str) {
    let mut job = bench.shell(&format!("printf '%s' \"$TEXT\" >{name} && chmod +x {name}"));
    job.command.env.insert("TEXT".to_owned(), text.to_owned());
    assert_eq!(bench.run(job).await.how, EndedHow::Succeeded);
}

#[tokio::test]
async fn a_missing_interpreter_is_told_as_such() {
    let bench = Bench::new();
    install(&bench, "script", "#!/no/such/interpreter\n").await;
    let reason = refusal(&bench, bench.command(&["./script"])).await;
    assert_says(&reason, &["script` is there, but", "interpreter", "`#!…`"]);
}

#[tokio::test]
async fn a_file_that_is_no_program_is_told_as_such() {
    let bench = Bench::new();
    install(&bench, "text", "echo hello\n").await;
    let reason = refusal(&bench, bench.command(&["./text"])).await;
    assert_says(&reason, &["is not a program for this machine", "#!/bin/sh"]);
}

#[tokio::test]
async fn a_bad_working_directory_is_told_and_not_taken_for_a_bad_program() {
    let bench = Bench::new();
    let mut job = bench.shell("true");
    job.command.working_dir = Some(bench.path("gone"));
    let reason = refusal(&bench, job).await;
    assert_says(
        &reason,
        &["working_dir `", "/gone` does not exist", "create it"],
    );
}

#[tokio::test]
async fn arguments_beyond_what_the_kernel_takes_are_refused() {
    let bench = Bench::new();
    let reason = refusal(&bench, bench.shell(&"x".repeat(4 << 20))).await;
    assert_says(
        &reason,
        &["more arguments and environment than the kernel takes"],
    );
}

#[tokio::test]
async fn a_nul_byte_is_refused_and_not_cut_off() {
    let bench = Bench::new();
    let reason = refusal(&bench, bench.shell("true \0 false")).await;
    assert_says(&reason, &["can't start `/bin/sh`", "nul byte"]);
}
