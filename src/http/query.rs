//! What stands behind the `?` of an address: parameters that the address knows, each once. What is
//! wrong with one is told by its name and what it may be, and never by what was sent, which may be
//! what somebody took for the place of a token.
//!
//! Must never: pass over a parameter. One that was ignored would be one that was believed.

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;

use super::problem::{Kind, Problem};
use crate::scheduler::time::Timestamp;

/// What of a parameter's name is shown.
const NAME_LIMIT: usize = 40;

/// What an address takes behind the `?`.
pub(super) trait Parameters: Sized {
    /// All of them.
    const NAMES: &'static [&'static str];

    /// Reads them, each of which is there once or not at all.
    fn read(given: &Given) -> Result<Self, Problem>;
}

/// Of an address that takes none.
pub(super) struct Nothing;

impl Parameters for Nothing {
    const NAMES: &'static [&'static str] = &[];

    fn read(_: &Given) -> Result<Self, Problem> {
        Ok(Self)
    }
}

/// What was given: names and what they are set to.
pub(super) struct Given(Vec<(String, String)>);

/// The parameters of a request, for its handler.
pub(super) struct Parameter<P>(pub(super) P);

impl<P: Parameters, S: Sync> FromRequestParts<S> for Parameter<P> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let Query(given) = Query::try_from_uri(&parts.uri)
            .map_err(|_| refused("what stands behind the `?` can't be read".to_owned()))?;
        let given = Given(given);
        given.check(P::NAMES)?;
        P::read(&given).map(Self)
    }
}

impl Given {
    fn check(&self, known: &[&str]) -> Result<(), Problem> {
        for (name, _) in &self.0 {
            if !known.contains(&name.as_str()) {
                return Err(unknown(name, known));
            }
            if self.0.iter().filter(|(other, _)| other == name).count() > 1 {
                return Err(refused(format!("`{name}` is there twice; send it once")));
            }
        }
        Ok(())
    }

    /// What a parameter is set to.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let mut found = self.0.iter().filter(|(given, _)| given == name);
        found.next().map(|(_, text)| text.as_str())
    }

    /// How many items are asked for, of this many at most.
    pub(super) fn limit(&self, most: usize) -> Result<Option<usize>, Problem> {
        let Some(text) = self.text("limit") else {
            return Ok(None);
        };
        let limit = text.parse().ok().filter(|limit| (1..=most).contains(limit));
        limit.map(Some).ok_or_else(|| {
            refused(format!(
                "`limit` is a number from 1 to {most}; `next` of an answer leads to more"
            ))
        })
    }
}

/// Reads an instant, which `name` stands for.
pub(super) fn instant(name: &str, text: &str) -> Result<Timestamp, Problem> {
    let parsed = text.parse::<jiff::Timestamp>();
    parsed.map(Timestamp::from).map_err(|_| {
        // A `+` behind a `?` is a blank.
        let cure = match text.contains(' ') {
            true => "; write the `+` of an offset as `%2B`, or take `Z`",
            false => "",
        };
        refused(format!(
            "`{name}` is an instant like 2026-11-20T22:00:00Z, not after {:.0}{cure}",
            jiff::Timestamp::MAX
        ))
    })
}

fn unknown(name: &str, known: &[&str]) -> Problem {
    let end = name.floor_char_boundary(NAME_LIMIT);
    let name = name[..end].escape_debug();
    let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
    let takes = match known.split_last() {
        None => "none".to_owned(),
        Some((only, [])) => format!("{only} alone"),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    };
    refused(format!(
        "`{name}` is no parameter of this address, which takes {takes}"
    ))
}

fn refused(detail: String) -> Problem {
    Problem::new(Kind::BadRequest, detail)
}
