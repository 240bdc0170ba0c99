//! One seed: a fleet, its faults, its recovery, and the judgement.
//!
//! Must never: judge before the fleet is well again, and has shown so.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use test_support::account::{Occurrence, SECOND, instant_s};
use test_support::fleet::now_ns;
use test_support::probe::{Run, runs_and_twice};
use test_support::process::bury_the_dead;

use crate::judge::{Evidence, Figures};
use crate::member;
use crate::plan::{Store, Strike, draw};
use crate::stage::{Happened, Stage};
use crate::story;
use crate::table::{GRACE, jobs};
use crate::takeovers::{BOUND, Takeover, takeovers};

/// After the last fault every job runs on time again within this: a window without grants, what
/// attempts to connect are apart at most (5 s), the longest run and the longest period (8 s), and slack.
const WELL_WITHIN: Duration = Duration::from_secs(GRACE.as_secs() + 5 + 8 + 14);

/// What starts so long after its instant is on time, on a machine with more to do than it can.
const ON_TIME: i128 = 2 * SECOND;

/// How long the fleet is looked at when all is well again.
const CALM: Duration = Duration::from_secs(1);

/// What came of a seed.
pub(crate) struct Round {
    pub(crate) seed: u64,
    pub(crate) store: Store,
    pub(crate) drawn: Vec<Strike>,
    pub(crate) happened: Vec<Happened>,
    pub(crate) figures: Figures,
    pub(crate) takeovers: Vec<Takeover>,
    /// From a kill to the last death below the daemon.
    pub(crate) deaths: Vec<Duration>,
    /// From the end of the last fault until every job ran on time.
    pub(crate) well_after: Option<Duration>,
    pub(crate) losses: usize,
    /// What does not hold, in words.
    pub(crate) broken: Vec<String>,
}

/// Plays a seed for so long, and until all is well again. What doesn't hold is told at once.
pub(crate) fn play(seed: u64, length: Duration) -> Round {
    let store = Store::of(seed);
    println!("SEED={seed}, a server that {store:?}, faults for {length:?}");
    let plan = draw(
        seed,
        u64::try_from(length.as_millis()).expect("a short time"),
    );
    let mut stage = Stage::begin(store);
    stage.perform(&plan);
    let healed_ns = now_ns();
    let well_after = wait_until_well(&stage, healed_ns);
    if well_after.is_some() {
        std::thread::sleep(CALM);
    }
    stage.look_around();
    let ended_ns = now_ns();
    stage.end();
    let evidence = evidence(&mut stage, well_after.is_some(), ended_ns);
    let figures = Figures::of(&evidence);
    let gaps = stage.pulse.gaps();
    let takeovers = takeovers(&evidence.runs, &stage.happened, &gaps, member::name);
    let mut broken: Vec<(String, Option<Occurrence>)> = figures.broken();
    let told = std::mem::take(&mut stage.broken).into_iter();
    broken.extend(told.map(|what| (what, None)));
    broken.extend(late(
        &takeovers,
        &evidence.runs,
        &gaps,
        healed_ns,
        well_after,
    ));
    if !broken.is_empty() {
        story::tell(seed, &stage, &evidence, &broken);
    }
    let round = Round {
        seed,
        store,
        drawn: plan,
        happened: std::mem::take(&mut stage.happened),
        figures,
        takeovers,
        deaths: std::mem::take(&mut stage.deaths),
        well_after,
        losses: evidence.losses_ns.len(),
        broken: broken.into_iter().map(|(what, _)| what).collect(),
    };
    drop(stage);
    bury_the_dead();
    round
}

/// What there is to judge.
fn evidence(stage: &mut Stage, is_well: bool, ended_ns: i128) -> Evidence {
    let (runs, same_token) = runs_and_twice(&stage.fleet.probe_log());
    Evidence {
        // What a fleet that is not well has not settled yet is not lost: that it isn't well is told.
        due: match is_well {
            true => due(stage.begun_ns, ended_ns),
            false => Vec::new(),
        },
        runs,
        same_token,
        lines: std::mem::take(&mut stage.ledgers.lines),
        losses_ns: stage.ledgers.losses_ns.clone(),
        waited: std::mem::take(&mut stage.ledgers.waited),
    }
}

/// When every job had a run on time of what fell due after the last fault.
fn wait_until_well(stage: &Stage, healed_ns: i128) -> Option<Duration> {
    let began = Instant::now();
    let all = jobs().count();
    loop {
        let runs = stage.runs();
        let well: BTreeSet<&str> = runs
            .iter()
            .filter(|run| due_ns(run) > healed_ns && lateness(run) <= ON_TIME)
            .map(|run| run.job.as_str())
            .collect();
        let family_is_well = stage
            .fleet
            .members()
            .iter()
            .any(|member| i128::from(instant_s(&member.scheduled_at)) * SECOND > healed_ns);
        if well.len() == all && family_is_well {
            return Some(began.elapsed());
        }
        if began.elapsed() > WELL_WITHIN {
            return None;
        }
        // A file that others append to: there is nothing to wait on.
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// What came too late: recovery, takeovers, and starts after all was well.
fn late(
    takeovers: &[Takeover],
    runs: &[Run],
    gaps: &[(i128, i128)],
    healed_ns: i128,
    well_after: Option<Duration>,
) -> Vec<(String, Option<Occurrence>)> {
    let mut late = Vec::new();
    for takeover in takeovers.iter().filter(|one| one.bound && one.took > BOUND) {
        let Takeover { run, took, .. } = takeover;
        let of = test_support::account::occurrence(run);
        late.push((format!("taken over after {took:.2?}: {run:?}"), Some(of)));
    }
    let Some(well_after) = well_after else {
        late.push((
            format!("not all jobs ran on time within {WELL_WITHIN:?}"),
            None,
        ));
        return late;
    };
    let well_ns = healed_ns + crate::stage::nanos(well_after);
    let stood_still = |run: &&Run| {
        let mut gaps = gaps.iter();
        gaps.any(|gap| gap.0 <= run.started_ns && gap.1 >= due_ns(run))
    };
    let judged = runs.iter().filter(|run| due_ns(run) > well_ns);
    for run in judged.filter(|run| !stood_still(run)) {
        if lateness(run) > ON_TIME || run.attempt > 1 {
            let of = test_support::account::occurrence(run);
            late.push((format!("all was well, and yet late: {run:?}"), Some(of)));
        }
    }
    late
}

fn due_ns(run: &Run) -> i128 {
    i128::from(instant_s(&run.scheduled_at)) * SECOND
}

fn lateness(run: &Run) -> i128 {
    run.started_ns - due_ns(run)
}

/// What falls due in the last second is for the next start of a fleet.
fn due(from_ns: i128, until_ns: i128) -> Vec<Occurrence> {
    let second = |ns: i128| i64::try_from(ns / SECOND).expect("a near date");
    let instants = second(from_ns) + 1..=second(until_ns) - 1;
    let of_job = |(job, period): (String, i64)| {
        let due = instants.clone().filter(move |at| at % period == 0);
        due.map(move |at| (job.clone(), at))
    };
    jobs().flat_map(of_job).collect()
}
