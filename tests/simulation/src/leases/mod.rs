//! Named leases in virtual time: nobody has what another has, whatever breaks, and everybody has
//! its turn.
//!
//! A scene is what a seed makes of one kind of trouble. It panics where a law is broken.
//!
//! Must never: accept a run in which nothing was held, lost or broken.

#[cfg(test)]
mod laws;
mod scenes;
mod world;

use std::panic::catch_unwind;

use crate::storm::words_of;

/// How long somebody has something at most: for longer than a lease lasts.
const LONGEST_USE_MS: u64 = 9000;

const HOUR_MS: u64 = 3_600_000;

/// A scene.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    /// What happens in it, in a few words.
    pub name: &'static str,
    play: fn(u64),
}

impl Scene {
    /// Plays it.
    ///
    /// # Errors
    /// When a law is broken: which.
    pub fn play(self, seed: u64) -> Result<(), String> {
        catch_unwind(|| (self.play)(seed)).map_err(|panic| words_of(&*panic))
    }
}

/// All of them, those first that take the least time.
pub const SCENES: [Scene; 16] = [
    Scene {
        name: "in order",
        play: |seed| _ = scenes::one_after_the_other(seed),
    },
    Scene {
        name: "let in again",
        play: |seed| scenes::let_in_again(seed),
    },
    Scene {
        name: "wanted alone by two who share",
        play: |seed| scenes::two_who_share_want_it_alone(seed),
    },
    Scene {
        name: "two of three names",
        play: |seed| scenes::two_of_three(seed),
    },
    Scene {
        name: "taken from the living",
        play: |seed| scenes::taken_from_the_living(seed),
    },
    Scene {
        name: "tokens after a loss",
        play: |seed| scenes::tokens_after_a_loss(seed),
    },
    Scene {
        name: "window cut short",
        play: |seed| scenes::window_cut_short(seed),
    },
    Scene {
        name: "late",
        play: |seed| scenes::late(seed),
    },
    Scene {
        name: "given up",
        play: |seed| _ = scenes::many_give_up(seed),
    },
    Scene {
        name: "told again",
        play: |seed| _ = scenes::told_again(seed),
    },
    Scene {
        name: "left behind",
        play: |seed| scenes::left_behind(seed),
    },
    Scene {
        name: "places lost",
        play: |seed| scenes::places_lost(seed),
    },
    Scene {
        name: "network",
        play: |seed| _ = scenes::storm(seed, scenes::NETWORK),
    },
    Scene {
        name: "crashes",
        play: |seed| _ = scenes::storm(seed, scenes::CRASHES),
    },
    Scene {
        name: "data lost",
        play: |seed| _ = scenes::storm(seed, scenes::LOSSES),
    },
    Scene {
        name: "clock set",
        play: |seed| _ = scenes::storm(seed, scenes::STEPS),
    },
];
