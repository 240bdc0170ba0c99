//! What people type after `soloist lock`, where it goes, and what is told those who type it wrong.

use std::fs;
use std::process::Command;

use rustix::process::Signal;

use crate::scene::{Scene, code, ends, signals, stderr, stdout};

/// Without a store by flag or variable.
fn bare(scene: &Scene, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_soloist"));
    command.arg("lock").args(words);
    command.current_dir(scene.dir.path()).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("HOME", scene.dir.path());
    command
}

#[test]
fn where_the_dashes_are_missing_the_line_is_told_as_it_was_meant() {
    let scene = Scene::new();
    let words = scene.runs(&["x", "-w", "5s", "./cmd", "--all", "a b"]);
    assert_eq!(code(&words), Some(2));
    let expected = format!(
        "error: `--` is missing between the names of leases and the command\n  = help: soloist --store {} --namespace {} lock x -w 5s -- ./cmd --all 'a b'\n",
        scene.url, scene.namespace
    );
    assert_eq!(stderr(&words), expected);
    let none = stderr(&scene.runs(&["x"]));
    assert!(none.ends_with("lock x -- COMMAND\n"), "{none}");
    let help = scene.runs(&["x", "--help"]);
    assert_eq!(code(&help), Some(0), "help is help");
}

#[test]
fn hints_are_for_who_types_commands() {
    let scene = Scene::new();
    for (program, hint) in [
        ("nonesuch", "install it, or name it by its full path"),
        (
            "echo hello",
            "for a whole line take a shell: `-- sh -c 'LINE'`",
        ),
        ("./nonesuch", "install it, or change the path"),
    ] {
        let output = scene.runs(&["x", "--", program]);
        assert_eq!(code(&output), Some(127));
        let told = stderr(&output);
        assert!(told.contains(hint), "{told}");
        for word in ["job", "`env`", "`shell`", "`command`"] {
            assert!(!told.contains(word), "{told}");
        }
    }
}

#[test]
fn a_store_that_keeps_nobody_out_is_refused() {
    let mut scene = Scene::new();
    scene.url = "memory:".to_owned();
    for words in [&["x", "--", "touch", "wrong"][..], &["--list"]] {
        let output = scene.runs(words);
        assert_eq!(code(&output), Some(2));
        let told = stderr(&output);
        assert!(told.contains("keeps nobody out"), "{told}");
        assert!(told.contains("--store redis://HOST:PORT"), "{told}");
    }
    assert!(!scene.file("wrong").exists());
}

