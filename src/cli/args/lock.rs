//! The flags of `lock`.

use std::time::Duration;

use clap::ValueEnum;

use crate::config::{format_duration, parse_duration};
use crate::scheduler::lease::LeaseName;
use crate::scheduler::margins::{LONGEST_TTL, SHORTEST_TTL};

#[derive(clap::Args, Debug)]
pub(crate) struct LockArgs {
    /// What to have a lease of: of all of them, or of none.
    #[arg(value_name = "NAME", required = true, value_parser = read_name)]
    pub(crate) names: Vec<LeaseName>,
    /// How long to wait for it, 0s for not at all [default: as long as it takes].
    #[arg(short = 'w', long, value_name = "T", value_parser = read_duration, allow_hyphen_values = true)]
    pub(crate) wait: Option<Duration>,
    /// Share it with all others who share it; who wants it alone waits for all of them.
    #[arg(short, long)]
    pub(crate) shared: bool,
    /// How long it lasts if this host vanishes, from 1s to 1h; the same everywhere, best.
    #[arg(long, default_value = "15s", value_name = "T", value_parser = read_ttl, allow_hyphen_values = true)]
    pub(crate) ttl: Duration,
    /// What becomes of the command when the lease can't be kept: TERM in time for KILL to follow, or
    /// KILL alone, as late as may be.
    #[arg(long, default_value = "term", value_name = "HOW")]
    pub(crate) on_lost: OnLost,
    /// From TERM to KILL, when this is told to stop; less, where the lease leaves less.
    #[arg(long, default_value = "10s", value_name = "T", value_parser = read_duration, allow_hyphen_values = true)]
    pub(crate) kill_grace: Duration,
    /// What to exit with when somebody else has it and the wait is over.
    #[arg(short = 'E', long, default_value_t = 1, value_name = "N")]
    pub(crate) conflict_exit_code: u8,
    /// The command, after `--`: executed as it stands, without a shell.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// How a command ends whose lease is being lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnLost {
    /// TERM, and KILL when it must be over.
    Term,
    /// KILL, when it must be over.
    Kill,
}

fn read_name(text: &str) -> Result<LeaseName, String> {
    LeaseName::new(text).map_err(|error| error.to_string())
}

fn read_duration(text: &str) -> Result<Duration, String> {
    let read = parse_duration(text);
    read.map_err(|error| format!("it {}: {}", error.message, error.hint))
}

fn read_ttl(text: &str) -> Result<Duration, String> {
    let ttl = read_duration(text)?;
    match (SHORTEST_TTL..=LONGEST_TTL).contains(&ttl) {
        true => Ok(ttl),
        false => Err(format!(
            "it takes from {} to {}",
            format_duration(SHORTEST_TTL),
            format_duration(LONGEST_TTL)
        )),
    }
}
