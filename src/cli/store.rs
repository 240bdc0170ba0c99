//! What the commands that talk to the store start from.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;

use super::{Exit, complain};
use crate::config::SchedulerConfig;
use crate::store::{self, LeaseStore, Store, StoreError};
use crate::store_url::StoreOptions;

/// How long a command that only looks waits for the store.
const LOOK_TIMEOUT: Duration = Duration::from_secs(5);

/// The store that the settings name. Nothing is connected yet.
pub(super) fn open(scheduler: &SchedulerConfig) -> Result<Arc<dyn Store>, Exit> {
    let (url, options) = (scheduler.store.as_deref(), options(scheduler));
    let opened = store::open_with(url, &scheduler.namespace, &options);
    opened.map_err(|error| refused(&error))
}

/// The named leases there. Nothing is connected yet.
pub(super) fn open_leases(scheduler: &SchedulerConfig) -> Result<Arc<dyn LeaseStore>, Exit> {
    let (url, options) = (scheduler.store.as_deref(), options(scheduler));
    let opened = store::open_leases(url, &scheduler.namespace, &options);
    opened.map_err(|error| refused(&error))
}

fn options(scheduler: &SchedulerConfig) -> StoreOptions {
    StoreOptions {
        tls: scheduler.tls.clone(),
        min_replicas_ack: scheduler.min_replicas_ack,
    }
}

/// Says what the store's refusal was, and how the command ends for it.
pub(super) fn refused(error: &StoreError) -> Exit {
    complain(exit_of(error), &error.to_string(), None)
}

/// How a command ends that the store refused.
pub(super) fn exit_of(error: &StoreError) -> Exit {
    match error {
        StoreError::BadUrl { .. } => Exit::Usage,
        _ => Exit::StoreUnreachable,
    }
}

/// Longer than any process lives.
const FOR_EVER: Duration = Duration::from_secs(u32::MAX as u64);

/// The runtime of everything. More than one thread, so that what is slow in one task keeps no
/// renewal of another waiting.
pub(super) fn runtime() -> Result<Runtime, Exit> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let built = builder.enable_all().thread_keep_alive(FOR_EVER).build();
    let runtime = built.map_err(|error| {
        complain(
            Exit::Failed,
            &format!("failed to start the runtime: {error}"),
            None,
        )
    })?;
    // One thread for what blocks (names of hosts are looked up there) is made now and kept: by
    // the time that it is needed, jobs may have used up all that this host or unit allows.
    runtime.spawn_blocking(|| ());
    Ok(runtime)
}

/// Asks the store something that needs no lease.
pub(super) fn look<T>(
    scheduler: &SchedulerConfig,
    question: impl AsyncFnOnce(Arc<dyn Store>) -> Result<T, StoreError>,
) -> Result<T, Exit> {
    let runtime = runtime()?;
    runtime.block_on(async {
        // Inside the runtime: stores may spawn their tasks when they are opened.
        let store = open(scheduler)?;
        let answer = ask(store, question).await;
        answer.map_err(|error| refused(&error))
    })
}

/// Asks a store that is open already.
pub(super) async fn ask<T>(
    store: Arc<dyn Store>,
    question: impl AsyncFnOnce(Arc<dyn Store>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let place = store.place();
    let asked = async {
        store.ready().await?;
        question(store).await
    };
    let answer = tokio::time::timeout(LOOK_TIMEOUT, asked).await;
    answer.unwrap_or_else(|_| {
        let cause = format!("no answer within {LOOK_TIMEOUT:?}");
        Err(StoreError::Unreachable { place, cause })
    })
}
