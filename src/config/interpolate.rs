//! `${VAR}`, `${VAR:-default}` and `${file:/run/secrets/x}` in values that may hold secrets.
//!
//! Used for `[scheduler]`, `env` and `http` only: a command line is left as it is written, as its shell
//! has `${…}` of its own. What is filled in must never get into a message or a log.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::names::nearest;
use super::sources::note;
use crate::scheduler::request::{Piece, Template};
use crate::scheduler::variable::Variable;

/// The largest file that `${file:…}` takes, in bytes: a secret, not a data set.
const SECRET_FILE_LIMIT: u64 = 64 * 1024;

/// Reads a variable of the environment.
pub type Environment<'e> = &'e dyn Fn(&str) -> Option<String>;

/// A reference that can't be filled in: where in the text, what is wrong, what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReferenceError {
    pub(super) span: Range<usize>,
    pub(super) message: String,
    pub(super) hint: String,
}

/// The text with every reference filled in; none when there is nothing to fill in.
/// `$${` stands for a literal `${`; any other `$` is kept. The files that it refers to are added
/// to `files`.
pub(super) fn fill_in(
    text: &str,
    env: Environment<'_>,
    files: &mut Vec<PathBuf>,
) -> Result<Option<String>, Vec<ReferenceError>> {
    if !text.contains("${") {
        return Ok(None);
    }
    let pieces = scan(text, |reference| {
        look_up(reference, env, files).map(Piece::Secret)
    })?;
    // There is no variable among them.
    let filled = Template::new(pieces).fill(|variable| variable.name().into());
    Ok(Some(filled))
}

/// As [`fill_in`], with the variables of the contract left for each attempt to fill in.
pub(super) fn fill_for_attempts(
    text: &str,
    env: Environment<'_>,
    files: &mut Vec<PathBuf>,
) -> Result<Template, Vec<ReferenceError>> {
    let pieces = scan(text, |reference| {
        // An attempt has all of them, so that a default is never needed.
        let name = reference.split(":-").next().unwrap_or_default();
        if let Some(variable) = Variable::named(name) {
            return Ok(Piece::Variable(variable));
        }
        look_up(reference, env, files)
            .map(Piece::Secret)
            .map_err(|(message, hint)| (message, near_variable(name).unwrap_or(hint)))
    })?;
    Ok(Template::new(pieces))
}

/// The variable that was probably meant by a name that nobody has set.
fn near_variable(name: &str) -> Option<String> {
    const PREFIX: &str = "SOLOIST_";
    let names = Variable::ALL.map(Variable::name);
    let known = names.iter().filter_map(|known| known.strip_prefix(PREFIX));
    let near = nearest(name.strip_prefix(PREFIX)?, known)?;
    Some(format!("did you mean `${{{PREFIX}{near}}}`?"))
}

/// The parts of a text, with what `resolve` made of the inside of each reference.
fn scan(
    text: &str,
    mut resolve: impl FnMut(&str) -> Result<Piece, (String, String)>,
) -> Result<Vec<Piece>, Vec<ReferenceError>> {
    let mut pieces = Vec::new();
    let mut errors = Vec::new();
    let mut literal = String::new();
    let mut at = 0;
    while let Some(found) = text[at..].find("${") {
        let start = at + found;
        literal.push_str(&text[at..start]);
        if literal.ends_with('$') && found > 0 {
            literal.push('{');
            at = start + 2;
            continue;
        }
        let Some(length) = text[start..].find('}') else {
            errors.push(unclosed(start..text.len()));
            at = text.len();
            break;
        };
        let span = start..start + length + 1;
        match resolve(&text[span.start + 2..span.end - 1]) {
            Ok(piece) => {
                pieces.push(Piece::Text(std::mem::take(&mut literal)));
                pieces.push(piece);
            }
            Err((message, hint)) => errors.push(ReferenceError {
                span: span.clone(),
                message,
                hint,
            }),
        }
        at = span.end;
    }
    literal.push_str(&text[at..]);
    pieces.push(Piece::Text(literal));
    if errors.is_empty() {
        Ok(pieces)
    } else {
        Err(errors)
    }
}

fn unclosed(span: Range<usize>) -> ReferenceError {
    ReferenceError {
        span,
        message: "`${` is never closed".into(),
        hint: "write `${VAR}`; for a literal `${`, write `$${`".into(),
    }
}

/// The value of what stands between `${` and `}`; on failure message and hint.
fn look_up(
    reference: &str,
    env: Environment<'_>,
    files: &mut Vec<PathBuf>,
) -> Result<String, (String, String)> {
    if let Some(path) = reference.strip_prefix("file:") {
        note(files, Path::new(path));
        return read_secret(path);
    }
    let (name, default) = match reference.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (reference, None),
    };
    if !is_variable_name(name) {
        return Err((
            format!("`${{{reference}}}` refers to nothing"),
            "write `${VAR}`, `${VAR:-default}` or `${file:/run/secrets/x}`; for a literal `${`, write `$${`".into(),
        ));
    }
    match (env(name), default) {
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.into()),
        (None, None) => Err((
            format!("the environment has no variable `{name}`"),
            format!("set it, or give a default: `${{{name}:-default}}`"),
        )),
    }
}

fn is_variable_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(is_part)
}

