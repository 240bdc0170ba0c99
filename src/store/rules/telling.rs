//! Whether people are told of an occurrence's end. It is decided in the step that writes the end
//! down, on the record of the job: one replica is told to tell them, whichever ended it, and all
//! know what was told before.
//!
//! ```text
//!             bad end                     bad end, `repeat` after the last news
//!   well ───────────────▶ told of ──────────────────┐
//!    ▲                      │  ▲                    │
//!    └── success: recovery ─┘  └────────────────────┘
//! ```
//!
//! A job that fails by turns is told of at most each [`QUIET`]: a failure that comes sooner after
//! one that was told waits for the next of its row, and is over without a word if there is none.
//!
//! Must never: keep an end from being written down, or change how.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::record::{Decision, Record, State};
use super::step::Step;
use super::{Call, is_of_before, text};
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{
    ABANDONED_AFTER, AttemptDetail, Closing, Delivery, DeliveryStep, Occurrence, Outcome, RunId,
    TELLING_TTL, Telling, Told, Topic, Untold,
};
use crate::scheduler::time::Timestamp;

/// From news of a kind to the next of that kind, where the job was well in between.
const QUIET: Duration = Duration::from_secs(5 * 60);

/// News that a record keeps which people may not have got; older ones are dropped.
const NEWS_KEPT: usize = 4;

/// What people were told of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::store) struct Alert {
    /// The row of ends that did not succeed, while it lasts.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    row: Option<Row>,
    /// When people were told last of a failure.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    failure_at: Option<Timestamp>,
    /// When they were told last that something was missed.
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    missed_at: Option<Timestamp>,
    /// The last attempt that people were told of because it takes long.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    slow: Option<Slow>,
    /// The newest news, for the request that is sent again; and those of which it isn't known that
    /// people got them.
    #[serde(rename = "l", default, skip_serializing_if = "Vec::is_empty")]
    news: Vec<News>,
}

/// Ends in a row that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// The first of them.
    #[serde(rename = "s")]
    since: Timestamp,
    /// When that was written down.
    #[serde(rename = "b")]
    begun_at: Timestamp,
    #[serde(rename = "n")]
    count: u32,
    /// People were told of the row.
    #[serde(rename = "t", default, skip_serializing_if = "text::is_default")]
    told: bool,
}

/// An attempt that takes long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Slow {
    #[serde(rename = "r")]
    by: RunId,
    /// When people were told.
    #[serde(rename = "a")]
    at: Timestamp,
}

/// What people are told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct News {
    #[serde(rename = "r")]
    by: RunId,
    #[serde(rename = "a")]
    scheduled_at: Timestamp,
    #[serde(rename = "o")]
    outcome: Outcome,
    #[serde(rename = "t")]
    told: Told,
    /// The names of those that are to be told, until they are: whoever takes the news over may
    /// have a table without the job.
    #[serde(rename = "w", default, skip_serializing_if = "Vec::is_empty")]
    to: Vec<String>,
    /// Until when its teller is waited for; none when people were told.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    due: Option<Timestamp>,
}

/// Who asks, of which job, and what people want to be told of it.
#[derive(Clone, Debug)]
pub(super) struct Audience {
    pub(super) by: RunId,
    pub(super) job: JobName,
    pub(super) telling: Telling,
}

#[cfg(test)]
impl Alert {
    /// One of which no field has its default.
    pub(super) fn sample() -> Self {
        let at = Timestamp::from_millis;
        Self {
            row: Some(Row {
                since: at(1),
                begun_at: at(2),
                count: 3,
                told: true,
            }),
            failure_at: Some(at(4)),
            missed_at: Some(at(5)),
            slow: Some(Slow {
                by: RunId::new(uuid::Uuid::from_u128(9)),
                at: at(10),
            }),
            news: vec![News {
                by: RunId::new(uuid::Uuid::from_u128(6)),
                scheduled_at: at(7),
                outcome: Outcome::TimedOut,
                told: Told {
                    topic: Topic::Failure,
                    since: at(1),
                    count: 3,
                },
                to: vec!["ops".to_owned()],
                due: Some(at(8)),
            }],
        }
    }
}

