//! Calls of the store, as the driver makes them.

use futures_util::FutureExt;
use soloist::scheduler::lease::Caller;
use soloist::scheduler::time::BootTime;
use soloist::scheduler::{Effect, Event};
use soloist::store::memory::MemoryStore;
use soloist::store::{ReplicaInfo, Store, StoreError};

fn now<T>(call: impl Future<Output = Result<T, StoreError>>) -> Result<T, String> {
    let answer = call
        .now_or_never()
        .expect("the memory store answers at once");
    answer.map_err(|error| error.to_string())
}

/// Carries a call out and tells what the driver would tell.
pub(crate) fn ask(
    store: &MemoryStore,
    effect: &Effect,
    caller: &Caller,
    info: &ReplicaInfo,
    sent: BootTime,
) -> Event {
    match effect {
        Effect::Register(jobs) => {
            let result = now(store.register(caller, jobs));
            Event::Registered {
                jobs: jobs.clone(),
                sent,
                result,
            }
        }
        Effect::Claim(claims) => {
            let result = now(store.claim(caller, claims));
            Event::Claimed {
                claims: claims.clone(),
                sent,
                result,
            }
        }
        Effect::Renew(renewals) => {
            let result = now(store.renew(caller, renewals));
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
                result: now(store.release(caller, releases)),
            }
        }
        Effect::Observe(scope) => Event::Observed {
            scope: *scope,
            sent,
            result: now(store.observe(caller, info, *scope)),
        },
        other => unreachable!("not a call: {other:?}"),
    }
}

/// What the driver tells of a call that had no answer.
pub(crate) fn failure(effect: Effect, sent: BootTime) -> Event {
    let cause = || "no answer".to_owned();
    match effect {
        Effect::Register(jobs) => Event::Registered {
            jobs,
            sent,
            result: Err(cause()),
        },
        Effect::Claim(claims) => Event::Claimed {
            claims,
            sent,
            result: Err(cause()),
        },
        Effect::Renew(renewals) => Event::Renewed {
            renewals,
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
            scope,
            sent,
            result: Err(cause()),
        },
        other => unreachable!("not a call: {other:?}"),
    }
}
