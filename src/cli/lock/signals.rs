//! What signals ask of `soloist lock`.
//!
//! | signal | what becomes of it |
//! |---|---|
//! | SIGINT, SIGTERM, SIGHUP, SIGQUIT | stop: the command is sent TERM, at the second one KILL |
//! | SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH, SIGCONT | passed on to the command |
//! | SIGTSTP (Ctrl-Z), SIGTTIN, SIGTTOU | nothing: a process that is stopped renews no lease |
//!
//! What this process was started to ignore, as by nohup(1) or in the background of a script, is
//! ignored still, but for SIGTERM.
//!
//! Must never: let a signal that can be caught end or stop this process while its command runs: the
//! lease would be neither given back nor renewed.

use std::io;

use futures_util::StreamExt as _;
use signal_hook::consts::{
    SIGALRM, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1,
    SIGUSR2, SIGWINCH,
};

use crate::daemon::signals::ignores;

const STOPS: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];

const PASSED_ON: [i32; 5] = [SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH, SIGCONT];

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// To end, and by which signal.
    Stop(i32),
    /// To let the command know.
    PassOn(i32),
    /// To stand still.
    Suspend,
}

/// The signals that come.
pub(super) struct Signals(signal_hook_tokio::Signals);

impl Signals {
    /// Begins to listen. Must be called on a runtime.
    pub(super) fn listen() -> io::Result<Self> {
        // Not caught: who writes to the terminal from the background would be told again and again.
        [SIGTTIN, SIGTTOU].into_iter().for_each(ignore);
        let all = STOPS.into_iter().chain(PASSED_ON).chain([SIGTSTP]);
        let heard = all.filter(|signal| *signal == SIGTERM || !ignores(*signal));
        signal_hook_tokio::Signals::new(heard).map(Self)
    }

    /// The next one. Cancel safe.
    pub(super) async fn next(&mut self) -> Asked {
        match self.0.next().await {
            Some(signal) if STOPS.contains(&signal) => Asked::Stop(signal),
            Some(signal) if PASSED_ON.contains(&signal) => Asked::PassOn(signal),
            Some(_) => Asked::Suspend,
            None => std::future::pending().await,
        }
    }
}

#[expect(unsafe_code, reason = "signal(2) has no safe form")]
fn ignore(signal: i32) {
    // SAFETY: to ignore a signal runs no code of ours. What is executed below gets the default back:
    // the guardian sets all of them.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}
