//! The flags of `healthcheck`.

#[derive(clap::Args, Debug)]
pub(crate) struct HealthcheckArgs {
    /// Ask whether it is ready to run jobs, too: that its store can be reached.
    #[arg(long)]
    pub(crate) ready: bool,
    /// Where the replica listens; over `listen` of the table [default: 127.0.0.1:7373].
    #[arg(
        long,
        env = "SOLOIST_LISTEN",
        hide_env_values = true,
        value_name = "ADDR"
    )]
    pub(crate) listen: Option<String>,
}
