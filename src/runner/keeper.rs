//! The daemon's end of an attempt: its keeper, asked for and talked to.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as Stream;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::error::Elapsed;
use tokio::time::{sleep, timeout};

use super::guard::{Guardian, NoGuardian};
use crate::guardian::wire::{Launch, Order, Report, decode, encode};
use crate::guardian::{DESCRIPTORS, Exit, SpawnError, SpawnErrorKind, Streams};

/// How long a guardian may take to make a keeper: a thousand times what it takes one that is
/// well. It makes them one after another.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// How long it is waited for on top of that: where all stood still, the daemon may have its turn
/// again before its guardian, and find that the time is over.
const LAST_CHANCE: Duration = Duration::from_millis(250);

/// How long guardians are asked, one after another, when they end or don't answer.
const ASK_LIMIT: Duration = Duration::from_secs(8);

/// Between two of these, at first and at most: a new guardian is there within milliseconds.
const ASK_INTERVAL_MIN: Duration = Duration::from_millis(5);
const ASK_INTERVAL_MAX: Duration = Duration::from_millis(200);

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
    pub(super) async fn ask_for(
        guardian: &Guardian,
        streams: &Streams,
        program: &str,
    ) -> Result<Self, Exit> {
        let mut why = "there is no guardian, and none comes".to_owned();
        match timeout(ASK_LIMIT, ask_again(guardian, streams, &mut why)).await {
            Ok(Err(Exit::NotStarted(error))) => Err(Exit::NotStarted(SpawnError {
                program: program.to_owned(),
                ..error
            })),
            Ok(answer) => answer,
            Err(_) => {
                let why = format!("there is nobody to look after it: {why}");
                let kind = SpawnErrorKind::Exhausted;
                Err(Exit::NotStarted(SpawnError::new(kind, program, why)))
            }
        }
    }

    /// Says what to launch.
    pub(super) async fn launch(&mut self, launch: &Launch) -> io::Result<()> {
        self.orders.write_all(&encode(launch)?).await
    }

    /// The first report; an error where there is none in time.
    async fn answer(&mut self) -> Result<Option<Report>, Elapsed> {
        match timeout(ANSWER_LIMIT, self.report()).await {
            Ok(answer) => Ok(answer),
            Err(_) => timeout(LAST_CHANCE, self.report()).await,
        }
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

/// Asks until there is an answer; `why` says why there is none yet.
async fn ask_again(
    guardian: &Guardian,
    streams: &Streams,
    why: &mut String,
) -> Result<Keeper, Exit> {
    let mut interval = ASK_INTERVAL_MIN;
    loop {
        match ask(guardian, streams).await {
            Ok(Answer::Keeper(keeper)) => return Ok(keeper),
            Ok(Answer::Refused(exit)) => return Err(exit),
            Ok(Answer::Nothing(cause)) => *why = cause,
            Err(error) => *why = error.to_string(),
        }
        sleep(interval).await;
        interval = (interval * 2).min(ASK_INTERVAL_MAX);
    }
}

async fn ask(guardian: &Guardian, streams: &Streams) -> Result<Answer, NoGuardian> {
    let process = guardian.process().await?;
    let (ours, theirs) = Stream::pair()?;
    let theirs = OwnedFd::from(theirs);
    ours.set_nonblocking(true)?;
    let (reader, orders) = UnixStream::from_std(ours)?.into_split();
    let Streams {
        stdin,
        stdout,
        stderr,
    } = streams;
    let descriptors: [&OwnedFd; DESCRIPTORS] = [&theirs, stdin, stdout, stderr];
    let sent = process.fork_keeper(descriptors);
    // The only copy left is the guardian's: its end is the end of the stream.
    drop(theirs);
    let mut keeper = Keeper {
        reports: BufReader::new(reader).lines(),
        orders,
    };
    if let Err(error) = sent {
        return Ok(Answer::Nothing(format!(
            "the guardian can't be asked: {error}"
        )));
    }
    Ok(match keeper.answer().await {
        Ok(Some(Report::Ready)) => Answer::Keeper(keeper),
        Ok(Some(Report::Ended(end))) => Answer::Refused(end.exit),
        Ok(Some(Report::Started) | None) => {
            Answer::Nothing("the guardian ended, or could not take the request".to_owned())
        }
        Err(_) => {
            guardian.replace(&process);
            Answer::Nothing("the guardian did not answer".to_owned())
        }
    })
}

/// What a launch that the keeper did not live to hear of comes to.
pub(super) fn unheard(error: &io::Error, program: &str) -> Exit {
    let why = format!("its keeper ended before it was started: {error}");
    Exit::NotStarted(SpawnError::new(SpawnErrorKind::Other, program, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A keeper whose guardian has its turn that long after it was asked.
    async fn asked(answers_after: Duration) -> Result<Option<Report>, Elapsed> {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (reader, orders) = ours.into_split();
        let mut keeper = Keeper {
            reports: BufReader::new(reader).lines(),
            orders,
        };
        tokio::spawn(async move {
            sleep(answers_after).await;
            let ready = encode(&Report::Ready).unwrap();
            // Whoever gave up does not hear it.
            let _ = theirs.write_all(&ready).await;
        });
        keeper.answer().await
    }

    #[tokio::test(start_paused = true)]
    async fn a_guardian_that_stood_still_with_its_daemon_may_have_its_turn_after_it() {
        for late in [Duration::ZERO, Duration::from_millis(100)] {
            let answer = asked(ANSWER_LIMIT + late).await;
            assert!(matches!(answer, Ok(Some(Report::Ready))), "{answer:?}");
        }
        assert!(asked(ANSWER_LIMIT * 2).await.is_err());
    }
}
