//! What a `command` hands on, and who makes sense of it.

use super::read;

/// What is said of a job with this command.
fn warnings(command: &str) -> String {
    let source = format!("[jobs.x]\nschedule = \"@daily\"\ncommand = {command}\n");
    let config = read(&source).unwrap_or_else(|error| panic!("{error}"));
    config.warnings.to_string()
}

#[test]
fn what_only_a_shell_understands_is_warned_of_unless_a_shell_is_handed_it() {
    for alone in [
        "[\"backup\", \"${DIR}\"]",
        "[\"backup\", \">\", \"/tmp/x\"]",
        "[\"/bin/bash\", \"script.sh\", \"${DIR}\"]",
    ] {
        let said = warnings(alone);
        assert!(
            said.contains("handed to the program as it stands"),
            "{alone}: {said}"
        );
    }
    for shell in [
        "[\"/bin/bash\", \"-c\", \"cd ${DIR} && make\"]",
        "[\"sh\", \"-ec\", \"echo ${DIR}\"]",
    ] {
        assert_eq!(warnings(shell), "", "{shell}");
    }
}
