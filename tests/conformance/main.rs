//! One contract, every engine: each law of the store is written once and proven on all of them.
//!
//! A new engine brings a file in `fixtures/` and a line at the end of this one; it touches no
//! law. Laws go by the store's own clock, which for most engines is real time: they wait for
//! what the store says, and let time pass only where a lease has to run out.

mod bench;
mod fixtures;
mod laws;
mod leases;
mod sqlite_file;

/// Instantiates every law for one engine, as tests `engine::law`.
macro_rules! conformance {
    ($engine:ident, $fixture:ty) => {
        mod $engine {
            conformance! { @laws $fixture;
                claims {
                    of_many_concurrent_claims_one_wins
                    an_occurrence_is_remembered_after_its_release
                    a_claim_sent_again_is_granted_the_same_again
                    a_claim_sent_again_after_the_release_is_not_granted_again
                    a_claim_that_comes_too_early_is_told_how_long_to_wait
                    an_occurrence_past_its_start_by_is_recorded_as_missed
                    what_a_newer_occurrence_overtook_is_missed_as_one_line
                    an_occurrence_older_than_the_newest_is_finished
                    an_occurrence_during_another_one_is_recorded_as_skipped
                    a_manual_occurrence_waits_for_the_running_one_and_consumes_nothing
                    a_new_job_never_runs_its_past
                    registering_again_settles_nothing
                    a_claim_that_arrives_after_its_own_deadline_does_nothing
                    a_caller_who_has_seen_a_grace_window_is_granted_nothing_in_it
                    tokens_rise_at_every_grant_above_the_floor_and_fit_53_bits
                }
                leases {
                    the_deadline_rises_strictly_at_every_renewal
                    a_renewal_that_does_not_match_is_lost
                    a_release_that_does_not_match_changes_nothing
                    a_release_sent_again_is_released_again_and_written_once
                    a_lease_that_ran_out_is_the_holders_until_somebody_takes_it
                    what_was_taken_over_is_lost_to_its_former_holder
                }
                takeovers {
                    a_lease_that_ran_out_is_not_granted_without_its_sighting
                    a_sighting_that_is_not_exact_takes_nothing
                    a_renewal_makes_every_older_sighting_worthless
                    a_takeover_is_the_next_attempt_under_a_higher_token
                    a_job_that_may_not_run_again_is_closed_as_lost
                    attempts_end_with_max_attempts
                    what_was_handed_over_is_free_at_once
                    attempts_that_were_handed_over_count_too
                    of_many_takeovers_one_wins
                }
                watching {
                    a_hand_over_is_announced_to_every_replica
                    an_observer_sees_what_ran_out_and_what_was_handed_over
                    an_observer_of_all_sees_live_leases_too
                    a_snapshot_shows_jobs_and_how_they_stand
                    a_snapshot_shows_what_never_started_until_something_newer_runs
                    a_pause_leaves_only_what_nobody_claimed_before_it
                    replicas_are_listed_until_they_depart
                }
                histories {
                    history_is_told_newest_first_and_by_job
                    what_an_attempt_used_comes_back_as_it_was_written
                    what_never_ran_used_nothing
                    why_an_attempt_began_late_is_told_while_it_runs_and_by_its_line
                    all_history_can_be_asked_for_and_none_of_it
                    history_is_kept_up_to_its_limit
                    history_is_kept_up_to_its_age
                    what_an_attempt_printed_is_kept_as_it_was
                    of_a_jobs_outputs_the_newest_are_kept
                    an_output_outlives_a_later_line_of_its_attempt
                }
                batches {
                    a_full_batch_is_answered_in_its_order
                    a_batch_over_the_limit_is_refused_whole
                    a_batch_that_names_a_job_twice_is_refused_whole
                    an_empty_batch_is_answered_with_nothing
                    two_namespaces_never_meet
                }
                telling {
                    news_are_told_to_the_request_that_made_them_and_kept_until_people_know
                    an_attempt_that_takes_long_is_told_once_and_while_it_runs_alone
                }
                definitions {
                    from_the_enrolment_of_a_newer_definition_on_an_older_one_starts_nothing
                    of_two_revisions_the_greater_is_in_force_whichever_came_first
                    a_revision_is_in_force_over_none_whichever_came_first
                    what_the_ledger_lost_begins_with_the_definition_that_the_caller_saw
                    an_outdated_definition_changes_nothing_of_a_job
                    what_runs_by_an_older_definition_is_renewed_and_released
                    a_grant_by_an_older_definition_is_told_again
                    an_older_definition_takes_nothing_over
                    an_older_definition_comes_back_over_the_one_that_is_named
                    what_gave_way_is_newer_again_when_it_comes_back
                    the_same_definition_under_a_greater_revision_is_as_new_as_that
                    who_has_no_say_is_granted_whatever_is_in_force
                }
                tables {
                    a_table_is_shown_until_no_listed_replica_has_it
                    tables_are_known_in_the_order_in_which_they_were_published
                    what_was_never_published_is_not_there
                    a_departure_and_a_table_are_announced
                }
                sale {
                    ten_thousand_contenders_buy_a_hundred_items_once_each
                }
            }
        }
    };
    (@laws $fixture:ty; $($group:ident { $($law:ident)+ })+) => {
        $($(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $law() {
                let bench = crate::bench::Bench::<$fixture>::new().await;
                crate::laws::$group::$law(&bench).await;
            }
        )+)+
    };
}

// The engines, one line each.
conformance!(memory, crate::fixtures::memory::MemoryFixture);
conformance!(sqlite, crate::fixtures::sqlite::SqliteFixture);
conformance!(redis, crate::fixtures::redis::RedisFixture);
conformance!(quorum, crate::fixtures::quorum::QuorumFixture);
