//! The moments of a step: there the program listens whether it is told to stop, and waits for Enter
//! if it was asked to, so that a person or a test can kill or freeze it at that very point.
//!
//! Must never: go on once it is told to stop.

use std::io::{self, Write as _};

use clap::ValueEnum;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::MigrateError;

/// Where a step can be interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Moment {
    /// Before the lease is asked
    Check,
    /// After it was asked, before the step's transaction: only the token helps here
    Write,
    /// In the transaction, before it is committed
    Commit,
}

/// Ctrl-C, or what a service manager sends.
pub(crate) struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Completes when it is told to stop.
    pub(crate) async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// A moment of a step has come.
    pub(crate) async fn at(
        &mut self,
        moment: Moment,
        ask_before: Option<Moment>,
        step: usize,
    ) -> Result<(), MigrateError> {
        let go_on = async {
            if ask_before == Some(moment) {
                enter(moment, step).await;
            }
        };
        tokio::select! {
            biased;
            () = self.asked() => Err(MigrateError::Stopped),
            () = go_on => Ok(()),
        }
    }
}

/// Waits for a line on standard input, or its end.
async fn enter(moment: Moment, step: usize) {
    println!("step {step}: before {moment:?}, press Enter");
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
