//! What waits for one receiver, and how many at a time are on their way to it.
//!
//! Must never: hold more than its limit, keep whoever puts something in waiting, or let what is of
//! one job overtake what is older of it.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::scheduler::job::JobName;

/// Something of a job.
pub(super) trait OfJob {
    fn job(&self) -> &JobName;
}

/// First in, first out, up to a limit: what is in it for longest gives way to what is new. Of one job
/// one is out at a time.
#[derive(Debug)]
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Notify,
    limit: usize,
}

#[derive(Debug)]
struct State<T> {
    waiting: VecDeque<T>,
    /// The jobs of which one is out.
    out: HashSet<JobName>,
}

impl<T: OfJob> State<T> {
    /// The oldest that may go.
    fn next(&self) -> Option<usize> {
        let may_go = |one: &T| !self.out.contains(one.job());
        self.waiting.iter().position(may_go)
    }
}

impl<T: OfJob> Queue<T> {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            state: Mutex::new(State {
                waiting: VecDeque::new(),
                out: HashSet::new(),
            }),
            changed: Notify::new(),
            limit,
        }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one, and answers the oldest where there was no room for it.
    pub(super) fn push(&self, one: T) -> Option<T> {
        let mut state = self.state();
        state.waiting.push_back(one);
        let dropped = match state.waiting.len() > self.limit {
            true => state.waiting.pop_front(),
            false => None,
        };
        self.changed.notify_one();
        dropped
    }

    /// Takes the oldest of a job of which none is out, as soon as there is one. Until
    /// [`Self::is_over`] no other of that job is taken.
    pub(super) async fn pop(&self) -> T {
        loop {
            let changed = self.changed.notified();
            if let Some(one) = self.take() {
                return one;
            }
            changed.await;
        }
    }

    fn take(&self) -> Option<T> {
        let mut state = self.state();
        let one = state.next().and_then(|at| state.waiting.remove(at))?;
        state.out.insert(one.job().clone());
        if state.next().is_some() {
            // One that was woken takes one; there is more for others.
            self.changed.notify_one();
        }
        Some(one)
    }

    /// What was taken of a job was delivered, or never will be.
    pub(super) fn is_over(&self, job: &JobName) {
        self.state().out.remove(job);
        self.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct One(JobName, u32);

    impl OfJob for One {
        fn job(&self) -> &JobName {
            &self.0
        }
    }

    fn one(job: &str, number: u32) -> One {
        One(JobName::new(job).unwrap(), number)
    }

    #[tokio::test]
    async fn the_oldest_gives_way_and_the_rest_comes_in_order() {
        let queue = Queue::new(2);
        assert_eq!(queue.push(one("a", 1)), None);
        assert_eq!(queue.push(one("b", 2)), None);
        assert_eq!(queue.push(one("c", 3)), Some(one("a", 1)));
        assert_eq!(queue.pop().await, one("b", 2));
        assert_eq!(queue.pop().await, one("c", 3));
    }

    #[tokio::test]
    async fn of_one_job_the_next_waits_for_the_one_before_and_no_other_does() {
        let queue = Queue::new(10);
        for new in [one("a", 1), one("a", 2), one("b", 3), one("a", 4)] {
            assert_eq!(queue.push(new), None);
        }
        assert_eq!(queue.pop().await, one("a", 1));
        assert_eq!(queue.pop().await, one("b", 3));
        assert_eq!(queue.take(), None);
        let over = async {
            tokio::task::yield_now().await;
            queue.is_over(&JobName::new("a").unwrap());
        };
        let (next, ()) = tokio::join!(queue.pop(), over);
        assert_eq!(next, one("a", 2));
        assert_eq!(queue.take(), None);
    }
}
