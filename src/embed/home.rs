//! Where a scheduler lives in the program that it is embedded in.
//!
//! Functions are the program's, and run on its runtime. The scheduler, its renewals and its
//! connections have soloist's own thread: they go on while the program computes where it should
//! await. Not where the clock is none of the host's: what goes by a manual one has its turns on
//! one runtime, which is how a test knows that all is done that is due.
//!
//! Must never: run a function, or outlive the runtime of the functions.

use std::panic::resume_unwind;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::error::Error;
use crate::clock::Clock;
use crate::own_thread::{self, Entered};

/// Two runtimes, or one.
#[derive(Clone, Debug)]
pub(super) struct Home {
    own: Handle,
    /// Of the program; none where the scheduler lives on it too.
    programs: Option<Handle>,
}

impl Home {
    /// That of a scheduler that is started here, by this clock.
    ///
    /// # Errors
    /// When there is no runtime here, or the kernel refuses a timer, or a thread.
    pub(super) fn of(clock: &dyn Clock) -> Result<Self, Error> {
        let here = Handle::try_current().map_err(|_| Error::NoRuntime)?;
        let own = own_thread::runtime().map_err(Error::Thread)?;
        let timer = {
            // The program's may have been built without what a timer takes.
            let _there = own.enter();
            clock.timer().map_err(Error::Timers)?
        };
        match timer.is_of_host() {
            true => Ok(Self {
                own,
                programs: Some(here),
            }),
            false => Ok(Self {
                own: here,
                programs: None,
            }),
        }
    }

    /// Has what is opened until the guard is dropped live here.
    pub(super) fn enter(&self) -> Entered<'_> {
        own_thread::enter(&self.own, self.programs.is_some())
    }

    /// The program's, where that is another one.
    pub(super) fn programs(&self) -> Option<&Handle> {
        self.programs.as_ref()
    }

    /// Does something here, to its end; it ends with whoever waits for it.
    ///
    /// # Errors
    /// When its runtime was shut down.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Error> {
        if self.programs.is_none() {
            return Ok(work.await);
        }
        let mut tied = Tied(self.own.spawn(work));
        let done = (&mut tied.0).await;
        done.or_else(|error| match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(error) => Err(Error::Broken(error.to_string())),
        })
    }
}

/// A task that ends with whoever waits for it: also where that is dropped with its runtime.
struct Tied<T>(JoinHandle<T>);

impl<T> Drop for Tied<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
