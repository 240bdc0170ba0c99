//! One HTTP request, for the process that is made for it.
//!
//! The process may be killed at any instant, and that is how a request is cancelled: when it
//! is gone, so is its connection. It is forked from a process of one thread, and relies on no
//! thread, runtime or lock of before.
//!
//! Must never: follow a redirect, skip the verification of a certificate, show what may be a
//! secret, or hold a whole answer in memory.

use std::fmt;
use std::io::Write;

use serde::{Deserialize, Serialize};

#[cfg(feature = "http")]
mod client;
#[cfg(all(test, feature = "http"))]
mod tests;

/// What stands in place of a secret.
const REDACTED: &str = "***";

/// A request with everything filled in.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HttpCall {
    /// In capitals.
    pub(crate) method: String,
    /// With user and password, where it has them.
    pub(crate) url: String,
    /// Whether the path of the URL may be a secret too.
    pub(crate) path_is_secret: bool,
    /// All that are sent but those of HTTP itself; names are unique, letter case aside.
    pub(crate) headers: Vec<(String, String)>,
    /// None at all is not the same as an empty one.
    pub(crate) body: Option<String>,
    /// From and to, both included: an answer's status is to be in one of these.
    pub(crate) expect_status: Vec<(u16, u16)>,
}

impl fmt::Debug for HttpCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Taken apart, so that a new field has to be thought of here.
        let Self {
            method,
            url: _,
            path_is_secret: _,
            headers,
            body,
            expect_status,
        } = self;
        let names: Vec<&String> = headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("HttpCall")
            .field("method", method)
            .field("url", &REDACTED)
            .field("headers", &names)
            .field("body", &body.as_ref().map(|_| REDACTED))
            .field("expect_status", expect_status)
            .finish()
    }
}

/// Makes the request, and writes the answer's status line and then its body to `answer`, as
/// they come. Blocks until the answer is complete. An error says what went wrong, where, and
/// what to do: the answer's status is not one of those expected, or there was no answer, or not
/// all of it.
///
/// Only connecting has a limit of its own ([`crate::http_client::CONNECT_LIMIT`]): whoever started this
/// process ends it when its time is up.
#[cfg(feature = "http")]
pub(crate) fn perform(call: &HttpCall, answer: &mut impl Write) -> Result<(), String> {
    client::perform(call, answer)
}

/// As it is where this crate was built without its feature `http`.
#[cfg(not(feature = "http"))]
pub(crate) fn perform(_: &HttpCall, _: &mut impl Write) -> Result<(), String> {
    Err("this program was built without HTTP: build it with the feature `http`".to_owned())
}