impl Alert {
    /// What there is to tell of an end, and what of it is known from now on.
    fn hear(&mut self, closing: &Closing, telling: &Telling, now: Timestamp) -> Option<Told> {
        let topic = Topic::of(closing.outcome, closing.detail.cause)?;
        if topic == Topic::Recovery {
            let row = self.row.take().filter(|row| row.told)?;
            return telling.topics.has(topic).then_some(Told {
                topic,
                since: row.since,
                count: row.count,
            });
        }
        let at = match topic {
            Topic::Failure => &mut self.failure_at,
            _ => &mut self.missed_at,
        };
        let row = self.row.get_or_insert(Row {
            since: closing.occurrence.scheduled_at,
            begun_at: now,
            count: 0,
            told: false,
        });
        row.count = row.count.saturating_add(1);
        let is_quiet = at.is_some_and(|at| {
            let wait = match at >= row.begun_at {
                true => telling.repeat,
                false => telling.repeat.min(QUIET),
            };
            now.saturating_since(at) < wait && !is_of_before(at, now)
        });
        if is_quiet || !telling.topics.has(topic) {
            return None;
        }
        *at = Some(now);
        row.told = true;
        Some(Told {
            topic,
            since: row.since,
            count: row.count,
        })
    }

    /// What the same request was told before.
    fn again(&self, by: RunId) -> Option<&News> {
        self.news.iter().rev().find(|news| news.by == by)
    }

    /// Keeps news until people were told, and the newest of them.
    fn keep(&mut self, news: News) {
        self.news.retain(|one| one.due.is_some());
        self.news.push(news);
        if self.news.len() > NEWS_KEPT {
            self.news.remove(0);
        }
    }

    /// Has news seen again that nobody told while all replicas were away: a look goes back by
    /// [`ABANDONED_AFTER`] at most, and a record with such news would be hidden from it with all
    /// else that the job waits for. So would it be by news that a clock put far ahead.
    pub(super) fn wake(&mut self, now: Timestamp) {
        for due in self.news.iter_mut().filter_map(|news| news.due.as_mut()) {
            if *due + ABANDONED_AFTER / 2 <= now || is_of_before(*due, now + TELLING_TTL) {
                *due = now;
            }
        }
    }

    /// When somebody should look whether people were told.
    pub(super) fn agenda(&self) -> Option<Timestamp> {
        self.news.iter().filter_map(|news| news.due).min()
    }

    /// News whose teller was not heard of until `now`.
    pub(in crate::store) fn untold(
        &self,
        job: &JobName,
        now: Timestamp,
    ) -> impl Iterator<Item = Untold> {
        self.news.iter().filter_map(move |news| {
            let due = news.due.filter(|due| *due <= now)?;
            Some(Untold {
                occurrence: Occurrence {
                    job: job.clone(),
                    scheduled_at: news.scheduled_at,
                },
                by: news.by,
                outcome: news.outcome,
                told: news.told,
                to: news.to.clone(),
                due,
            })
        })
    }

    fn delivery(&mut self, delivery: &Delivery, now: Timestamp) -> bool {
        let is_it = |news: &&mut News| news.by == delivery.by && news.told.topic == delivery.topic;
        let Some(news) = self.news.iter_mut().find(is_it) else {
            return false;
        };
        let Some(due) = news.due else {
            return false;
        };
        news.due = match delivery.step {
            DeliveryStep::Done => {
                news.to.clear();
                None
            }
            DeliveryStep::GoesOn => Some(now + TELLING_TTL),
            DeliveryStep::TakenOver { due: seen } if seen == due => Some(now + TELLING_TTL),
            DeliveryStep::TakenOver { .. } | DeliveryStep::Slow { .. } => return false,
        };
        true
    }

    /// Whether people are to be told of an attempt that takes long.
    fn slow(&mut self, by: RunId, repeat: Duration, now: Timestamp) -> bool {
        if let Some(slow) = self.slow.as_ref().filter(|slow| slow.by != by) {
            let is_quiet = now.saturating_since(slow.at) < repeat && !is_of_before(slow.at, now);
            if is_quiet {
                return false;
            }
        }
        self.slow = Some(Slow { by, at: now });
        true
    }
}

impl Call<'_> {
    /// See [`super::super::Store::deliver`].
    pub(in crate::store) fn deliver(
        &mut self,
        record: Option<&Record>,
        delivery: &Delivery,
    ) -> Decision<bool> {
        let mut step = Step::begin(self, record);
        let is_so = step.deliver(delivery);
        step.decide(is_so)
    }
}

impl Step<'_, '_> {
    fn deliver(&mut self, delivery: &Delivery) -> bool {
        let now = self.now();
        let DeliveryStep::Slow { repeat } = delivery.step else {
            let alert = self.record.alert.as_mut();
            return alert.is_some_and(|alert| alert.delivery(delivery, now));
        };
        // A replica that stood still may not know that its attempt is over.
        let slots = self.record.current.iter().flat_map(|one| &one.slots);
        let mut running = slots.filter(|slot| slot.state == State::Running);
        running.any(|slot| slot.run_id == delivery.by) && {
            let alert = self.record.alert.get_or_insert_with(Alert::default);
            alert.slow(delivery.by, repeat, now)
        }
    }

