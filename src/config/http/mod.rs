//! `http` of a job: its table, value by value.
//!
//! Must never: show a value of it (headers, body, user and query of the URL may be secrets), or
//! leave one out of the places that a report stars out.

mod template;
#[cfg(test)]
mod tests;
mod values;

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use toml::de::DeValue;

pub(super) use self::template::{Named, Shape};
use self::values::{Fragment, check_method, check_status, may_have_body, parse_statuses};
pub(super) use self::values::{STATUSES, check_header_name, check_header_value, check_url, sample};
use super::diagnostics::Diagnostic;
use super::keys::{self, JOB_KEYS};
use super::names::nearest;
use super::raw::{Entry, Section, kind_of};
use super::read::{Reader, to_i64};
use super::values::ValueError;
use crate::scheduler::request::{ExpectStatus, HttpRequest, Template};

/// Keys of `http`.
pub(super) const HTTP_KEYS: [&str; 5] = ["url", "method", "headers", "body", "expect_status"];

/// Keys that people look for here, and what there is instead.
const INSTEAD: [(&str, &str); 4] = [
    ("redirects", REDIRECTS),
    ("follow_redirects", REDIRECTS),
    (
        "auth",
        "write `https://USER:PASSWORD@HOST/`, or an `Authorization` among the `headers`",
    ),
    (
        "insecure",
        "certificates are always verified: name a file with the issuer's by SSL_CERT_FILE in soloist's environment",
    ),
];
const REDIRECTS: &str = "redirects are not followed: put the address that answers into `url`";

/// A job's keys that are about a process, and what an `http` job has instead.
const OF_PROCESSES: [(&str, &str); 6] = [
    (
        "env",
        "`${VAR}` in `url`, `headers` and `body` is filled in from soloist's own environment",
    ),
    (
        "success_codes",
        "say which answers are successes in `http`: `expect_status = [200, 404]`",
    ),
    ("working_dir", NO_PROCESS),
    ("user", NO_PROCESS),
    ("group", NO_PROCESS),
    ("umask", NO_PROCESS),
];
const NO_PROCESS: &str = "an `http` job runs no program: leave it out";

/// Reads `http`; none when it is wrong.
pub(super) fn read_http(reader: &mut Reader<'_>, entry: &Entry<'_>) -> Option<HttpRequest> {
    let Some(table) = entry.value.get_ref().as_table() else {
        reader.hide(entry.value);
        reader.wrong_type(entry);
        return None;
    };
    for (key, value) in table {
        let name: &str = key.get_ref();
        if !HTTP_KEYS.contains(&name) {
            reader.hide(value);
            refuse_unknown(reader, name, &key.span());
        }
    }
    let value = |name: &'static str| Some((name, table.get(name)?));
    let url = value("url").and_then(|url| read_url(reader, url));
    let headers = match value("headers") {
        Some(headers) => read_headers(reader, headers),
        None => Some(Vec::new()),
    };
    let body = value("body").map(|body| reader.template(body, Shape::Secret));
    let method = match value("method") {
        Some(method) => read_method(reader, method),
        None => Some(if body.is_some() { "POST" } else { "GET" }.to_owned()),
    };
    let expect_status = match value("expect_status") {
        Some(status) => read_expect_status(reader, status),
        None => Some(ExpectStatus::default()),
    };
    if value("url").is_none() {
        let hint = format!("for example `{}`", entry.key.example);
        reader.error(&entry.key_span, "`http` has no `url`".into(), hint);
    }
    let body_span = value("body").map(|(_, body)| body.span());
    if let (Some(span), Some(method)) = (body_span, &method) {
        check_body(reader, &span, method, headers.as_deref());
    }
    Some(HttpRequest {
        url: url?,
        method: method?,
        headers: headers?,
        // Wrong is not the same as not there.
        body: body.map_or(Some(None), |body| body.map(|(body, _)| Some(body)))?,
        expect_status: expect_status?,
    })
}

/// Keys that make no sense beside `http`. Those in `[defaults]` are for the other jobs.
pub(super) fn refuse_keys_of_processes(reader: &mut Reader<'_>, section: &Section<'_>) {
    for (name, hint) in OF_PROCESSES {
        if let Some(entry) = section.get(name) {
            let message = format!("`{name}` is about a program, and this job runs none");
            reader.error(&entry.key_span, message, hint);
        }
    }
}

fn refuse_unknown(reader: &mut Reader<'_>, name: &str, span: &Range<usize>) {
    let instead = INSTEAD.iter().find(|(wanted, _)| *wanted == name);
    let hint = match (instead, nearest(name, HTTP_KEYS)) {
        (Some((_, instead)), _) => (*instead).into(),
        (None, Some(near)) => format!("did you mean `{near}`?"),
        (None, None) if keys::find(JOB_KEYS, name).is_some() => {
            format!("`{name}` is a key of the job itself: write it beside `http`")
        }
        (None, None) => format!("the keys of `http` are {}", HTTP_KEYS.join(", ")),
    };
    reader.error(span, format!("unknown key `{name}`"), hint);
}

