//! How a server that is behind, or was started again, comes to hold what the others hold: by what
//! differs, with the lines of the ledger.
//!
//! ```text
//!  behind ─▶ approach, while all go on: lines over; much that differs is put aside
//!              │
//!              ▼ under a ballot that it promised, and a majority of the others
//!            the others take a step that changes nothing ─▶ what differs since: lines, then
//!            all the rest in one script ─▶ it has taken that step, and counts
//! ```
//!
//! A server that counts goes in one script from the step that it has to the last one: whoever
//! mends it may die at any moment, and it counts all the time. One that doesn't count may be
//! filled in parts, beside what it holds, which stays until it is replaced at once.
//!
//! # Why this is safe
//!
//! What a majority has taken can be undone by nobody, so that a server which only missed it may
//! learn it at any time: its promises hold as before. One that was *started again* may have
//! forgotten a promise, or a step:
//!
//! - A step with ballot `c` that it forgot had been prepared by a majority before. Hence a
//!   majority of the *others* takes a step with a ballot `b` that was prepared after the restart,
//!   and of these one was among those who promised `c`: it promises `b` only if that is higher,
//!   and shows what came of `c`. The step `b` comes after all that was forgotten.
//! - A promise of `c` that it forgot, of a proposer who is still collecting others, is not
//!   superseded if `c` is higher than `b`: once it counts, a step below `c` could be taken with
//!   its help, and be overlooked by who knows `c`. Hence promises count only together where all
//!   were given within [`PROMISED_WITHIN`], and `b` is prepared no sooner than
//!   [`REJOINS_AFTER`] after the restart was seen: what was promised to `c` by then was promised
//!   before `b`, and keeps `b` from being taken, or `b` is higher. This hangs on the proposer's
//!   timer going on while its process is frozen.
//! - It promised `b` itself, as the process that it is when it adopts: what it promised since,
//!   or another restart, has the script refuse.
//!
//! What is not known to be taken by a majority is brought to others only by who was promised a
//! ballot by a majority, and under that one (see [`super::forming::foundation`]).
//!
//! Must never: have a server count again that holds less than a majority had taken when it began
//! to adopt, or stop counting half-way; take part in a ledger whose majority was lost.

mod difference;
mod lines;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Weak;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use self::difference::{Difference, Held, Values};
use super::super::RedisStore;
use super::super::back_off::BackOff;
use super::super::fault::Fault;
use super::super::keys::MARK;
use super::super::reply::{Misread, text};
use super::super::request::{self, Adopted, Adoption, Peace};
use super::forming::{View, foundation};
use super::round::Round;
use super::{Ended, Shared};
use crate::store::draft::Changes;
use crate::store::engine::{Room, Terms};

/// Within how long the promises of a majority have to be given to count together.
pub(super) const PROMISED_WITHIN: Duration = Duration::from_millis(500);

/// How long a server that was started again waits for those who it may have promised something.
const REJOINS_AFTER: Duration = Duration::from_millis(600);

const _: () = assert!(REJOINS_AFTER.as_millis() > PROMISED_WITHIN.as_millis());

/// How long at most a mender keeps the others waiting.
const UNDER_BALLOT: Duration = Duration::from_millis(500);

/// Up to as many values are written under the ballot alone.
const FEW: usize = 200;

/// Up to as many values go over in one script, where there is a choice.
const IN_ONE_GO: usize = 20_000;

/// How many values are put aside at once: no script keeps a server for long.
const VALUES_AT_ONCE: usize = 2000;

/// How long none is mended after some were.
const MENDED_AGAIN: Duration = Duration::from_millis(200);

/// All who ask notice who is behind, and one mends it: the others find it mended.
const SECOND_LOOK: Duration = Duration::from_millis(150);

