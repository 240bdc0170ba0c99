//! What happens in a row:
//!
//! ```text
//! crash WHO, drain WHO      WHO: all, a number from 0, `holder JOB`, or `last JOB`,
//!                           which is whoever started an attempt of it last
//! start                     all that are not there
//! table                     those that start from now on have the row's next table
//! cut, join                 nobody reaches the store, or everybody again
//! trigger JOB, pause JOB, resume JOB, kill JOB
//! end                       nothing more
//! ```

use std::sync::Arc;

use soloist::scheduler::job::{Job, JobName};
use soloist::scheduler::lease::{Order, OrderKind, RunId};
use uuid::Uuid;

use super::row::Step;
use soloist_simulation::world::World;

pub(crate) fn perform(world: &mut World, step: &Step, next: impl FnOnce() -> Vec<Arc<Job>>) {
    let wait = step.at.checked_sub(world.now);
    world.run_for(wait.expect("steps are in the order of time"));
    let words: Vec<&str> = step.words.iter().map(String::as_str).collect();
    match words[..] {
        ["crash", ref who @ ..] => {
            for replica in replicas(world, who) {
                world.crash(replica);
            }
        }
        ["drain", ref who @ ..] => {
            for replica in replicas(world, who) {
                world.drain(replica);
            }
        }
        ["start"] => {
            let count = world.replicas.len();
            for replica in (0..count)
                .filter(|one| !world.is_alive(*one))
                .collect::<Vec<_>>()
            {
                world.revive(replica);
            }
        }
        ["table"] => world.jobs = next(),
        ["cut"] => world.partition(true),
        ["join"] => world.partition(false),
        ["trigger", job] => order(world, job, OrderKind::Trigger),
        ["pause", job] => order(world, job, OrderKind::Pause),
        ["resume", job] => order(world, job, OrderKind::Resume),
        ["kill", job] => order(world, job, OrderKind::Kill),
        ["end"] => {}
        _ => panic!("what is `{words:?}`?"),
    }
}

fn replicas(world: &World, who: &[&str]) -> Vec<usize> {
    match who {
        ["all"] => (0..world.replicas.len()).collect(),
        [which, job] => {
            let mut own = world.runs.values().filter(|run| run.job == *job);
            let found = match *which {
                "holder" => own.find(|run| run.ended.is_none()),
                "last" => own.max_by_key(|run| run.started),
                _ => None,
            };
            let run = found.unwrap_or_else(|| panic!("nobody runs {job}\n{world:?}"));
            vec![run.replica]
        }
        [number] => vec![number.parse().expect("a number from 0")],
        _ => panic!("who is {who:?}?"),
    }
}

fn order(world: &mut World, job: &str, what: OrderKind) {
    let id = RunId::new(Uuid::from_u128(u128::from(world.chance.draw())));
    let job = JobName::new(job).expect("a name");
    let known = world.jobs.iter().find(|one| one.name == job);
    let order = Order {
        retention: known.expect("a job of the table").retention,
        job,
        what,
        by: "alice".to_owned(),
        id,
        dependents: Default::default(),
    };
    world.order(order);
}
