//! What has to hold: at bounds that are searched in a minute, and at larger ones.
//!
//! Must never: have a scenario in which nothing has to come about.

use super::{CALM, PLAIN, Scenario, Subject, Verdict};
use crate::protocol::Protocol;
use crate::protocol::laws::Sight;
use crate::protocol::setup::{Acks, Guard, Jump, Setup, Wipe};
use crate::protocol::state::Budget;

const RERUNS: &[Sight] = &[Sight::Completed, Sight::SecondAttempt];
const COMPLETES: &[Sight] = &[Sight::Completed];
const CLOSES: &[Sight] = &[Sight::Completed, Sight::Unfinished];
const COMES_BACK: &[Sight] = &[Sight::Completed, Sight::Reasserted];
const STANDS_STILL: &[Sight] = &[Sight::Completed, Sight::StoodStill];
const BOTH_RUN: &[Sight] = &[Sight::AllCompleted, Sight::SecondAttempt];
const ONE_IS_SKIPPED: &[Sight] = &[Sight::AllCompleted, Sight::Unfinished];

/// A crash.
const CRASH: Budget = Budget { crashes: 1, ..CALM };

/// A crash, and a message that is lost or late.
const CRASH_AND_LOSS: Budget = Budget { losses: 1, ..CRASH };

fn holds(name: &'static str, title: &'static str, setup: Setup, sights: &[Sight]) -> Scenario {
    Scenario {
        name,
        title,
        subject: Subject::Protocol(Protocol::new(setup, sights.to_vec())),
        expected: Verdict::Holds,
    }
}

/// What holds, at bounds that are searched in a minute.
pub fn quick() -> Vec<Scenario> {
    [calm(), lost_data(), stepped_clocks()].concat()
}

fn calm() -> Vec<Scenario> {
    let crashes = PLAIN.with(CRASH_AND_LOSS);
    let twice = Budget { copies: 1, ..CRASH };
    let paused = Budget { pauses: 1, ..CALM };
    let frozen = Budget { freezes: 1, ..CALM };
    let ahead = Setup {
        early: 1,
        ..crashes.once().due_at([1, 4])
    };
    let hasty = Setup {
        without: Some(Guard::HealthyConnection),
        ..crashes
    };
    let two = PLAIN.of_two_instants();
    vec![
        holds("calm", "nothing goes wrong", PLAIN.of_three(), RERUNS),
        holds("two-instants", "two occurrences", two, BOTH_RUN),
        holds("crash", "a crash and a lost message", crashes, RERUNS),
        holds(
            "crash-skip",
            "the same, at most once, and a clock that is ahead",
            ahead,
            CLOSES,
        ),
        holds(
            "twice",
            "a crash, and a message that arrives twice",
            PLAIN.with(twice),
            RERUNS,
        ),
        holds(
            "pause",
            "somebody pauses and resumes the job",
            two.with(paused),
            ONE_IS_SKIPPED,
        ),
        holds(
            "freeze-skip",
            "a host stands still, at most once",
            PLAIN.once().with(frozen),
            CLOSES,
        ),
        holds(
            "no-health",
            "a crash and a lost message, without the wait for a healthy connection",
            hasty,
            RERUNS,
        ),
    ]
}

fn lost_data() -> Vec<Scenario> {
    let wiped = PLAIN.loses(Wipe::Empty);
    let two = wiped.of_two_instants();
    let older = PLAIN.loses(Wipe::Older);
    let acknowledged = PLAIN.until(5).elects(2, Acks::Wanted);
    let elected = PLAIN.until(5).due_at([1, 4]).elects(2, Acks::Unasked);
    vec![
        holds("wipe", "all data are lost", wiped, COMES_BACK),
        holds(
            "wipe-skip",
            "all data are lost, two occurrences, at most once",
            two.once(),
            COMES_BACK,
        ),
        holds("older", "the store falls back", older.until(5), COMES_BACK),
        holds(
            "older-skip",
            "the store falls back, at most once",
            older.once(),
            COMES_BACK,
        ),
        holds(
            "tokens",
            "all data are lost, two occurrences, tokens by the real rule",
            two.real_tokens(),
            COMES_BACK,
        ),
        holds(
            "election",
            "a failover with acknowledgements",
            acknowledged,
            COMPLETES,
        ),
        holds(
            "election-skip",
            "a failover without, at most once",
            elected.once(),
            COMPLETES,
        ),
    ]
}

fn stepped_clocks() -> Vec<Scenario> {
    let forward = PLAIN.steps(Jump::Forward);
    let (back, far) = (PLAIN.steps(Jump::Back), PLAIN.steps(Jump::FarBack));
    vec![
        holds(
            "forward",
            "the store's clock steps forward",
            forward,
            RERUNS,
        ),
        holds(
            "back",
            "it steps back, and stands still",
            back,
            STANDS_STILL,
        ),
        holds("far-back", "it steps back by far", far, COMPLETES),
    ]
}

/// What holds, at bounds that take minutes.
pub fn long() -> Vec<Scenario> {
    [long_calm(), long_lost()].concat()
}

fn long_calm() -> Vec<Scenario> {
    let losses = Budget { losses: 2, ..CALM };
    let crash = PLAIN.of_two_instants().due_at([0, 5]).until(8);
    let forward = PLAIN.with(CRASH).steps(Jump::Forward);
    let three = PLAIN.of_three();
    let two = "nothing goes wrong, two occurrences";
    let lost = "a crash and a lost message, two occurrences";
    vec![
        holds("calm-long", two, three.of_two_instants(), RERUNS),
        holds("crash-long", lost, crash.with(CRASH_AND_LOSS), RERUNS),
        holds("crash-three", "a crash", three.with(CRASH), RERUNS),
        holds(
            "losses-long",
            "two lost messages",
            PLAIN.with(losses),
            RERUNS,
        ),
        holds(
            "forward-long",
            "the store's clock steps forward, and a crash",
            forward,
            RERUNS,
        ),
    ]
}

fn long_lost() -> Vec<Scenario> {
    let wiped = PLAIN.with(CRASH).loses(Wipe::Empty);
    let older = PLAIN.with(CRASH).loses(Wipe::Older);
    let two = PLAIN.of_two_instants().until(7).loses(Wipe::Older);
    let elected = PLAIN.due_at([1, 4]).elects(2, Acks::Unasked);
    vec![
        holds(
            "wipe-long",
            "all data are lost, and a crash, two occurrences",
            wiped.of_two_instants().until(7),
            COMES_BACK,
        ),
        holds(
            "wipe-forward",
            "all data are lost, and the store's clock steps forward, two occurrences",
            PLAIN
                .of_two_instants()
                .loses(Wipe::Empty)
                .steps(Jump::Forward),
            COMES_BACK,
        ),
        holds(
            "wipe-three",
            "all data are lost, at most once",
            PLAIN.of_three().once().loses(Wipe::Empty),
            COMES_BACK,
        ),
        holds(
            "older-long",
            "the store falls back, and a crash",
            older,
            COMES_BACK,
        ),
        holds(
            "older-skip-long",
            "the store falls back, two occurrences, at most once",
            two.once(),
            COMES_BACK,
        ),
        holds(
            "election-long",
            "a failover without acknowledgements, at most once",
            elected.once(),
            COMPLETES,
        ),
    ]
}
