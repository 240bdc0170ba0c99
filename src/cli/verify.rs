//! `soloist verify`: a self-test against a store of the user's own.
//!
//! Must never: take the namespace that the settings name; a self-test has one of its own.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook_tokio::Signals;
use tokio::sync::Notify;
use uuid::Uuid;

use super::args::{Global, VerifyArgs};
use super::settings::Settings;
use super::{Exit, complain, output, print, print_error, store};
use crate::clock::SystemClock;
use crate::daemon::signals::ignores_hangup;
use crate::store_url::StoreOptions;
use crate::verify::{self, Event, Failure, Outcome, Request, Setup, Verdict, words};

/// Plays a self-test, and prints what came of it.
pub(super) fn run(global: &Global, args: &VerifyArgs) -> Result<Exit, Exit> {
    let (scheduler, _) = Settings::load_for_store(global)?;
    let failed = |what: &str, cause: &dyn std::fmt::Display| {
        complain(Exit::Failed, &format!("failed to {what}: {cause}"), None)
    };
    let program = std::env::current_exe();
    let program = program.map_err(|cause| failed("find this program", &cause))?;
    let id = Uuid::new_v4().as_u64_pair();
    let interrupted = Arc::new(Notify::new());
    let request = Request {
        setup: Setup {
            duration: args.duration,
            replicas: args.replicas,
            // Short enough to be typed again.
            seed: args.seed.unwrap_or(id.0 >> 44),
            has_links: false,
        },
        store: scheduler.store,
        options: StoreOptions {
            tls: scheduler.tls,
            min_replicas_ack: scheduler.min_replicas_ack,
        },
        own_lease_ttl: scheduler.lease_ttl,
        program,
        temporary: std::env::temp_dir(),
        id: id.1,
        clock: Arc::new(SystemClock),
        interrupted: Arc::clone(&interrupted),
    };
    let json = args.json;
    let tell = move |event: Event| {
        match (json, &event) {
            (false, _) => {
                print(words::event(&event));
            }
            // What will be written, and where, before it is, whatever becomes of this process.
            (true, Event::Planned(_)) => print_error(&words::event(&event)),
            (true, _) => {}
        }
    };
    let runtime = store::runtime()?;
    // On this thread, with which its replicas die.
    let verdict = runtime.block_on(async {
        let listening = listen(interrupted);
        listening.map_err(|cause| failed("listen for signals", &cause))?;
        verify::run(request, &tell).await.map_err(refused)
    });
    runtime.shutdown_timeout(Duration::from_millis(100));
    let verdict = verdict?;
    let printed = match args.json {
        true => output::json(&verdict),
        false => print(words::verdict(&verdict)),
    };
    Ok(exit_of(&verdict).or(printed))
}

/// Ctrl-C, and whatever else wants it to end, ends it in good order.
fn listen(interrupted: Arc<Notify>) -> std::io::Result<()> {
    let mut wanted = vec![SIGINT, SIGTERM];
    if !ignores_hangup() {
        wanted.push(SIGHUP);
    }
    let mut signals = Signals::new(wanted)?;
    tokio::spawn(async move {
        while signals.next().await.is_some() {
            interrupted.notify_one();
        }
    });
    Ok(())
}

fn refused(failure: Failure) -> Exit {
    match failure {
        Failure::Store(error) => complain(store::exit_of(&error), &error.to_string(), None),
        Failure::Host(cause) => complain(Exit::Failed, &cause, None),
    }
}

fn exit_of(verdict: &Verdict) -> Exit {
    match verdict.outcome {
        Outcome::Held if verdict.cleanup.is_complete() => Exit::Done,
        Outcome::StoreLost | Outcome::StoreForgot => Exit::StoreUnreachable,
        Outcome::Held
        | Outcome::Violated
        | Outcome::Interrupted
        | Outcome::Unsettled
        | Outcome::NothingSeen => Exit::Failed,
    }
}