    /// Says who listens. Without this nobody is told anything.
    pub(super) fn tell_people(&mut self, job: &JobName, by: RunId, telling: Option<&Telling>) {
        self.audience = telling.map(|telling| Audience {
            by,
            job: job.clone(),
            telling: telling.clone(),
        });
    }

    /// The current occurrence is over, by the line that was written last.
    pub(super) fn closed_current(&mut self, scheduled_at: Timestamp, outcome: Outcome) {
        self.closed.push((scheduled_at, outcome));
        self.close_line(None, Some(outcome));
    }

    /// What the line that was written last stands for is over: an occurrence, or the stretch of
    /// time that begins after that instant. `outcome` where the line's is not all of it.
    pub(super) fn close_line(&mut self, after: Option<Timestamp>, outcome: Option<Outcome>) {
        let (Some(audience), Some(line)) = (&self.audience, self.lines.last()) else {
            return;
        };
        let outcome = outcome.unwrap_or(line.outcome);
        let detail = match outcome == line.outcome {
            true => line.detail.clone(),
            false => AttemptDetail {
                shard: line.detail.shard,
                ..AttemptDetail::reason(format!("another of its shards {}", in_words(outcome)))
            },
        };
        let closing = Closing {
            by: audience.by,
            occurrence: Occurrence {
                job: audience.job.clone(),
                scheduled_at: line.scheduled_at,
            },
            after,
            outcome,
            attempt: line.attempt,
            run_id: (line.attempt > 0).then_some(line.run_id),
            replica: line.replica.clone(),
            started_at: line.started_at,
            ended_at: line.ended_at,
            detail,
            told: None,
        };
        self.closings.push(closing);
    }

    /// The request was heard before, and what it closed is told again.
    pub(super) fn close_again(
        &mut self,
        scheduled_at: Timestamp,
        outcome: Outcome,
        attempt: u32,
        detail: &AttemptDetail,
    ) {
        let Some(audience) = &self.audience else {
            return;
        };
        let alert = self.record.alert.as_ref();
        let news = alert.and_then(|alert| alert.again(audience.by));
        let told = news.filter(|news| news.scheduled_at == scheduled_at);
        let closing = Closing {
            by: audience.by,
            occurrence: Occurrence {
                job: audience.job.clone(),
                scheduled_at,
            },
            after: None,
            outcome,
            attempt,
            run_id: (attempt > 0).then_some(audience.by),
            replica: self.call.caller.replica.name.clone(),
            started_at: self.now(),
            ended_at: self.now(),
            detail: detail.clone(),
            told: told.map(|news| news.told),
        };
        self.closings_again.push(closing);
    }

    /// What was closed, with what people are to be told of it.
    pub(super) fn take_closings(&mut self) -> Vec<Closing> {
        let Some(audience) = self.audience.take() else {
            return Vec::new();
        };
        let mut closings = std::mem::take(&mut self.closings);
        if closings.is_empty() {
            let again = std::mem::take(&mut self.closings_again);
            return again;
        }
        let now = self.now();
        let mut alert = self.record.alert.take().unwrap_or_default();
        for closing in &mut closings {
            closing.told = alert.hear(closing, &audience.telling, now);
            if let Some(told) = closing.told {
                alert.keep(News {
                    by: audience.by,
                    scheduled_at: closing.occurrence.scheduled_at,
                    outcome: closing.outcome,
                    told,
                    to: audience.telling.to.to_vec(),
                    due: Some(now + TELLING_TTL),
                });
            }
        }
        self.record.alert = (alert != Alert::default()).then_some(alert);
        closings
    }

    /// A claim that came to nothing, and is sent again, comes to nothing again: what it closed is
    /// told again.
    pub(super) fn recall_news(&mut self) {
        let audience = self.audience.as_ref();
        let alert = self.record.alert.as_ref();
        let Some((audience, alert)) = audience.zip(alert) else {
            return;
        };
        if let Some(news) = alert.again(audience.by).cloned() {
            let detail = AttemptDetail::default();
            self.close_again(news.scheduled_at, news.outcome, 0, &detail);
        }
    }
}

fn in_words(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::TimedOut => "timed out",
        Outcome::Lost => "was lost",
        Outcome::Cancelled => "was cancelled",
        Outcome::Missed => "was missed",
        _ => "failed",
    }
}

#[cfg(test)]
mod tests;
