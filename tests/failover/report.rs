//! The table of what was measured, as the manual has it.
//!
//! Must never: leave a scenario out because it failed.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::Scenario;
use crate::figures::Figures;

/// One fault and what came of it.
pub(crate) struct Row {
    pub(crate) scenario: &'static Scenario,
    pub(crate) outage: Duration,
    pub(crate) ledger_kept: bool,
    pub(crate) figures: Figures,
}

static ROWS: Mutex<Vec<Row>> = Mutex::new(Vec::new());

/// Keeps a row for the table.
pub(crate) fn add(row: Row) {
    let mut rows = ROWS.lock().unwrap_or_else(PoisonError::into_inner);
    rows.push(row);
}

const HEAD: &str = "
| deployment | fault | it lasted | overlaps | `skip` twice | taken over | again as if new | lost | \
tokens in order | first start | last job's |
|---|---|---|---|---|---|---|---|---|---|---|";

/// Prints all rows, in the order of the scenarios.
pub(crate) fn print(order: &[&'static Scenario]) {
    let mut rows = ROWS.lock().unwrap_or_else(PoisonError::into_inner);
    if rows.is_empty() {
        return;
    }
    let place = |row: &Row| order.iter().position(|one| one.law == row.scenario.law);
    rows.sort_by_key(place);
    println!("{HEAD}");
    for row in rows.iter() {
        println!("{}", line(row));
    }
    println!();
}

fn line(row: &Row) -> String {
    let figures = &row.figures;
    let tokens = match figures.tokens_out_of_order.len() {
        0 => "yes".to_owned(),
        count => format!("no: {count}"),
    };
    let lost = match (figures.lost.len(), row.ledger_kept) {
        (count, true) => count.to_string(),
        (count, false) => format!("{count}; {} before", figures.before_the_ledger.len()),
    };
    let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f64());
    [
        String::new(),
        row.scenario.deployment.to_owned(),
        row.scenario.fault.to_owned(),
        seconds(row.outage),
        figures.overlaps.len().to_string(),
        figures.skip_twice.len().to_string(),
        figures.rerun.len().to_string(),
        figures.forgotten.len().to_string(),
        lost,
        tokens,
        seconds(figures.first),
        seconds(figures.last),
        String::new(),
    ]
    .join(" | ")
    .trim()
    .to_owned()
}
