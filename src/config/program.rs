//! What a job runs: `command`, `shell` or `http`, and the surroundings it runs in.
//!
//! Must never fill in `${…}` in a command or a script: a shell has its own.

use std::collections::BTreeMap;
use std::path::PathBuf;

use toml::de::DeValue;

use super::diagnostics::Diagnostic;
use super::http::{read_http, refuse_keys_of_processes};
use super::identity::read_identity;
use super::job::{Keys, push_missing};
use super::keys::PROGRAM_KEYS;
use super::raw::{Entry, RawJob, Section};
use super::read::{Reader, Text, to_i64};
use crate::scheduler::job::{CommandSpec, Program};

/// How many bytes of each stream are kept by default.
const OUTPUT_LIMIT: u64 = 8 * 1024;

/// How many may be: the ledger holds them, for every attempt that it keeps.
pub(super) const LARGEST_OUTPUT_LIMIT: u64 = 1024 * 1024;

/// Reads what a job runs; none when that is missing or wrong.
pub(super) fn read_command(
    reader: &mut Reader<'_>,
    raw: &RawJob<'_>,
    keys: &Keys<'_>,
) -> Option<CommandSpec> {
    let (program, section) = read_program(reader, raw, keys).unzip();
    let env = read_env(reader, keys);
    let working_dir = keys
        .get("working_dir")
        .and_then(|entry| read_working_dir(reader, entry));
    let identity = read_identity(reader, keys);
    let success_codes = keys
        .get("success_codes")
        .and_then(|entry| read_success_codes(reader, entry));
    let output_limit = keys
        .get("output_limit")
        .and_then(|entry| reader.size(entry, LARGEST_OUTPUT_LIMIT))
        .unwrap_or(OUTPUT_LIMIT);
    let runs_a_program = section.is_none_or(|section| section.get("http").is_none());
    Some(CommandSpec {
        program: program.flatten()?,
        // What `[defaults]` has of these is for jobs that run programs.
        env: if runs_a_program { env } else { BTreeMap::new() },
        working_dir: working_dir.filter(|_| runs_a_program),
        user: identity.user.filter(|_| runs_a_program),
        group: identity.group.filter(|_| runs_a_program),
        umask: identity.umask.filter(|_| runs_a_program),
        success_codes: success_codes
            .filter(|_| runs_a_program)
            .unwrap_or_else(|| vec![0]),
        // At most a MiB, as was checked.
        output_limit: usize::try_from(output_limit).unwrap_or(usize::MAX),
    })
}

/// One of `command`, `shell` and `http`, if it is right, and the section that it stands in. One
/// in the job takes the place of any in `[defaults]`.
fn read_program<'k>(
    reader: &mut Reader<'_>,
    raw: &RawJob<'_>,
    keys: &Keys<'k>,
) -> Option<(Option<Program>, &'k Section<'k>)> {
    let section = keys
        .sections()
        .find(|section| PROGRAM_KEYS.iter().any(|key| section.mentions(key)));
    let Some(section) = section else {
        let hint = "give it a `command = [\"program\", \"argument\"]`, a `shell = \"…\"`, or an `http = { url = \"…\" }`";
        push_missing(&mut reader.problems, raw, "runs nothing", hint);
        return None;
    };
    refuse_two_programs(reader, section);
    let command = section
        .get("command")
        .and_then(|entry| read_argv(reader, entry))
        .map(Program::Command);
    let shell = section
        .get("shell")
        .and_then(|entry| reader.full_text(entry))
        .map(|script| Program::Shell(script.value));
    let http = section
        .get("http")
        .and_then(|entry| read_http(reader, entry))
        .map(|request| Program::Http(Box::new(request)));
    if section.get("http").is_some() {
        refuse_keys_of_processes(reader, keys.job);
    }
    Some((command.or(shell).or(http), section))
}

fn refuse_two_programs(reader: &mut Reader<'_>, section: &Section<'_>) {
    let mut written: Vec<_> = section
        .entries
        .iter()
        .filter(|entry| PROGRAM_KEYS.contains(&entry.key.name))
        .collect();
    written.sort_by_key(|entry| entry.key_span.start);
    if let [first, second, ..] = written[..] {
        let (first_name, second_name) = (first.key.name, second.key.name);
        reader.problems.push(
            Diagnostic::error(
                second.key_span.clone(),
                format!("a job has either `{first_name}` or `{second_name}`, not both"),
            )
            .related(
                first.key_span.clone(),
                format!("the `{first_name}` is here"),
            )
            .hint("keep one of them, or make two jobs"),
        );
    }
}

