//! `soloist lock --list`: who has which lease, and who waits.
//!
//! Must never: change anything in the store.

use std::time::Duration;

use tokio::time::timeout;

use super::super::args::LockArgs;
use super::super::{Exit, output, print_error, store};
use crate::config::SchedulerConfig;
use crate::scheduler::lease::{HeldName, Mode, NameState};
use crate::scheduler::time::{Timestamp, short_duration};
use crate::store::{LeaseStore, StoreError};
use crate::views::leases::LeaseView;

/// How long it waits for the store.
const LOOK_LIMIT: Duration = Duration::from_secs(5);

/// Shows the leases of a namespace, or some of them.
pub(super) fn run(scheduler: &SchedulerConfig, args: &LockArgs) -> Result<Exit, Exit> {
    let runtime = store::runtime()?;
    let (place, names) = runtime.block_on(async {
        // Inside the runtime: stores may spawn their tasks when they are opened.
        let store = store::open_leases(scheduler)?;
        let place = store.place();
        let asked = timeout(LOOK_LIMIT, look(&*store)).await;
        let asked = asked.unwrap_or_else(|_| {
            let cause = format!("no answer within {LOOK_LIMIT:?}");
            let place = place.clone();
            Err(StoreError::Unreachable { place, cause })
        });
        let answered = asked.map_err(|error| store::refused(&error))?;
        Ok((place, answered))
    })?;
    let (now, mut names) = names;
    names.retain(|state| args.names.is_empty() || args.names.contains(&state.name));
    if args.json {
        let views: Vec<LeaseView> = names
            .iter()
            .map(|state| LeaseView::of(state, now))
            .collect();
        return Ok(output::json(&views));
    }
    if names.is_empty() {
        let namespace = &scheduler.namespace;
        print_error(&format!(
            "nobody has or wants it, in namespace `{namespace}` at {place}\n"
        ));
        return Ok(Exit::Done);
    }
    let rows = names.iter().flat_map(|state| rows(state, now));
    Ok(output::table(
        &["NAME", "WHO", "HOW", "TOKEN", "LEFT"],
        rows,
    ))
}

async fn look(store: &dyn LeaseStore) -> Result<(Timestamp, Vec<NameState>), StoreError> {
    store.ready().await?;
    let answered = store.names().await?;
    let mut names = answered.answer;
    names.retain(|state| !state.held.is_empty() || !state.waiting.is_empty());
    Ok((answered.now, names))
}

fn rows(state: &NameState, now: Timestamp) -> Vec<Vec<String>> {
    let name = state.name.to_string();
    let how = match state.mode {
        Mode::Exclusive => "has it alone",
        Mode::Shared => "shares it",
    };
    let has = |held: &HeldName| {
        vec![
            name.clone(),
            held.by.clone(),
            how.to_owned(),
            held.sighting.token.to_string(),
            match held.sighting.deadline > now {
                true => short_duration(held.sighting.deadline.saturating_since(now)),
                // Nobody wants it: it is taken away when somebody does.
                false => "overdue".to_owned(),
            },
        ]
    };
    let waits = |(who, mode): &(String, Mode)| {
        let how = match mode {
            Mode::Exclusive => "waits",
            Mode::Shared => "waits to share it",
        };
        let nothing = "-".to_owned();
        vec![
            name.clone(),
            who.clone(),
            how.to_owned(),
            nothing.clone(),
            nothing,
        ]
    };
    let holders = state.held.iter().map(has);
    holders.chain(state.waiting.iter().map(waits)).collect()
}
