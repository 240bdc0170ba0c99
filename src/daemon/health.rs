//! Keeps [`Health`] up to date from what the driver tells.
//!
//! Must never: judge; it writes down what it hears.

use tokio::sync::watch;

use crate::driver::{Moment, Observer};
use crate::health::{Health, Phase};
use crate::scheduler::Notice;

/// Looks on at a driver, and keeps its health.
pub(super) struct Keeper(pub(super) watch::Sender<Health>);

impl Observer for Keeper {
    fn notice(&mut self, notice: &Notice, moment: Moment<'_>) {
        let change: Box<dyn FnOnce(&mut Health)> = match notice {
            Notice::Ready { jobs, .. } => {
                let jobs = *jobs;
                Box::new(move |health| {
                    health.table.jobs = jobs;
                    if health.phase == Phase::Starting {
                        health.phase = Phase::Ready;
                    }
                })
            }
            Notice::Draining { .. } => Box::new(|health| health.phase = Phase::Draining),
            Notice::StoreAway { cause } => {
                let cause = cause.clone();
                Box::new(move |health| health.store_away = Some(cause))
            }
            Notice::StoreBack { .. } => Box::new(|health| health.store_away = None),
            Notice::Reloaded { jobs, .. } => {
                let jobs = *jobs;
                let digest = moment.scheduler.digest().to_owned();
                Box::new(move |health| {
                    health.table.jobs = jobs;
                    health.table.digest = digest;
                })
            }
            _ => return,
        };
        self.0.send_modify(change);
    }

    fn settled(&mut self, moment: Moment<'_>) {
        let running = moment.scheduler.running();
        self.0.send_if_modified(|health| {
            let changed = health.running != running;
            health.running = running;
            changed
        });
    }
}
