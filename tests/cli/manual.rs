//! What `completions` and `man` print, as shells and groff take it.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Output};

use serde_json::Value;

use crate::soloist::Place;

/// Runs somebody else's program in a place; one that is not there fails the test.
fn other(place: &Place, program: &str, args: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(args).current_dir(place.path("."));
    let output = command.env("HOME", place.path(".")).output();
    output.unwrap_or_else(|error| {
        panic!("{program}: {error}; scripts/install-test-tools installs it")
    })
}

/// What it printed, having had nothing to complain of.
fn content(output: Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {stderr}", output.status);
    assert_eq!(stderr, "");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn with_completions(shell: &str) -> Place {
    let place = Place::empty();
    let ended = place.run(&["completions", shell]);
    assert_eq!(ended.code, Some(0), "{shell}: {}", ended.stderr);
    assert!(ended.stdout.contains("run-once"), "{shell}");
    fs::write(place.path("script"), ended.stdout).expect("written");
    place
}

/// What help says there is: the commands, each with its flags.
fn commands(place: &Place) -> Vec<(String, BTreeSet<String>)> {
    let help = place.run(&["--help"]).stdout;
    let (_, list) = help.split_once("Commands:\n").expect("commands");
    let (list, _) = list.split_once("\n\n").expect("an end");
    // A description that goes on stands deeper.
    let names = list.lines().filter_map(|line| line.strip_prefix("  "));
    let names = names.filter(|line| !line.starts_with([' ', '-']));
    let names = names.filter_map(|line| line.split(' ').next());
    let names: Vec<&str> = names.filter(|name| *name != "help").collect();
    let flags = |name: &str| {
        let help = place.run(&[name, "--help"]).stdout;
        let heads = help.lines().map(str::trim_start);
        let heads = heads.filter(|line| line.starts_with('-'));
        let words = heads.flat_map(|line| line.split([' ', ',']).take(3));
        let flags = words.filter(|word| word.len() > 1 && word.starts_with('-'));
        flags.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let commands = names.iter().map(|name| ((*name).to_owned(), flags(name)));
    commands.collect()
}

#[test]
fn each_shell_has_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        with_completions(shell);
    }
    let ended = Place::empty().run(&["completions", "cmd"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("powershell"), "{}", ended.stderr);
}

#[test]
fn bash_completes_commands_and_flags() {
    let place = with_completions("bash");
    let complete = r#"
        source ./script
        [[ $(complete -p soloist) =~ -F\ ([^\ ]+) ]] && function=${BASH_REMATCH[1]}
        complete_words() {
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
            "$function" soloist "${!#}" "${COMP_WORDS[COMP_CWORD - 1]}"
            echo "$* => ${COMPREPLY[*]}"
        }
        complete_words soloist tri
        complete_words soloist trigger --wa
        complete_words soloist completions fi
    "#;
    let args = ["--norc", "--noprofile", "-c", complete];
    let completed = content(other(&place, "bash", &args));
    let expected = "soloist tri => trigger\n\
                    soloist trigger --wa => --wait\n\
                    soloist completions fi => fish\n";
    assert_eq!(completed, expected);
}

#[test]
fn zsh_loads_its_completions() {
    let place = with_completions("zsh");
    let load = "autoload -Uz compinit && compinit -D -u && source ./script && \
                print ${_comps[soloist]}";
    assert_eq!(content(other(&place, "zsh", &["-n", "script"])), "");
    let loaded = content(other(&place, "zsh", &["-f", "-c", load]));
    assert_eq!(loaded, "_soloist\n");
}

#[test]
fn fish_completes_commands_and_flags() {
    let place = with_completions("fish");
    assert_eq!(
        content(other(&place, "fish", &["--no-execute", "script"])),
        ""
    );
    for (line, expected) in [
        ("soloist tri", "trigger\t"),
        ("soloist trigger --wa", "--wait\t"),
    ] {
        let complete = format!("source ./script; complete -C '{line}'");
        let completed = content(other(&place, "fish", &["--no-config", "-c", &complete]));
        let first = completed.lines().next().unwrap_or_default();
        assert!(first.starts_with(expected), "{line}: {completed}");
    }
}

#[test]
fn groff_takes_each_page_without_a_warning() {
    let place = Place::empty();
    let ended = place.run(&["man", "--directory", "man"]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), ""),
        "{}",
        ended.stderr
    );
    let pages = fs::read_dir(place.path("man")).expect("pages");
    let mut names: Vec<String> = pages
        .map(|page| {
            page.expect("a page")
                .file_name()
                .into_string()
                .expect("UTF-8")
        })
        .collect();
    names.sort();
    for name in &names {
        let page = fs::read_to_string(place.path("man").join(name)).expect("a page");
        assert!(page.is_ascii(), "{name}: not every terminal shows more");
        let path = format!("man/{name}");
        let shown = content(other(&place, "groff", &["-ww", "-man", "-Tascii", &path]));
        assert!(
            shown.contains("SEE ALSO") || shown.contains("S\u{8}SE"),
            "{name}: {shown}"
        );
    }
    let mut expected: Vec<String> = commands(&place)
        .into_iter()
        .map(|(command, _)| format!("soloist-{command}.1"))
        .collect();
    expected.extend(["jobs.toml.5".to_owned(), "soloist.1".to_owned()]);
    expected.sort();
    assert_eq!(names, expected);
    // On stdout there is the main one.
    let main = fs::read_to_string(place.path("man/soloist.1")).expect("a page");
    assert_eq!(place.run(&["man"]).stdout, main);
}

