//! The model's store against the real one: walks through the model at random, in which each question
//! to the store is asked of the real rules too. The answers have to be the same.
//!
//! Must never: compare what both sides leave open, as the numbers of tokens: only which are equal.

mod rules {
    pub(crate) mod twin;
}

use rules::twin::Twin;
use soloist_model::protocol::laws::Law;
use soloist_model::protocol::setup::{Jump, Names, OnCrash, Setup, Tokens, Wipe};
use soloist_model::protocol::state::{Answer, Budget, Standing, State, Verb};
use soloist_model::protocol::{Action, Protocol, asked};
use stateright::Model;

/// How many walks each kind of world has.
const WALKS: u64 = 400;

/// The steps of a walk at most: in the last tick a claim may be sent again for ever.
const STEPS: usize = 200;

/// Draws numbers, the same for the same seed (xorshift64*).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let drawn = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(drawn).unwrap_or(0) % limit
    }
}

fn world(on_crash: OnCrash, wipe: Wipe, jump: Jump) -> Protocol {
    let budget = Budget {
        losses: 2,
        copies: 2,
        crashes: 1,
        // The memory store tells a loss by its clock, which must not step back then.
        wipes: u8::from(!matches!(jump, Jump::Back | Jump::FarBack)),
        jumps: u8::from(jump != Jump::Never),
        freezes: 0,
        pauses: 0,
    };
    let setup = Setup {
        replicas: 3,
        occurrences: 2,
        due: [0, 4],
        ticks: 12,
        runs: 4,
        attempts: 3,
        on_crash,
        budget,
        wipe,
        jump,
        early: 1,
        tokens: Tokens::Real,
        without: None,
        names: Names::Told,
    };
    // A walk goes on where a law is broken: it is the answers that are looked at.
    Protocol::of_laws(setup, Vec::<Law>::new(), Vec::new())
}

/// Walks once. Answers how many questions were asked.
fn walk(model: &Protocol, seed: u64) -> usize {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut state = model.init_states()[0];
    let mut twin = Twin::new(model.setup);
    let mut path: Vec<(State, Option<Action>)> = Vec::new();
    for _ in 0..STEPS {
        let mut actions = Vec::new();
        model.actions(&state, &mut actions);
        // What the store hears is to come about more often than time goes on.
        let busy: Vec<Action> = actions
            .iter()
            .copied()
            .filter(|one| *one != Action::Tick)
            .collect();
        let patient = busy.is_empty() || dice.below(4) == 0;
        let action = match patient && actions.contains(&Action::Tick) {
            true => Action::Tick,
            false if busy.is_empty() => return twin.asked(),
            false => busy[dice.below(busy.len())],
        };
        path.push((state, Some(action)));
        let expected = model.answer_to(&state, action);
        let found = twin.take(&state, action, expected);
        if plain(&state, action, expected) != plain(&state, action, found) {
            let words = soloist_model::protocol::trace(model, &path).join("\n");
            panic!("seed {seed}, {action:?}\n{words}\nmodel: {expected:?}\nrules: {found:?}");
        }
        let Some(next) = model.next_state(&state, action) else {
            return twin.asked();
        };
        state = next;
    }
    twin.asked()
}

/// An answer without what is left open: who gives a lease back does the same whether it was that
/// lease's still; of an occurrence that is to be tried again nobody watches anything; and by which
/// request one that has ended was granted, which a late copy of that request could tell, the model
/// does not keep.
fn plain(state: &State, action: Action, answer: Option<Answer>) -> Option<Answer> {
    let (_, request) = asked(state, action)?;
    let standing = state.ledger.current.map(|one| one.standing);
    let ended = state
        .ledger
        .current
        .is_some_and(|one| one.standing == Standing::Ended && one.occurrence == request.occurrence);
    match answer {
        Some(Answer::Held(_)) if standing == Some(Standing::Again) => Some(Answer::Finished),
        Some(Answer::NotNow) if ended => Some(Answer::Finished),
        Some(Answer::Refused) if request.verb == Verb::Release => Some(Answer::Released),
        other => other,
    }
}

fn walk_all(on_crash: OnCrash, wipe: Wipe, jump: Jump) {
    let model = world(on_crash, wipe, jump);
    let asked: usize = (1..=WALKS).map(|seed| walk(&model, seed)).sum();
    println!("{on_crash:?}, {wipe:?}, {jump:?}: {asked} questions in {WALKS} walks");
    assert!(
        asked > 10 * usize::try_from(WALKS).unwrap_or(0),
        "walks that ask little: {asked}"
    );
}

#[test]
fn the_model_answers_as_the_rules_do_when_all_data_are_lost() {
    walk_all(OnCrash::Rerun, Wipe::Empty, Jump::Never);
    walk_all(OnCrash::Skip, Wipe::Empty, Jump::Never);
}

#[test]
fn the_model_answers_as_the_rules_do_when_the_store_falls_back() {
    walk_all(OnCrash::Rerun, Wipe::Older, Jump::Never);
    walk_all(OnCrash::Skip, Wipe::Older, Jump::Never);
}

#[test]
fn the_model_answers_as_the_rules_do_when_the_clock_steps() {
    walk_all(OnCrash::Rerun, Wipe::Empty, Jump::Forward);
    walk_all(OnCrash::Rerun, Wipe::Empty, Jump::Back);
    walk_all(OnCrash::Skip, Wipe::Empty, Jump::Back);
    walk_all(OnCrash::Rerun, Wipe::Empty, Jump::FarBack);
}
