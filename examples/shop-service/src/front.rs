//! The shop as the service has it: a database that blocks, asked on threads that may, and what the
//! shelves held a moment ago.
//!
//! Must never: block the runtime, on which requests and jobs wait.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use close_expired_orders::shop::{self, Shop, ShopError};

/// Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Front {
    database: Arc<str>,
    shelves: Arc<RwLock<BTreeMap<String, i64>>>,
}

impl Front {
    /// Opens the shop once, so that what is wrong with its database is told at the start.
    pub(crate) async fn open(database: &str) -> Result<Self, ShopError> {
        let front = Self {
            database: database.into(),
            shelves: Arc::default(),
        };
        front.refresh().await.map(|()| front)
    }

    /// Asks the database. A connection each time keeps the example small; a service has a pool.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut dyn Shop) -> Result<T, ShopError> + Send + 'static,
    ) -> Result<T, ShopError> {
        let database = Arc::clone(&self.database);
        let asked = move || question(&mut *shop::open(&database)?);
        match tokio::task::spawn_blocking(asked).await {
            Ok(answer) => answer,
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }

    /// Looks into the shelves.
    pub(crate) async fn refresh(&self) -> Result<(), ShopError> {
        let stock = self.ask(|shop| shop.stock()).await?;
        *self.shelves.write().unwrap_or_else(PoisonError::into_inner) = stock;
        Ok(())
    }

    /// What they held when this instance last looked.
    pub(crate) fn shelves(&self) -> BTreeMap<String, i64> {
        let shelves = self.shelves.read();
        shelves.unwrap_or_else(PoisonError::into_inner).clone()
    }
}