/// Mends servers as they are named, and again where others got ahead.
pub(super) async fn mend(shared: Weak<Shared>, mut named: mpsc::Receiver<usize>) {
    let mut behind = BTreeSet::new();
    loop {
        if behind.is_empty() {
            match named.recv().await {
                Some(number) => behind.insert(number),
                None => return,
            };
        }
        while let Ok(number) = named.try_recv() {
            behind.insert(number);
        }
        let Some(shared) = shared.upgrade() else {
            return;
        };
        for number in std::mem::take(&mut behind) {
            let (store, server) = (&shared.place, &shared.members[number].place);
            match shared.mend(number).await {
                Ok(Some(Adopting { values, lines })) => {
                    tracing::info!(
                        store,
                        server,
                        values,
                        lines,
                        "it has caught up with the others"
                    );
                }
                Ok(None) => {}
                Err(Ended::Outbid) => {
                    behind.insert(number);
                }
                Err(Ended::Failed(error)) => {
                    tracing::debug!(store, server, %error, "it has not caught up");
                }
            }
        }
        drop(shared);
        sleep(MENDED_AGAIN).await;
    }
}

/// Sleeps for a part of `whole`, by chance.
async fn by_chance(whole: Duration) {
    sleep(BackOff::new(whole, whole).pause()).await;
}

/// How much a server has adopted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Adopting {
    pub(super) values: usize,
    pub(super) lines: usize,
}

/// A server that is behind.
#[derive(Debug, PartialEq, Eq)]
struct Behind {
    process: String,
    counts: bool,
    /// Of its own last step.
    ballot: String,
    /// One of those who have the last step.
    source: usize,
}

/// A server that is about to adopt, and what it has already.
pub(super) struct Approached {
    process: String,
    counts: bool,
    /// What it holds.
    here: Held,
    /// What the others held when its lines were brought; it has put that aside, if there is a
    /// mark.
    known: Values,
    mark: Option<String>,
    adopting: Adopting,
}

impl Shared {
    async fn mend(&self, number: usize) -> Result<Option<Adopting>, Ended> {
        match self.approach(number).await? {
            Some(approached) => self.join(number, &approached).await.map(Some),
            None => Ok(None),
        }
    }

    /// Looks who is behind. None where it isn't, or where nobody can tell.
    async fn look_behind(&self, number: usize) -> Result<Option<Behind>, Ended> {
        let round = self.look_in(&nothing()).await?;
        if round.formed.after_loss || !round.behind().contains(&number) {
            return Ok(None);
        }
        let source = round.formed.newest(&round.views).next();
        let source = source.map(|at| round.views[at].number);
        let view = round.views.into_iter().find(|view| view.number == number);
        Ok(view.zip(source).map(|(view, source)| Behind {
            counts: view.counts(),
            ballot: view.standing.ballot,
            process: view.shown.process,
            source,
        }))
    }

    /// Brings a server near to what the others hold, while they go on.
    pub(super) async fn approach(&self, number: usize) -> Result<Option<Approached>, Ended> {
        let target = &*self.members[number];
        let Some(mut behind) = self.look_behind(number).await? else {
            return Ok(None);
        };
        let mark = failed(mark(target).await)?;
        if !behind.counts {
            sleep(REJOINS_AFTER).await;
        }
        by_chance(SECOND_LOOK).await;
        let Some(again) = self.look_behind(number).await? else {
            return Ok(None);
        };
        if again.process == behind.process && again.ballot != behind.ballot {
            // It is only slower than the others: it takes one step after the other.
            return Ok(None);
        }
        // Somebody else is about it, or it was started once more.
        if again.process != behind.process || failed(self::mark(target).await)? != mark {
            return Err(Ended::Outbid);
        }
        behind = again;
        let Behind {
            process,
            counts,
            source,
            ..
        } = behind;
        let source = &*self.members[source];
        let both = futures_util::future::try_join(held(source), held(target)).await;
        let (there, here) = failed(both)?;
        if counts != here.counts(&process) || there.ballot.is_empty() {
            return Err(Ended::Outbid);
        }
        let difference = Difference::between(&there.values, &here.values);
        let mut adopting = Adopting::default();
        let mut mark = None;
        if !counts && difference.len() > FEW {
            let aside = failed(put_aside(target, &process, &there.values).await)?;
            let (aside, values) = aside.ok_or(Ended::Outbid)?;
            (mark, adopting.values) = (Some(aside), values);
        }
        adopting.lines = failed(lines::bring(source, target, difference.jobs()).await)?;
        Ok(Some(Approached {
            process,
            counts,
            here,
            known: there.values,
            mark,
            adopting,
        }))
    }

