//! The schema has what the table of keys has, means what the readers mean, and takes what they
//! take.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use test_support::schema::Schema;

use super::*;
use crate::config::tests::read;

/// What the schema has against a table.
pub(in crate::config) fn faults(table: &str) -> Vec<String> {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::new(&schema()));
    SCHEMA.faults(table)
}

const TARGET: &str = "[notify.ops]\nwebhook = \"http://h\"\n";

/// The table with a line in it, and around it what a table needs to be whole.
fn with_line(table: Table, line: &str) -> String {
    let has = |keys: &[&str]| {
        let name = line.split(' ').next();
        name.is_some_and(|name| keys.contains(&name))
    };
    let without = |key: &str, beside: &'static str| if has(&[key]) { "" } else { beside };
    let mut job = "[jobs.x]\n".to_owned();
    if table != Table::Job || !has(&["schedule", "after"]) {
        job += "schedule = \"@daily\"\n";
    }
    if table != Table::Http && (table != Table::Job || !has(&["command", "shell", "http"])) {
        job += "command = [\"x\"]\n";
    }
    match table {
        Table::Scheduler => format!("{job}[scheduler]\n{line}\n"),
        Table::Job => format!("{job}{line}\n"),
        Table::Calendar => format!("{job}[calendars.y]\n{line}\n"),
        Table::Notify => format!("{job}[notify.y]\n{line}\n"),
        Table::Retry => format!("{job}[jobs.x.retry]\n{line}\n"),
        Table::Telling => format!(
            "{TARGET}{job}[jobs.x.notify]\n{}{line}\n",
            without("to", "to = \"ops\"\n")
        ),
        Table::Webhook => format!(
            "{job}[notify.y.webhook]\n{}{line}\n",
            without("url", "url = \"http://h\"\n")
        ),
        Table::Email => format!(
            "{job}[notify.y.email]\n{}{}{}{line}\n",
            without("to", "to = \"a@h\"\n"),
            without("from", "from = \"a@h\"\n"),
            without("smtp", "smtp = \"smtps://h\"\n"),
        ),
        Table::Http if has(&["url"]) => format!("{job}[jobs.x.http]\n{line}\n"),
        Table::Http => format!("{job}[jobs.x.http]\nurl = \"http://h\"\n{line}\n"),
    }
}

/// The table of a key, and what beside it gives it an effect.
fn with_key(table: Table, name: &str, value: &str) -> String {
    let beside = match name {
        "catch_up_limit" => "\ncatch_up = \"all\"",
        "queue_limit" => "\nconcurrency_policy = \"queue\"",
        "ping_output" => "\nping = \"http://h\"",
        "min_replicas_ack" => "\nstore = \"redis://h\"",
        _ => "",
    };
    with_line(table, &format!("{name} = {value}{beside}"))
}

fn properties(schema: &Value) -> BTreeSet<&str> {
    let properties = schema["properties"].as_object().expect("properties");
    properties.keys().map(String::as_str).collect()
}

#[test]
fn each_key_that_is_acted_on_is_in_the_schema_and_no_other() {
    let schema = schema();
    let tables = crate::config::keys::TABLES;
    assert_eq!(properties(&schema), BTreeSet::from(tables));
    let job = &schema["$defs"]["job"];
    for (keys, form) in [
        (SCHEDULER_KEYS, &schema["properties"]["scheduler"]),
        (JOB_KEYS, job),
        (CALENDAR_KEYS, &schema["$defs"]["calendar"]),
        (NOTIFY_KEYS, &schema["$defs"]["target"]),
    ] {
        let names: BTreeSet<&str> = keys.iter().map(|key| key.name).collect();
        assert_eq!(properties(form), names);
        assert_eq!(form["additionalProperties"], false);
    }
    let target = &schema["$defs"]["target"]["properties"];
    for (form, keys) in [
        (&job["properties"]["retry"], RETRY_KEYS.as_slice()),
        (&job["properties"]["http"], &HTTP_KEYS),
        (&job["properties"]["notify"]["anyOf"][1], &TELLING_KEYS),
        (&target["webhook"]["anyOf"][1], &WEBHOOK_KEYS),
        (&target["email"], &EMAIL_KEYS),
    ] {
        assert_eq!(properties(form), keys.iter().copied().collect());
        assert_eq!(form["additionalProperties"], false);
    }
}

