//! Makes the request with ureq: blocking, HTTP/1.1, TLS by rustls.

use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write};

use ureq::http::{Request, Response, header};
use ureq::{Agent, Body};
use url::Url;

use super::HttpCall;
use crate::http_client::{Place, agent, bare, basic};

/// What is read, and written, of an answer at a time.
const CHUNK_LENGTH: usize = 16 * 1024;

/// Methods whose request announces its length even where it is nothing (RFC 9110, 8.6).
const ANNOUNCING: [&str; 3] = ["POST", "PUT", "PATCH"];

pub(super) fn perform(call: &HttpCall, answer: &mut impl Write) -> Result<(), String> {
    let url = Url::parse(&call.url).map_err(|error| {
        format!("the URL of the job makes no sense once it is filled in ({error}): see `url`")
    })?;
    let place = Place::of(&call.method, &url);
    let agent = agent(&url, None)?;
    let request = request(call, &url)
        .map_err(|error| format!("{place} can't be asked for: {error}; see the job's `http`"))?;
    let mut response = send(&agent, call, request).map_err(|error| place.explain(&error))?;
    let status = response.status();
    let passed_on = pass_on(&mut response, &place, answer);
    let expected = call.expect_status.iter();
    if !expected
        .into_iter()
        .any(|(from, to)| (*from..=*to).contains(&status.as_u16()))
    {
        return Err(unexpected(call, &url, &place, &response));
    }
    passed_on
}

/// All but the body.
fn request(call: &HttpCall, url: &Url) -> Result<Request<()>, String> {
    let bare = bare(url)?;
    let builder = Request::builder().method(&*call.method).uri(bare.as_str());
    let mut request = builder.body(()).map_err(|error| error.to_string())?;
    // ureq keeps the letters of a name with a request that is built its own way, for methods
    // that it knows. Not all servers know that case does not matter.
    let mut spelt = ureq::get("http://localhost");
    for (name, value) in &call.headers {
        spelt = spelt.header_raw(name, value.as_bytes());
    }
    let names_authorization =
        |(name, _): &(String, String)| name.eq_ignore_ascii_case(header::AUTHORIZATION.as_str());
    if let Some(basic) = basic(url).filter(|_| !call.headers.iter().any(names_authorization)) {
        spelt = spelt.header_raw("Authorization", basic.as_bytes());
    }
    let (Some(headers), Some(extensions)) = (spelt.headers_ref(), spelt.extensions_ref()) else {
        return Err("one of its headers can't be sent".to_owned());
    };
    *request.headers_mut() = headers.clone();
    *request.extensions_mut() = extensions.clone();
    Ok(request)
}

fn send(
    agent: &Agent,
    call: &HttpCall,
    request: Request<()>,
) -> Result<Response<Body>, ureq::Error> {
    match &call.body {
        Some(body) => agent.run(request.map(|()| body.as_bytes())),
        None if ANNOUNCING.contains(&&*call.method) => agent.run(request.map(|()| b"".as_slice())),
        None => agent.run(request),
    }
}

/// Writes an answer as it comes.
fn pass_on(
    response: &mut Response<Body>,
    place: &Place,
    answer: &mut impl Write,
) -> Result<(), String> {
    let (version, status) = (response.version(), response.status());
    let reason = status.canonical_reason().unwrap_or_default();
    let line = format!("{version:?} {} {reason}", status.as_u16());
    let unheard = |error| format!("{place} answered, and nobody took down what: {error}");
    writeln!(answer, "{}", line.trim_end()).map_err(unheard)?;
    let mut body = response.body_mut().as_reader();
    let mut chunk = [0; CHUNK_LENGTH];
    let mut length: u64 = 0;
    loop {
        match body.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => {
                answer.write_all(&chunk[..read]).map_err(unheard)?;
                length += read as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(place.broke_off(status.as_u16(), length, error)),
        }
    }
    answer.flush().map_err(unheard)
}

/// Why a status is no success, and what may be done about it.
fn unexpected(call: &HttpCall, url: &Url, place: &Place, response: &Response<Body>) -> String {
    let status = response.status();
    let reason = status
        .canonical_reason()
        .map_or(String::new(), |reason| format!(" {reason}"));
    let ranges = call.expect_status.iter();
    let expected: Vec<String> = ranges
        .map(|(from, to)| match from == to {
            true => from.to_string(),
            false => format!("{from}-{to}"),
        })
        .collect();
    let mut why = format!(
        "{place} answered {}{reason}, expected was {}",
        status.as_u16(),
        expected.join(" or ")
    );
    if !status.is_redirection() {
        return why;
    }
    let location = response.headers().get(header::LOCATION);
    let target = location.and_then(|location| url.join(location.to_str().ok()?).ok());
    // Writing to a string can't fail.
    let _ = match target {
        Some(target) => write!(
            why,
            "; it points to {}: redirects are not followed, so put the address that answers into `url`, or its status into `expect_status`",
            shown(&target, call.path_is_secret)
        ),
        None => write!(
            why,
            "; redirects are not followed: put this status into `expect_status` if it is a success"
        ),
    };
    why
}

/// A URL without user and query, and without its path if that may hold a secret.
fn shown(url: &Url, path_is_secret: bool) -> String {
    let origin = url.origin().ascii_serialization();
    match path_is_secret {
        true => origin,
        false => format!("{origin}{}", url.path()),
    }
}
