//! `soloist run`: the daemon.

use std::sync::Arc;
use std::time::Duration;

use tracing::{error, info, warn};
use uuid::Uuid;

use super::args::{Global, RunArgs};
use super::listening::Listening;
use super::settings::{Settings, checked_name};
use super::{Exit, complain, settings, store, tags};
use crate::config::{SchedulerConfig, Strictness};
use crate::daemon::{Daemon, Ended, Failure, signals};
use crate::driver::Finished;
use crate::http;
use crate::scheduler;
use crate::scheduler::draw_replica_id;
use crate::scheduler::lease::Replica;

/// Runs the daemon until a signal ends it.
pub(super) fn run(global: &Global, args: &RunArgs) -> Result<Exit, Exit> {
    signals::survive_hangup().map_err(|cause| {
        let message = format!("failed to listen for signals: {cause}");
        complain(Exit::Failed, &message, None)
    })?;
    let listening = Listening::given(args)?;
    let tags = tags::given(&args.tag)?;
    let mut config = Settings::load(global, Strictness::Start)?.config;
    settings::show(&config.warnings);
    config.scheduler.tags = tags::over(config.scheduler.tags, &tags);
    listening.put_over(&mut config.scheduler);
    let read = {
        let global = global.clone();
        Arc::new(move || {
            let mut config = Settings::read_again(&global)?;
            config.scheduler.tags = tags::over(config.scheduler.tags, &tags);
            listening.put_over(&mut config.scheduler);
            Ok(config)
        })
    };
    end_on_panic();
    let runtime = store::runtime()?;
    let exit = runtime.block_on(async {
        let store = store::open(&config.scheduler)?;

        let daemon = Daemon {
            replica: replica(&config.scheduler, args.replica.as_deref())?,
            config,
            read,
            store,
            require_store: args.require_store,
        };
        ended(daemon.run().await)
    });
    // What is left are calls to a store that is gone, or jobs that were told to die.
    runtime.shutdown_timeout(Duration::from_millis(100));
    exit
}

fn ended(ended: Result<Ended, Failure>) -> Result<Exit, Exit> {
    match ended {
        Ok(Ended::BeforeItBegan) => {
            info!("stopped before the store was there");
            Ok(Exit::Done)
        }
        Ok(Ended::Finished(Finished::Drained)) => {
            info!("stopped: nothing runs here any more");
            Ok(Exit::Done)
        }
        Ok(Ended::Finished(Finished::Aborted)) => {
            warn!("stopped at once: leases that were held run out by themselves");
            Ok(Exit::Failed)
        }
        Err(failure) => {
            error!("{failure}");
            match failure {
                Failure::Store(cause) => Err(store::exit_of(&cause)),
                Failure::Http(http::Failure::Tokens(_)) => Err(Exit::Usage),
                Failure::Deaf(_)
                | Failure::Timers(_)
                | Failure::Http(http::Failure::Taken { .. }) => Err(Exit::Failed),
            }
        }
    }
}

/// Who this process is: random, with a name for people.
pub(super) fn replica(config: &SchedulerConfig, flag: Option<&str>) -> Result<Replica, Exit> {
    let id = draw_replica_id(Uuid::new_v4().into_bytes());
    let name = match (flag.filter(|name| !name.is_empty()), &config.replica) {
        (Some(flag), _) => checked_name("--replica", "SOLOIST_REPLICA", flag)?,
        (None, Some(name)) => name.clone(),
        (None, None) => name_of_host(),
    };
    Ok(Replica { id, name })
}

/// This host, as a replica may be called.
pub(super) fn name_of_host() -> String {
    let host = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    match scheduler::job::check_name(&host) {
        Ok(()) => host,
        Err(_) => "replica".to_owned(),
    }
}

/// A task that panics would leave its attempt or its claim without an end, and the daemon would
/// look alive. Dead, it is taken over from. What answers a request of HTTP holds neither.
fn end_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        if http::is_answering() {
            return;
        }
        std::process::abort();
    }));
}
