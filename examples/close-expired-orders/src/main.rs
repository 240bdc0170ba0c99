//! The closing of expired orders as a command, to be started by soloist or by hand; and what it takes
//! to try it: orders, and an audit.
//!
//! Must never: close anything without a fencing token.

use std::process::ExitCode;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Parser, Subcommand};
use jiff::SignedDuration;

use close_expired_orders::audit;
use close_expired_orders::shop::{self, Closing, Outcome, Placing, ShopError};

/// Exit codes: 0 done, 1 the audit found damage, 2 wrong usage, 3 the database failed,
/// 4 the fencing token is stale.
const AUDIT_FAILED: u8 = 1;
const USAGE: u8 = 2;
const DATABASE_FAILED: u8 = 3;
const STALE_TOKEN: u8 = 4;

/// Close orders that stayed unpaid for too long and put their stock back on sale.
#[derive(Debug, Parser)]
#[command(version)]
#[command(
    after_help = "Exit codes: 0 done, 1 the audit found damage, 2 wrong usage, \
                        3 the database failed, 4 the fencing token is stale"
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    close: Close,

    /// A SQLite file, or postgres://USER@HOST/DATABASE
    #[arg(long, global = true, env = "DATABASE_URL", hide_env_values = true)]
    #[arg(default_value = "shop.db", value_name = "URL")]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    // SQLite takes "" for a passing file
    database: String,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Place orders as customers would; one in three is paid at once
    NewOrders(NewOrders),
    /// Check that no order was closed twice and no item was lost or invented
    Audit,
}

#[derive(Debug, Args)]
struct Close {
    /// How long an order may stay unpaid
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = duration)]
    older_than: Duration,

    /// The fencing token; soloist gives it in the environment
    #[arg(long, env = "SOLOIST_FENCING_TOKEN")]
    #[arg(value_parser = clap::value_parser!(i64).range(1..1 << 53))]
    token: Option<i64>,

    /// The job whose tokens these are
    #[arg(long, env = "SOLOIST_JOB", default_value = "close-expired-orders")]
    job: String,

    /// Which attempt this is, for the record
    #[arg(long, env = "SOLOIST_ATTEMPT", default_value_t = 1)]
    attempt: i64,

    /// Unique id of this attempt, for the record
    #[arg(long, env = "SOLOIST_RUN_ID", default_value = "by-hand")]
    run_id: String,

    /// Wait before the transaction: freeze the process here, let another attempt finish, and
    /// see this one refused
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    slow_start: Duration,

    /// Wait inside the transaction: kill the process here, and see that nothing is lost
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    slow: Duration,
}

#[derive(Debug, Args)]
struct NewOrders {
    /// How many
    #[arg(long, short = 'n', default_value_t = 3)]
    count: u32,

    /// Date them back, as if they had been placed that long ago
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    placed_ago: Duration,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match &cli.command {
        None => close(&cli.database, &cli.close),
        Some(Command::NewOrders(orders)) => new_orders(&cli.database, orders),
        Some(Command::Audit) => audit(&cli.database),
    };
    done.unwrap_or_else(|error| {
        eprintln!("close-expired-orders: {}", error.with_causes());
        ExitCode::from(DATABASE_FAILED)
    })
}

fn close(database: &str, options: &Close) -> Result<ExitCode, ShopError> {
    let Some(token) = options.token else {
        eprintln!(
            "close-expired-orders: no fencing token, so nothing was closed. soloist gives one to \
             each run (SOLOIST_FENCING_TOKEN). By hand, pass --token N, the newest token written, \
             which `close-expired-orders audit` prints (in a new shop, 1)."
        );
        return Ok(ExitCode::from(USAGE));
    };
    shop::pause(options.slow_start, "not begun yet");
    let closing = Closing {
        job: &options.job,
        token,
        attempt: options.attempt,
        run_id: &options.run_id,
        older_than: options.older_than,
        pause_before_commit: options.slow,
    };
    Ok(report(
        &closing,
        shop::open(database)?.close_expired(&closing)?,
    ))
}

fn report(closing: &Closing<'_>, outcome: Outcome) -> ExitCode {
    let Closing { token, attempt, .. } = closing;
    match outcome {
        Outcome::Closed { orders, items } => {
            println!(
                "closed {}, put {} back on sale (token {token}, attempt {attempt})",
                counted(orders, "order"),
                counted(items, "item"),
            );
            ExitCode::SUCCESS
        }
        Outcome::Stale { newest } => {
            eprintln!(
                "close-expired-orders: a newer attempt (token {newest}) has already written; \
                 this one (token {token}) is stale. Nothing was changed."
            );
            ExitCode::from(STALE_TOKEN)
        }
    }
}

fn new_orders(database: &str, options: &NewOrders) -> Result<ExitCode, ShopError> {
    let mut shop = shop::open(database)?;
    let (mut placed, mut paid, mut items) = (0, 0, 0);
    for number in 0..options.count {
        let placing = Placing {
            quantity: i64::from(number % 3) + 1,
            paid: number % 3 == 2,
            placed_ago: options.placed_ago,
        };
        if shop.place_order(&placing)?.is_some() {
            placed += 1;
            paid += i64::from(placing.paid);
            items += placing.quantity;
        }
    }
    let (orders, items) = (counted(placed, "new order"), counted(items, "item"));
    let sold_out = match i64::from(options.count) - placed {
        0 => String::new(),
        refused => format!("; sold out for {refused} more"),
    };
    println!("{orders} for {items}, {paid} paid at once{sold_out}");
    Ok(ExitCode::SUCCESS)
}

fn audit(database: &str) -> Result<ExitCode, ShopError> {
    let report = audit::audit(shop::open(database)?.as_mut())?;
    println!("{report}");
    Ok(if report.passed() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(AUDIT_FAILED)
    })
}

/// `1 order`, `2 orders`.
fn counted(count: i64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Spelt as in jobs.toml: `500ms`, `20s`, `1h30m`.
fn duration(text: &str) -> Result<Duration, String> {
    let parsed: SignedDuration = text
        .parse()
        .map_err(|error: jiff::Error| error.to_string())?;
    Duration::try_from(parsed).map_err(|_| "must not be negative".to_owned())
}
