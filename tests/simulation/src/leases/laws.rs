//! Each scene by many seeds, and that what it is about has happened in it.

use std::cell::{Cell, RefCell};

use super::scenes;
use super::world::{Faults, Seen};
use crate::seeds::for_seeds;

/// How many seeds each law is held to; `SEEDS` asks for more, `SEED` for one.
const SEEDS: u64 = 60;

/// What was seen in the scenes of all seeds.
fn all_of(scene: impl Fn(u64) -> Seen) -> Seen {
    let all = RefCell::new(Seen::default());
    for_seeds(SEEDS, |seed| {
        let seen = scene(seed);
        all.borrow_mut().add(&seen);
    });
    all.into_inner()
}

fn storms(faults: Faults) -> Seen {
    let all = all_of(|seed| scenes::storm(seed, faults));
    println!(
        "{} granted, {} of those that had it to let in again, {} refused, {} given up, \
         {} too late, {} lost, {} crashes, {} losses of data",
        all.granted,
        all.again,
        all.refused,
        all.given_up,
        all.late,
        all.lost,
        all.crashes,
        all.wipes
    );
    all
}

#[test]
fn a_seed_decides_everything() {
    let told = |seed| format!("{:?}", scenes::storm(seed, scenes::CRASHES));
    assert_eq!(told(7), told(7));
    assert_ne!(told(7), told(8));
}

#[test]
fn who_comes_first_goes_first_and_tokens_rise_where_nothing_breaks() {
    for_seeds(SEEDS, |seed| _ = scenes::one_after_the_other(seed));
}

#[test]
fn who_is_let_in_again_has_the_token_that_it_has() {
    for_seeds(SEEDS, scenes::let_in_again);
}

#[test]
fn of_two_who_share_and_want_it_alone_none_waits_for_the_other() {
    for_seeds(SEEDS, scenes::two_who_share_want_it_alone);
}

#[test]
fn who_wants_several_names_waits_in_no_ring_and_keeps_nothing_free_from_others() {
    for_seeds(SEEDS, scenes::two_of_three);
}

#[test]
fn a_living_holder_that_lost_it_hears_so_when_it_renews() {
    for_seeds(SEEDS, scenes::taken_from_the_living);
}

#[test]
fn tokens_rise_though_data_are_lost_and_the_clock_goes_back() {
    for_seeds(SEEDS, scenes::tokens_after_a_loss);
}

#[test]
fn neither_a_short_lease_nor_a_jump_of_the_clock_cuts_a_window_without_grants_short() {
    for_seeds(SEEDS, scenes::window_cut_short);
}

#[test]
fn what_comes_late_takes_nothing_that_was_given_back() {
    for_seeds(SEEDS, scenes::late);
}

#[test]
fn who_gives_up_leaves_nothing_in_the_way_of_others() {
    let seen = all_of(scenes::many_give_up);
    println!("{} given up, {} granted", seen.given_up, seen.granted);
    assert_eq!(seen.granted + seen.given_up, seen.wanted);
    assert!(seen.given_up > 20 * seen.worlds && seen.granted > 20 * seen.worlds);
}

#[test]
fn who_waits_keeps_its_place_though_the_store_is_away_for_longer_than_places_are_kept() {
    for_seeds(SEEDS, scenes::places_lost);
}

#[test]
fn what_the_dead_left_behind_is_gone_after_some_hours_and_what_the_living_have_stays() {
    for_seeds(SEEDS, scenes::left_behind);
}

#[test]
fn a_network_that_loses_delays_and_doubles_lets_nobody_in_twice() {
    let seen = storms(scenes::NETWORK);
    let ended = seen.granted + seen.late + seen.refused + seen.given_up;
    assert_eq!(ended, seen.wanted);
    assert!(
        seen.refused > seen.worlds && seen.again > seen.worlds && seen.given_up > seen.worlds,
        "{seen:?}"
    );
}

#[test]
fn crashes_and_hosts_that_stand_still_let_nobody_in_twice() {
    let seen = storms(scenes::CRASHES);
    assert!(
        seen.crashes > seen.worlds && seen.lost > seen.worlds / 2,
        "{seen:?}"
    );
}

#[test]
fn a_store_that_loses_its_data_lets_nobody_in_twice() {
    let seen = storms(scenes::LOSSES);
    assert!(
        seen.wipes > seen.worlds && seen.lost > seen.worlds / 2,
        "{seen:?}"
    );
}

#[test]
fn a_clock_of_the_store_that_is_set_lets_nobody_in_twice() {
    let seen = storms(scenes::STEPS);
    assert!(seen.lost > seen.worlds / 2, "{seen:?}");
}

#[test]
fn a_grant_that_is_told_again_is_not_trusted_for_longer_than_it_lasts() {
    let (worlds, told_again) = (Cell::new(0_u32), Cell::new(0_u32));
    for_seeds(SEEDS, |seed| {
        let (again, taken_over) = scenes::told_again(seed);
        assert!(taken_over, "the other waits for ever");
        worlds.set(worlds.get() + 1);
        told_again.set(told_again.get() + u32::from(again));
    });
    let (worlds, told_again) = (worlds.get(), told_again.get());
    println!("{told_again} grants of {worlds} told again");
    assert!(told_again > worlds / 2, "{told_again}");
}
