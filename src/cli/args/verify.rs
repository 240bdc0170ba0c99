//! The flags of `verify`.

use std::time::Duration;

use crate::config::{format_duration, parse_duration};
use crate::verify::plan::{FEWEST_REPLICAS, LONGEST, MOST_REPLICAS, SHORTEST};

#[derive(clap::Args, Debug)]
pub(crate) struct VerifyArgs {
    /// For how long jobs fall due, and replicas are hurt: from 8s to 1h.
    #[arg(long, default_value = "60s", value_name = "T", value_parser = read_duration, allow_hyphen_values = true)]
    pub(crate) duration: Duration,
    /// How many replicas are started: from 2 to 20.
    #[arg(
        long,
        default_value_t = 5,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(i64::from(FEWEST_REPLICAS)..=i64::from(MOST_REPLICAS))
    )]
    pub(crate) replicas: u32,
    /// Draw the faults of that number, which every run tells; when exactly they meet what is never
    /// quite the same [default: another one each time].
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Print the verdict as JSON; what will be done is told on stderr.
    #[arg(long)]
    pub(crate) json: bool,
}

fn read_duration(text: &str) -> Result<Duration, String> {
    let duration = parse_duration(text).map_err(|_| "it takes a duration, such as 60s or 5m")?;
    match (SHORTEST..=LONGEST).contains(&duration) {
        true => Ok(duration),
        false => Err(format!(
            "it takes from {} to {}",
            format_duration(SHORTEST),
            format_duration(LONGEST)
        )),
    }
}
