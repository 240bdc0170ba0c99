//! What becomes of messages on their way.
//!
//! As with TCP what goes over one connection stays in order, and what was sent may be carried out
//! long after its sender closed the connection.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use test_support::redis_model::read_command;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::time::{Instant, sleep, sleep_until};

use super::servers::{CALM, Servers};
use super::{happens, millis_below, throw};
use crate::store::redis::connector::{Connector, Login, Stream};
use crate::store::redis::fault::Fault;

/// So much is on its way at once.
const IN_FLIGHT: usize = 1 << 20;

/// What has more words than this has a server write. Where such a message goes astray, others
/// find a step that was taken by few.
const WRITES: usize = 16;

/// A silence that nobody waits for the end of.
const SILENCE: Duration = Duration::from_secs(30);

/// The way to one of the servers.
pub(super) struct Way {
    servers: Arc<Servers>,
    number: usize,
    place: String,
    login: Login,
}

/// What becomes of one message and its answer.
#[derive(Debug)]
struct Fate {
    there: Duration,
    arrives: bool,
    back: Duration,
    answered: bool,
    /// Whoever waits for what doesn't come is told that the connection is over.
    told: bool,
}

impl Fate {
    const GOOD: Self = Self {
        there: Duration::ZERO,
        arrives: true,
        back: Duration::ZERO,
        answered: true,
        told: true,
    };

    fn throw(percent: u64) -> Self {
        let usual = Self {
            there: millis_below(2),
            back: millis_below(2),
            told: happens(85),
            ..Self::GOOD
        };
        if !happens(percent) {
            return usual;
        }
        match throw(32) {
            0..4 => Self {
                arrives: false,
                ..usual
            },
            4..8 => Self {
                answered: false,
                ..usual
            },
            8..12 => Self {
                there: millis_below(1 << (5 + throw(8))),
                ..usual
            },
            12..26 => Self {
                there: millis_below(60),
                ..usual
            },
            _ => Self {
                back: millis_below(60),
                ..usual
            },
        }
    }
}

impl Way {
    pub(super) fn new(servers: Arc<Servers>, number: usize) -> Self {
        Self {
            place: format!("server {number}"),
            servers,
            number,
            login: Login {
                user: None,
                password: None,
                db: 0,
            },
        }
    }
}

#[async_trait]
impl Connector for Way {
    fn place(&self) -> &str {
        &self.place
    }

    fn login(&self) -> &Login {
        &self.login
    }

    async fn reach(&self) -> Result<Stream, Fault> {
        let (here, there) = tokio::io::duplex(IN_FLIGHT);
        let (servers, number) = (Arc::clone(&self.servers), self.number);
        tokio::spawn(async move {
            let mut starts = servers.all[number].starts.subscribe();
            tokio::select! {
                biased;
                _ = starts.changed() => {}
                () = serve(&servers, number, there) => {}
            }
        });
        Ok(Box::pin(here))
    }
}

/// Answers on one connection until it is over.
async fn serve(servers: &Servers, number: usize, mut stream: DuplexStream) {
    let mut received = Vec::new();
    loop {
        let words = loop {
            match read_command(&mut received) {
                Some(words) => break words,
                None if !receive(&mut stream, &mut received).await => return,
                None => {}
            }
        };
        // What a connection begins with goes astray with the connection, which says nothing new.
        let begins = matches!(&*words[0], b"PING" | b"INFO" | b"SCRIPT");
        let fate = match servers.trouble() {
            CALM => Fate::GOOD,
            _ if begins => Fate::throw(0),
            percent if words.len() > WRITES => Fate::throw(percent.max(30)),
            percent => Fate::throw(percent),
        };
        sleep(fate.there).await;
        while servers.all[number].thaws_at() > Instant::now() {
            sleep_until(servers.all[number].thaws_at()).await;
        }
        let reply = fate.arrives.then(|| servers.call(number, &words));
        sleep(fate.back).await;
        let Some(reply) = reply.filter(|_| fate.answered) else {
            if !fate.told {
                sleep(SILENCE).await;
            }
            return;
        };
        let mut bytes = Vec::new();
        reply.encode(&mut bytes);
        // What was sent is carried out, whether or not anybody waits for the answer.
        let _ = stream.write_all(&bytes).await;
    }
}

/// Takes in what is there; answers whether there may be more.
async fn receive(stream: &mut DuplexStream, received: &mut Vec<u8>) -> bool {
    matches!(stream.read_buf(received).await, Ok(length) if length > 0)
}
