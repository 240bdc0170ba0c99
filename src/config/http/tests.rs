//! What `http` means, and what is said of it.

use super::template::secret_parts_of_url;
use super::*;
use crate::config::{Config, Error, Host, Strictness, parse};
use crate::scheduler::job::{CommandSpec, Program};
use crate::scheduler::variable::Variable;

const SECRET: &str = "hunter2";

fn read(source: &str) -> Result<Config, Error> {
    let env = |name: &str| match name {
        "SECRET" => Some(SECRET.to_owned()),
        "LINES" => Some(format!("{SECRET}\n{SECRET}")),
        _ => None,
    };
    let now = jiff::Timestamp::UNIX_EPOCH;
    let host = Host {
        env: &env,
        accounts: &|_, _| Ok(()),
        now: now.into(),
    };
    parse(source, "jobs.toml", &host, Strictness::Start)
}

fn config(source: &str) -> Config {
    read(source).unwrap_or_else(|error| panic!("{error}"))
}

fn job(keys: &str) -> CommandSpec {
    let mut config = config(&format!("[jobs.x]\nschedule = \"@daily\"\n{keys}"));
    config.jobs.remove(0).command
}

fn request(http: &str) -> HttpRequest {
    match job(http).program {
        Program::Http(request) => *request,
        other => panic!("{other:?}"),
    }
}

fn filled(template: &Template) -> String {
    template.fill(|variable| format!("<{}>", variable.header()))
}

#[test]
fn a_url_is_enough() {
    let get = request("http = { url = \"http://h\" }");
    assert_eq!(filled(&get.url), "http://h");
    assert_eq!(
        (&*get.method, get.headers.len(), get.body),
        ("GET", 0, None)
    );
    assert_eq!(get.expect_status.0, [200..=299]);
    let post = request("http = { url = \"http://h\", body = \"\" }");
    assert_eq!(post.method, "POST");
    assert_eq!(post.body.as_ref().map(filled).as_deref(), Some(""));
}

#[test]
fn every_key_takes_effect_and_attempts_fill_in_their_own_variables() {
    let request = request(
        r#"
        [jobs.x.http]
        url = "https://u:${SECRET}@h/${SOLOIST_JOB}"
        method = "PUT"
        body = "$${SOLOIST_JOB} ${SOLOIST_ATTEMPT} ${NONE:-default}"
        expect_status = [404, "2xx", "301-302"]
        headers.Authorization = "Bearer ${SECRET}"
        headers.Content-Type = "text/plain"
        "#,
    );
    assert_eq!(filled(&request.url), "https://u:hunter2@h/<Soloist-Job>");
    assert!(request.url.has_secrets());
    assert_eq!(request.method, "PUT");
    let body = "${SOLOIST_JOB} <Soloist-Attempt> default";
    assert_eq!(request.body.as_ref().map(filled).as_deref(), Some(body));
    assert_eq!(request.expect_status.0, [404..=404, 200..=299, 301..=302]);
    let headers = request.headers.iter();
    let headers: Vec<_> = headers
        .map(|(name, value)| (&**name, filled(value)))
        .collect();
    assert!(headers.contains(&("Authorization", "Bearer hunter2".into())));
    assert!(headers.contains(&("Content-Type", "text/plain".into())));
    assert_eq!(headers.len(), 2);
}

#[test]
fn all_variables_of_the_contract_may_be_named() {
    let names = Variable::ALL.map(|variable| format!("${{{}}}", variable.name()));
    let names = names.join("/");
    let request = request(&format!(
        "http = {{ url = \"http://h/{names}\", headers = {{ X = \"{names}\" }} }}"
    ));
    let headers = Variable::ALL.map(|variable| format!("<{}>", variable.header()));
    assert_eq!(filled(&request.headers[0].1), headers.join("/"));
}

#[test]
fn defaults_for_programs_do_not_apply() {
    let config = config(
        r#"
        [defaults]
        env = { A = "1" }
        working_dir = "/srv"
        success_codes = [3]
        output_limit = "1KiB"
        [jobs.x]
        schedule = "@daily"
        http = { url = "http://h" }
        "#,
    );
    let command = &config.jobs[0].command;
    assert!(command.env.is_empty());
    assert_eq!(command.working_dir, None);
    assert_eq!(command.success_codes, [0]);
    assert_eq!(command.output_limit, 1024);
}

#[test]
fn what_may_not_be_meant_is_warned_of() {
    for (http, warning) in [
        (
            "url = \"http://h/#x\"",
            "what follows `#` in a URL is never sent",
        ),
        (
            "url = \"http://h\", body = \"{}\"",
            "a `body` of which no `Content-Type` says what it is",
        ),
    ] {
        let source = format!("[jobs.x]\nschedule = \"@daily\"\nhttp = {{ {http} }}");
        let warnings = config(&source).warnings;
        let messages = warnings.diagnostics().iter().map(|found| &*found.message);
        assert_eq!(messages.collect::<Vec<_>>(), [warning]);
    }
    let typed = "[jobs.x]\nschedule = \"@daily\"\nhttp = { url = \"http://h\", body = \"{}\", headers = { content-type = \"application/json\" } }";
    assert!(config(typed).warnings.is_empty());
}

#[test]
fn what_is_filled_in_is_never_shown() {
    let wrong = "[jobs.x]\nschedule = \"@daily\"\nhttp = { url = \"${SECRET}\", method = \"${SECRET}\", headers = { A = \"${LINES}\" }, expect_status = \"${SECRET}\" }";
    let error = read(wrong).expect_err("none of them is right");
    assert_eq!(error.0.diagnostics().len(), 4, "{error}");
    assert!(!error.to_string().contains(SECRET), "{error}");

    let right = job(
        "http = { url = \"http://u:${SECRET}@h/${SECRET}\", body = \"${SECRET}\", headers = { A = \"${SECRET}\" } }",
    );
    assert!(!format!("{right:?}").contains(SECRET), "{right:?}");
}

#[test]
fn of_a_url_user_and_query_may_be_secrets() {
    for (written, shown) in [
        ("\"http://h/a\"", "\"http://h/a\""),
        ("\"http://u:p@h/a@b?c=d\"", "\"http://***@h/a@b?****"),
        ("\"http://h?a@b\"", "\"http://h?****"),
        ("\"u@h\"", "**@h\""),
        ("\"http://h#a\"", "\"http://h#**"),
    ] {
        let mut text = written.to_owned();
        for part in secret_parts_of_url(written).into_iter().rev() {
            let stars = "*".repeat(part.len());
            text.replace_range(part, &stars);
        }
        assert_eq!(text, shown, "{written}");
    }
}
