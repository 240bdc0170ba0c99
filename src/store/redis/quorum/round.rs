//! A round: what a majority holds, and having it take one step more.
//!
//! Must never: have a step taken that was decided on anything but the newest of a majority.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::adopting::PROMISED_WITHIN;
use super::forming::{
    Formed, Unformed, View, ballot, form, foundation, majority, median, number_of,
};
use super::gathering::{Gathering, gather};
use super::pace::Began;
use super::{Ended, Shared};
use crate::scheduler::time::Timestamp;
use crate::store::StoreError;
use crate::store::draft::{self, Changes, Draft, Reading};
use crate::store::engine::Terms;
use crate::store::redis::fault::Fault;
use crate::store::redis::keys::PEACE_US;
use crate::store::redis::reply;
use crate::store::redis::request::{self, Peace, Wish};
use crate::store::rules::Life;

/// A ballot that a majority has promised.
pub(super) struct Round {
    pub(super) ballot: String,
    /// When the first server promised it.
    began: Began,
    pub(super) views: Vec<View>,
    pub(super) formed: Formed,
    pub(super) reading: Reading,
}

impl Round {
    /// A majority has taken the last step, and is known to count: nothing has to be written for
    /// an answer to hold.
    pub(super) fn is_settled(&self, all: usize) -> bool {
        !self.formed.after_loss && self.formed.newest(&self.views).count() >= majority(all)
    }

    /// Who answered and does not have the last step.
    pub(super) fn behind(&self) -> Vec<usize> {
        let newest: Vec<usize> = self.formed.newest(&self.views).collect();
        let views = self.views.iter().enumerate();
        views
            .filter(|(at, _)| !newest.contains(at))
            .map(|(_, view)| view.number)
            .collect()
    }
}

impl Shared {
    fn next_ballot(&self) -> String {
        let number = self.number.fetch_add(1, Ordering::Relaxed) + 1;
        ballot(number, self.proposer)
    }

    fn outbid(&self, number: u64) -> Ended {
        self.number.fetch_max(number, Ordering::Relaxed);
        Ended::Outbid
    }

    pub(super) fn decide<R, S>(&self, round: &Round, step: &mut S) -> Result<(R, Changes), Ended>
    where
        S: FnMut(&mut Draft<'_>) -> Result<R, draft::Fault>,
    {
        let mut draft = Draft::of(&round.reading);
        let answer = step(&mut draft).map_err(|fault| Ended::Failed(fault.at(&self.place)))?;
        Ok((answer, draft.finish()))
    }

    /// Asks one server how things are, and for its promise.
    fn ask(
        &self,
        number: usize,
        wish: Wish<'_>,
        terms: &Terms,
    ) -> impl Future<Output = Result<View, Fault>> + Send + 'static {
        let member = Arc::clone(&self.members[number]);
        let request = request::read(&member.keys, &terms.jobs, wish);
        let (jobs, room) = (terms.jobs.clone(), terms.room);
        async move {
            let reply = member.link(room).run(request).await?;
            let read = reply::prepared(&reply, &jobs);
            let (shown, standing) =
                read.map_err(|misread| Fault::misread(&member.place, &misread))?;
            Ok(View {
                number,
                shown,
                standing,
            })
        }
    }

    /// How things are, without a promise.
    pub(super) async fn look_in(&self, terms: &Terms) -> Result<Round, Ended> {
        let all = self.members.len();
        let asked = (0..all).map(|number| self.ask(number, Wish::Standing, terms));
        let enough = |views: &[View]| form(&Vec::from_iter(views), all).is_ok();
        let (views, faults) = gather(asked, enough).await;
        self.round(String::new(), Began::now(), views, faults)
    }