#[test]
fn each_key_has_a_form_and_a_meaning_and_no_other_has() {
    for table in Table::ALL {
        let keys = table.keys();
        for key in &keys {
            let name = key.name;
            assert!(key.form.is_object(), "forms.rs lacks `{name}` of {table:?}");
            let meaning = key.meaning.unwrap_or_else(|| {
                panic!("meanings.rs lacks `{name}` of {table:?}");
            });
            assert!(meaning.text.is_ascii(), "{name}: terminals show ASCII");
            assert!(meaning.text.ends_with('.'), "{name}");
        }
        let names: BTreeSet<&str> = keys.iter().map(|key| key.name).collect();
        for meaning in table.meanings() {
            let name = meaning.name;
            assert!(names.contains(name), "`{name}` of {table:?} is no key");
        }
        assert_eq!(keys.len(), table.meanings().len(), "{table:?}: one each");
    }
}

#[test]
fn each_example_of_a_key_is_valid() {
    for table in [Table::Scheduler, Table::Job, Table::Calendar, Table::Notify] {
        let keys = match table {
            Table::Scheduler => SCHEDULER_KEYS,
            Table::Job => JOB_KEYS,
            Table::Notify => NOTIFY_KEYS,
            _ => CALENDAR_KEYS,
        };
        for key in keys {
            let table = with_line(table, key.example);
            assert_eq!(faults(&table), [""; 0], "{table}");
        }
    }
}

#[test]
fn words_are_those_that_the_reader_takes() {
    for name in [
        "dst_gap",
        "dst_fold",
        "catch_up",
        "concurrency_policy",
        "on_crash",
    ] {
        let words = forms::words(Table::Job, name).expect("words");
        let table = with_key(Table::Job, name, "\"?\"");
        let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
        let told = format!("`{name}` is {}, not `?`", quoted.join(" or "));
        let error = read(&table).expect_err(&table).to_string();
        assert!(error.contains(&told), "{told}\n{error}");
        assert_ne!(faults(&table), [""; 0], "{table}");
    }
}

#[test]
fn topics_are_the_words_of_what_people_are_told_of() {
    let keys = Table::Telling.keys();
    let on = keys.iter().find(|key| key.name == "on").expect("a key");
    assert_eq!(on.words(), ["failure", "recovery", "missed", "slow"]);
    let repeat = keys.iter().find(|key| key.name == "repeat");
    assert_eq!(repeat.expect("a key").words(), [""; 0]);
}

#[test]
fn limits_are_those_that_the_reader_has() {
    let tables = [Table::Scheduler, Table::Job];
    let keys = tables.map(|table| table.keys().into_iter().map(move |key| (table, key)));
    let integers = keys.into_iter().flatten();
    let integers = integers.filter(|(_, key)| key.takes == Some("an integer"));
    let mut seen = 0;
    for (table, key) in integers {
        let limits = forms::limits(table, key.name).expect(key.name);
        let [least, most] =
            [*limits.start(), *limits.end()].map(|limit| i64::try_from(limit).expect("small"));
        for (number, is_within) in [
            (least - 1, false),
            (least, true),
            (most, true),
            (most + 1, false),
        ] {
            let table = with_key(table, key.name, &number.to_string());
            let read = read(&table);
            assert_eq!(read.is_ok(), is_within, "{table}");
            assert_eq!(faults(&table).is_empty(), is_within, "{table}");
        }
        seen += 1;
    }
    assert!(seen > 5, "{seen}");
}

#[test]
fn a_default_that_is_written_changes_nothing() {
    for table in Table::ALL {
        for meaning in table.meanings() {
            let Some(default) = meaning.default else {
                continue;
            };
            let written = with_key(table, meaning.name, default);
            // The same table without that line.
            let line = format!("{} = {default}\n", meaning.name);
            let left_out = written.replacen(&line, "", 1);
            assert_ne!(written, left_out, "{line}");
            let [written, left_out] = [written, left_out].map(|table| {
                assert_eq!(faults(&table), [""; 0], "{table}");
                read(&table).unwrap_or_else(|error| panic!("{error}"))
            });
            assert_eq!(written.digest(), left_out.digest(), "{line}");
            assert_eq!(written.scheduler, left_out.scheduler, "{line}");
        }
    }
}

