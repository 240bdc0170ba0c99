//! Signals for a job's first process that come before that is the job: what becomes of them is for
//! its program to say, and before execve(2) it would only die of them.
//!
//! Leaves only; nothing here touches a process.

use rustix::process::Signal;

/// What is held back, if anything still is.
#[derive(Debug)]
pub(super) struct HeldBack(Option<Vec<Signal>>);

impl HeldBack {
    /// All that comes, until it is executed.
    pub(super) fn until_executed() -> Self {
        Self(Some(Vec::new()))
    }

    /// What is to be sent now, of one that came; each kind waits once, as in the kernel.
    pub(super) fn take(&mut self, signal: Signal) -> Option<Signal> {
        let Some(waiting) = &mut self.0 else {
            return Some(signal);
        };
        if !waiting.contains(&signal) {
            waiting.push(signal);
        }
        None
    }

    /// It is executed: what waited, in order.
    pub(super) fn executed(&mut self) -> Vec<Signal> {
        self.0.take().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_comes_before_the_program_runs_waits_for_it_once() {
        let mut held_back = HeldBack::until_executed();
        for signal in [Signal::USR1, Signal::USR2, Signal::USR1] {
            assert_eq!(held_back.take(signal), None);
        }
        assert_eq!(held_back.executed(), [Signal::USR1, Signal::USR2]);
        assert_eq!(held_back.take(Signal::USR1), Some(Signal::USR1));
        assert_eq!(held_back.executed(), []);
    }
}
