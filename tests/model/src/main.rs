//! Prints what the searches find: `make model`.
//!
//! ```text
//! cargo run --release -p soloist-model              all of it
//! cargo run --release -p soloist-model -- quick     what is searched in a minute
//! cargo run --release -p soloist-model -- traces    the counterexamples
//! cargo run --release -p soloist-model -- only NAME one of them, with its trace
//! cargo run --release -p soloist-model -- write     docs/model.md anew, where that differs
//! ```
//!
//! Must never: end with 0 where something came out otherwise than it has to.

use std::io::{Error, ErrorKind};
use std::process::ExitCode;
use std::{env, fs};

use soloist_model::page::{rewritten, without_times};
use soloist_model::report::{HEAD, Report, run};
use soloist_model::scenarios::{Scenario, locks, long, missing_guards, quick};

/// What the program writes a part of.
const PAGE: &str = "docs/model.md";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let falling = || [missing_guards(), locks()].concat();
    let reports = match arguments.as_slice() {
        [] => table(&[quick(), falling(), long()].concat()),
        ["quick"] => table(&[quick(), falling()].concat()),
        ["traces"] => told(&falling(), |report| {
            if report.steps.is_some() {
                println!("{}", report.story());
            }
        }),
        ["only", name] => {
            let mut all = [quick(), falling(), long()].concat();
            all.retain(|scenario| scenario.name == *name);
            let reports = table(&all);
            reports
                .iter()
                .for_each(|report| println!("\n{}", report.story()));
            reports
        }
        ["write"] => match write() {
            Ok(reports) => reports,
            Err(error) => {
                eprintln!("{PAGE}: {error}");
                return ExitCode::FAILURE;
            }
        },
        _ => {
            eprintln!("soloist-model [quick | traces | only NAME | write]");
            return ExitCode::from(2);
        }
    };
    match !reports.is_empty() && reports.iter().all(|report| report.as_expected) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn table(scenarios: &[Scenario]) -> Vec<Report> {
    println!("{HEAD}");
    told(scenarios, |report| println!("{}", report.line()))
}

fn write() -> Result<Vec<Report>, Error> {
    let reports = table(&[quick(), missing_guards(), locks()].concat());
    let before = fs::read_to_string(PAGE)?;
    let page = rewritten(&before, &reports);
    let page = page.ok_or_else(|| Error::new(ErrorKind::InvalidData, "its marks are gone"))?;
    if without_times(&page) != without_times(&before) {
        fs::write(PAGE, page)?;
    }
    Ok(reports)
}

/// One after the other, each told as soon as it is known: the large ones need the memory.
fn told(scenarios: &[Scenario], tell: impl Fn(&Report)) -> Vec<Report> {
    let one = |scenario: &Scenario| {
        let report = run(scenario);
        tell(&report);
        report
    };
    scenarios.iter().map(one).collect()
}
