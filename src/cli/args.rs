//! The flags and commands, as users type them and read about them.
//!
//! What was said, not what it means: [`super::settings`] puts flags, environment and file
//! together. Must never show the value of an environment variable, as a URL may hold a password.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{
    ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum, ValueHint,
};
use clap_complete::Shell;

mod dashes;
mod empty;
mod healthcheck;
mod import;
mod lock;
mod orders;
mod verify;

pub(crate) use healthcheck::HealthcheckArgs;
pub(crate) use import::{From as ImportFrom, ImportArgs};
pub(crate) use lock::{LockArgs, OnLost};
pub(crate) use orders::{AskingArgs, KillArgs, PauseArgs, TriggerArgs, WaitingArgs, is_printable};
pub(crate) use verify::VerifyArgs;

/// One cron table on many machines: each occurrence of a job runs on one replica alone.
#[derive(Debug, Parser)]
#[command(
    name = "soloist",
    version,
    arg_required_else_help = true,
    after_help = "Start with `soloist check`, then `soloist run` on every machine.\n\
                  Precedence: flag, SOLOIST_* variable, jobs.toml, default.\n\
                  Exit codes: 0 done, 1 failed, 2 usage or config error, 3 store unreachable."
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The flag for the store, which `check` has in a form of its own.
const STORE: &str = "store";

impl Args {
    /// Reads the command line of this process.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        Self::from(std::env::args_os())
    }

    fn from(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let mut words: Vec<_> = words.into_iter().collect();
        let args = Self::parse(&words)?;
        if !matches!(&args.command, Command::Check(check) if check.compare)
            || args.global.store.as_deref() != Some("")
        {
            return Ok(args);
        }
        // A flag without a URL must not hide the one that stands before it, or in the environment.
        if let Some(at) = words.iter().rposition(|word| word == "--store") {
            words.remove(at);
        }
        let mut args = Self::parse(&words)?;
        if let Command::Check(check) = &mut args.command {
            check.compare = true;
        }
        Ok(args)
    }

    fn parse(words: &[OsString]) -> Result<Self, clap::Error> {
        let mut command = Self::command();
        let read = command.try_get_matches_from_mut(words);
        let mut matches = read.map_err(|error| dashes::explained(&command, words, error))?;
        let on_command_line = |matches: &ArgMatches| {
            let source = matches.value_source(STORE);
            source == Some(ValueSource::CommandLine)
        };
        let compare = matches
            .subcommand()
            .is_some_and(|(_, own)| on_command_line(own));
        let empty = empty::flag(&matches);
        let mut args =
            Self::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))?;
        if let Some(flag) = empty {
            let message = format!(
                "`--{flag}` is empty: name one, or leave the flag out to go by SOLOIST_{} or the table",
                flag.to_uppercase()
            );
            return Err(command.error(ErrorKind::InvalidValue, message));
        }
        if let Command::Check(check) = &mut args.command {
            check.compare = compare;
        }
        Ok(args)
    }
}

/// The command line as it is declared.
pub(crate) fn declared() -> clap::Command {
    Args::command()
}

/// Where help lists what every command takes, so that a command's own flags stand first.
const EVERYWHERE: &str = "Options of every command";

/// What every command takes, before or after its name.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Global {
    /// The table of jobs [default: jobs.toml].
    #[arg(
        long,
        global = true,
        help_heading = EVERYWHERE,
        env = "SOLOIST_CONFIG",
        hide_env_values = true,
        value_hint = ValueHint::FilePath,
        value_name = "FILE"
    )]
    pub(crate) config: Option<OsString>,

    /// Where leases and the ledger live: `redis://HOST:PORT`, `sqlite:PATH` or `memory:`
    /// [default: an embedded SQLite file].
    #[arg(
        id = STORE,
        long,
        global = true,
        help_heading = EVERYWHERE,
        env = "SOLOIST_STORE",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub(crate) store: Option<String>,

    /// Prefix of every key in the store, so that fleets in one Redis never meet
    /// [default: default].
    #[arg(
        long,
        global = true,
        help_heading = EVERYWHERE,
        env = "SOLOIST_NAMESPACE",
        hide_env_values = true,
        value_name = "NAME"
    )]
    pub(crate) namespace: Option<String>,

    /// What is logged: off, error, warn, info, debug, trace, or by part,
    /// `info,soloist::output=off` (without the output of jobs) [default: info; warn where the store
    /// is only asked or told].
    #[arg(
        long,
        global = true,
        help_heading = EVERYWHERE,
        env = "SOLOIST_LOG_LEVEL",
        hide_env_values = true,
        value_name = "LEVEL"
    )]
    pub(crate) log_level: Option<String>,

    /// How it is logged, always to stderr: text for people, or json, one flat object a line
    /// [default: text; without time where that is systemd's journal].
    #[arg(
        long,
        global = true,
        help_heading = EVERYWHERE,
        env = "SOLOIST_LOG_FORMAT",
        hide_env_values = true,
        value_name = "FORMAT",
        value_parser = read_log_format
    )]
    pub(crate) log_format: Option<LogFormat>,
}