    /// Has a majority of the others take a step that changes nothing, and the server adopt what
    /// it lacks of that.
    pub(super) async fn join(
        &self,
        number: usize,
        approached: &Approached,
    ) -> Result<Adopting, Ended> {
        // Steps of this process would outbid it.
        let _turn = self.turn.lock().await;
        let joined = timeout(UNDER_BALLOT, self.join_now(number, approached)).await;
        joined.unwrap_or(Err(Ended::Outbid))
    }

    async fn join_now(&self, number: usize, approached: &Approached) -> Result<Adopting, Ended> {
        // Those who go on meanwhile would be ahead of it again.
        let peace = Peace::Lasting(UNDER_BALLOT);
        let round = &self.prepare(&nothing(), peace).await?;
        let _ends = Ends(self);
        let place = round.views.iter().position(|view| view.number == number);
        let may_join = place.is_some_and(|at| {
            let view = &round.views[at];
            let is_same = view.shown.process == approached.process
                && view.counts() == approached.counts
                && view.standing.ballot == approached.here.ballot;
            // One that doesn't count is no part of those who take the step.
            let counts_alone = approached.counts || !round.formed.counted.contains(&at);
            is_same && counts_alone && view.standing.granted
        });
        if !may_join || round.formed.after_loss || !round.behind().contains(&number) {
            return Err(Ended::Outbid);
        }
        self.accept(&nothing(), round, Changes::default()).await?;
        let (source, there) = self.who_took(round, number).await?;
        let target = &*self.members[number];
        let since = Difference::between(&there.values, &approached.known);
        let brought = lines::bring(&self.members[source], target, since.jobs()).await;
        let base = approached.mark.as_ref().map(|_| &approached.known);
        let mut difference =
            Difference::between(&there.values, base.unwrap_or(&approached.here.values));
        difference.also_gone(&there.values, &approached.here.values);
        let how = Adopted::Counts {
            ballots: [&round.ballot, &approached.here.ballot, &round.ballot],
            joins: true,
        };
        let mut adopting = approached.adopting;
        adopting.lines += failed(brought)?;
        adopting.values += difference.len();
        let (process, mark) = (&*approached.process, approached.mark.as_deref());
        match failed(adopt(target, process, mark, &difference, how).await)? {
            true => Ok(adopting),
            false => Err(Ended::Outbid),
        }
    }

    /// One of those who have taken the step of this round, and what it holds.
    async fn who_took(&self, round: &Round, except: usize) -> Result<(usize, Held), Ended> {
        let counted = round.formed.counted.iter();
        let numbers = counted.map(|at| round.views[*at].number);
        for number in numbers.filter(|number| *number != except) {
            match held(&self.members[number]).await {
                Ok(held) if held.ballot == round.ballot => return Ok((number, held)),
                // It was too slow for this step, or has gone on.
                _ => {}
            }
        }
        Err(Ended::Outbid)
    }

