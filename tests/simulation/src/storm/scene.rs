//! Where a storm begins: the fleet, its clocks, and its table.

use std::sync::Arc;
use std::time::Duration;

use soloist::scheduler::EndedHow;
use soloist::scheduler::job::Job;
use soloist::scheduler::lease::Definition;

use super::{Kinds, Storm};
use crate::accounts::Life;
use crate::chance::Chance;
use crate::jobs::{SCHEDULES, drawn_job, follower, utc, zone};
use crate::world::{Witness, World};

/// Leases are as short as may be, or as long as usual.
const TTLS_S: [u64; 3] = [3, 5, 15];

/// How long occurrences are caught up with.
const DEADLINES_S: [u64; 3] = [5, 20, 60];

/// Boot clocks that go wrong by more than NTP would have it, in parts per million. What two hosts
/// may differ by within a lease is a hundredth of it.
const DRIFTS_PPM: [i64; 7] = [0, 0, 100, -100, 500, -500, 4_000];

/// How far two clocks may come apart that NTP slews, on both sides.
const TRUE_PPM: i64 = 1_000;

/// The store's clock.
const STORE_DRIFTS_PPM: [i64; 4] = [0, 200, -200, 400];

/// Until when all replicas know their table.
const BEGIN: Duration = Duration::from_secs(20);

/// Most attempts are short, some outlast their lease, a few outlast what comes after them.
fn length(chance: &mut Chance) -> Duration {
    let longest = match chance.below(10) {
        0..6 => 2_000,
        6..9 => 20_000,
        _ => 60_000,
    };
    Duration::from_millis(1 + chance.below(longest))
}

/// A table of a few jobs, the same definition in all replicas.
fn table(chance: &mut Chance, kinds: Kinds) -> Vec<Job> {
    let count = 2 + chance.below(3) as usize;
    let drawn = (0..count).map(|number| {
        let job = drawn_job(chance, number);
        Job {
            lease_ttl: Duration::from_secs(TTLS_S[chance.below(3) as usize]),
            starting_deadline: Duration::from_secs(DEADLINES_S[chance.below(3) as usize]),
            ..job
        }
    });
    let mut jobs: Vec<_> = drawn.collect();
    if chance.percent(40) {
        jobs.push(follower("after", &["job0"]));
    }
    let revision = (kinds.edits && chance.percent(50)).then_some(1);
    for job in &mut jobs {
        job.definition = Definition {
            digest: format!("{}-1", job.name),
            revision,
        };
    }
    jobs
}

impl Storm {
    /// A fleet that starts. With `story`, all that happens to it is written down.
    pub(super) fn drawn(seed: u64, story: bool) -> Self {
        let mut chance = Chance::new(seed ^ 0x0057_0231);
        let kinds = Kinds {
            loses_data: chance.percent(50),
            sets_clock: chance.percent(40),
            edits: chance.percent(40),
        };
        let jobs = table(&mut chance, kinds);
        let mut world = World::new(seed, jobs, length);
        let mut witness = Box::<Witness>::default();
        witness.story = story.then(Vec::new);
        world.witness = Some(witness);
        world.fate = |chance, _| match chance.below(100) {
            0..18 => EndedHow::Failed,
            18..20 => EndedHow::TimedOut,
            _ => EndedHow::Succeeded,
        };
        let store_ppm = STORE_DRIFTS_PPM[chance.below(4) as usize];
        world.drift_store(store_ppm);
        let mut clocks_are_true = true;
        let replicas = 2 + chance.below(4);
        for number in 0..replicas {
            let name = ["a", "b", "c"][number as usize % 3];
            let most = Some(1 + chance.below(6) as u32).filter(|_| chance.percent(20));
            let ppm = DRIFTS_PPM[chance.below(7) as usize];
            clocks_are_true &= (ppm - store_ppm).abs() <= TRUE_PPM;
            world.start_on(zone(name), most, ppm);
        }
        Self {
            lives: Vec::new(),
            world,
            kinds,
            heals: Vec::new(),
            edition: 1,
            orders: Vec::new(),
            calm_at: Duration::ZERO,
            clocks_are_true,
        }
    }

    /// Lets the fleet come to know its table.
    pub(super) fn begin(&mut self) {
        self.world.run_for(BEGIN);
        let known = self.world.snapshot().jobs;
        let lives = self.world.jobs.iter().filter_map(|job| {
            let state = known.iter().find(|state| state.job == job.name)?;
            job.after.is_empty().then(|| Life::from(state, job))
        });
        self.lives = lives.collect();
    }

    /// The table with one job defined otherwise.
    pub(super) fn edited(&mut self) -> Vec<Arc<Job>> {
        self.edition += 1;
        let edition = self.edition;
        let chance = &mut self.world.chance;
        let mut jobs = self.world.jobs.clone();
        let number = chance.below(jobs.len() as u64) as usize;
        for (index, one) in jobs.iter_mut().enumerate() {
            let mut job = (**one).clone();
            if index == number {
                job = edit(chance, job);
                job.definition.digest = format!("{}-{edition}", job.name);
            }
            let revision = &mut job.definition.revision;
            *revision = revision.map(|_| edition);
            *one = Arc::new(job);
        }
        jobs
    }
}

fn edit(chance: &mut Chance, job: Job) -> Job {
    let mut edited = drawn_job(chance, 0);
    edited.name = job.name.clone();
    edited.schedule = match (job.after.is_empty(), chance.percent(50)) {
        (true, true) => {
            let text = SCHEDULES[chance.below(SCHEDULES.len() as u64) as usize];
            utc(job.name.as_str(), text)
        }
        _ => job.schedule,
    };
    Job {
        after: job.after,
        lease_ttl: job.lease_ttl,
        starting_deadline: job.starting_deadline,
        definition: job.definition,
        ..edited
    }
}