/// `--log-format`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// One flat object a line.
    Json,
}

/// A variable that is set to nothing counts as not set.
fn read_log_format(text: &str) -> Result<LogFormat, String> {
    if text.is_empty() {
        return Ok(LogFormat::default());
    }
    LogFormat::from_str(text, true).map_err(|_| "the formats are text and json".into())
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the table: the daemon, the same on every machine.
    #[command(
        after_help = "Example: soloist run --config /etc/soloist/jobs.toml\n\n\
                      SIGTERM drains: no new attempts, and those that run get shutdown_grace. A second one stops now."
    )]
    Run(RunArgs),
    /// Validate the table and print each job with its next occurrences; needs no store.
    #[command(
        after_help = "Example: soloist check --config jobs.toml && deploy jobs.toml\n\n\
                      `soloist check --store` compares the table with the ledger, before replicas start with it."
    )]
    Check(CheckArgs),
    /// Print the next occurrences of a job or of a schedule.
    #[command(after_help = "Examples:\n  soloist next close-expired-orders\n  \
                      soloist next \"30 2 * * *\" --timezone America/New_York --from 2027-03-13 -n 3")]
    Next(NextArgs),
    /// Print the jobs with last outcome, holder and next occurrence, and the replicas.
    #[command(
        after_help = "Examples:\n  soloist status --json | jq '.jobs[] | .name'\n  \
                      soloist status --watch"
    )]
    Status(StatusArgs),
    /// Print past attempts, the newest first.
    #[command(after_help = "Example: soloist history close-expired-orders -n 50")]
    History(HistoryArgs),
    /// Tell what became of an occurrence, and why.
    #[command(
        after_help = "Examples:\n  soloist why close-expired-orders 2026-11-20T22:00:00Z\n  \
                      soloist why close-expired-orders 2026-11-20 02:30\n\n\
                      Exits with 0 when it can tell, whatever it tells; with 1 when nobody knows the job."
    )]
    Why(WhyArgs),
    /// Print the output of an attempt.
    #[command(
        after_help = "Example: soloist logs close-expired-orders --at 2026-11-20T22:00:00Z --attempt 1"
    )]
    Logs(LogsArgs),
    /// Ask for an occurrence of a job now, on whatever replica, under the job's policies.
    #[command(
        after_help = "Example: soloist trigger close-expired-orders --wait\n\n\
                      Nothing is lost while no replica is there: it runs once, when one is."
    )]
    Trigger(TriggerArgs),
    /// Skip what falls due of jobs, on every replica, until they are resumed.
    #[command(after_help = "Example: soloist pause close-expired-orders report\n\n\
                      What runs goes on; `soloist trigger` still runs a paused job.")]
    Pause(PauseArgs),
    /// End the pause of jobs. What fell due meanwhile stays skipped.
    #[command(after_help = "Example: soloist resume close-expired-orders")]
    Resume(PauseArgs),
    /// End what runs of a job, on whatever replica, and what waits to be tried again.
    #[command(after_help = "Example: soloist kill close-expired-orders --wait")]
    Kill(KillArgs),
    /// Run a job here and now, under its lease, with its output on the terminal.
    #[command(after_help = "Example: soloist run-once close-expired-orders\n\n\
                      Exits with the command's own code.")]
    RunOnce(RunOnceArgs),
    /// Run any command under a lease: flock(1) across hosts.
    #[command(override_usage = lock::USAGE, after_help = lock::AFTER_HELP)]
    Lock(LockArgs),
    /// Test soloist against your own store: replicas that are killed, frozen and cut off, and what held.
    #[command(after_help = "Example: soloist verify --store redis://redis:6379\n\n\
                      It takes a minute, uses a namespace of its own, and leaves nothing behind; the server itself is never hurt.\n\n\
                      Exits with 0 when all that is promised held; with 1 when something did not, or too little was seen; with 3 when the store is, or goes, away.")]
    Verify(VerifyArgs),
    /// Carry a crontab, or CronJobs of Kubernetes, over into a table, and tell what differs.
    #[command(
        after_help = "Examples:\n  crontab -l | soloist import - --timezone Europe/Berlin > jobs.toml\n  \
                      soloist import /etc/cron.d/shop --output jobs.toml\n  \
                      kubectl get cronjobs -o yaml | soloist import - > jobs.toml\n\n\
                      Exits with 0 when all was carried over, differences or not; with 1 when something was not."
    )]
    Import(ImportArgs),
    /// Print the JSON Schema of jobs.toml, for editors.
    #[command(after_help = "Example: soloist schema > jobs.schema.json\n\n\
                      `#:schema ./jobs.schema.json` as the first line of jobs.toml tells editors with Taplo (Even Better TOML).")]
    Schema,
    /// Print the completions of a shell, to be loaded by it.
    #[command(after_help = "Examples:\n  \
                      soloist completions bash > /etc/bash_completion.d/soloist\n  \
                      soloist completions zsh > /usr/local/share/zsh/site-functions/_soloist\n  \
                      soloist completions fish > ~/.config/fish/completions/soloist.fish")]
    Completions(CompletionsArgs),
    /// Print the manual page, or write a page for each command and for jobs.toml.
    #[command(after_help = "Examples:\n  soloist man | man -l -\n  \
                      soloist man --directory man")]
    Man(ManArgs),
    /// Ask the replica on this host whether it is alive.
    #[command(after_help = "Example: soloist healthcheck --ready\n\n\
                      Exits with 0 where it is, with 1 where it is not or nobody answers, with 2 where `--listen` is no address.\n\n\
                      For container images, which have neither shell nor curl: HEALTHCHECK CMD [\"soloist\", \"healthcheck\"]")]
    Healthcheck(HealthcheckArgs),
}

