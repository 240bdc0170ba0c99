//! How a server that is behind, or was started again, comes to hold what the others hold.
//!
//! Must never: have a server count again that holds less than a majority had taken when it began
//! to adopt.

use std::collections::BTreeSet;
use std::sync::Weak;
use std::time::Duration;

use redis::Value;
use tokio::sync::mpsc;

use super::super::fault::Fault;
use super::super::keys;
use super::super::reply::{bytes, items, text};
use super::super::request::{self, Part};
use super::{Ended, Shared};
use crate::store::draft::Changes;
use crate::store::engine::{Room, Terms};

/// How many values go over at once: no script keeps a server for long.
const VALUES_AT_ONCE: usize = 2000;

/// How long none is mended after some were.
const MENDED_AGAIN: Duration = Duration::from_millis(200);

/// Mends servers as they are named.
pub(super) async fn mend(shared: Weak<Shared>, mut named: mpsc::Receiver<usize>) {
    while let Some(first) = named.recv().await {
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let mut numbers = BTreeSet::from([first]);
        while let Ok(other) = named.try_recv() {
            numbers.insert(other);
        }
        for number in numbers {
            let (store, server) = (&shared.place, &shared.members[number].place);
            match shared.mend(number).await {
                Ok(()) => tracing::info!(store, server, "it has caught up with the others"),
                Err(Ended::Outbid) => {}
                Err(Ended::Failed(error)) => {
                    tracing::debug!(store, server, %error, "it has not caught up");
                }
            }
        }
        drop(shared);
        tokio::time::sleep(MENDED_AGAIN).await;
    }
}

impl Shared {
    /// Has a majority of the others take a step that changes nothing, and then one server adopt
    /// what it left.
    async fn mend(&self, number: usize) -> Result<(), Ended> {
        let terms = Terms {
            jobs: Vec::new(),
            send_by: None,
            room: Room::Frees,
        };
        let round = self.prepare(&terms, self.pace.peace()).await?;
        let is_it = |view: &&super::forming::View| view.number == number;
        let promised = round.views.iter().find(is_it);
        let promised = promised.is_some_and(|view| view.standing.granted);
        if !promised || !round.behind().contains(&number) {
            return Err(Ended::Outbid);
        }
        self.accept(&terms, &round, Changes::default()).await?;
        let newest: Vec<usize> = round.formed.newest(&round.views).collect();
        let source = *newest.first().ok_or(Ended::Outbid)?;
        let from = round.views[source].number;
        let done = adopt(self, from, number, &round.ballot, &round.ballot).await;
        match done {
            Ok(true) => Ok(()),
            Ok(false) => Err(Ended::Outbid),
            Err(fault) => Err(Ended::Failed(fault.error)),
        }
    }
}

/// Copies what a server holds after the step `ballot` to one that promised `promised`. Answers
/// whether it did: either may have gone on meanwhile.
pub(super) async fn adopt(
    shared: &Shared,
    from: usize,
    to: usize,
    ballot: &str,
    promised: &str,
) -> Result<bool, Fault> {
    let source = &shared.members[from];
    let mut commands = redis::pipe();
    let taken = |commands: &mut redis::Pipeline| {
        commands
            .cmd("HGET")
            .arg(&source.keys.jobs)
            .arg(keys::BALLOT);
    };
    taken(&mut commands);
    commands.cmd("HGETALL").arg(&source.keys.jobs);
    let range = commands.cmd("ZRANGEBYSCORE").arg(&source.keys.agenda);
    range.arg("-inf").arg("+inf").arg("WITHSCORES");
    taken(&mut commands);
    let answers = source.keeping.send(commands).await?;
    let [before, values, agenda, after] = answers.as_slice() else {
        return Ok(false);
    };
    if text(before) != Some(ballot) || text(after) != Some(ballot) {
        return Ok(false);
    }
    let values = without_standing(&parts(values));
    let agenda = turned(&parts(agenda));
    let of_values = values.chunks(2 * VALUES_AT_ONCE).map(|piece| [piece, &[]]);
    let of_agenda = agenda.chunks(2 * VALUES_AT_ONCE).map(|piece| [&[], piece]);
    let pieces: Vec<_> = of_values.chain(of_agenda).collect();
    if pieces.is_empty() {
        // What has taken a step holds at least what the jobs share.
        return Ok(false);
    }
    let target = &shared.members[to];
    let last = pieces.len() - 1;
    for (at, [values, agenda]) in pieces.into_iter().enumerate() {
        let part = Part {
            first: at == 0,
            ballot: if at == last { ballot } else { "" },
            values,
            agenda,
        };
        let request = request::adopt(&target.keys, promised, &part);
        let reply = target.keeping.run(request).await?;
        if text(&reply) != Some("1") {
            return Ok(false);
        }
    }
    Ok(true)
}

fn parts(answer: &Value) -> Vec<Vec<u8>> {
    let parts: &[Value] = items(answer).unwrap_or_default();
    let bytes = parts
        .iter()
        .map(|part| bytes(part).unwrap_or_default().to_vec());
    bytes.collect()
}

/// Fields and values by turns, without those that are each server's own.
fn without_standing(values: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let own = [
        keys::PROMISED,
        keys::PEACE_US,
        keys::NEXT,
        keys::BALLOT,
        keys::MEMBER,
    ]
    .map(str::as_bytes);
    let pairs = values.chunks(2).filter(|pair| !own.contains(&&*pair[0]));
    pairs.flatten().cloned().collect()
}

/// Jobs and scores by turns, as scores and jobs.
fn turned(agenda: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let pairs = agenda.chunks(2).filter(|pair| pair.len() == 2);
    pairs
        .flat_map(|pair| [pair[1].clone(), pair[0].clone()])
        .collect()
}
