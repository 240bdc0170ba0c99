//! How the parts of a record are put into its text.
//!
//! Must never: round. Whole numbers below 2^53 are what every reader of JSON keeps.

/// Left out of the text: reading puts it back.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A length of time as whole milliseconds.
pub(super) mod in_millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    use crate::scheduler::time::millis;

    pub(crate) fn serialize<S: Serializer>(
        duration: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(millis(*duration))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::super::{Record, State};
    use crate::scheduler::job::OnCrash;
    use crate::scheduler::lease::{FencingToken, Outcome, Replica, RunId};
    use crate::scheduler::time::Timestamp;

    fn record() -> Record {
        Record {
            scheduled_at: Timestamp::from_millis(1_763_680_000_000),
            state: State::Running,
            holder: Replica {
                id: Uuid::from_u128(2),
                name: "a \"b\"|c/日".to_owned(),
            },
            run_id: RunId::new(Uuid::from_u128(1)),
            token: FencingToken::MAX,
            deadline: Timestamp::from_millis(1_763_680_015_000),
            attempt: 3,
            ttl: Duration::from_millis(15_000),
            settled_until: Timestamp::from_millis(-1),
            on_crash: OnCrash::Skip,
            since: Timestamp::from_millis(1_763_680_000_123),
        }
    }

    #[test]
    fn a_record_is_read_to_the_last_digit_whatever_its_holder_is_called() {
        let states = [
            State::New,
            State::Running,
            State::Ended(Outcome::HandedOver),
            State::Ended(Outcome::TimedOut),
        ];
        for state in states {
            let record = Record { state, ..record() };
            let text = record.to_text().unwrap();
            assert!(!text.contains('\n'), "{text}");
            assert_eq!(Record::from_text(&text), Some(record), "{text}");
        }
    }

    #[test]
    fn what_has_its_default_takes_no_room() {
        let plain = Record {
            attempt: 0,
            ttl: Duration::ZERO,
            on_crash: OnCrash::Rerun,
            ..record()
        };
        let text = plain.to_text().unwrap();
        for left_out in ["\"ttl\"", "\"crash\"", "\"n\""] {
            assert!(!text.contains(left_out), "{text}");
        }
        assert_eq!(Record::from_text(&text), Some(plain));
    }

    #[test]
    fn a_text_of_another_form_is_no_record() {
        let text = record().to_text().unwrap();
        let more = format!("{},\"new\":1}}", text.trim_end_matches('}'));
        for bad in [
            "",
            "{}",
            "1|running|torn",
            &text[..text.len() - 1],
            &text.replace("running", "runs"),
            &text.replace("\"n\":3", "\"n\":-3"),
            &text.replace(&FencingToken::MAX.to_string(), &(1u64 << 53).to_string()),
            &more,
        ] {
            assert_eq!(Record::from_text(bad), None, "{bad}");
        }
    }
}
