//! Any text gives an error or a table that `soloist check` accepts, and never a panic.
//!
//! Must never: leave out what only a hostile text has.

use proptest::prelude::*;

use soloist::import::{Columns, Format, Request, import};
use soloist::scheduler::job::Program;

use super::corpus::{check, now};

/// Imports, and reads back what came of it.
fn holds(
    text: &str,
    format: Option<Format>,
    columns: Columns,
    timezone: Option<&str>,
) -> Result<(), TestCaseError> {
    let request = Request {
        text,
        label: "a\nb",
        format,
        columns,
        timezone,
        now: now(),
    };
    match import(&request) {
        Err(error) => prop_assert!(!error.message.is_empty() && !error.hint.is_empty()),
        Ok(imported) => {
            let report = &imported.report;
            prop_assert_eq!(imported.table.is_some(), report.carried > 0);
            prop_assert!(report.carried + report.refused.len() > 0);
            let jobs = imported.table.map_or(0, |table| check(&table).jobs.len());
            prop_assert_eq!(jobs, report.carried);
        }
    }
    Ok(())
}

fn columns() -> impl Strategy<Value = Columns> {
    prop::sample::select(vec![Columns::User, Columns::System])
}

fn timezone() -> impl Strategy<Value = Option<&'static str>> {
    prop::sample::select(vec![None, Some("Europe/Berlin"), Some("utc")])
}

/// A field, right or wrong.
fn field() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        (0..70u32).prop_map(|number| number.to_string()),
        Just("4294967295".into())
    ];
    let name = prop::sample::select(vec![
        "mon", "FRI", "jan", "L", "W", "15W", "H", "?", "x", "", "#2",
    ]);
    let base = prop_oneof![
        3 => Just("*".to_owned()),
        4 => number.clone(),
        1 => name.prop_map(str::to_owned),
        2 => (number.clone(), number.clone()).prop_map(|(from, to)| format!("{from}-{to}")),
        1 => (number.clone(), number.clone()).prop_map(|(from, to)| format!("{from}~{to}")),
        1 => Just("~".to_owned()),
    ];
    let item = (base, prop::option::weighted(0.3, number))
        .prop_map(|(base, step)| step.map_or(base.clone(), |step| format!("{base}/{step}")));
    prop::collection::vec(item, 1..3).prop_map(|items| items.join(","))
}

fn command() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "/opt/x.sh",
        " ",
        "%",
        "\\",
        "'",
        "\"",
        "\"\"\"",
        "'''",
        "${X}",
        "$(date)",
        "&&",
        "EOF",
        "#",
        "\t",
        "\0",
        "\u{1f}",
        "\u{7f}",
        "\u{e9}",
        "-n",
        "*",
        ";",
        "&",
        "=",
        "{",
        "}",
        "://",
        ">",
        "(",
    ]);
    prop::collection::vec(pieces, 0..8).prop_map(|pieces| pieces.concat())
}

fn line() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "@daily",
        "@reboot",
        "@every 5m",
        "@every x",
        "@",
        "-@hourly",
        "@monthly 45 x.y",
    ]);
    let when = prop_oneof![
        4 => prop::collection::vec(field(), 5).prop_map(|fields| fields.join(" ")),
        1 => prop::collection::vec(field(), 0..8).prop_map(|fields| fields.join("\t")),
        1 => words.prop_map(str::to_owned),
    ];
    let names = prop::sample::select(vec![
        "SHELL",
        "PATH",
        "HOME",
        "MAILTO",
        "CRON_TZ",
        "TZ",
        "RANDOM_DELAY",
        "START_HOURS_RANGE",
        "SOLOIST_JOB",
        "A B",
        "'A'",
        "${X}",
        "",
    ]);
    let values = prop_oneof![
        command(),
        Just("Europe/Berlin".to_owned()),
        Just("45".to_owned()),
        Just("\"/bin/bash\"".to_owned()),
        Just("~".to_owned()),
    ];
    prop_oneof![
        5 => (when, command()).prop_map(|(when, command)| format!("{when} root {command}")),
        2 => (names, values).prop_map(|(name, value)| format!("{name}={value}")),
        1 => command().prop_map(|text| format!("# {text}")),
        1 => command(),
    ]
}