    /// Has a server of a round hold what another one of it holds, where that is not known to be
    /// held by a majority. Answers whether it does: it may have gone on meanwhile.
    pub(super) async fn level(
        &self,
        round: &Round,
        source: &View,
        target: &View,
    ) -> Result<bool, Fault> {
        let (from, to) = (&self.members[source.number], &self.members[target.number]);
        let (there, here) = futures_util::future::try_join(held(from), held(to)).await?;
        if there.ballot != source.standing.ballot || here.ballot != target.standing.ballot {
            return Ok(false);
        }
        let process = &target.shown.process;
        let mut difference = Difference::between(&there.values, &here.values);
        lines::bring(from, to, difference.jobs()).await?;
        let mut mark = None;
        if !here.counts(process) && difference.len() > IN_ONE_GO {
            mark = put_aside(to, process, &there.values).await?;
            if mark.is_none() {
                return Ok(false);
            }
            difference.values.clear();
        }
        let how = Adopted::Counts {
            ballots: [&round.ballot, &here.ballot, foundation(&round.ballot)],
            joins: false,
        };
        let mark = mark.as_ref().map(|(mark, _)| &**mark);
        adopt(to, process, mark, &difference, how).await
    }
}

/// Ends the peace that a mender was left in, also where it gives up in the middle.
struct Ends<'s>(&'s Shared);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.give_back(0..self.0.members.len());
    }
}

/// The terms of a step that changes nothing.
fn nothing() -> Terms {
    Terms {
        jobs: Vec::new(),
        send_by: None,
        room: Room::Frees,
    }
}

fn failed<T>(result: Result<T, Fault>) -> Result<T, Ended> {
    result.map_err(|fault| Ended::Failed(fault.error))
}

/// What a server holds.
async fn held(store: &RedisStore) -> Result<Held, Fault> {
    whole(store, &store.keys.jobs).await
}

async fn whole(store: &RedisStore, hash: &str) -> Result<Held, Fault> {
    let mut commands = redis::pipe();
    commands.cmd("HGETALL").arg(hash);
    let answers = store.reader.read(commands).await?;
    let held = answers.first().and_then(Held::read);
    held.ok_or_else(|| Fault::misread(&store.place, &Misread::Form))
}

/// The mark of what a server has put aside.
async fn mark(store: &RedisStore) -> Result<String, Fault> {
    let mut commands = redis::pipe();
    commands.cmd("HGET").arg(&store.keys.aside).arg(MARK);
    let answers = store.reader.read(commands).await?;
    let mark = answers.first().and_then(text).unwrap_or_default();
    Ok(mark.to_owned())
}

/// Has a server that doesn't count put aside all that another one holds. Answers the mark that
/// this has then, and how many values went over; none where somebody else came between.
async fn put_aside(
    target: &RedisStore,
    process: &str,
    there: &Values,
) -> Result<Option<(String, usize)>, Fault> {
    let aside = whole(target, &target.keys.aside).await?;
    let difference = Difference::between(there, &aside.values);
    let mut mark = aside.mark;
    let values = difference.values.chunks(VALUES_AT_ONCE);
    let values = values.map(|values| (values, [].as_slice()));
    let gone = difference.gone.chunks(VALUES_AT_ONCE);
    for (values, gone) in values.chain(gone.map(|gone| ([].as_slice(), gone))) {
        let next_mark = Uuid::new_v4().simple().to_string();
        let adoption = Adoption {
            process,
            mark: Some(&mark),
            values,
            gone,
            how: Adopted::Aside {
                next_mark: &next_mark,
            },
        };
        if !run(target, &adoption).await? {
            return Ok(None);
        }
        mark = next_mark;
    }
    Ok(Some((mark, difference.len())))
}

/// Has a server take over what differs, all at once.
async fn adopt(
    target: &RedisStore,
    process: &str,
    mark: Option<&str>,
    difference: &Difference<'_>,
    how: Adopted<'_>,
) -> Result<bool, Fault> {
    let adoption = Adoption {
        process,
        mark,
        values: &difference.values,
        gone: &difference.gone,
        how,
    };
    run(target, &adoption).await
}

async fn run(target: &RedisStore, adoption: &Adoption<'_>) -> Result<bool, Fault> {
    let request = request::adopt(&target.keys, adoption);
    let reply = target.asking.run(request).await?;
    Ok(text(&reply) == Some("1"))
}
