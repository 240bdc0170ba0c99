//! Migrates the shop's database, started on every host at deploy: one of them does it, the others
//! wait for it and find it done.
//!
//! ```text
//!  wait for the lease ─▶ take over ─▶ ┌▶ check the lease ─▶ step, fenced ─▶ commit ┐ ─▶ give it back
//!                                     └────────────────────────────────────────────┘
//! ```
//!
//! The lease keeps hosts from migrating at the same time. The check before each step stops one
//! that lost it. What no check can stop, a host that stands still between its check and its write,
//! is refused by the database, which was shown a higher token by then: see [`database`].
//!
//! Must never: begin a step without having asked the lease.

mod database;
mod pause;
mod steps;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use clap::builder::NonEmptyStringValueParser;
use jiff::SignedDuration;
use soloist::leases::AcquireError;
use soloist::store::StoreError;
use soloist::{Lease, Leases};

use crate::database::{Database, DatabaseError};
use crate::pause::{Moment, Stop};
use crate::steps::STEPS;

/// What is locked: the schema of the shop, wherever it is migrated from.
const LEASE: &str = "migrate:shop";

/// Exit codes, beside 2 for wrong usage.
const FAILED: u8 = 3;
const TAKEN_OVER: u8 = 4;
const NOT_DONE: u8 = 5;

/// Bring the shop's schema up to date; on however many hosts this is started, one of them does it.
#[derive(Debug, Parser)]
#[command(version)]
#[command(
    after_help = "Exit codes: 0 the schema is up to date, 2 wrong usage, 3 the database or the \
                  store of the leases failed, 4 the lease was lost and another host goes on, \
                  5 not done: told to stop, or waited for too long"
)]
struct Cli {
    /// The SQLite file to migrate
    #[arg(long, env = "DATABASE", value_name = "FILE")]
    #[arg(default_value = "shop.db", value_parser = NonEmptyStringValueParser::new())]
    // SQLite takes "" for a passing file
    database: String,

    /// Where leases are kept: redis://HOST, or sqlite:FILE for one host
    #[arg(
        long,
        env = "SOLOIST_STORE",
        hide_env_values = true,
        value_name = "URL"
    )]
    #[arg(default_value = "redis://127.0.0.1:6379")]
    store: String,

    /// Keeps fleets apart that share a store
    #[arg(
        long,
        env = "SOLOIST_NAMESPACE",
        value_name = "NAME",
        default_value = "shop"
    )]
    namespace: String,

    /// How long to wait while another host migrates
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    wait: Duration,

    /// How long after the death of the host that migrates another one goes on
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration)]
    ttl: Duration,

    /// Wait for Enter at this moment of each step: kill or freeze the process there, and see what
    /// becomes of it
    #[arg(long, value_name = "MOMENT")]
    ask_before: Option<Moment>,
}

/// Why the schema may not be up to date.
#[derive(Debug, thiserror::Error)]
enum MigrateError {
    #[error("failed to open the leases: {0}")]
    Leases(StoreError),
    #[error(
        "`{LEASE}` was not to be had within {0:?}: another host migrates still, or died less than \
         its TTL ago. Start this again, or have it --wait longer"
    )]
    StillBusy(Duration),
    #[error("failed to get `{LEASE}`: {0}")]
    Acquire(AcquireError),
    #[error(
        "the lease was lost before step {next} ({name}), which was not begun. Another host goes \
         on; if none does, start this again"
    )]
    Lost { next: usize, name: &'static str },
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error("told to stop; what was not committed was undone. Start it again to go on")]
    Stopped,
    #[error("failed to listen for signals: {0}")]
    Signals(std::io::Error),
}

impl MigrateError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Lost { .. } | Self::Database(DatabaseError::Stale { .. }) => TAKEN_OVER,
            Self::StillBusy(_) | Self::Stopped => NOT_DONE,
            Self::Leases(_) | Self::Acquire(_) | Self::Database(_) | Self::Signals(_) => FAILED,
        }
    }
}

// Signals are heard on a thread of the runtime's own, while this one is busy with the database; the
// lease is renewed on soloist's.
#[tokio::main(flavor = "multi_thread", worker_threads = 1)]
async fn main() -> ExitCode {
    match run(&Cli::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("migrate: {error}.");
            ExitCode::from(error.exit_code())
        }
    }
}

async fn run(cli: &Cli) -> Result<(), MigrateError> {
    let mut stop = Stop::listen().map_err(MigrateError::Signals)?;
    let leases = Leases::open(&cli.store, &cli.namespace)
        .await
        .map_err(MigrateError::Leases)?;
    let asked = leases.lease(LEASE).ttl(cli.ttl).acquire_within(cli.wait);
    let lease = tokio::select! {
        lease = asked => lease.map_err(|error| match error {
            AcquireError::TimedOut(_) => MigrateError::StillBusy(cli.wait),
            other => MigrateError::Acquire(other),
        }),
        () = stop.asked() => Err(MigrateError::Stopped),
    };
    let done = match lease {
        Ok(lease) => migrate(cli, &lease, &mut stop).await,
        Err(error) => Err(error),
    };
    // However it went: who waits need not wait for the lease to run out. Dropping it would not do,
    // as the process ends before anything is sent.
    leases.close().await;
    done
}

async fn migrate(cli: &Cli, lease: &Lease, stop: &mut Stop) -> Result<(), MigrateError> {
    let path = PathBuf::from(&cli.database);
    let (mut database, found) = Database::take_over(&path, lease.token())?;
    println!(
        "has the lease, token {}; the schema has version {found} of {}",
        lease.token(),
        STEPS.len()
    );
    let by_whom = format!("process {}", std::process::id());
    for (done, step) in STEPS.iter().enumerate().skip(found) {
        let next = done + 1;
        let mut at = async |moment| stop.at(moment, cli.ask_before, next).await;
        at(Moment::Check).await?;
        let lost = MigrateError::Lost {
            next,
            name: step.name,
        };
        lease.check().map_err(|_| lost)?;
        at(Moment::Write).await?;
        let prepared = database.step(done, step, &by_whom)?;
        at(Moment::Commit).await?;
        prepared.commit()?;
        println!("step {next}: {}", step.name);
    }
    println!("the schema is up to date");
    Ok(())
}

/// Spelt as in jobs.toml: `500ms`, `20s`, `1h30m`.
fn duration(text: &str) -> Result<Duration, String> {
    let parsed: SignedDuration = text
        .parse()
        .map_err(|error: jiff::Error| error.to_string())?;
    Duration::try_from(parsed).map_err(|_| "must not be negative".to_owned())
}
