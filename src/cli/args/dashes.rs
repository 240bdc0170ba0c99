//! A command line of `lock` that lacks its `--`, as flock(1) and env(1) have none: put right.
//!
//! Must never: show a password that stands in it.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Arg, Command, Error};

use crate::store_url;

/// The command that takes another one.
const LOCK: &str = "lock";

/// Whose value is a store's URL, right or wrong.
const STORE: &str = "--store";

/// Between the names and the command.
const DASHES: &str = "--";

/// Why a command line can't be read; where all that it lacks is a `--`, with that in its place.
pub(super) fn explained(command: &Command, words: &[OsString], error: Error) -> Error {
    let meant = match error.use_stderr() {
        true => corrected(command, words),
        // Help, or the version.
        false => None,
    };
    let Some(meant) = meant else { return error };
    let message =
        format!("`--` is missing between the names of leases and the command\n  = help: {meant}\n");
    Error::raw(ErrorKind::MissingRequiredArgument, message)
}

/// How a command line that could not be read was probably meant; none where that is not what is
/// wrong with it.
fn corrected(declared: &Command, words: &[OsString]) -> Option<String> {
    let words: Vec<&str> = words
        .iter()
        .map(|word| word.to_str())
        .collect::<Option<_>>()?;
    if words.contains(&DASHES) {
        return None;
    }
    let lock = declared.find_subcommand(LOCK)?;
    let flags: Vec<&Arg> = declared
        .get_arguments()
        .chain(lock.get_arguments())
        .collect();
    let mut positions = positions(&flags, &words);
    let at = positions.next()?;
    // Without a name there is nothing to go by.
    let name = positions.next()?;
    if words[at] != LOCK || words[..name].contains(&"--list") {
        return None;
    }
    let command = positions.next();
    let (before, after) = words.split_at(command.unwrap_or(words.len()));
    let flags = [""].into_iter().chain(before.iter().copied());
    let shown = before.iter().zip(flags).map(|(word, flag)| match flag {
        STORE => quoted(store_url::redact(word)),
        _ => shown(word),
    });
    let shown = shown.chain([DASHES.to_owned()]);
    let mut shown: Vec<String> = shown
        .chain(after.iter().map(|word| self::shown(word)))
        .collect();
    if command.is_none() {
        shown.push("COMMAND".to_owned());
    }
    // However this program was called.
    shown.splice(..1, ["soloist".to_owned()]);
    Some(shown.join(" "))
}

/// Where the words stand that are neither flags nor their values.
fn positions(flags: &[&Arg], words: &[&str]) -> impl Iterator<Item = usize> {
    let mut is_value = false;
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate().skip(1) {
        if std::mem::take(&mut is_value) {
            continue;
        }
        match word.strip_prefix('-') {
            Some("") | None => found.push(at),
            Some(flag) => is_value = wants_value(flags, flag),
        }
    }
    found.into_iter()
}

/// Whether the next word is the value of a flag, which stands here without its first dash.
fn wants_value(flags: &[&Arg], flag: &str) -> bool {
    let takes = |arg: &&&Arg| arg.get_action().takes_values();
    let mut values = flags.iter().filter(takes);
    match flag.strip_prefix('-') {
        Some(long) => values.any(|arg| arg.get_long() == Some(long)),
        // `-w5s` has its value with it, and `-sw` wants one.
        None => {
            let is_short = |c: char| move |arg: &&Arg| arg.get_short() == Some(c);
            let first = flag
                .char_indices()
                .find(|(_, c)| values.clone().any(is_short(*c)));
            first.is_some_and(|(at, c)| at + c.len_utf8() == flag.len())
        }
    }
}

/// A word as a shell would take it, without a password.
fn shown(word: &str) -> String {
    match word
        .strip_prefix(STORE)
        .and_then(|word| word.strip_prefix('='))
    {
        Some(url) => quoted(format!("{STORE}={}", store_url::redact(url))),
        None if word.contains("://") => quoted(store_url::redact_word(word)),
        None => quoted(word.to_owned()),
    }
}

fn quoted(word: String) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::declared;

    fn of(line: &[&str]) -> Option<String> {
        let mut command = declared();
        command.build();
        let words: Vec<OsString> = line.iter().map(OsString::from).collect();
        corrected(&command, &words)
    }

    #[test]
    fn the_dashes_stand_before_the_second_word_that_belongs_to_no_flag() {
        for (line, meant) in [
            ("soloist lock x ./cmd", "soloist lock x -- ./cmd"),
            (
                "soloist lock x cmd --foo -b",
                "soloist lock x -- cmd --foo -b",
            ),
            (
                "soloist --store redis://:pw@h --namespace=n lock -sw 5s x cmd a",
                "soloist --store 'redis://:***@h' --namespace=n lock -sw 5s x -- cmd a",
            ),
            (
                "soloist --store u:pw@h lock --store=redis:u:pw@h x curl http://me@h",
                "soloist --store '***@h' lock '--store=redis:***@h' x -- curl http://me@h",
            ),
            (
                "/bin/soloist lock -nw5s --ttl 5s x cmd",
                "soloist lock -nw5s --ttl 5s x -- cmd",
            ),
            ("soloist lock -n x", "soloist lock -n x -- COMMAND"),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(of(&words).as_deref(), Some(meant));
        }
        let spaced = of(&["soloist", "lock", "x", "echo", "a b", "it's", ""]);
        assert_eq!(
            spaced.as_deref(),
            Some(r"soloist lock x -- echo 'a b' 'it'\''s' ''")
        );
    }

    #[test]
    fn what_is_wrong_otherwise_is_left_alone() {
        for line in [
            "soloist lock",
            "soloist lock -x",
            "soloist run x y",
            "soloist lock --ttl 5s",
            "soloist lock x -- cmd",
            "soloist lock --list ./x y",
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(of(&words), None, "{line}");
        }
    }
}
