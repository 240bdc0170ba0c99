//! The moments at which it matters whether a process dies or freezes: there it waits for Enter, if it
//! was asked to. And whether it is told to stop.
//!
//! Must never: break off between two moments that nobody waits at: what is begun is finished.

use std::io::{self, Write as _};

use clap::ValueEnum;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::error::SaleError;

/// Where something can be interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Moment {
    /// open, close: before Redis is told
    Sale,
    /// open, close, drain: before the books are written
    Books,
    /// drain: before what is written is acknowledged
    Ack,
}

/// Ctrl-C, or what a service manager sends; and where to wait for Enter.
#[derive(Debug)]
pub struct Moments {
    terminate: Signal,
    interrupt: Signal,
    ask_before: Option<Moment>,
}

impl Moments {
    /// Begins to listen. Must be called on a runtime.
    ///
    /// # Errors
    /// When there are no signals to be had.
    pub fn listen(ask_before: Option<Moment>) -> Result<Self, SaleError> {
        Ok(Self {
            terminate: signal(SignalKind::terminate()).map_err(SaleError::Signals)?,
            interrupt: signal(SignalKind::interrupt()).map_err(SaleError::Signals)?,
            ask_before,
        })
    }

    /// Completes when it is told to stop.
    pub async fn stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// A moment has come.
    pub(crate) async fn at(&mut self, moment: Moment) -> Result<(), SaleError> {
        if self.ask_before != Some(moment) {
            return Ok(());
        }
        tokio::select! {
            () = self.stop() => Err(SaleError::Stopped),
            () = enter(moment) => Ok(()),
        }
    }
}

/// Waits for a line on standard input, or its end.
async fn enter(moment: Moment) {
    println!("before {moment:?}: press Enter");
    // What is read through a pipe has to see it now; if nobody reads, nobody is to be told.
    let _ = io::stdout().flush();
    let (pressed, waited) = oneshot::channel();
    // A thread of its own, which doesn't keep the program from ending.
    std::thread::spawn(move || {
        // Whatever comes, the wait is over.
        let _ = io::stdin().read_line(&mut String::new());
        let _ = pressed.send(());
    });
    let _ = waited.await;
}
