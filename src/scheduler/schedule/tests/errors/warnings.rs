//! Valid schedules that may surprise.

use super::*;

#[test]
fn surprises_are_warned_of() {
    let warned = |text: &str| {
        let schedule = utc(text);
        let places = schedule
            .warnings()
            .iter()
            .map(|warning| text[warning.span.clone()].to_owned());
        places.collect::<Vec<_>>()
    };
    assert_eq!(warned("0 0 13 * FRI"), ["13 * FRI"]);
    assert_eq!(warned("0 0 */2 * MON"), ["*/2", "*/2 * MON"]);
    assert_eq!(warned("*/7 */5 * * *"), ["*/7", "*/5"]);
    assert_eq!(warned("0-59/45 * * * *"), ["0-59/45"]);
    assert_eq!(warned("0-30/7 H/7 * * *"), ["H/7"]);
    // What is 1 to cron and Spring is 2 to Quartz, and only Quartz has years.
    assert_eq!(warned("0 0 9 ? * 2-6 2027-2030"), ["2-6"]);
    assert_eq!(warned("0 0 9 ? * MON,6L *"), ["MON,6L"]);
    assert_eq!(warned("0 0 9 ? * 1#2 *"), ["1#2"]);
    for plain in [
        "0 0 9 ? * MON-FRI *",
        "0 0 9 ? * FRI#2 *",
        "0 0 9 1 * ? *",
        "0 0 9 ? * 2-6",
        "0 9 * * 2-6",
        "*/15 */6 * * *",
        "0 0 ? * MON",
        "0 0 13 * *",
        "@weekly",
        "0 */24 * * *",
    ] {
        assert!(
            utc(plain).warnings().is_empty(),
            "{plain}: {:?}",
            utc(plain).warnings()
        );
    }
}
