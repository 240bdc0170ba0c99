//! What a host has to say of a job's user and group, and what else only a running job needs.

use super::*;

/// What is said of a job's keys where no user but `shop` is known.
fn warnings(keys: &str) -> String {
    let accounts: Accounts<'_> = &|user, group| match (user, group) {
        (Some("shop" | "1000"), _) => Ok(()),
        other => Err((format!("unknown here: {other:?}"), "create it".into())),
    };
    let source = format!("[jobs.x]\nschedule = \"@daily\"\nshell = \"x\"\n{keys}\n");
    let config = read_beside(&source, Strictness::Edit, accounts);
    let config = config.unwrap_or_else(|error| panic!("{error}"));
    config.warnings.to_string()
}

#[test]
fn a_user_that_this_host_does_not_know_is_a_warning() {
    for keys in ["", "user = \"shop\"", "user = 0x3e8\ngroup = \"any\""] {
        assert_eq!(warnings(keys), "");
    }
    let shown = warnings("user = \"nobody\"\ngroup = 0");
    for part in [
        "warning: unknown here: (Some(\"nobody\"), Some(\"0\"))",
        "jobs.toml:4:8",
        "with this group",
        "help: create it; as it is, attempts of this job fail to start here",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
    assert!(warnings("group = 0").contains("jobs.toml:4:9"));
}

#[test]
fn what_only_a_running_job_needs_need_not_be_there_to_look_at_it() {
    let table = "[jobs.x]\nschedule = \"@daily\"\nshell = \"x\"\nuser = \"nobody\"\nenv = { A = \"${NONE}\", B = \"${file:/no/such}\" }\n";
    let stranger: Accounts<'_> = &|_, _| Err(("unknown here".into(), "create it".into()));
    let read = |strictness| read_beside(table, strictness, stranger);
    let config = read(Strictness::Look).unwrap_or_else(|error| panic!("{error}"));
    assert!(config.warnings.is_empty(), "{}", config.warnings);
    for strictness in [Strictness::Edit, Strictness::Start] {
        let error = read(strictness).expect_err("it could not run");
        assert_eq!(error.0.diagnostics().len(), 3, "{error}");
    }
    let store =
        "[scheduler]\nstore = \"${NONE}\"\n[jobs.x]\nschedule = \"@daily\"\nshell = \"x\"\n";
    assert!(read_as(store, Strictness::Look).is_err());
}

#[test]
fn a_umask_that_was_meant_as_a_mode_is_a_warning() {
    for (mode, umask) in [
        ("644", "0022"),
        ("0640", "0027"),
        ("600", "0077"),
        ("0755", "0022"),
        ("0770", "0007"),
        ("0777", "0000"),
    ] {
        let shown = warnings(&format!("umask = \"{mode}\""));
        assert!(
            shown.contains(&format!("write `umask = \"{umask}\"`")),
            "{shown}"
        );
    }
    for umask in ["0", "22", "0027", "077"] {
        assert_eq!(warnings(&format!("umask = \"{umask}\"")), "");
    }
}