#[derive(clap::Args, Debug)]
pub(crate) struct CheckArgs {
    /// Compare the table with the ledger of its store, or of this one.
    #[arg(
        id = STORE,
        long,
        num_args = 0..=1,
        default_missing_value = "",
        value_name = "URL"
    )]
    store: Option<String>,
    /// The flag stands on the command line, where a variable of the same meaning may do as well.
    #[arg(skip)]
    pub(crate) compare: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct RunArgs {
    /// This replica's name, for people [default: the host's name].
    #[arg(
        long,
        env = "SOLOIST_REPLICA",
        hide_env_values = true,
        value_name = "NAME"
    )]
    pub(crate) replica: Option<String>,
    /// Exit with 3 when the store can't be reached at the start, rather than wait for it.
    #[arg(long)]
    pub(crate) require_store: bool,
    /// A tag of this replica, which jobs can ask for by `run_on`; once for each. Over
    /// SOLOIST_TAGS=K=V,K=V, which is over `tags` of the table, name by name.
    #[arg(long, value_name = "K=V")]
    pub(crate) tag: Vec<String>,
    /// Where health, metrics and the API are served, such as 127.0.0.1:7373, or `off`; over
    /// `listen` of the table.
    #[arg(
        long,
        env = "SOLOIST_LISTEN",
        hide_env_values = true,
        value_name = "ADDR"
    )]
    pub(crate) listen: Option<String>,
    /// The file with the API's tokens, a line `read|operator NAME TOKEN` each; over `api_tokens`
    /// of the table.
    #[arg(
        long,
        env = "SOLOIST_API_TOKENS_FILE",
        hide_env_values = true,
        value_name = "FILE"
    )]
    pub(crate) api_tokens: Option<PathBuf>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct NextArgs {
    /// A job of the table, or a schedule in quotes, for which no table is needed.
    #[arg(value_name = "JOB_OR_SCHEDULE")]
    pub(crate) what: String,
    /// How many.
    #[arg(short = 'n', default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) count: u32,
    /// The first instant to look at, such as 2027-03-14T02:00:00Z, or 2027-03-14 in the zone
    /// [default: now].
    #[arg(long, value_name = "T")]
    pub(crate) from: Option<String>,
    /// For a schedule, the zone it is read in [default: UTC]; for a job, which has its own, the
    /// zone to show times in.
    #[arg(long, value_name = "ZONE")]
    pub(crate) timezone: Option<String>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct StatusArgs {
    /// Print JSON; with --watch, one document a line.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print it again and again, every so many seconds, 2 where none are given; on a terminal in
    /// place. Ctrl-C ends it.
    #[arg(
        long,
        num_args = 0..=1,
        default_missing_value = "2",
        value_name = "SECONDS",
        value_parser = read_seconds
    )]
    pub(crate) watch: Option<u32>,
}

