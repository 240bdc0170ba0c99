//! Whatever is typed, the answer is a schedule or an error that stands within the text.

use proptest::prelude::*;

use super::*;

proptest! {
    #![proptest_config(config(5_000))]

    #[test]
    fn gives_a_schedule_or_an_error_within_the_text(
        text in prop_oneof![
            ".{0,40}",
            "[0-9*/,?LWH()#@ \\-A-Z]{0,24}",
            "[0-9*/,?LWH()#é-]{1,6}( [0-9*/,?LWH()#-]{1,5}){4,6}",
            "@(every|at) [0-9a-zTZ:.+ é-]{0,24}",
            "@every ([0-9]{1,9}[dhms]){0,3}[0-9]{0,20}[dhmsµ]?",
            "@at -?[0-9]{4,6}-[01][0-9]-[0-3][0-9][T ][0-2][0-9]:[0-6][0-9](:[0-6][0-9](\\.[0-9]{1,9})?)?(Z|[+-][0-3][0-9]:[0-6][0-9])?",
        ]
    ) {
        match read(&text, "job") {
            Ok(schedule) => {
                let now = at("2026-11-20T22:00:00Z");
                prop_assert!(schedule.next_after(now).is_none_or(|next| next > now));
                prop_assert!(schedule.last_before(now).is_none_or(|last| last < now));
            }
            Err(error) => {
                prop_assert!(text.get(error.span.clone()).is_some(), "{error:?}");
                prop_assert!(!error.message.is_empty() && !error.message.ends_with('.'));
            }
        }
    }
}
