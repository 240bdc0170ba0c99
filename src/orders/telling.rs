//! What an order's answer means, in words and as JSON.

use serde::Serialize;
use utoipa::ToSchema;

use super::sending::{Request, Said};
use crate::config;
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{OrderAnswer, Outcome};

/// What became of an order.
pub(crate) enum Told {
    /// Done; what to say of it.
    Done(String),
    /// Not done, and what to do about it.
    Refused { message: String, hint: String },
}

/// Puts an answer into words. `names` are the jobs that there are, in ledger and table.
pub(crate) fn tell(request: Request<'_>, said: &Said, names: &[String]) -> Told {
    let job = &said.job;
    let done = |text: String| Told::Done(format!("{job}: {text}"));
    match &said.answer {
        OrderAnswer::Triggered { scheduled_at } => {
            done(format!("triggered as the occurrence of {scheduled_at}"))
        }
        OrderAnswer::Paused { since, by } => {
            // An earlier sending of this very order may have begun it.
            let own = *since == said.now || (said.again && by == request.by);
            done(match own {
                true => format!(
                    "paused: what falls due is skipped until `soloist resume {job}`; what runs goes on"
                ),
                false => format!("was paused already, since {since} by {by}"),
            })
        }
        OrderAnswer::Resumed { since: Some(since) } => done(format!(
            "resumed; what fell due since {since} stays skipped"
        )),
        OrderAnswer::Resumed { since: None } if said.again => done("is not paused any more".into()),
        OrderAnswer::Resumed { since: None } => done("was not paused".into()),
        OrderAnswer::Killed {
            scheduled_at,
            withdrawn: withdrawn @ 2..,
            ..
        } => done(format!(
            "{withdrawn} occurrences that waited for their turn are cancelled, the first of them that of {scheduled_at}; none had begun"
        )),
        OrderAnswer::Killed {
            scheduled_at,
            running: 0,
            ..
        } => done(format!(
            "the occurrence of {scheduled_at} ran nowhere at the moment and is cancelled"
        )),
        OrderAnswer::Killed {
            scheduled_at,
            running,
            ..
        } => {
            let attempts = match running {
                1 => "its running attempt is".to_owned(),
                more => format!("its {more} running attempts are"),
            };
            done(format!(
                "the occurrence of {scheduled_at} is to end: {attempts} told so"
            ))
        }
        OrderAnswer::Idle if said.again => done("nothing of it runs any more".into()),
        OrderAnswer::Idle | OrderAnswer::Unknown | OrderAnswer::Disabled | OrderAnswer::Full => {
            refusal(said, names)
        }
    }
}

/// That there is no such job, and what to do about it. `names` are the jobs that there are.
pub(crate) fn unknown<'n>(
    job: &JobName,
    names: impl IntoIterator<Item = &'n str>,
) -> (String, String) {
    let message = format!("no job is called `{job}`, neither in the ledger nor in a table here");
    let hint = match config::nearest(job.as_str(), names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "name the table that has it, `--config FILE`, or start a replica with it: the ledger then knows it".to_owned(),
    };
    (message, hint)
}

fn refusal(said: &Said, names: &[String]) -> Told {
    let job = &said.job;
    let (message, hint) = match said.answer {
        OrderAnswer::Disabled => (
            format!("`{job}` is disabled in the table: no replica would run it"),
            format!(
                "set `enabled = true` and restart the replicas, or run it here: `soloist run-once {job}`"
            ),
        ),
        OrderAnswer::Full => (
            format!("too many occurrences of `{job}` wait for their turn already"),
            "`soloist status` shows them: see that a replica runs them".to_owned(),
        ),
        OrderAnswer::Unknown => unknown(job, names.iter().map(String::as_str)),
        _ => (
            format!("nothing of `{job}` runs"),
            format!("`soloist history {job}` has what ran"),
        ),
    };
    Told::Refused { message, hint }
}

/// An order and its answer, as `--json` shows it.
#[derive(Serialize, ToSchema)]
#[schema(as = OrderAnswer)]
pub(crate) struct Wire {
    job: String,
    order: &'static str,
    by: String,
    /// It is done, or was done before.
    done: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scheduled_at: Option<String>,
    /// How many attempts were told to end.
    #[serde(skip_serializing_if = "Option::is_none")]
    running: Option<u32>,
    /// How many that only waited for their turn were withdrawn, the first of them at
    /// `scheduled_at`.
    #[serde(skip_serializing_if = "Option::is_none")]
    withdrawn: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paused_since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paused_by: Option<String>,
    /// Why no live replica would start it now, where that is known: it waits until one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// How it ended, where that was waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
    /// The last that was told of it, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_words: Option<String>,
}

impl Wire {
    pub(crate) fn of(request: Request<'_>, said: &Said, told: &Told) -> Self {
        let mut wire = Self {
            job: said.job.to_string(),
            order: request.what.as_str(),
            by: request.by.to_owned(),
            done: matches!(told, Told::Done(_)),
            reason: match told {
                Told::Done(_) => None,
                Told::Refused { message, .. } => Some(message.clone()),
            },
            scheduled_at: None,
            running: None,
            withdrawn: None,
            paused_since: None,
            paused_by: None,
            note: None,
            outcome: None,
            last_words: None,
        };
        match &said.answer {
            OrderAnswer::Triggered { scheduled_at } => {
                wire.scheduled_at = Some(scheduled_at.to_string());
            }
            OrderAnswer::Killed {
                scheduled_at,
                running,
                withdrawn,
            } => {
                wire.scheduled_at = Some(scheduled_at.to_string());
                wire.running = Some(*running);
                wire.withdrawn = Some(*withdrawn).filter(|count| *count > 0);
            }
            OrderAnswer::Paused { since, by } => {
                wire.paused_since = Some(since.to_string());
                wire.paused_by = Some(by.clone());
            }
            OrderAnswer::Resumed { since } => {
                wire.paused_since = since.as_ref().map(ToString::to_string);
            }
            _ => {}
        }
        wire
    }

    pub(crate) fn noted(mut self, note: Option<String>) -> Self {
        self.note = note;
        self
    }

    pub(crate) fn ended(mut self, outcome: Option<Outcome>, last_words: Option<String>) -> Self {
        self.outcome = outcome.map(Outcome::as_str);
        self.last_words = last_words;
        self
    }
}

#[cfg(test)]
mod tests;
