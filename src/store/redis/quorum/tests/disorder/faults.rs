//! What happens to servers.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::servers::{Kept, Node, Servers};
use super::{happens, millis_below, throw};

/// From one look whether all have caught up to the next.
const LOOK: Duration = Duration::from_millis(20);

/// Freezes servers, and starts a minority of them again at a time: each has caught up before the
/// next. Answers how many were started again.
pub(super) async fn happen(servers: Arc<Servers>, time: Duration) -> usize {
    let until = Instant::now() + time;
    let all = servers.all.len();
    let mut restarts = 0;
    while Instant::now() < until {
        servers.set_trouble([0, 5, 10, 20, 40][below(5)]);
        sleep(millis_below(500)).await;
        servers
            .all
            .iter()
            .filter(|_| happens(40))
            .for_each(Node::save);
        let minority = 1 + below((all - 1) / 2);
        let first = below(all);
        let several = (0..minority).map(|turn| &servers.all[(first + turn) % all]);
        if happens(40) {
            several.for_each(|node| node.freeze(millis_below(2500)));
            continue;
        }
        for node in several {
            node.restart([Kept::Nothing, Kept::Old, Kept::Old, Kept::All][below(4)]);
            restarts += 1;
        }
        if happens(60) {
            // Who comes back and who is behind answer first.
            servers.all[below(all)].freeze(millis_below(1000));
        }
        while servers.all.iter().any(|node| !node.counts()) && Instant::now() < until {
            sleep(LOOK).await;
            if happens(5) {
                // A majority that counts may still be slow.
                servers.all[below(all)].freeze(millis_below(1000));
            }
        }
    }
    restarts
}

fn below(sides: usize) -> usize {
    usize::try_from(throw(sides as u64)).expect("it is below a usize")
}
