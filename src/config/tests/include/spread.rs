//! However a table is spread over files, it is the same table, and says the same of its faults.

use proptest::prelude::*;

use super::{Place, job, main};

/// Jobs that name each other and calendars, in an order in which they are not sorted.
fn pieces() -> Vec<String> {
    let mut pieces = vec![
        "[calendars.c]\ndates = ['2026-12-25']\n".to_owned(),
        "[calendars.d]\nweekdays = ['SUN']\n".to_owned(),
    ];
    for n in 0..8 {
        let key = ["except = ['c', 'd']", "only = 'd'", "timeout = '5s'"][n % 3];
        pieces.push(format!(
            "[jobs.j{n}]\nschedule = 'H {n} * * *'\nshell = 'é {n}'\n{key}\n"
        ));
        pieces.push(format!(
            "[jobs.k{n}]\nafter = 'j{}'\ncommand = ['k']\n",
            (n + 3) % 8
        ));
    }
    pieces
}

const DEFAULTS: &str = "[defaults]\ntimezone = 'Asia/Shanghai'\nenv = { A = '1' }\n";

proptest! {
    // Each case writes up to five files.
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn how_a_table_is_spread_over_files_changes_nothing(
        files in prop::collection::vec(0..5_usize, 18),
    ) {
        let mut texts = vec![format!("[scheduler]\ninclude = ['*.d/*']\n{DEFAULTS}")];
        texts.extend(["# é\n", "", "\n\n", "#"].map(str::to_owned));
        texts[4].push('\n');
        let mut whole = DEFAULTS.to_owned();
        for (piece, file) in pieces().iter().zip(&files) {
            texts[*file].push_str(piece);
            whole.push_str(piece);
        }
        let one = Place::with(&[("jobs.toml", &whole)]).read();
        let place = Place::with(&[("jobs.toml", &texts[0])]);
        for (index, text) in texts.iter().enumerate().skip(1) {
            place.write(&format!("{}.d/{index}", index % 2), text);
        }
        let spread = place.read();
        prop_assert_eq!(one.digest(), spread.digest());
        prop_assert_eq!(one.diff(&spread).to_string(), "nothing changed");
        prop_assert_eq!(spread.jobs.len(), 16);
        prop_assert!(spread.warnings.is_empty(), "{}", spread.warnings);
    }

    #[test]
    fn a_fault_is_told_at_the_same_text_wherever_its_file_comes(
        before in 0..4_usize,
        jobs in 0..4_usize,
    ) {
        let place = Place::with(&[("jobs.toml", &main("'*.d/*'"))]);
        for n in 0..before {
            place.write(&format!("a.d/{n}"), &format!("{}# é", job(&format!("a{n}"))));
        }
        let good: String = (0..jobs).map(|n| job(&format!("b{n}"))).collect();
        place.write("b.d/x", &format!("{good}# é\n[jobs.bad]\nschedule = '61 * * * *' # é\nshell = 'x'"));
        let faults = place.faults();
        prop_assert_eq!(faults.len(), 1);
        prop_assert_eq!((faults[0].0.as_str(), faults[0].1), ("b.d/x", jobs * 3 + 3));
        let shown = place.try_read().expect_err("a fault").to_string();
        prop_assert!(shown.contains("schedule = '61 * * * *' # é\n"), "{}", shown);
    }
}
