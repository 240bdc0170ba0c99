//! Answers of several servers, of which some are slow.
//!
//! Must never: wait for all, where a majority has answered.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::time::timeout;

use super::super::fault::Fault;

/// How long those who are slower than a majority are waited for. One that is known to be away
/// takes none of it.
const LINGER: Duration = Duration::from_millis(10);

/// Collects answers until there are enough, and for a moment longer. Those who are slower go on:
/// what they were asked to do they shall do.
pub(super) async fn gather<T, F>(
    asked: impl Iterator<Item = F>,
    enough: impl Fn(&[T]) -> bool,
) -> (Vec<T>, Vec<Fault>)
where
    T: Send + 'static,
    F: Future<Output = Result<T, Fault>> + Send + 'static,
{
    let mut waiting: FuturesUnordered<_> = asked.map(tokio::spawn).collect();
    let (mut answers, mut faults) = (Vec::new(), Vec::new());
    let mut sort = |answers: &mut Vec<T>, answer| match answer {
        Ok(Ok(answer)) => answers.push(answer),
        Ok(Err(fault)) => faults.push(fault),
        // It panicked, which is told by the runtime.
        Err(_) => {}
    };
    while !enough(&answers) {
        match waiting.next().await {
            Some(answer) => sort(&mut answers, answer),
            None => return (answers, faults),
        }
    }
    let linger = async {
        while let Some(answer) = waiting.next().await {
            sort(&mut answers, answer);
        }
    };
    // Whoever is slower than that is left behind.
    let _ = timeout(LINGER, linger).await;
    (answers, faults)
}
