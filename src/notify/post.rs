//! Requests of webhooks and pings: one try each.
//!
//! A webhook is signed as Standard Webhooks has it: `webhook-id`, `webhook-timestamp` and
//! `webhook-signature: v1,BASE64(HMAC-SHA256(secret, "ID.TIMESTAMP.BODY"))`.
//!
//! Must never: follow a redirect, which would take signature and body elsewhere; or read more of
//! an answer than its status and headers.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::hmac;
use ureq::http::{Request, Response, header};
use ureq::{Agent, Body};
use url::Url;

use super::message::{Message, Teller};
use super::trouble::{Again, Trouble};
use crate::config::Webhook;
use crate::http_client::{Place, agent, bare, basic};
use crate::scheduler::job::JobName;
use crate::scheduler::request::Template;
use crate::scheduler::time::Timestamp;

/// How long one try may take, from the look for an address to the headers of the answer.
const TRY_LIMIT: Duration = Duration::from_secs(10);

/// Statuses below 500 that may be others the next time: time-out, too early, too many.
const PASSING: [u16; 3] = [408, 425, 429];

/// Posts a message.
pub(super) fn webhook(
    webhook: &Webhook,
    message: &Message,
    teller: &Teller,
    now: Timestamp,
) -> Result<(), Trouble> {
    let url = filled(&webhook.url, &message.job)?;
    let body = message.json(teller);
    let mut headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
    headers.extend(signature(
        webhook.secret.as_deref(),
        &message.id(),
        &body,
        now,
    ));
    let own = webhook.headers.iter();
    headers.extend(own.map(|(name, value)| (name.clone(), fill(value, &message.job))));
    request(&url, "POST", &headers, Some(body), now)
}

/// The headers by which a receiver knows a message, and who sent it.
fn signature(secret: Option<&[u8]>, id: &str, body: &str, now: Timestamp) -> Vec<(String, String)> {
    let timestamp = now.as_second();
    let mut headers = vec![
        ("webhook-id".to_owned(), id.to_owned()),
        ("webhook-timestamp".to_owned(), timestamp.to_string()),
    ];
    if let Some(secret) = secret {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let tag = hmac::sign(&key, format!("{id}.{timestamp}.{body}").as_bytes());
        let signature = format!("v1,{}", BASE64_STANDARD.encode(tag));
        headers.push(("webhook-signature".to_owned(), signature));
    }
    headers
}

/// Tells a dead-man's switch what happened: `step` is added to the path, and the attempt's id to
/// the query.
pub(super) fn ping(
    url: &Template,
    job: &JobName,
    step: Option<&str>,
    run_id: Option<&str>,
    output: Option<String>,
    now: Timestamp,
) -> Result<(), Trouble> {
    let url = ping_url(filled(url, job)?, step, run_id);
    let method = if output.is_some() { "POST" } else { "GET" };
    let headers = match output {
        Some(_) => vec![(
            "Content-Type".to_owned(),
            "text/plain; charset=utf-8".to_owned(),
        )],
        None => Vec::new(),
    };
    request(&url, method, &headers, output, now)
}

fn ping_url(mut url: Url, step: Option<&str>, run_id: Option<&str>) -> Url {
    if let (Some(step), Ok(mut path)) = (step, url.path_segments_mut()) {
        path.pop_if_empty().push(step);
    }
    if let Some(run_id) = run_id {
        url.query_pairs_mut().append_pair("rid", run_id);
    }
    url
}

fn fill(template: &Template, job: &JobName) -> String {
    template.fill(|_| job.as_str().to_owned())
}

fn filled(template: &Template, job: &JobName) -> Result<Url, Trouble> {
    let wrong =
        |why| Trouble::lasting(format!("its address is no URL once it is filled in: {why}"));
    Url::parse(&fill(template, job)).map_err(wrong)
}

