//! Any bytes as what a daemon and a keeper tell each other.
//!
//! Must never: be part of a program.

use std::io::Write as _;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::wire::{Launch, Link, Order, Received, Report, decode, encode};

/// What fits a socket's buffer, so that nobody has to read meanwhile.
const INPUT_LIMIT: usize = 64 * 1024;

/// Any bytes are messages or the end of the stream; and a message that was read is written as what
/// reads the same.
pub(crate) fn messages(input: &[u8]) {
    let lines = || input.split_inclusive(|byte| *byte == b'\n');
    for line in lines() {
        is_stable::<Launch>(line);
        is_stable::<Order>(line);
        is_stable::<Report>(line);
    }
    if input.len() < INPUT_LIMIT {
        let whole = lines().filter(|line| line.ends_with(b"\n"));
        let read = whole.map_while(|line| decode::<Order>(line).ok());
        assert_eq!(received(input), read.collect::<Vec<_>>());
    }
}

fn is_stable<T: Serialize + DeserializeOwned>(line: &[u8]) {
    let Ok(message) = decode::<T>(line) else {
        return;
    };
    let written = encode(&message).expect("a message can be said");
    let ends = written.iter().filter(|byte| **byte == b'\n').count();
    assert!(ends == 1 && written.ends_with(b"\n"), "not one line");
    let again: T = decode(&written).expect("what was written is read");
    assert_eq!(encode(&again).expect("and can be said"), written);
}

/// What a keeper takes in of it, all at once.
fn received(input: &[u8]) -> Vec<Order> {
    let (mut daemon, keeper) = UnixStream::pair().expect("a pair of sockets");
    let mut link = Link::new(keeper).expect("a link");
    daemon.write_all(input).expect("room for all of it");
    daemon.shutdown(Shutdown::Write).expect("an end");
    let mut orders = Vec::new();
    loop {
        match link.receive::<Order>() {
            Received::Message(order) => orders.push(order),
            Received::End => return orders,
            Received::Nothing => panic!("all of it is there, and its end"),
        }
    }
}
