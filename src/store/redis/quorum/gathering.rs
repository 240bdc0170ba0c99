//! Answers of several servers, of which some are slow.
//!
//! Must never: wait for all, where a majority has answered.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::super::fault::Fault;

/// How long those who are slower than a majority are waited for. One that is known to be away
/// takes none of it.
const LINGER: Duration = Duration::from_millis(10);

/// Collects answers until there are enough, and for a moment longer.
pub(super) async fn gather<T, F>(
    asked: impl Iterator<Item = F>,
    enough: impl Fn(&[T]) -> bool,
) -> (Vec<T>, Vec<Fault>)
where
    T: Send + 'static,
    F: Future<Output = Result<T, Fault>> + Send + 'static,
{
    let mut gathering = Gathering::default();
    asked.for_each(|question| gathering.ask(question));
    gathering.until(enough).await;
    (gathering.answers, gathering.faults)
}

/// Who was asked, and what came back. Those who are slow go on when nobody waits any more: what
/// they were asked to do they shall do.
pub(super) struct Gathering<T> {
    waiting: FuturesUnordered<JoinHandle<Result<T, Fault>>>,
    pub(super) answers: Vec<T>,
    pub(super) faults: Vec<Fault>,
}

impl<T> Default for Gathering<T> {
    fn default() -> Self {
        Self {
            waiting: FuturesUnordered::new(),
            answers: Vec::new(),
            faults: Vec::new(),
        }
    }
}

impl<T: Send + 'static> Gathering<T> {
    pub(super) fn ask(
        &mut self,
        question: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) {
        self.waiting.push(tokio::spawn(question));
    }

    /// Waits for one more to say something; answers whether there was one to wait for.
    async fn one_more(&mut self) -> bool {
        let Some(said) = self.waiting.next().await else {
            return false;
        };
        match said {
            Ok(Ok(answer)) => self.answers.push(answer),
            Ok(Err(fault)) => self.faults.push(fault),
            // It panicked, which is told by the runtime.
            Err(_) => {}
        }
        true
    }

    /// Waits for somebody's answer, for so long at most. One who can't answer is none.
    pub(super) async fn anybody(&mut self, time: Duration) -> Option<&T> {
        let said = self.faults.len();
        let one = async {
            while self.answers.is_empty() && self.faults.len() == said && self.one_more().await {}
        };
        // Who is slower may still answer.
        let _ = timeout(time, one).await;
        self.answers.first()
    }

    /// Waits until there are enough, and for a moment longer.
    pub(super) async fn until(&mut self, enough: impl Fn(&[T]) -> bool) {
        while !enough(&self.answers) {
            if !self.one_more().await {
                return;
            }
        }
        let linger = async { while self.one_more().await {} };
        // Whoever is slower than that is left behind.
        let _ = timeout(LINGER, linger).await;
    }
}
