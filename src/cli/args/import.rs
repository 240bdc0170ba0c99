//! The flags of `import`.
//!
//! Must never: look into the text.

use std::path::PathBuf;

use clap::{ValueEnum, ValueHint};

/// What is carried over, and where to.
#[derive(clap::Args, Debug)]
pub(crate) struct ImportArgs {
    /// The crontab or the manifests; `-` for stdin.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// What the text is, where its content leaves a doubt [default: found by content].
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<From>,
    /// The crontab names a user before each command, as /etc/crontab and /etc/cron.d/* do; there
    /// it is known by the path.
    #[arg(long)]
    pub(crate) system: bool,
    /// The zone of the schedules that don't name their own: that of the host of the crontab
    /// [default: UTC].
    #[arg(long, value_name = "ZONE")]
    pub(crate) timezone: Option<String>,
    /// Where the table is written to; never over a file that exists [default: stdout].
    #[arg(long, short = 'o', value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Write over `--output` where it exists.
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
}

/// `--from`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum From {
    /// crontab(5).
    Crontab,
    /// CronJobs, in YAML or JSON.
    Kubernetes,
}