fn read_url(reader: &mut Reader<'_>, url: Named<'_, '_>) -> Option<Template> {
    let (template, span) = reader.template(url, Shape::Url)?;
    match check_url(&template.fill(sample)) {
        Ok(Fragment::None) => Some(template),
        Ok(Fragment::Lost) => {
            let hint = "write `%23` for a `#` that belongs to the path or the query";
            let message = "what follows `#` in a URL is never sent";
            let warning = Diagnostic::warning(span, message).hint(hint);
            reader.problems.push(warning);
            Some(template)
        }
        Err(ValueError { message, hint }) => {
            reader.error(&span, format!("`url` {message}"), hint);
            None
        }
    }
}

fn read_method(reader: &mut Reader<'_>, method: Named<'_, '_>) -> Option<String> {
    let text = reader.named_text(method)?;
    let text = reader.fill(text)?;
    match check_method(&text.value) {
        Ok(()) => Some(text.value),
        Err(ValueError { message, hint }) => {
            reader.error(&text.span, format!("{} {message}", text.quoted()), hint);
            None
        }
    }
}

fn read_headers(
    reader: &mut Reader<'_>,
    (name, value): Named<'_, '_>,
) -> Option<Vec<(String, Template)>> {
    let Some(table) = value.get_ref().as_table() else {
        reader.hide(value);
        let message = format!("`{name}` takes a table, not {}", kind_of(value));
        let hint = "for example `headers = { Content-Type = \"application/json\" }`";
        reader.error(&value.span(), message, hint);
        return None;
    };
    let mut headers = Vec::new();
    let mut seen: BTreeMap<String, Range<usize>> = BTreeMap::new();
    let mut all_right = true;
    for (key, value) in table {
        let name: &str = key.get_ref();
        let checked = check_header_name(name);
        if let Err(ValueError { message, hint }) = &checked {
            let message = format!("`{}` {message}", name.escape_debug());
            reader.error(&key.span(), message, hint.as_str());
        }
        if let Some(first) = seen.insert(name.to_ascii_lowercase(), key.span()) {
            let message = format!("the header `{name}` is there twice");
            let twice = Diagnostic::error(key.span(), message)
                .related(first, "the other is here")
                .hint("letter case makes no difference in names of headers: keep one of them");
            reader.problems.push(twice);
            all_right = false;
        }
        match read_header(reader, (name, value)) {
            Some(value) if checked.is_ok() => headers.push((name.to_owned(), value)),
            _ => all_right = false,
        }
    }
    all_right.then_some(headers)
}

fn read_header(reader: &mut Reader<'_>, header: Named<'_, '_>) -> Option<Template> {
    let (template, span) = reader.template(header, Shape::Secret)?;
    match check_header_value(&template.fill(sample)) {
        Ok(()) => Some(template),
        Err(ValueError { message, hint }) => {
            let message = format!("the value of `{}` {message}", header.0.escape_debug());
            reader.error(&span, message, hint);
            None
        }
    }
}

/// Whether the rest of the request goes with a body.
fn check_body(
    reader: &mut Reader<'_>,
    span: &Range<usize>,
    method: &str,
    headers: Option<&[(String, Template)]>,
) {
    if !may_have_body(method) {
        let message = format!("a {method} request has no `body`");
        let hint = "leave it out, or choose another `method`";
        reader.error(span, message, hint);
    }
    let is_type = |(name, _): &(String, Template)| name.eq_ignore_ascii_case("content-type");
    if headers.is_some_and(|headers| !headers.iter().any(is_type)) {
        let message = "a `body` of which no `Content-Type` says what it is";
        let hint =
            "servers guess, or refuse it: `headers = { Content-Type = \"application/json\" }`";
        let warning = Diagnostic::warning(span.clone(), message).hint(hint);
        reader.problems.push(warning);
    }
}

fn read_expect_status(
    reader: &mut Reader<'_>,
    (name, value): Named<'_, '_>,
) -> Option<ExpectStatus> {
    let Some(list) = value.get_ref().as_array() else {
        return Some(ExpectStatus(vec![read_statuses(reader, (name, value))?]));
    };
    let mut ranges = Vec::new();
    let mut length = 0;
    for item in list.iter() {
        length += 1;
        ranges.extend(read_statuses(reader, (name, item)));
    }
    if length == 0 {
        let message = "with no status expected, every attempt would fail".into();
        let hint = "the default is `expect_status = \"2xx\"`";
        reader.error(&value.span(), message, hint);
    }
    (length > 0 && ranges.len() == length).then_some(ExpectStatus(ranges))
}

fn read_statuses(
    reader: &mut Reader<'_>,
    (name, value): Named<'_, '_>,
) -> Option<RangeInclusive<u16>> {
    let (shown, read) = match value.get_ref() {
        DeValue::Integer(integer) => {
            let status = check_status(to_i64(integer).unwrap_or(i64::MAX));
            let shown = format!("`{}`", integer.as_str());
            (shown, status.map(|status| status..=status))
        }
        DeValue::String(_) => {
            let text = reader.named_text((name, value))?;
            let text = reader.fill(text)?;
            (text.quoted(), parse_statuses(&text.value))
        }
        _ => {
            let message = format!(
                "`{name}` takes a status or a list of them, not {}",
                kind_of(value)
            );
            let hint = "for example `expect_status = 204`, or `expect_status = [\"2xx\", 404]`";
            reader.error(&value.span(), message, hint);
            return None;
        }
    };
    read.map_err(|ValueError { message, hint }| {
        reader.error(&value.span(), format!("{shown} {message}"), hint);
    })
    .ok()
}
