//! How long a search takes. Run by hand, in release:
//! `cargo test --release schedule::tests::speed -- --ignored --nocapture`.

use std::hint::black_box;
use std::time::Instant;

use super::*;

const ROUNDS: u32 = 200_000;

#[test]
#[ignore = "measures, asserts nothing"]
fn a_search_takes_well_under_two_microseconds() {
    let texts = [
        "0 */1 * * * ?",
        "30 2 * * *",
        "0 9-17 * * MON-FRI",
        "0 0 1 * *",
        "0 0 L * *",
        "0 0 29 2 *",
        "@every 5m",
    ];
    for name in ["UTC", "Asia/Shanghai", "America/New_York"] {
        for text in texts {
            let schedule = zoned(text, name, DstGap::RunAfter, DstFold::First);
            let start = at("2026-11-20T22:00:00Z").as_second();
            let times = |search: &dyn Fn(Timestamp) -> Option<Timestamp>| {
                let begun = Instant::now();
                for round in 0..i64::from(ROUNDS) {
                    black_box(search(Timestamp::from_second(start + round * 97)));
                }
                begun.elapsed() / ROUNDS
            };
            let next = times(&|at| schedule.next_after(at));
            let last = times(&|at| schedule.last_before(at));
            println!("{name:18} {text:20} next {next:?} last {last:?}");
        }
    }
}
