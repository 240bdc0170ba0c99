//! What has to hold, whatever happens: all that was answered fits one line of steps.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use crate::scheduler::lease::FencingToken;

/// How far a job has come. It has one occurrence, and its leases outlast the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Held,
    Finished,
}

/// What somebody was told of a job.
#[derive(Clone, Debug)]
struct Seen {
    who: usize,
    job: usize,
    asked_at: u64,
    told_at: u64,
    stage: Stage,
    token: Option<FencingToken>,
    /// It was granted to the one who asked.
    granted: bool,
}

/// All that was told.
#[derive(Default)]
pub(super) struct Law {
    seen: RefCell<Vec<Seen>>,
    broken: RefCell<Option<String>>,
    time: Cell<u64>,
    jobs: Cell<usize>,
}

/// When something was asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct AskedAt(u64);

impl Law {
    fn tick(&self) -> u64 {
        self.time.set(self.time.get() + 1);
        self.time.get()
    }

    pub(super) fn ask(&self) -> AskedAt {
        AskedAt(self.tick())
    }

    /// A job that nobody has claimed.
    pub(super) fn new_job(&self) -> usize {
        self.jobs.set(self.jobs.get() + 1);
        self.jobs.get() - 1
    }

    pub(super) fn jobs(&self) -> usize {
        self.jobs.get()
    }

    pub(super) fn granted_to(&self, who: usize, job: usize, asked: AskedAt, token: FencingToken) {
        self.note(who, job, asked, (Stage::Held, Some(token), true));
    }

    pub(super) fn told(
        &self,
        who: usize,
        job: usize,
        asked: AskedAt,
        stage: Stage,
        token: Option<FencingToken>,
    ) {
        self.note(who, job, asked, (stage, token, false));
    }

    fn note(
        &self,
        who: usize,
        job: usize,
        AskedAt(asked_at): AskedAt,
        (stage, token, granted): (Stage, Option<FencingToken>, bool),
    ) {
        let told_at = self.tick();
        self.seen.borrow_mut().push(Seen {
            who,
            job,
            asked_at,
            told_at,
            stage,
            token,
            granted,
        });
    }

    /// Nobody may be told that.
    pub(super) fn breaks(&self, what: String) {
        self.broken.borrow_mut().get_or_insert(what);
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken.borrow().is_some()
    }

    pub(super) fn granted(&self) -> usize {
        self.seen.borrow().iter().filter(|one| one.granted).count()
    }

    pub(super) fn answered(&self) -> usize {
        self.seen.borrow().len()
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if let Some(what) = self.broken.borrow().clone() {
            return Err(what);
        }
        let seen = self.seen.borrow();
        one_grant_each(&seen)?;
        nothing_is_undone(&seen)?;
        tokens_rise(&seen)
    }
}

/// Of a job everybody knows one token, and only one was ever told that it is theirs.
fn one_grant_each(seen: &[Seen]) -> Result<(), String> {
    let mut known: BTreeMap<usize, &Seen> = BTreeMap::new();
    for one in seen.iter().filter(|one| one.token.is_some()) {
        let first = known.entry(one.job).or_insert(one);
        if first.token != one.token {
            return Err(format!("a job was granted twice: {first:?}, {one:?}"));
        }
        if first.granted && one.granted && first.who != one.who {
            return Err(format!("a job was granted to two: {first:?}, {one:?}"));
        }
        if one.granted {
            *first = one;
        }
    }
    Ok(())
}

/// Whoever asks after somebody was told something finds the job as far at least.
fn nothing_is_undone(seen: &[Seen]) -> Result<(), String> {
    for later in seen.iter().filter(|one| one.stage == Stage::Held) {
        let undone = seen.iter().find(|earlier| {
            let before = earlier.job == later.job && earlier.told_at < later.asked_at;
            before && earlier.stage == Stage::Finished
        });
        if let Some(earlier) = undone {
            return Err(format!("what was told was undone: {earlier:?}, {later:?}"));
        }
    }
    Ok(())
}

/// A claim that begins after another one's grant was told gets a higher token; none is given to
/// two.
fn tokens_rise(seen: &[Seen]) -> Result<(), String> {
    let mut grants: BTreeMap<usize, Seen> = BTreeMap::new();
    for one in seen.iter().filter(|one| one.granted) {
        let first = grants.entry(one.job).or_insert_with(|| one.clone());
        first.told_at = first.told_at.min(one.told_at);
    }
    for later in grants.values() {
        let same = |one: &&Seen| one.job != later.job && one.token == later.token;
        if let Some(one) = grants.values().find(same) {
            return Err(format!("a token was given to two: {one:?}, {later:?}"));
        }
        let fell = |one: &&Seen| one.told_at < later.asked_at && one.token >= later.token;
        if let Some(one) = grants
            .values()
            .find(|one| one.job != later.job && fell(one))
        {
            return Err(format!("a token fell: {one:?}, {later:?}"));
        }
    }
    Ok(())
}