    /// Asks all for a promise, until a majority has given it, and to be left in peace.
    pub(super) async fn prepare(&self, terms: &Terms, peace: Peace) -> Result<Round, Ended> {
        let (ballot, at_first) = (self.next_ballot(), Began::now());
        let wish = Wish::Promise {
            ballot: &ballot,
            peace,
        };
        let all = self.members.len();
        let first = self.first.load(Ordering::Relaxed);
        let mut others = (0..all).map(|turn| (first + turn) % all);
        // The first that answers is asked alone: of many who come at once one gets its promise, and
        // not each that of another server.
        let mut asked = Gathering::default();
        let mut since = BTreeMap::new();
        for turn in others.by_ref() {
            asked.ask(self.ask(turn, wish, terms));
            since.insert(turn, Began::now());
            let Some(View {
                number, standing, ..
            }) = asked.anybody(self.pace.alone()).await
            else {
                // Whoever asks may give up before the end, and has to know the next time.
                self.first.store((turn + 1) % all, Ordering::Relaxed);
                continue;
            };
            self.pace.answered(&since[number]);
            if !standing.granted {
                return Err(self.outbid(number_of(&standing.promised)));
            }
            break;
        }
        let began = Began::now();
        others.for_each(|number| asked.ask(self.ask(number, wish, terms)));
        let enough = |views: &[View]| form(&Vec::from_iter(views), all).is_ok();
        asked.until(enough).await;
        let (views, faults) = (asked.answers, asked.faults);
        // All have to begin with the same one, if they can.
        let first = views.iter().map(|view| view.number).min();
        self.first.store(first.unwrap_or(0), Ordering::Relaxed);
        if at_first.elapsed() >= PROMISED_WITHIN {
            // Who promised first may have been started again, and have forgotten it.
            self.give_back(granted(&views));
            return Err(Ended::Outbid);
        }
        self.round(ballot, began, views, faults)
    }

    fn round(
        &self,
        ballot: String,
        began: Began,
        views: Vec<View>,
        faults: Vec<Fault>,
    ) -> Result<Round, Ended> {
        let all = self.members.len();
        let seen = views.iter().map(|view| number_of(&view.standing.promised));
        self.number
            .fetch_max(seen.max().unwrap_or(0), Ordering::Relaxed);
        let processes: BTreeSet<&str> = views
            .iter()
            .map(|view| view.shown.process.as_str())
            .collect();
        if processes.len() < views.len() {
            return Err(Ended::Failed(self.named_twice()));
        }
        let formed = match form(&Vec::from_iter(&views), all) {
            Ok(formed) => formed,
            Err(Unformed::Outbid(number)) => {
                self.give_back(granted(&views));
                return Err(self.outbid(number));
            }
            Err(Unformed::TooFew { answered, counted }) => {
                return Err(Ended::Failed(self.too_few(answered, counted, faults)));
            }
        };
        let newest = formed.newest(&views).next();
        let newest = newest.ok_or(Ended::Outbid)?;
        let clocks = formed
            .counted
            .iter()
            .map(|at| views[*at].shown.reading.clock_us);
        let reading = Reading {
            clock_us: median(clocks.collect()),
            life: match formed.after_loss {
                true if formed.ballot.is_empty() => Life::New,
                true => Life::AfterLoss,
                false => Life::Steady,
            },
            ..views[newest].shown.reading.clone()
        };
        Ok(Round {
            ballot,
            began,
            views,
            formed,
            reading,
        })
    }

