//! What waits for one receiver, and how many at a time are on their way to it.
//!
//! Must never: hold more than its limit, or keep whoever puts something in waiting.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

/// First in, first out, up to a limit: what is in it for longest gives way to what is new.
#[derive(Debug)]
pub(super) struct Queue<T> {
    waiting: Mutex<VecDeque<T>>,
    added: Notify,
    limit: usize,
}

impl<T> Queue<T> {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            waiting: Mutex::new(VecDeque::new()),
            added: Notify::new(),
            limit,
        }
    }

    /// Adds one, and answers the oldest where there was no room for it.
    pub(super) fn push(&self, one: T) -> Option<T> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push_back(one);
        let dropped = match waiting.len() > self.limit {
            true => waiting.pop_front(),
            false => None,
        };
        self.added.notify_one();
        dropped
    }

    /// Takes the oldest, as soon as there is one.
    pub(super) async fn pop(&self) -> T {
        loop {
            let added = self.added.notified();
            if let Some(one) = self.take() {
                return one;
            }
            added.await;
        }
    }

    fn take(&self) -> Option<T> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let one = waiting.pop_front();
        if !waiting.is_empty() {
            // One that was woken takes one; there is more for others.
            self.added.notify_one();
        }
        one
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_oldest_gives_way_and_the_rest_comes_in_order() {
        let queue = Queue::new(2);
        assert_eq!(queue.push(1), None);
        assert_eq!(queue.push(2), None);
        assert_eq!(queue.push(3), Some(1));
        assert_eq!(queue.pop().await, 2);
        assert_eq!(queue.pop().await, 3);
    }
}