fn assert_forms(table: Table, lines: &[(&str, bool)]) {
    for (line, is_one) in lines {
        let table = with_line(table, line);
        let faults = faults(&table);
        assert_eq!(faults.is_empty(), *is_one, "{faults:?}\n{table}");
    }
}

#[test]
fn forms_of_single_values_are_told_from_what_only_looks_like_them() {
    let lines = [
        ("timeout = \"1h30m\"", true),
        ("timeout = \"1m30s500ms\"", true),
        ("timeout = \"\"", false),
        ("timeout = \"30m1h\"", false),
        ("timeout = \"5min\"", false),
        ("timeout = \"${T}\"", false),
        ("timeout = 50", false),
        ("umask = \"0027\"", true),
        ("umask = \"0888\"", false),
        ("umask = 27", false),
        ("output_limit = 4096", true),
        ("output_limit = \"1 MiB\"", true),
        ("output_limit = \"64KB\"", false),
    ];
    assert_forms(Table::Job, &lines);
    let lines = [
        ("lease_ttl = \"${TTL:-15s}\"", true),
        ("namespace = \"${NAMESPACE}\"", true),
        ("namespace = \"a b\"", false),
        ("tags = [\"zone=${ZONE}\"]", true),
        ("revision = \"${BUILD_NUMBER:-0}\"", true),
        ("revision = \"new\"", false),
        ("include = \"jobs.d/*.toml\"", false),
    ];
    assert_forms(Table::Scheduler, &lines);
    assert_ne!(faults("[jobs.\"a b\"]"), [""; 0]);
}

#[test]
fn forms_of_tables_and_lists_are_told_from_what_only_looks_like_them() {
    let lines = [
        ("run_on = [\"zone=eu\"]", true),
        ("run_on = [\"zone\"]", false),
        ("run_on = { zone = \"e u\" }", false),
        ("env = { SOLOIST_JOB = \"x\" }", false),
        ("env = { PORT = 8080 }", false),
        ("command = \"x y\"", false),
        ("after = []", false),
        ("success_codes = [256]", false),
        ("retry = 3", false),
        ("retry = { max = 3, backof = \"1s\" }", false),
        ("retry = { max = 3, factor = 0.5 }", false),
        ("notify = { to = \"ops\", on = [\"failure\"] }", true),
        ("notify = { on = [\"failed\"] }", false),
        ("http = { method = \"GET\" }", false),
        ("http = { url = \"ftp://h\" }", false),
        (
            "http = { url = \"${URL}\", expect_status = [\"2xx\", 404] }",
            true,
        ),
        (
            "http = { url = \"http://h\", expect_status = \"ok\" }",
            false,
        ),
    ];
    assert_forms(Table::Job, &lines);
    let lines = [
        ("dates = 2026-12-25", true),
        ("dates = [\"12-24..01-01\"]", true),
        ("dates = [\"25.12.2026\"]", false),
        ("weekdays = [\"mon-FRI\"]", true),
        ("weekdays = [\"Monday\"]", false),
    ];
    assert_forms(Table::Calendar, &lines);
}

/// Every file below a directory of the repository, but for what is built.
fn files(below: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(below).expect("a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let found = paths.flat_map(|path| match path.is_dir() {
        true if path.ends_with("target") || path.ends_with(".git") => Vec::new(),
        true => files(&path, extension),
        false if path.extension().is_some_and(|own| own == extension) => vec![path],
        false => Vec::new(),
    });
    found.collect()
}

/// What stands in blocks of TOML.
fn blocks(text: &str) -> Vec<String> {
    let blocks = text.split("```toml\n").skip(1);
    let ended = blocks.filter_map(|block| block.split_once("\n```"));
    ended.map(|(block, _)| format!("{block}\n")).collect()
}

#[test]
fn each_table_of_the_documentation_is_valid() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut tables = vec![fs::read_to_string(root.join("jobs.toml")).expect("jobs.toml")];
    for page in files(root, "md") {
        tables.extend(blocks(&fs::read_to_string(&page).expect("a page")));
    }
    assert!(tables.len() > 9, "{}", tables.len());
    for table in tables {
        assert_eq!(faults(&table), [""; 0], "{table}");
    }
}