/// The text of a secret file, without the newline at its end.
fn read_secret(path: &str) -> Result<String, (String, String)> {
    let failed = |why: &str, hint: &str| (format!("failed to read `{path}`: {why}"), hint.into());
    if !path.starts_with('/') {
        return Err(failed(
            "its path isn't absolute",
            "write `${file:/run/secrets/x}`",
        ));
    }
    let meta = fs::metadata(path).map_err(|error| {
        failed(
            &error_text(&error),
            "the file must exist and be readable by the user that soloist runs as",
        )
    })?;
    if !meta.is_file() {
        return Err(failed("it is no file", "name a regular file"));
    }
    if meta.len() > SECRET_FILE_LIMIT {
        return Err(failed(
            "it is over 64 KiB",
            "name a file that holds the secret alone",
        ));
    }
    let text = fs::read_to_string(path).map_err(|error| {
        failed(
            &error_text(&error),
            "the file must be readable, and be text in UTF-8",
        )
    })?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(text.strip_suffix('\r').unwrap_or(text).to_owned())
}

/// An I/O error as people say it, without the number of the system.
pub(super) fn error_text(error: &std::io::Error) -> String {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::NotFound => "there is no such file".into(),
        ErrorKind::PermissionDenied => "permission denied".into(),
        ErrorKind::InvalidData => "it is not UTF-8".into(),
        ErrorKind::IsADirectory => "it is a directory".into(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(name: &str) -> Option<String> {
        match name {
            "HOST" => Some("redis-1".into()),
            "EMPTY" => Some(String::new()),
            _ => None,
        }
    }

    fn filled(text: &str) -> Result<Option<String>, Vec<ReferenceError>> {
        fill_in(text, &env, &mut Vec::new())
    }

    #[test]
    fn references_are_filled_in_and_all_else_is_kept() {
        for (text, expected) in [
            ("${HOST}", "redis-1"),
            ("redis://${HOST}:6379/${DB:-0}", "redis://redis-1:6379/0"),
            ("[${EMPTY}]", "[]"),
            ("${EMPTY:-none}", "none"),
            ("${NONE:-}", ""),
            ("${NONE:-a:-b}", "a:-b"),
            ("$${HOST}", "${HOST}"),
            ("a$${b ${HOST}", "a${b redis-1"),
            ("$HOST ${HOST} $", "$HOST redis-1 $"),
            ("${HOST}${HOST}", "redis-1redis-1"),
        ] {
            assert_eq!(filled(text), Ok(Some(expected.into())), "{text}");
        }
        assert_eq!(filled("$HOST {x} $"), Ok(None));
    }

    #[test]
    fn the_variables_of_an_attempt_are_left_to_it() {
        let template = |text| {
            fill_for_attempts(text, &env, &mut Vec::new()).map_err(|errors| errors[0].hint.clone())
        };
        for (text, pieces) in [
            (
                "${HOST}/${SOLOIST_JOB}",
                vec![
                    Piece::Text(String::new()),
                    Piece::Secret("redis-1".into()),
                    Piece::Text("/".into()),
                    Piece::Variable(Variable::Job),
                    Piece::Text(String::new()),
                ],
            ),
            (
                "$${SOLOIST_JOB}",
                vec![Piece::Text("${SOLOIST_JOB}".into())],
            ),
            (
                "${SOLOIST_ATTEMPT:-1} $",
                vec![
                    Piece::Text(String::new()),
                    Piece::Variable(Variable::Attempt),
                    Piece::Text(" $".into()),
                ],
            ),
        ] {
            assert_eq!(template(text), Ok(Template::new(pieces)), "{text}");
        }
        let hint = template("${SOLOIST_RUNID}").expect_err("no such variable");
        assert_eq!(hint, "did you mean `${SOLOIST_RUN_ID}`?");
        let hint = template("${SOLOIST_STORE}").expect_err("no such variable");
        assert_eq!(
            hint,
            "set it, or give a default: `${SOLOIST_STORE:-default}`"
        );
    }

    #[test]
    fn every_reference_that_leads_nowhere_is_told_with_its_place() {
        let errors = filled("${NONE} and ${also none} and ${").expect_err("three errors");
        let told: Vec<_> = errors
            .iter()
            .map(|error| (error.span.clone(), error.message.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                (0..7, "the environment has no variable `NONE`"),
                (12..24, "`${also none}` refers to nothing"),
                (29..31, "`${` is never closed"),
            ]
        );
    }

    #[test]
    fn a_secret_file_loses_only_its_last_newline() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("secret");
        fs::write(&path, "se cret\n\n").expect("written");
        let text = format!("<${{file:{}}}>", path.display());
        assert_eq!(filled(&text), Ok(Some("<se cret\n>".into())));
    }

    #[test]
    fn a_secret_file_that_cannot_be_read_is_told() {
        let dir = tempfile::tempdir().expect("a directory");
        let binary = dir.path().join("binary");
        fs::write(&binary, [0xff, 0xfe]).expect("written");
        for (path, why) in [
            ("/no/such/secret", "there is no such file"),
            ("secret", "its path isn't absolute"),
            (dir.path().to_str().expect("UTF-8"), "it is no file"),
            (binary.to_str().expect("UTF-8"), "it is not UTF-8"),
        ] {
            let errors = filled(&format!("${{file:{path}}}")).expect_err(path);
            assert_eq!(errors[0].message, format!("failed to read `{path}`: {why}"));
        }
    }
}