fn read_argv(reader: &mut Reader<'_>, entry: &Entry<'_>) -> Option<Vec<String>> {
    let argv = reader.texts(entry)?;
    let Some(program) = argv.first() else {
        let hint = format!("name a program: `{}`", entry.key.example);
        reader.error(
            &entry.value.span(),
            "`command` is an empty list".into(),
            hint,
        );
        return None;
    };
    if program.value.trim().is_empty() {
        let message = "the first of `command` is the program, and it is empty".into();
        reader.error(
            &program.span,
            message,
            format!("for example `{}`", entry.key.example),
        );
        return None;
    }
    warn_of_shell_syntax(reader, &argv);
    Some(argv.into_iter().map(|text| text.value).collect())
}

/// Programs that take a script by `-c`.
const SHELLS: [&str; 8] = ["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish"];

/// What only a shell would understand is handed on as it stands, which is seldom meant.
fn warn_of_shell_syntax(reader: &mut Reader<'_>, argv: &[Text]) {
    let program = &argv[0];
    if argv.len() == 1 && program.value.contains(' ') && !program.value.contains('/') {
        let words: Vec<_> = program.value.split_whitespace().collect();
        reader.problems.push(
            Diagnostic::warning(program.span.clone(), "the program's name has a space in it").hint(
                format!("a command has no shell to split it: `command = {words:?}`"),
            ),
        );
    }
    if is_shell(argv) {
        return;
    }
    for argument in argv {
        let is_reference = argument.value.contains("${");
        if is_reference
            || matches!(
                argument.value.as_str(),
                "|" | "&&" | "||" | ">" | ">>" | "<"
            )
        {
            let message = format!(
                "{} is handed to the program as it stands",
                argument.quoted()
            );
            reader.problems.push(
                Diagnostic::warning(argument.span.clone(), message)
                    .hint("a `command` has no shell; write a `shell = \"…\"` if one is meant"),
            );
        }
    }
}

/// A shell that is handed a script makes sense of it.
fn is_shell(argv: &[Text]) -> bool {
    let program = argv[0].value.rsplit('/').next().unwrap_or_default();
    let has_script =
        |argument: &Text| argument.value.starts_with('-') && argument.value.ends_with('c');
    SHELLS.contains(&program) && argv.iter().any(has_script)
}

/// The job's variables over those of `[defaults]`, one by one.
fn read_env(reader: &mut Reader<'_>, keys: &Keys<'_>) -> BTreeMap<String, String> {
    let mut env = BTreeMap::new();
    for section in keys.sections().rev() {
        if let Some(entry) = section.get("env") {
            env.extend(reader.secret_table(entry).into_iter().flatten());
        }
    }
    env
}

fn read_working_dir(reader: &mut Reader<'_>, entry: &Entry<'_>) -> Option<PathBuf> {
    let text = reader.full_text(entry)?;
    if text.value.starts_with('~') {
        let message = format!(
            "{} begins with `~`, which only a shell knows",
            text.quoted()
        );
        reader.error(
            &text.span,
            message,
            "write the whole path, such as `/srv/shop`",
        );
        return None;
    }
    let path = PathBuf::from(&text.value);
    if path.is_relative() {
        reader.problems.push(
            Diagnostic::warning(
                text.span.clone(),
                "a relative `working_dir` depends on where each replica was started",
            )
            .hint("write the whole path, such as `/srv/shop`"),
        );
    }
    Some(path)
}

fn read_success_codes(reader: &mut Reader<'_>, entry: &Entry<'_>) -> Option<Vec<i32>> {
    let Some(array) = entry.value.get_ref().as_array() else {
        reader.wrong_type(entry);
        return None;
    };
    let mut codes = Vec::new();
    let mut all_right = true;
    for item in array.iter() {
        let code = match item.get_ref() {
            DeValue::Integer(integer) => to_i64(integer).and_then(|code| u8::try_from(code).ok()),
            _ => None,
        };
        match code {
            Some(code) => codes.push(i32::from(code)),
            None => {
                let message = "an exit code is a number from 0 to 255".into();
                let hint = "a program ended by a signal never counts as a success; for example `success_codes = [0, 3]`";
                reader.error(&item.span(), message, hint);
                all_right = false;
            }
        }
    }
    if array.is_empty() {
        let message = "with no success code, every attempt would fail".into();
        reader.error(
            &entry.value.span(),
            message,
            "the default is `success_codes = [0]`",
        );
        return None;
    }
    codes.sort_unstable();
    codes.dedup();
    all_right.then_some(codes)
}
