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

    use super::super::forgetting::Day;
    use super::super::record::{
        Current, Join, NeverStarted, Paused, Record, Slot, State, Suspension, Waiting,
    };
    use super::super::telling::Alert;
    use crate::scheduler::job::{JobName, OnCrash};
    use crate::scheduler::lease::{
        Cause, Definition, FencingToken, Force, Late, Lineage, Origin, Outcome, Replica, RunId,
        StopFor, StopOrder,
    };
    use crate::scheduler::time::Timestamp;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(1_763_680_000_000 + millis)
    }

    fn slot(state: State) -> Slot {
        Slot {
            state,
            attempt: 3,
            failures: 2,
            run_id: RunId::new(Uuid::from_u128(1)),
            token: FencingToken::MAX,
            holder: Replica {
                id: Uuid::from_u128(2),
                name: "a \"b\"|c/日".to_owned(),
            },
            deadline: at(15_000),
            ttl: Duration::from_millis(15_000),
            on_crash: OnCrash::Skip,
            since: at(123),
            late: (state == State::Running).then_some(Late::Turn {
                behind: at(1),
                until: at(2),
            }),
        }
    }

    fn waiting() -> Waiting {
        Waiting {
            scheduled_at: at(60_000),
            origin: Origin::After,
            by: None,
            since: at(60_001),
            start_by: Some(at(120_000)),
            queued: true,
            late: Some(Late::Away),
        }
    }

    fn paused() -> Paused {
        Paused {
            since: at(1),
            by: "alice@desk".to_owned(),
        }
    }

    fn force() -> Force {
        let mut known = Lineage::default();
        for (digest, revision) in [("fedcba9876543210", None), ("0123456789abcdef", Some(7))] {
            let digest = digest.to_owned();
            known.note(&Definition { digest, revision }, "");
        }
        let digest = "0123456789abcdef".to_owned();
        Force { digest, known }
    }

    fn full(state: State) -> Record {
        Record {
            settled_until: Timestamp::from_millis(-1),
            token: FencingToken::MAX,
            schedule: "0 3 * * *".to_owned(),
            paused: Some(paused()),
            force: Some(force()),
            disabled: Some(at(2)),
            lost_until: Some(at(4)),
            enrolled_on: Day(20_415),
            suspensions: vec![Suspension {
                since: at(-5),
                until: at(-3),
                cause: Cause::Paused,
                words: "the job was paused by dave@desk".to_owned(),
            }],
            current: Some(Current {
                scheduled_at: at(0),
                origin: Origin::Trigger,
                by: Some("bob@desk".to_owned()),
                stop: Some(StopOrder {
                    why: StopFor::Killed,
                    by: "carol@desk".to_owned(),
                    at: at(3),
                }),
                slots: vec![slot(state), slot(State::Idle)],
            }),
            waiting: vec![waiting()],
            joins: vec![Join {
                scheduled_at: at(5),
                arrived: vec![JobName::new("extract").unwrap()],
                dead: true,
            }],
            unstarted: vec![
                NeverStarted {
                    scheduled_at: at(9),
                    outcome: Outcome::Missed,
                    cause: Cause::ScheduleChanged,
                    within: Some((at(8), "* * * * * UTC".to_owned())),
                },
                NeverStarted {
                    scheduled_at: at(8),
                    outcome: Outcome::Skipped,
                    cause: Cause::Overlap,
                    within: None,
                },
            ],
            triggered: vec![(RunId::new(Uuid::from_u128(9)), at(7))],
            alert: Some(Alert::sample()),
        }
    }

    #[test]
    fn a_record_is_read_to_the_last_digit_whatever_its_holder_is_called() {
        let states = [
            State::Idle,
            State::Running,
            State::Again(Outcome::HandedOver),
            State::Ended(Outcome::TimedOut),
        ];
        for state in states {
            let record = full(state);
            let text = record.to_text().unwrap();
            assert!(!text.contains('\n'), "{text}");
            assert_eq!(Record::from_text(&text), Some(record), "{text}");
        }
    }

    #[test]
    fn what_has_its_default_takes_no_room() {
        let idle = Record {
            settled_until: at(0),
            ..Record::default()
        };
        let text = idle.to_text().unwrap();
        assert!(text.len() < 40, "{text}");
        assert_eq!(Record::from_text(&text), Some(idle));
        let ran = Record {
            paused: None,
            force: None,
            disabled: None,
            lost_until: None,
            suspensions: Vec::new(),
            waiting: Vec::new(),
            joins: Vec::new(),
            unstarted: Vec::new(),
            triggered: Vec::new(),
            alert: None,
            current: full(State::Running).current.map(|current| Current {
                origin: Origin::Schedule,
                by: None,
                stop: None,
                slots: vec![slot(State::Ended(Outcome::Succeeded))],
                ..current
            }),
            ..full(State::Running)
        };
        let text = ran.to_text().unwrap();
        assert!(text.len() < 400, "{} bytes: {text}", text.len());
    }

    #[test]
    fn a_text_of_another_form_is_no_record() {
        let text = full(State::Running).to_text().unwrap();
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
