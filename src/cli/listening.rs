//! Where `run` serves HTTP: `--listen`, over SOLOIST_LISTEN, over `listen` of the table; and the
//! same for the file with the API's tokens.
//!
//! Must never: open either; that is the daemon's.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::args::RunArgs;
use super::{Exit, complain};
use crate::config::{SchedulerConfig, parse_listen};

/// What `run` was given over what the table has.
#[derive(Clone, Debug, Default)]
pub(super) struct Listening {
    listen: Option<Option<SocketAddr>>,
    tokens: Option<PathBuf>,
}

impl Listening {
    /// What is set to nothing counts as not set.
    pub(super) fn given(args: &RunArgs) -> Result<Self, Exit> {
        let listen = args.listen.as_deref().filter(|text| !text.is_empty());
        let listen = listen.map(parse_listen).transpose();
        let listen = listen.map_err(|(message, hint)| {
            let message = format!("`--listen` or SOLOIST_LISTEN: {message}");
            complain(Exit::Usage, &message, Some(&hint))
        })?;
        let tokens = args.api_tokens.clone();
        Ok(Self {
            listen,
            tokens: tokens.filter(|path| !path.as_os_str().is_empty()),
        })
    }

    /// Puts it over what the table has.
    pub(super) fn put_over(&self, scheduler: &mut SchedulerConfig) {
        if let Some(listen) = self.listen {
            scheduler.listen = listen;
        }
        if let Some(tokens) = &self.tokens {
            scheduler.api_tokens = Some(tokens.clone());
        }
    }
}
