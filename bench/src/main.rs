//! What soloist costs beside what it replaces, measured in one run on one machine: its timer
//! beside tokio-cron-scheduler's, an attempt beside a bare posix_spawn(3) (`spawn`), and named leases
//! beside bare Redis (`leases`).
//!
//! The timers: both do what they do before any job starts: soloist finds what is due, claims it from the
//! in-memory store, and releases it again; tokio-cron-scheduler calls an empty callback. Each
//! measurement has a process of its own. Quote the ratios: the figures are the machine's.

mod leases;
mod own;
mod sample;
mod spawn;
mod theirs;

use std::process::{Command, ExitCode};

use sample::Sample;

/// A measurement: how many jobs, how often, for how long.
#[derive(Clone, Copy)]
struct Scenario {
    name: &'static str,
    jobs: usize,
    schedule: &'static str,
    seconds: u64,
}

const SCENARIOS: [Scenario; 4] = [
    Scenario {
        name: "1 job each second",
        jobs: 1,
        schedule: "* * * * * *",
        seconds: 20,
    },
    Scenario {
        name: "1,000 jobs each second",
        jobs: 1_000,
        schedule: "* * * * * *",
        seconds: 10,
    },
    Scenario {
        name: "10,000 jobs each 5 s",
        jobs: 10_000,
        schedule: "*/5 * * * * *",
        seconds: 15,
    },
    Scenario {
        name: "10,000 jobs, none due",
        jobs: 10_000,
        schedule: "0 0 0 1 1 *",
        seconds: 20,
    },
];

fn main() -> ExitCode {
    soloist::guardian::run_if_guardian();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if spawn::tell_if_asked(&arguments) {
        return ExitCode::SUCCESS;
    }
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["leases"] => {
            leases::compare();
            ExitCode::SUCCESS
        }
        ["spawn"] => {
            spawn::compare();
            ExitCode::SUCCESS
        }
        ["spawn", megabytes] => match megabytes.parse() {
            Ok(megabytes) => spawn::measure_here(megabytes),
            Err(_) => ExitCode::from(2),
        },
        [who, index] => match index
            .parse()
            .ok()
            .and_then(|index: usize| SCENARIOS.get(index))
        {
            Some(scenario) => measure_here(who, *scenario),
            None => ExitCode::from(2),
        },
        _ => {
            leases::compare();
            println!();
            spawn::compare();
            println!();
            compare_all()
        }
    }
}

/// The child's part.
fn measure_here(who: &str, scenario: Scenario) -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let sample = match who {
        "own" => runtime.block_on(own::measure(scenario)),
        _ => runtime.block_on(theirs::measure(scenario)),
    };
    println!("{}", sample.to_line());
    // Neither scheduler is asked to end in good order.
    runtime.shutdown_background();
    ExitCode::SUCCESS
}

fn compare_all() -> ExitCode {
    println!(
        "{:24} {:22} {:>8} {:>8} {:>8} {:>10} {:>9}",
        "", "", "p50 ms", "p99 ms", "max ms", "fired/due", "CPU %"
    );
    for (index, scenario) in SCENARIOS.iter().enumerate() {
        let own = measure_in_child("own", index);
        let theirs = measure_in_child("theirs", index);
        println!("{:24} {:22} {}", scenario.name, "soloist", own.columns());
        println!(
            "{:24} {:22} {}",
            "",
            "tokio-cron-scheduler",
            theirs.columns()
        );
        println!("{:24} {:22} {}", "", "ratio", theirs.ratio_to(&own));
    }
    ExitCode::SUCCESS
}

fn measure_in_child(who: &str, index: usize) -> Sample {
    let program = std::env::current_exe().expect("a path to this program");
    let output = Command::new(program)
        .args([who, &index.to_string()])
        .output()
        .expect("a child that runs");
    let text = String::from_utf8_lossy(&output.stdout);
    Sample::from_line(text.lines().last().unwrap_or_default()).unwrap_or_else(|| {
        panic!(
            "no measurement: {}",
            String::from_utf8_lossy(&output.stderr)
        )
    })
}