    /// Lets others have what was promised in vain, at once.
    pub(super) fn give_back(&self, numbers: impl IntoIterator<Item = usize>) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        for number in numbers {
            let member = Arc::clone(&self.members[number]);
            runtime.spawn(async move {
                let mut commands = redis::pipe();
                let field = commands.cmd("HSET").arg(&member.keys.jobs);
                field.arg(PEACE_US).arg("0");
                // Else it lapses by itself.
                let _ = member.keeping.send(commands).await;
            });
        }
    }

    /// One server under two names would be a majority by itself.
    fn named_twice(&self) -> StoreError {
        StoreError::Refused {
            place: self.place.clone(),
            cause: "two of its servers are one and the same".to_owned(),
            cure: "name three, five or seven different ones in the store's URL".to_owned(),
        }
    }

    pub(super) fn too_few(
        &self,
        answered: usize,
        counted: usize,
        faults: Vec<Fault>,
    ) -> StoreError {
        let all = self.members.len();
        let needed = majority(all);
        let first = faults
            .into_iter()
            .next()
            .map(|fault| fault.error.to_string());
        let first = first.map_or(String::new(), |error| format!(" ({error})"));
        let cause = match answered < needed {
            true => format!("{answered} of {all} servers answer, and {needed} have to{first}"),
            false => format!(
                "of {all} servers {counted} have the ledger, and {needed} have to, or all have to answer: bring the others back{first}"
            ),
        };
        Fault::unreachable(&self.place, cause).error
    }

    /// Has those adopt the last step who are behind, where who has taken it is no majority.
    /// Answers who did, by their places.
    pub(super) async fn level_all(&self, round: &Round) -> Result<Vec<usize>, Ended> {
        let newest: Vec<usize> = round.formed.newest(&round.views).collect();
        if newest.len() >= majority(self.members.len()) {
            return Ok(Vec::new());
        }
        let source = &round.views[*newest.first().ok_or(Ended::Outbid)?];
        let others = round.formed.counted.iter();
        let mut levelled = Vec::new();
        for other in others.filter(|at| !newest.contains(at)) {
            // Whoever can't is no part of the majority.
            if let Ok(true) = self.level(round, source, &round.views[*other]).await {
                levelled.push(*other);
            }
        }
        Ok(levelled)
    }

    /// Has a majority take a step.
    pub(super) async fn accept(
        &self,
        terms: &Terms,
        round: &Round,
        changes: Changes,
    ) -> Result<(), Ended> {
        let all = self.members.len();
        let levelled = self.level_all(round).await?;
        let newest = round.formed.newest(&round.views).next();
        let changes = Arc::new(changes);
        let ask = |at: &usize| {
            let view = &round.views[*at];
            let member = Arc::clone(&self.members[view.number]);
            let terms = Terms {
                // By that server's own clock.
                send_by: terms.send_by.map(|limit| {
                    let ahead_us = view.shown.reading.clock_us - round.reading.clock_us;
                    let ahead = ahead_us.div_euclid(1000);
                    Timestamp::from_millis(limit.as_millis().saturating_add(ahead))
                }),
                ..terms.clone()
            };
            let mut ballots = [round.formed.ballot.as_str(), round.ballot.as_str()];
            let mut shown = view.shown.clone();
            if let Some(newest) = newest.filter(|_| levelled.contains(at)) {
                ballots[0] = foundation(&round.ballot);
                shown.epoch.clone_from(&round.views[newest].shown.epoch);
            }
            shown.reading = Reading {
                clock_us: shown.reading.clock_us,
                ..round.reading.clone()
            };
            let request = request::accept(&member.keys, &terms, &shown, &changes, ballots);
            async move {
                let reply = member.link(terms.room).run(request).await?;
                Ok(reply::taken(&reply))
            }
        };
        let enough = |taken: &[bool]| taken.iter().filter(|taken| **taken).count() >= majority(all);
        let (taken, faults) = gather(round.formed.counted.iter().map(ask), enough).await;
        self.pace.took(&round.began);
        if enough(&taken) {
            return Ok(());
        }
        match faults
            .into_iter()
            .find(|fault| fault.denied || !fault.disconnect)
        {
            Some(fault) if taken.iter().all(|taken| !taken) => Err(Ended::Failed(fault.error)),
            _ => Err(Ended::Outbid),
        }
    }
}

/// Those who promised.
fn granted(views: &[View]) -> impl Iterator<Item = usize> {
    let granted = views.iter().filter(|view| view.standing.granted);
    granted.map(|view| view.number)
}