/// A value in a manifest, of any type.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("[]".to_owned()),
        Just("{}".to_owned()),
        Just("[a, '$(X)', 1]".to_owned()),
        Just("[sh, -c, 'a $(X) $$ ${Y}']".to_owned()),
        Just("[{name: X, value: 'a${'}, {name: Y-Z, valueFrom: {secretKeyRef: {}}}]".to_owned()),
        Just("[{name: a, image: b, command: [c], env: [{name: X}]}, {name: d}]".to_owned()),
        (0..u64::MAX).prop_map(|number| number.to_string()),
        (-3..200_i64).prop_map(|number| number.to_string()),
        Just("1.5".to_owned()),
        Just("\"*/90 0 */2 * 1\"".to_owned()),
        Just("'@every 5m'".to_owned()),
        Just("Europe/Berlin".to_owned()),
        Just("\"a\\0b\"".to_owned()),
        Just("Indexed".to_owned()),
    ]
}

/// A right manifest with some of its fields replaced.
fn manifest() -> impl Strategy<Value = String> {
    const FIELDS: [(&str, &str, &str); 21] = [
        ("", "apiVersion", "batch/v1"),
        ("", "kind", "CronJob"),
        ("metadata", "name", "x"),
        ("metadata", "namespace", "shop"),
        ("spec", "schedule", "'0 1 * * *'"),
        ("spec", "timeZone", "null"),
        ("spec", "suspend", "false"),
        ("spec", "concurrencyPolicy", "Forbid"),
        ("spec", "startingDeadlineSeconds", "null"),
        ("spec", "successfulJobsHistoryLimit", "null"),
        ("job", "backoffLimit", "null"),
        ("job", "activeDeadlineSeconds", "null"),
        ("job", "completions", "null"),
        ("job", "parallelism", "null"),
        ("job", "completionMode", "null"),
        ("pod", "terminationGracePeriodSeconds", "null"),
        ("pod", "initContainers", "null"),
        ("container", "image", "x"),
        ("container", "command", "[x]"),
        ("container", "args", "[y]"),
        ("container", "env", "[{name: X, value: y}]"),
    ];
    let replaced = prop::option::weighted(0.15, value());
    prop::collection::vec(replaced, FIELDS.len()).prop_map(|replaced| {
        let of = |level: &str| {
            let fields = FIELDS.iter().zip(&replaced);
            let of_level = fields.filter(|((known, ..), _)| *known == level);
            let lines = of_level.map(|((_, name, usual), replaced)| {
                format!("{name}: {}", replaced.as_deref().unwrap_or(usual))
            });
            lines.collect::<Vec<_>>().join(", ")
        };
        format!(
            "{{{}, metadata: {{{}}}, spec: {{{}, jobTemplate: {{spec: {{{}, template: {{spec: {{{}, containers: [{{{}}}]}}}}}}}}}}}}",
            of(""), of("metadata"), of("spec"), of("job"), of("pod"), of("container")
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_crontab_gives_an_error_or_a_table(
        lines in prop::collection::vec(line(), 0..12),
        columns in columns(),
        timezone in timezone(),
    ) {
        holds(&lines.join("\n"), Some(Format::Crontab), columns, timezone)?;
    }

    #[test]
    fn any_manifest_gives_an_error_or_a_table(
        documents in prop::collection::vec(manifest(), 1..4),
        timezone in timezone(),
    ) {
        holds(&documents.join("\n---\n"), None, Columns::User, timezone)?;
    }

    #[test]
    fn any_text_at_all_gives_an_error_or_a_table(
        text in any::<String>(),
        printed in "[ -~\n]{0,60}",
        columns in columns(),
    ) {
        for text in [&text, &printed] {
            for format in [None, Some(Format::Crontab), Some(Format::Kubernetes)] {
                holds(text, format, columns, None)?;
            }
        }
    }

    #[test]
    fn a_text_is_carried_over_byte_by_byte(
        value in "[ -~\u{e9}]{0,30}",
        command in "[ -$&-~\u{e9}]{1,30}",
    ) {
        // No percent sign, no star, no blank at the start, no quotes around.
        let command = format!("x{command}");
        let command = command.trim_end();
        let value = value.trim().trim_matches(['"', '\'']).trim();
        let text = format!("A={value}\n0 5 * * * {command}\n");
        let request = Request {
            text: &text,
            label: "x",
            format: Some(Format::Crontab),
            columns: Columns::User,
            timezone: None,
            now: now(),
        };
        let table = import(&request).expect("an entry").table.expect("a job");
        let job = check(&table).jobs.remove(0);
        prop_assert_eq!(job.command.program, Program::Shell(command.into()));
        prop_assert_eq!(job.command.env.get("A").map(String::as_str), Some(value));
    }
}
