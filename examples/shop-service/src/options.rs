//! What an instance is started with.
//!
//! Must never: differ between instances in more than address, name, and how long they are given.

use std::time::Duration;

use clap::Parser;
use jiff::SignedDuration;

/// An instance of the shop: start as many as you like.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Options {
    /// Where to serve; port 0 takes a free one, which is printed
    #[arg(
        long,
        env = "LISTEN",
        default_value = "127.0.0.1:8080",
        value_name = "ADDR"
    )]
    pub(crate) listen: String,

    /// The shop: a SQLite file, or postgres://USER@HOST/DATABASE
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    #[arg(default_value = "shop.db", value_name = "URL")]
    pub(crate) database: String,

    /// Where leases and the ledger are kept
    #[arg(long, env = "SOLOIST_STORE", hide_env_values = true)]
    #[arg(default_value = "redis://127.0.0.1:6379", value_name = "URL")]
    pub(crate) store: String,

    /// Keeps fleets apart that share a store
    #[arg(long, env = "SOLOIST_NAMESPACE", default_value = "shop")]
    pub(crate) namespace: String,

    /// What this instance is called; by default `shop-PORT`
    #[arg(long, env = "SOLOIST_REPLICA")]
    pub(crate) replica: Option<String>,

    /// When expired orders are closed
    #[arg(long, default_value = "0 * * * * *", value_name = "SCHEDULE")]
    pub(crate) schedule: String,

    /// How long an order may stay unpaid
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = duration)]
    pub(crate) older_than: Duration,

    /// How long a lease lasts, and so about how long it takes until another instance takes over
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration)]
    pub(crate) lease_ttl: Duration,

    /// How long requests and jobs may go on after SIGTERM
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(crate) shutdown_grace: Duration,

    /// Wait between the check of the lease and the write: freeze the process here, let another
    /// instance take over, and see this one's write refused
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    pub(crate) slow_start: Duration,

    /// Wait inside the transaction: kill the process here, and see that nothing is lost
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    pub(crate) slow: Duration,
}

/// Spelt as in jobs.toml: `500ms`, `20s`, `1h30m`.
fn duration(text: &str) -> Result<Duration, String> {
    let parsed: SignedDuration = text
        .parse()
        .map_err(|error: jiff::Error| error.to_string())?;
    Duration::try_from(parsed).map_err(|_| "must not be negative".to_owned())
}
