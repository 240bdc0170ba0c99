//! The flags of `lock`.

use std::time::Duration;

use clap::ValueEnum;

use crate::config::{format_duration, parse_duration};
use crate::scheduler::lease::LeaseName;
use crate::scheduler::margins::{LONGEST_TTL, SHORTEST_TTL};

/// The flag in whose presence there is no command.
const LIST: &str = "list";

/// What the derived one would make of a command that is only needed where nothing is listed.
pub(crate) const USAGE: &str = "soloist lock [OPTIONS] <NAME>... -- <COMMAND>...\n       soloist lock [OPTIONS] --list [NAME]...";

/// What stands below the flags in help and manual.
pub(crate) const AFTER_HELP: &str = "Examples:\n  soloist lock migrate --wait 5m -- ./migrate.sh\n  \
     soloist lock -n -E 75 nightly -- ./report\n  \
     soloist lock --shared catalogue -- ./read-catalogue\n  \
     soloist lock stock:42 order:7 -- ./move\n  \
     soloist --store redis://redis:6379 --namespace shop lock --list\n\n\
     The command gets SOLOIST_FENCING_TOKEN, and reads and writes what this would. Below it, `soloist lock` is let in again to the names it has, and goes to the same store.\n\n\
     SIGINT, SIGTERM, SIGHUP and SIGQUIT have the command end by TERM, a second one by KILL; SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH and SIGCONT are passed on to it; SIGTSTP (Ctrl-Z) does nothing.\n\n\
     Exits with the command's own code, or 128 and the number of the signal that ended it. Otherwise:\n  \
     1: the lease was lost while it ran, or somebody else has it and the wait is over (--conflict-exit-code)\n  \
     2: what was asked makes no sense\n  \
     3: the store can't be reached\n  \
     126: the command can't be executed\n  \
     127: there is no such command\n\
     Told to stop, it ends by the signal that told so, unless the command ends with a code of its own: a shell shows 130 for Ctrl-C, and ends its loop.";

#[derive(clap::Args, Debug)]
pub(crate) struct LockArgs {
    /// What to have a lease of: of all of them, or of none.
    #[arg(value_name = "NAME", required_unless_present = LIST, value_parser = read_name)]
    pub(crate) names: Vec<LeaseName>,
    /// How long to wait for it, 0s for not at all [default: as long as it takes].
    #[arg(short = 'w', long, value_name = "T", value_parser = read_duration, allow_hyphen_values = true)]
    wait: Option<Duration>,
    /// Don't wait for it: as `--wait 0s`.
    #[arg(short = 'n', long, alias = "nb", conflicts_with = "wait")]
    nonblock: bool,
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
    /// Say nothing of what is waited for, who has it, and where; errors are told.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Print who has which lease, and who waits; with names, of these alone. Runs nothing.
    #[arg(long, conflicts_with = "command")]
    pub(crate) list: bool,
    /// Print JSON.
    #[arg(long, requires = LIST)]
    pub(crate) json: bool,
    /// The command, after `--`: executed as it stands, without a shell.
    #[arg(last = true, required_unless_present = LIST, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

impl LockArgs {
    /// How long to wait; none for as long as it takes.
    pub(crate) fn patience(&self) -> Option<Duration> {
        match self.nonblock {
            true => Some(Duration::ZERO),
            false => self.wait,
        }
    }
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
