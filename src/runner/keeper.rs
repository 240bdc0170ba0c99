//! The daemon's end of an attempt: its keeper, asked for and talked to.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as Stream;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::guard::{Guardian, NoGuardian};
use crate::guardian::wire::{Launch, Order, Report, decode, encode};
use crate::guardian::{DESCRIPTORS, Exit, SpawnError, SpawnErrorKind, Streams};

/// How long a guardian may take to make a keeper: a thousand times what it takes one that is
/// well. It makes them one after another.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// How long after a guardian that did nothing it may take to notice that it has ended. If it
/// has not, it is asked again.
const NOTICE_LIMIT: Duration = Duration::from_millis(250);

/// How many guardians are asked in turn, when they end or don't answer.
const TRIES: u32 = 4;

/// A keeper, seen from the daemon. Dropped, it has the keeper kill what runs.
#[derive(Debug)]
pub(super) struct Keeper {
    reports: Lines<BufReader<OwnedReadHalf>>,
    orders: OwnedWriteHalf,
}

/// What a guardian that was asked for a keeper answered.
enum Answer {
    Keeper(Keeper),
    /// It says why not.
    Refused(Exit),
    /// It ended before it did anything: another may be asked.
    Nothing(String),
}

impl Keeper {
    /// Has a keeper made. As long as it was not told what to launch, nothing runs; dropped
    /// before that, this future has had no effect.
    pub(super) async fn ask_for(guardian: &Guardian, streams: &Streams) -> Result<Self, Exit> {
        let mut why = String::new();
        for _ in 0..TRIES {
            let asked = tokio::time::timeout(ANSWER_LIMIT * 2, ask(guardian, streams));
            match asked.await {
                Ok(Ok(Answer::Keeper(keeper))) => return Ok(keeper),
                Ok(Ok(Answer::Refused(exit))) => return Err(exit),
                Ok(Ok(Answer::Nothing(cause))) => why = cause,
                Ok(Err(error)) => why = error.to_string(),
                Err(_) => "there is no guardian, and none comes".clone_into(&mut why),
            }
        }
        let why = format!("there is nobody to look after it: {why}");
        let kind = SpawnErrorKind::Exhausted;
        Err(Exit::NotStarted(SpawnError::new(kind, "job", why)))
    }

    /// Says what to launch.
    pub(super) async fn launch(&mut self, launch: &Launch) -> io::Result<()> {
        self.orders.write_all(&encode(launch)?).await
    }

    /// The next report; none when the keeper is gone. Cancel safe.
    pub(super) async fn report(&mut self) -> Option<Report> {
        let line = self.reports.next_line().await.ok()??;
        decode(line.as_bytes()).ok()
    }

    /// Gives an order, without waiting. A keeper that has not read so many orders that there is
    /// no room for another is frozen, which its parent sees to; the orders that it has will do.
    pub(super) fn order(&self, order: Order) {
        let told = encode(&order).and_then(|line| self.orders.try_write(&line));
        if let Err(error) = told {
            tracing::debug!(%error, ?order, "failed to tell a keeper");
        }
    }
}

async fn ask(guardian: &Guardian, streams: &Streams) -> Result<Answer, NoGuardian> {
    let process = guardian.process().await?;
    let (ours, theirs) = Stream::pair()?;
    let theirs = OwnedFd::from(theirs);
    ours.set_nonblocking(true)?;
    let (reader, orders) = UnixStream::from_std(ours)?.into_split();
    let descriptors: [&OwnedFd; DESCRIPTORS] = [&theirs, &streams.stdout, &streams.stderr];
    let sent = process.fork_keeper(descriptors);
    // The only copy left is the guardian's: its end is the end of the stream.
    drop(theirs);
    let mut keeper = Keeper {
        reports: BufReader::new(reader).lines(),
        orders,
    };
    let why = match sent {
        Err(error) => format!("the guardian can't be asked: {error}"),
        Ok(()) => match tokio::time::timeout(ANSWER_LIMIT, keeper.report()).await {
            Ok(Some(Report::Ready)) => return Ok(Answer::Keeper(keeper)),
            Ok(Some(Report::Ended(end))) => return Ok(Answer::Refused(end.exit)),
            Ok(Some(Report::Started) | None) => "the guardian ended".to_owned(),
            Err(_) => {
                guardian.replace(&process);
                "the guardian did not answer".to_owned()
            }
        },
    };
    // Or the next would be this one again.
    let _ = tokio::time::timeout(NOTICE_LIMIT, guardian.replaced(&process)).await;
    Ok(Answer::Nothing(why))
}

/// What a launch that the keeper did not live to hear of comes to.
pub(super) fn unheard(error: &io::Error) -> Exit {
    let why = format!("its keeper ended before it was started: {error}");
    Exit::NotStarted(SpawnError::new(SpawnErrorKind::Other, "job", why))
}
