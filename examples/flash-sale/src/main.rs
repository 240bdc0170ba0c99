//! The command line of the flash sale.
//!
//! Must never: end without having given back what it holds.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Parser, Subcommand};
use flash_sale::SaleError;
use flash_sale::books::Books;
use flash_sale::drain::Drain;
use flash_sale::moment::{Moment, Moments};
use flash_sale::report::Report;
use flash_sale::sale::{Bought, Sale};
use flash_sale::trade::{NAMESPACE, Patience, Trade};
use jiff::SignedDuration;
use soloist::Leases;
use soloist::scheduler::lease::LeaseName;

/// Exit codes, beside 2 for wrong usage.
const DAMAGED: u8 = 1;
const FAILED: u8 = 3;
const REFUSED: u8 = 4;

/// Sell few items to many users at once, one each.
#[derive(Debug, Parser)]
#[command(version)]
#[command(
    after_help = "Exit codes: 0 done, 1 the report found damage, 2 wrong usage, 3 Redis or the \
                  books failed, or told to stop: do it again, 4 refused: sold out, not open, or \
                  opened before"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// The Redis of the sale and its lease
    #[arg(
        long,
        global = true,
        env = "REDIS_URL",
        hide_env_values = true,
        value_name = "URL"
    )]
    #[arg(default_value = "redis://127.0.0.1:6379")]
    redis: String,

    /// The SQLite file with the orders and the warehouse
    #[arg(long, global = true, value_name = "FILE", default_value = "books.db")]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    // SQLite takes "" for a passing file
    books: String,

    /// Which sale: it is opened once and closed once
    #[arg(long, global = true, value_name = "NAME", default_value = "teapots", value_parser = name)]
    sale: String,

    /// Wait for Enter at this moment: kill or freeze the process there, and see what becomes of it
    #[arg(long, global = true, value_name = "MOMENT")]
    ask_before: Option<Moment>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Take items from the warehouse and put them on sale
    Open {
        /// How many
        #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
        stock: u64,
        #[command(flatten)]
        waiting: Waiting,
    },
    /// Buy one
    Buy {
        /// For whom; a second one is not sold to the same
        #[arg(long, value_parser = NonEmptyStringValueParser::new())]
        user: String,
    },
    /// Write orders into the books, until told to stop; as many workers as one likes
    Drain(Work),
    /// End the sale and put what was not sold back into the warehouse
    Close(Waiting),
    /// Show how the sale stands, and check that it adds up
    Report,
}

#[derive(Clone, Copy, Debug, Args)]
struct Waiting {
    /// How long to wait while somebody else opens or closes the sale
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    wait: Duration,

    /// How long after the death of somebody at it another one may go on
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration)]
    ttl: Duration,
}

#[derive(Debug, Args)]
struct Work {
    /// How many orders go into one transaction, at most
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    batch: u32,

    /// After how long what another worker took is taken over; longer than a transaction takes
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    idle: Duration,

    /// End when no order is left
    #[arg(long)]
    until_empty: bool,
}

// Redis is heard on a thread of the runtime's own, while this one is busy with SQLite; leases are
// renewed on soloist's.
#[tokio::main(flavor = "multi_thread", worker_threads = 1)]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("flash-sale: {error}.");
            ExitCode::from(if error.is_refusal() { REFUSED } else { FAILED })
        }
    }
}

async fn run(cli: &Cli) -> Result<ExitCode, SaleError> {
    match &cli.command {
        Command::Buy { user } => return buy(cli, user).await,
        Command::Open { stock, waiting } => open(cli, *stock, *waiting).await?,
        Command::Close(waiting) => close(cli, *waiting).await?,
        Command::Drain(work) => drain(cli, work).await?,
        Command::Report => return report(cli).await,
    }
    Ok(ExitCode::SUCCESS)
}

async fn buy(cli: &Cli, user: &str) -> Result<ExitCode, SaleError> {
    let sale = Sale::connect(&cli.redis, &cli.sale).await?;
    let refused = |why: &str| {
        eprintln!("flash-sale: {why}.");
        Ok(ExitCode::from(REFUSED))
    };
    match sale.buy(user).await? {
        Bought::Sold(order) => println!("sold: order {order}"),
        Bought::Has(order) => println!("sold before: order {order}"),
        Bought::SoldOut => return refused("sold out"),
        Bought::NotOpen => return refused("the sale is not open"),
    }
    Ok(ExitCode::SUCCESS)
}

async fn open(cli: &Cli, stock: u64, waiting: Waiting) -> Result<(), SaleError> {
    trade(cli, async |trade, leases| {
        trade.open(leases, waiting.into(), stock).await?;
        println!("the sale is open, with {stock} items");
        Ok(())
    })
    .await
}

async fn close(cli: &Cli, waiting: Waiting) -> Result<(), SaleError> {
    trade(cli, async |trade, leases| {
        let unsold = trade.close(leases, waiting.into()).await?;
        println!("the sale is closed; {unsold} items were put back");
        Ok(())
    })
    .await
}

async fn trade(
    cli: &Cli,
    act: impl AsyncFnOnce(&mut Trade<'_>, &Leases) -> Result<(), SaleError>,
) -> Result<(), SaleError> {
    let mut trade = Trade {
        name: &cli.sale,
        sale: &Sale::connect(&cli.redis, &cli.sale).await?,
        books: &mut Books::open(Path::new(&cli.books))?,
        moments: &mut Moments::listen(cli.ask_before)?,
    };
    let leases = Leases::open(&cli.redis, NAMESPACE).await;
    let leases = leases.map_err(SaleError::Leases)?;
    let done = act(&mut trade, &leases).await;
    // What is waited for is given up by this; else it is by the end of the process, seconds later.
    leases.close().await;
    done
}

async fn drain(cli: &Cli, work: &Work) -> Result<(), SaleError> {
    let drain = Drain {
        redis: cli.redis.clone(),
        name: cli.sale.clone(),
        consumer: consumer(),
        batch: work.batch,
        idle: work.idle,
        until_empty: work.until_empty,
    };
    let mut books = Books::open(Path::new(&cli.books))?;
    let mut moments = Moments::listen(cli.ask_before)?;
    drain.run(&mut books, &mut moments).await
}

async fn report(cli: &Cli) -> Result<ExitCode, SaleError> {
    let sale = Sale::connect(&cli.redis, &cli.sale).await?;
    let books = Books::open(Path::new(&cli.books))?;
    let report = Report::of(&cli.sale, &sale, &books).await?;
    println!("{report}");
    let damage = report.damage();
    for one in &damage {
        println!("DAMAGE: {one}");
    }
    Ok(match damage.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(DAMAGED),
    })
}

/// A name that no other worker has: processes of one number on two hosts differ by the host.
fn consumer() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}:{}", host.trim(), std::process::id())
}

impl From<Waiting> for Patience {
    fn from(Waiting { wait, ttl }: Waiting) -> Self {
        Self { wait, ttl }
    }
}

/// What can name a lease can name a sale.
fn name(text: &str) -> Result<String, String> {
    let name = LeaseName::new(text).map_err(|error| error.to_string())?;
    Ok(name.into())
}

/// Spelt as in jobs.toml: `500ms`, `20s`, `1h30m`.
fn duration(text: &str) -> Result<Duration, String> {
    let parsed: SignedDuration = text
        .parse()
        .map_err(|error: jiff::Error| error.to_string())?;
    Duration::try_from(parsed).map_err(|_| "must not be negative".to_owned())
}
