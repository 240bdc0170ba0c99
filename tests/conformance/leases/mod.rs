//! One contract of named leases, every engine: each law is written once and proven on all of them.
//!
//! A new engine brings a [`ground::Ground`] and a line at the end of this file; it touches no law. All
//! engines have a clock that the law sets, so that none of them waits for a lease to run out.

mod ground;
mod laws;
mod scene;
mod servers;

/// Instantiates every law for one engine, as tests `leases::engine::law`.
macro_rules! leases {
    ($engine:ident, $ground:ty) => {
        mod $engine {
            leases! { @laws $ground;
                having {
                    who_shares_goes_together_and_passes_nobody_who_wants_it_alone
                    all_names_or_none_and_a_ring_of_them_can_not_close
                    an_owner_is_let_in_again_before_all_who_wait_and_keeps_its_token
                    who_shares_is_not_left_to_wait_for_others_who_share_and_wait_for_it
                    who_shared_a_name_has_it_alone_by_a_token_above_those_of_others
                    a_request_that_is_sent_again_gets_the_same_answer_and_a_late_one_does_nothing
                    of_many_who_ask_at_once_one_has_it
                    tokens_rise_at_every_grant_of_a_name_and_above_what_the_caller_has_seen
                    two_namespaces_never_meet
                }
                waiting {
                    who_came_first_goes_first_and_nobody_passes_who_waits
                    who_is_not_heard_of_loses_its_place_and_who_is_keeps_it
                    after_a_far_step_back_of_the_clock_no_place_lasts_for_the_time_of_the_step
                    who_lost_its_place_has_it_back_by_how_long_it_has_waited
                    those_whose_turn_it_is_are_told_and_nobody_else
                    a_long_line_is_kept_in_its_order
                }
                keeping {
                    the_deadline_rises_strictly_at_every_renewal
                    a_renewal_that_does_not_match_is_lost_and_leaves_others_alone
                    a_release_is_of_its_own_hold_alone_and_may_be_sent_again
                    a_lease_that_ran_out_is_the_holders_until_somebody_takes_it
                    a_lease_is_taken_for_dead_only_as_it_was_watched
                    who_does_not_wait_has_it_a_lease_after_one_was_refused_it_past_its_end
                }
                losing {
                    a_holder_writes_anew_what_was_lost_and_nothing_is_granted_meanwhile
                    after_the_window_nothing_is_written_anew
                    a_caller_who_has_seen_a_grace_window_is_granted_nothing_in_it
                }
                tidying {
                    a_name_is_forgotten_only_when_nobody_can_write_any_more_who_read_that_it_was_free
                    what_the_dead_had_is_taken_away_as_it_was_seen_and_what_was_renewed_stays
                    all_names_are_told_in_their_order_however_many_there_are
                    a_call_that_names_too_many_is_refused_whole
                }
            }
        }
    };
    (@laws $ground:ty; $($group:ident { $($law:ident)+ })+) => {
        $($(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $law() {
                let scene = crate::leases::scene::Scene::<$ground>::new().await;
                crate::leases::laws::$group::$law(scene).await;
            }
        )+)+
    };
}

// The engines, one line each.
leases!(memory, crate::leases::ground::Memory);
leases!(sqlite, crate::leases::ground::File);
leases!(redis, crate::leases::servers::One);
leases!(sentinel, crate::leases::servers::BehindSentinel);
leases!(cluster, crate::leases::servers::InCluster);
leases!(quorum, crate::leases::servers::Majority);