/// The longest rest between two looks, in seconds.
const LONGEST_REST: u32 = 86_400;

fn read_seconds(text: &str) -> Result<u32, String> {
    let seconds = text.parse().ok();
    let seconds = seconds.filter(|seconds| (1..=LONGEST_REST).contains(seconds));
    seconds.ok_or_else(|| format!("it takes whole seconds, from 1 to {LONGEST_REST}"))
}

#[derive(clap::Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ManArgs {
    /// Write all pages into this directory: soloist.1, soloist-run.1 and so on, jobs.toml.5.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: Option<PathBuf>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct HistoryArgs {
    /// One job alone; all of them by default.
    #[arg(value_name = "JOB")]
    pub(crate) job: Option<String>,
    /// How many attempts.
    #[arg(short = 'n', default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) count: u32,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct WhyArgs {
    /// The job.
    #[arg(value_name = "JOB")]
    pub(crate) job: String,
    /// The instant, such as 2026-11-20T22:00:00Z; or a date and time in the job's zone; or a time
    /// of day: the newest one up to now.
    #[arg(required = true, num_args = 1..=2, value_name = "TIME")]
    pub(crate) time: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct LogsArgs {
    /// The job.
    #[arg(value_name = "JOB")]
    pub(crate) job: String,
    /// The occurrence, by its instant, such as 2026-11-20T22:00:00Z [default: the last one].
    #[arg(long, value_name = "T")]
    pub(crate) at: Option<String>,
    /// The attempt, from 1 [default: the last one].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) attempt: Option<u32>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct RunOnceArgs {
    /// The job.
    #[arg(value_name = "JOB")]
    pub(crate) job: String,
    /// This replica's name, for people [default: the host's name].
    #[arg(
        long,
        env = "SOLOIST_REPLICA",
        hide_env_values = true,
        value_name = "NAME"
    )]
    pub(crate) replica: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_declaration_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn check_compares_where_the_store_is_named_on_its_line_with_a_url_or_without() {
        let read = |line: &str| {
            let args = Args::from(line.split(' ').map(OsString::from)).unwrap();
            match args.command {
                Command::Check(check) => (check.compare, args.global.store),
                other => panic!("{other:?}"),
            }
        };
        let url = Some("memory:".to_owned());
        assert_eq!(read("soloist check"), (false, None));
        assert_eq!(read("soloist check --store"), (true, None));
        assert_eq!(read("soloist check --store --config x"), (true, None));
        assert_eq!(read("soloist check --store memory:"), (true, url.clone()));
        assert_eq!(read("soloist --store memory: check"), (true, url.clone()));
        assert_eq!(read("soloist --store memory: check --store"), (true, url));
        let line = ["soloist", "status", "--store"].map(OsString::from);
        assert!(Args::from(line).is_err(), "all others need the URL");
    }

    #[test]
    fn every_command_teaches_by_example() {
        for command in Args::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string);
            let example = format!("soloist {}", command.get_name());
            assert!(
                help.is_some_and(|help| help.contains(&example)),
                "{example}"
            );
        }
    }
}