fn request(
    url: &Url,
    method: &str,
    headers: &[(String, String)],
    body: Option<String>,
    now: Timestamp,
) -> Result<(), Trouble> {
    let place = Place::of(method, url);
    let agent = agent(url, Some(TRY_LIMIT)).map_err(Trouble::passing)?;
    let asked = |why: String| Trouble::lasting(format!("{place} can't be asked: {why}"));
    let mut request = Request::builder()
        .method(method)
        .uri(bare(url).map_err(asked)?.as_str());
    let basic = basic(url).map(|basic| ("Authorization".to_owned(), basic));
    for (name, value) in headers.iter().chain(&basic) {
        request = request.header(name, value);
    }
    let sent = send(&agent, request, body).map_err(|why| asked(why.to_string()))?;
    let response = sent.map_err(|error| Trouble::passing(place.explain(&error)))?;
    judge(&place, &response, now)
}

/// Sends a request that can be made; there may be no answer to it.
fn send(
    agent: &Agent,
    request: ureq::http::request::Builder,
    body: Option<String>,
) -> Result<Result<Response<Body>, ureq::Error>, ureq::http::Error> {
    Ok(match body {
        Some(body) => agent.run(request.body(body)?),
        None => agent.run(request.body(())?),
    })
}

/// Whether an answer says that the message was taken.
fn judge(place: &Place, response: &Response<Body>, now: Timestamp) -> Result<(), Trouble> {
    let status = response.status();
    let code = status.as_u16();
    let reason = status.canonical_reason().unwrap_or_default();
    let cause = format!("{place} answered {code} {reason}")
        .trim_end()
        .to_owned();
    match code {
        200..=299 => Ok(()),
        300..=399 => Err(Trouble::lasting(format!(
            "{cause}: redirects are not followed, so put the address that answers into the table"
        ))),
        _ if code >= 500 || PASSING.contains(&code) => Err(Trouble {
            cause,
            again: retry_after(response, now).map_or(Again::Yes, Again::After),
        }),
        401 | 403 => Err(Trouble::lasting(format!(
            "{cause}: check secret and headers of the target"
        ))),
        404 | 410 => Err(Trouble::lasting(format!(
            "{cause}: check the address in the table"
        ))),
        _ => Err(Trouble::lasting(cause)),
    }
}

/// After how long the receiver wants to be asked again (RFC 9110, 10.2.3).
fn retry_after(response: &Response<Body>, now: Timestamp) -> Option<Duration> {
    let text = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?;
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = jiff::fmt::rfc2822::parse(text).ok()?;
    Some(Timestamp::from(at.timestamp()).saturating_since(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_that_of_the_specification() {
        // The example of standardwebhooks.com.
        let secret = BASE64_STANDARD
            .decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
            .unwrap();
        let headers = signature(
            Some(&secret),
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "{\"test\": 2432232314}",
            Timestamp::from_second(1_614_265_330),
        );
        assert_eq!(
            headers[2].1,
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
    }

    #[test]
    fn a_receiver_says_how_long_to_wait_in_seconds_or_by_a_date() {
        let now = Timestamp::from_second(784_111_777);
        for (text, expected) in [
            ("120", Some(120)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("soon", None),
            ("-1", None),
        ] {
            let response = Response::builder().header("Retry-After", text);
            let response = response.body(Body::builder().data("")).unwrap();
            let wait = retry_after(&response, now);
            assert_eq!(wait, expected.map(Duration::from_secs), "{text}");
        }
    }

    #[test]
    fn what_happened_is_added_to_the_path_of_a_ping_before_its_query() {
        for (base, expected) in [
            ("https://h/uuid", "https://h/uuid/start?rid=1"),
            ("https://h/uuid/", "https://h/uuid/start?rid=1"),
            (
                "https://h/k/s?create=1",
                "https://h/k/s/start?create=1&rid=1",
            ),
        ] {
            let url = ping_url(Url::parse(base).unwrap(), Some("start"), Some("1"));
            assert_eq!(url.as_str(), expected);
        }
        let url = ping_url(Url::parse("https://h/u").unwrap(), None, None);
        assert_eq!(url.as_str(), "https://h/u");
    }
}