#[test]
fn each_command_and_flag_is_in_the_manual() {
    let place = Place::empty();
    place.run(&["man", "--directory", "."]);
    let page = |name: &str| {
        let page = fs::read_to_string(place.path(name)).expect(name);
        page.replace("\\-", "-")
    };
    let main = page("soloist.1");
    let commands = commands(&place);
    assert!(commands.len() > 10, "{commands:?}");
    for (command, flags) in commands {
        assert!(
            main.contains(&format!(".SS \"soloist {command}")),
            "{command}"
        );
        assert!(flags.contains("--store"), "{command}: {flags:?}");
        let own = page(&format!("soloist-{command}.1"));
        for flag in flags {
            let bold = format!("\\fB{flag}\\fR");
            assert!(main.contains(&bold), "soloist.1 lacks {flag} of {command}");
            assert!(own.contains(&bold), "soloist-{command}.1 lacks {flag}");
        }
    }
    for section in ["ENVIRONMENT", "EXIT STATUS", "SIGNALS", "FILES", "EXAMPLES"] {
        let quoted = [format!(".SH {section}\n"), format!(".SH \"{section}\"\n")];
        assert!(quoted.iter().any(|head| main.contains(head)), "{section}");
    }
    assert!(main.contains("\\fBSOLOIST_REPLICA\\fR"));
}

#[test]
fn each_key_of_the_table_is_in_its_manual() {
    let place = Place::empty();
    place.run(&["man", "--directory", "."]);
    let page = fs::read_to_string(place.path("jobs.toml.5")).expect("a page");
    let schema: Value = serde_json::from_str(&place.run(&["schema"]).stdout).expect("JSON");
    let job = &schema["$defs"]["job"];
    let mut seen = 0;
    for form in [
        &schema["properties"]["scheduler"],
        job,
        &schema["$defs"]["calendar"],
        &job["properties"]["retry"],
        &job["properties"]["http"],
    ] {
        for key in form["properties"].as_object().expect("keys").keys() {
            assert!(page.contains(&format!("\\fB{key}\\fR")), "{key}");
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen}");
}

#[test]
fn the_words_of_a_key_and_the_keys_of_a_target_are_in_the_manual_of_the_table() {
    let place = Place::empty();
    place.run(&["man", "--directory", "."]);
    let groff = [
        "-man",
        "-Tascii",
        "-P-cbou",
        "-rLL=200n",
        "-rHY=0",
        "jobs.toml.5",
    ];
    let shown = content(other(&place, "groff", &groff));
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "Takes \"run_after\", \"skip\". Default: \"run_after\".",
        "Takes \"first\", \"last\", \"both\".",
        "Takes \"latest\", \"all\", \"none\".",
        "Takes \"forbid\", \"queue\", \"replace\".",
        "Takes \"rerun\", \"skip\".",
        "Of what they are told. Takes \"failure\", \"recovery\", \"missed\", \"slow\".",
    ] {
        assert!(shown.contains(words), "{words}\n{shown}");
    }
    for (head, keys) in [
        ("[notify.NAME.webhook]", ["url", "secret", "headers"]),
        ("[notify.NAME.email]", ["to", "from", "smtp"]),
        ("[jobs.NAME.notify]", ["on", "repeat", "ping_output"]),
    ] {
        let (_, below) = shown.split_once(head).expect(head);
        for key in keys {
            assert!(below.contains(&format!(" {key} ")), "{head}: {key}");
        }
    }
}

#[test]
fn a_directory_that_cannot_be_written_is_told() {
    let place = Place::empty();
    fs::write(place.path("file"), "").expect("written");
    let ended = place.run(&["man", "--directory", "file/man"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("`file/man`"), "{}", ended.stderr);
    assert!(ended.stderr.contains("= help: "), "{}", ended.stderr);
}
