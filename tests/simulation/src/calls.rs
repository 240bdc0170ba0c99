//! Calls of the store, as the driver makes them.

use soloist::scheduler::lease::Caller;
use soloist::scheduler::time::BootTime;
use soloist::scheduler::{Effect, Event};
use soloist::store::{ReplicaInfo, Store, StoreError};

fn told<T>(answer: Result<T, StoreError>) -> Result<T, String> {
    answer.map_err(|error| error.to_string())
}

/// Carries a call out and tells what the driver would tell.
pub(crate) async fn ask(
    store: &dyn Store,
    effect: &Effect,
    caller: &Caller,
    info: &ReplicaInfo,
    sent: BootTime,
) -> Event {
    match effect {
        Effect::Register(jobs) => {
            let result = told(store.register(caller, jobs).await);
            Event::Registered {
                jobs: jobs.clone(),
                sent,
                result,
            }
        }
        Effect::Claim(claims) => {
            let result = told(store.claim(caller, claims).await);
            Event::Claimed {
                claims: claims.clone(),
                sent,
                result,
            }
        }
        Effect::Renew(renewals) => {
            let result = told(store.renew(caller, renewals).await);
            Event::Renewed {
                renewals: renewals.clone(),
                sent,
                result,
            }
        }
        Effect::Release(releases) => {
            let runs = releases.iter().map(|release| release.run_id).collect();
            Event::Released {
                runs,
                sent,
                result: told(store.release(caller, releases).await),
            }
        }
        Effect::Observe(scope) => Event::Observed {
            scope: *scope,
            sent,
            result: told(store.observe(caller, info, *scope).await),
        },
        Effect::Sweep => Event::Swept {
            result: told(store.sweep(caller).await),
        },
        Effect::Publish(table) => Event::Published {
            sent,
            result: told(store.publish(caller, table).await),
        },
        Effect::ReadTable(digest) => Event::TableRead {
            digest: digest.clone(),
            result: told(store.table(digest).await),
        },
        other => unreachable!("not a call: {other:?}"),
    }
}

/// What the driver tells of a call that had no answer.
pub(crate) fn failure(effect: &Effect, sent: BootTime) -> Event {
    let cause = || "no answer".to_owned();
    match effect {
        Effect::Register(jobs) => Event::Registered {
            jobs: jobs.clone(),
            sent,
            result: Err(cause()),
        },
        Effect::Claim(claims) => Event::Claimed {
            claims: claims.clone(),
            sent,
            result: Err(cause()),
        },
        Effect::Renew(renewals) => Event::Renewed {
            renewals: renewals.clone(),
            sent,
            result: Err(cause()),
        },
        Effect::Release(releases) => {
            let runs = releases.iter().map(|release| release.run_id).collect();
            Event::Released {
                runs,
                sent,
                result: Err(cause()),
            }
        }
        Effect::Observe(scope) => Event::Observed {
            scope: *scope,
            sent,
            result: Err(cause()),
        },
        Effect::Publish(_) => Event::Published {
            sent,
            result: Err(cause()),
        },
        Effect::ReadTable(digest) => Event::TableRead {
            digest: digest.clone(),
            result: Err(cause()),
        },
        Effect::Sweep => Event::Swept {
            result: Err(cause()),
        },
        other => unreachable!("not a call: {other:?}"),
    }
}
