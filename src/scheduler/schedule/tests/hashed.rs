//! `H`: the same for ever, spread over jobs, and at the distance of its step.

use super::*;

#[test]
fn a_hash_never_changes() {
    use crate::scheduler::schedule::hash::hash;
    // A change here moves the times of every job that uses `H`.
    assert_eq!(hash("", 0), HASHES[0]);
    assert_eq!(hash("close-expired-orders", 1), HASHES[1]);
    assert_eq!(hash("close-expired-orders", 2), HASHES[2]);
    assert_eq!(
        next(
            &read("H H * * *", "close-expired-orders").expect("valid"),
            "2026-11-20T22:00:00Z",
            1
        ),
        [HASHED_DAILY]
    );
}

/// Computed by another program from the definition.
const HASHES: [u64; 3] = [
    0x25fc_6dd3_6ce0_4b20,
    0x76d6_86ec_8521_1b91,
    0x3f28_1606_9a15_46d5,
];

const HASHED_DAILY: &str = "2026-11-21T13:05:00Z";

#[test]
fn hashed_values_stay_within_their_range_and_spread() {
    let mut minutes = std::collections::BTreeMap::<i64, u32>::new();
    for job in 0..6000 {
        let name = format!("job-{job}");
        let first = |text: &str| {
            let first = read(text, &name)
                .expect("valid")
                .next_after(at("2027-01-31T23:59:59Z"));
            first.expect("due").as_second() - at("2027-02-01T00:00:00Z").as_second()
        };
        *minutes.entry(first("H * * * *") / 60).or_default() += 1;
        assert!(first("H(10-19) * * * *") / 60 >= 10);
        assert!(first("H(10-19) * * * *") / 60 <= 19);
        assert!(first("H/15 * * * *") / 60 < 15);
        assert!(first("H(0-29)/10 * * * *") / 60 < 10);
        assert!(first("0 0 H * *") < 28 * 86_400);
        assert!(first("0 0 H/7 * *") < 7 * 86_400);
    }
    assert_eq!(minutes.len(), 60);
    // 100 each were even; chance leaves hardly any below 60 or above 140 (4 standard deviations).
    assert!(
        minutes.values().all(|count| (60..=140).contains(count)),
        "{minutes:?}"
    );
}

#[test]
fn a_hashed_step_keeps_its_distance() {
    let first = next(
        &read("H/15 * * * *", "report").expect("valid"),
        "2026-11-20T22:00:00Z",
        8,
    );
    let seconds: Vec<i64> = first.iter().map(|text| at(text).as_second()).collect();
    assert!(
        seconds.windows(2).all(|pair| pair[1] - pair[0] == 900),
        "{first:?}"
    );
    // 0-29 in steps of 10: three, and none in the second half of the hour.
    let half = read("H(0-29)/10 * * * *", "report").expect("valid");
    let hour = next(&half, "2026-11-20T21:59:59Z", 4);
    assert!(
        at(&hour[2]) < at("2026-11-20T22:30:00Z") && at(&hour[3]) >= at("2026-11-20T23:00:00Z"),
        "{hour:?}"
    );
}

#[test]
fn a_field_hashes_alike_in_five_fields_and_in_six() {
    let five = next(
        &read("H H * * *", "report").expect("valid"),
        "2026-11-20T22:00:00Z",
        2,
    );
    let six = next(
        &read("0 H H * * *", "report").expect("valid"),
        "2026-11-20T22:00:00Z",
        2,
    );
    assert_eq!(five, six);
}