#[test]
fn that_a_lease_is_for_this_host_alone_is_told_where_no_store_was_named() {
    let scene = Scene::new();
    let table =
        "[scheduler]\nnamespace = \"shop\"\n[jobs.a]\nschedule = \"@manual\"\nshell = \"true\"\n";
    fs::write(scene.file("jobs.toml"), table).expect("room");
    let run = |words: &[&str]| bare(&scene, words).output().expect("it can be run");
    let told = stderr(&run(&["x", "--", "true"]));
    let expected = "note: no store is named, so this excludes nobody on other hosts (namespace `shop` at sqlite:";
    assert!(told.starts_with(expected), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    assert_eq!(stderr(&run(&["x", "-q", "--", "true"])), "");
    let url = format!("sqlite:{}", scene.file("named.db").display());
    let mut named = bare(&scene, &["x", "--", "true"]);
    let named = named.env("SOLOIST_STORE", url).output();
    assert_eq!(stderr(&named.expect("it can be run")), "");
}

#[test]
fn a_table_without_jobs_or_with_a_broken_one_will_do() {
    let scene = Scene::new();
    let run = |table: &str| {
        fs::write(scene.file("jobs.toml"), table).expect("room");
        let words = ["x", "--", "sh", "-c", "echo ran; env"];
        bare(&scene, &words).output().expect("it can be run")
    };
    let own = format!("[scheduler]\nstore = \"{}\"\n", scene.url);
    let output = run(&own);
    assert!(stdout(&output).starts_with("ran\n"), "{}", stderr(&output));
    assert_eq!(stderr(&output), "", "nothing is wrong with it");
    let broken = format!("{own}namespace = \"shop\"\n[jobs.a]\nschedule = \"61 * * * *\"\n");
    let output = run(&broken);
    assert!(stdout(&output).starts_with("ran\n"), "{}", stderr(&output));
    let told = stderr(&output);
    assert!(
        told.starts_with("warning: jobs.toml can't be used"),
        "{told}"
    );
    assert!(!told.contains("jobs' schedules"), "{told}");
    // A table that may have been cut off.
    for cut in ["", "[scheduler]\nnamespace = \"shop\"\n"] {
        let output = run(cut);
        assert_eq!(code(&output), Some(2));
        let told = stderr(&output);
        assert!(
            told.starts_with("error: `jobs.toml` names no store\n"),
            "{told}"
        );
    }
}

#[test]
fn what_runs_below_goes_to_the_same_store() {
    let scene = Scene::new();
    fs::create_dir(scene.file("elsewhere")).expect("room");
    let elsewhere = "[scheduler]\nstore = \"sqlite:other.db\"\nnamespace = \"other\"\n";
    fs::write(scene.file("elsewhere/jobs.toml"), elsewhere).expect("room");
    let script = format!(
        "cd elsewhere; {} lock x -n -- sh -c 'echo $SOLOIST_FENCING_TOKEN'; echo $SOLOIST_FENCING_TOKEN",
        env!("CARGO_BIN_EXE_soloist")
    );
    let output = scene.runs(&["x", "--", "sh", "-c", &script]);
    let said = stdout(&output);
    let tokens: Vec<&str> = said.lines().collect();
    assert!(tokens.len() == 2 && tokens[0] == tokens[1], "{output:?}");
    assert!(!scene.file("elsewhere/other.db").exists());
    // A file is the same one from another directory.
    let mut relative = bare(
        &scene,
        &["x", "--store", "sqlite:own.db", "--", "sh", "-c", &script],
    );
    let output = relative.output().expect("it can be run");
    let said = stdout(&output);
    let tokens: Vec<&str> = said.lines().collect();
    assert!(tokens.len() == 2 && tokens[0] == tokens[1], "{output:?}");
}

#[test]
fn what_a_table_says_is_told_nobody_below() {
    let scene = Scene::new();
    let secret = scene.file("secret");
    fs::write(&secret, "hunter2").expect("room");
    // Any password will do for a user that wants none.
    let with_secret = format!("redis://default:${{file:{}}}@", secret.display());
    let store = scene.url.replace("redis://", &with_secret);
    let table = format!("[scheduler]\nstore = \"{store}\"\nnamespace = \"shop\"\n");
    fs::write(scene.file("jobs.toml"), table).expect("room");
    let words = ["x", "--", "env"];
    let output = bare(&scene, &words).output().expect("it can be run");
    assert_eq!(code(&output), Some(0), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.contains("SOLOIST_LOCK=x\n"), "{said}");
    for name in [
        "hunter2",
        "SOLOIST_STORE",
        "SOLOIST_NAMESPACE",
        "SOLOIST_CONFIG",
    ] {
        assert!(!said.contains(name), "{said}");
    }
    let config = scene.file("jobs.toml");
    let named = bare(&scene, &["--config", "jobs.toml", "x", "--", "env"]).output();
    let said = stdout(&named.expect("it can be run"));
    let expected = format!("SOLOIST_CONFIG={}\n", config.display());
    assert!(said.contains(&expected), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
}

#[test]
fn who_has_what_and_who_waits_can_be_listed() {
    let scene = Scene::new();
    let list = |words: &[&str]| scene.runs(&[&["--list"], words].concat());
    let nobody = list(&[]);
    assert_eq!((code(&nobody), stdout(&nobody)), (Some(0), String::new()));
    assert!(stderr(&nobody).contains(&scene.namespace), "{nobody:?}");
    let runs = "echo $SOLOIST_FENCING_TOKEN > token; exec sleep 600";
    let holder = scene.starts(&["a", "b", "--", "sh", "-c", runs]);
    let token = scene.waits_for("token");
    let waiting = scene.starts(&["-s", "a", "--", "true"]);
    let host = rustix::system::uname();
    let name = |id: u32| format!("{}:{id}", host.nodename().to_string_lossy());
    let (has, waits) = (name(holder.id()), name(waiting.id()));
    let shown = scene.lists("waits to share it");
    let rows: Vec<Vec<&str>> = shown
        .lines()
        .map(|line| {
            line.split("  ")
                .map(str::trim)
                .filter(|word| !word.is_empty())
                .collect()
        })
        .collect();
    assert_eq!(rows[0], ["NAME", "WHO", "HOW", "TOKEN", "LEFT"]);
    assert_eq!(rows[1][..4], ["a", &has, "has it alone", token.trim()]);
    assert_eq!(rows[2], ["a", &waits, "waits to share it", "-", "-"]);
    assert_eq!(rows[3][..4], ["b", &has, "has it alone", token.trim()]);
    assert_eq!(rows.len(), 4, "{shown}");
    let json: serde_json::Value =
        serde_json::from_slice(&list(&["a", "--json"]).stdout).expect("JSON");
    let one = &json[0];
    assert_eq!(json.as_array().map(Vec::len), Some(1), "{json}");
    assert_eq!(
        (&one["name"], &one["mode"]),
        (&"a".into(), &"exclusive".into())
    );
    assert_eq!(one["holders"][0]["holder"], has.as_str());
    assert_eq!(one["holders"][0]["token"].to_string(), token.trim());
    let left = one["holders"][0]["lease_left_seconds"]
        .as_f64()
        .expect("a number");
    assert!(left > 0.0 && left <= 15.0, "{json}");
    assert_eq!(one["holders"][0]["ttl_seconds"], 15.0);
    assert_eq!(one["waiting"][0]["holder"], waits.as_str());
    assert_eq!(one["waiting"][0]["mode"], "shared");
    let with_command = list(&["a", "--", "true"]);
    assert_eq!(code(&with_command), Some(2), "{with_command:?}");
    signals(&waiting, Signal::TERM);
    signals(&holder, Signal::TERM);
    ends(waiting);
    ends(holder);
}

#[test]
fn a_flag_with_nothing_in_it_is_not_taken_for_one_that_is_not_there() {
    let scene = Scene::new();
    for flag in ["--namespace", "--store", "--config"] {
        let output = scene.runs(&[flag, "", "x", "--", "touch", "wrong"]);
        assert_eq!(code(&output), Some(2), "{}", stderr(&output));
        let told = stderr(&output);
        assert!(told.contains(&format!("`{flag}` is empty")), "{told}");
    }
    assert!(!scene.file("wrong").exists());
}

#[test]
fn a_table_that_is_named_and_not_there_is_told() {
    let scene = Scene::new();
    let words = ["--config", "prod.toml", "x", "--", "true"];
    let told = stderr(&scene.runs(&words));
    assert!(told.contains("warning: prod.toml can't be used"), "{told}");
    let alone = bare(&scene, &words).output().expect("it can be run");
    assert_eq!(code(&alone), Some(2));
    let told = stderr(&alone);
    assert!(
        told.contains("failed to read `prod.toml`: there is no such file"),
        "{told}"
    );
}

#[test]
fn below_a_lock_of_the_same_name_elsewhere_it_is_let_in_again_to_its_own() {
    let scene = Scene::new();
    let soloist = env!("CARGO_BIN_EXE_soloist");
    let elsewhere = format!("{}-elsewhere", scene.namespace);
    let lock = |namespace: &str| format!("{soloist} --namespace {namespace} lock a -w 5s --");
    let script = format!("{} {} echo back", lock(&elsewhere), lock(&scene.namespace));
    let output = scene.runs(&["a", "--", "sh", "-c", &script]);
    assert_eq!(code(&output), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), "back\n");
}

#[test]
fn who_shares_and_wants_it_alone_is_refused_with_the_code_for_that() {
    let scene = Scene::new();
    let other = scene.starts(&["-s", "a", "--", "sh", "-c", "echo > has; sleep 600"]);
    scene.waits_for("has");
    let soloist = env!("CARGO_BIN_EXE_soloist");
    let alone = [soloist, "lock", "-E", "75", "a", "--", "true"];
    let output = scene.runs(&[&["-s", "a", "--"][..], &alone].concat());
    assert_eq!(code(&output), Some(75), "{}", stderr(&output));
    let told = stderr(&output);
    assert!(told.contains("give the share back first"), "{told}");
    signals(&other, Signal::TERM);
    ends(other);
}

#[test]
fn a_command_of_no_words_is_told_as_one() {
    let output = Scene::new().runs(&["x", "--", ""]);
    assert_eq!(code(&output), Some(2));
    let told = stderr(&output);
    assert!(told.contains("the command is empty"), "{told}");
}
