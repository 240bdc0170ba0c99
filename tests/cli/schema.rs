//! What `soloist schema` prints refuses what `check` refuses for its form, and takes what it
//! takes: `Place` looks at each table that any test here has checked.

use std::sync::LazyLock;

use test_support::schema::Schema;

use crate::faults::{FAULTS, Fault};
use crate::soloist::Place;
use crate::{calendar_faults, http_faults, policy_faults};

/// What the schema has against a table.
pub(crate) fn faults_of(table: &str) -> Vec<String> {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
        let ended = Place::empty().run(&["schema"]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        Schema::new(&serde_json::from_str(&ended.stdout).expect("JSON"))
    });
    SCHEMA.faults(table)
}

/// What is said of a value that is of another type, is none of a few words, or no number within
/// limits; and of a key that there is not.
const OF_FORM: [&str; 5] = [
    "unknown key",
    "takes a",
    "is a number from",
    "is not supported yet",
    "` or `",
];

/// What sounds like it and takes more than a look at one value's form.
const OF_MORE: [&str; 2] = ["a job has either", "as an id"];

fn is_of_form(fault: &Fault) -> bool {
    let says = |parts: &[&str]| parts.iter().any(|part| fault.message.contains(part));
    says(&OF_FORM) && !says(&OF_MORE)
}

#[test]
fn what_check_refuses_for_its_form_the_schema_refuses_too() {
    let job = "[jobs.x]\nschedule = \"@daily\"\ncommand = [\"x\"]\n";
    let all = [
        FAULTS,
        http_faults::FAULTS,
        policy_faults::FAULTS,
        calendar_faults::FAULTS,
    ];
    let of_form = all.into_iter().flatten().filter(|fault| is_of_form(fault));
    let mut seen = 0;
    for fault in of_form {
        let table = fault.table.replace('%', job);
        assert_ne!(faults_of(&table), [""; 0], "{table}\n{}", fault.message);
        seen += 1;
    }
    assert!(seen > 30, "{seen}");
}
