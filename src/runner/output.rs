//! What a job writes: read as fast as it comes, the first and the last of it kept, and logged
//! line by line, up to a rate.
//!
//! Reading never stops while the job runs, whatever has been kept already: a full pipe would
//! block the job. Memory is bounded by `output_limit` and [`LINE_LENGTH_LIMIT`] a stream; no
//! buffer is held while there is nothing to read.

use std::collections::VecDeque;
use std::fs::File;
use std::future::pending;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use tokio::net::unix::pipe::Receiver;

use super::budget::{Budget, LOG_RATE};
use super::lines::LineSplitter;
use super::{OUTPUT_LOG_TARGET, OutputMode};
use crate::clock::{Clock, SystemClock};
use crate::guardian::Streams;
use crate::scheduler::Attempt;
use crate::scheduler::lease::{Captured, Output};

/// The most that one read takes: a quarter of a pipe's usual capacity (pipe(7)), on the stack.
const READ_SIZE: usize = 16 * 1024;

/// Reads of one stream in a row before other work gets its turn: 256 KiB.
const READS_PER_TURN: usize = 16;

/// Keeps the head and, in a ring, the tail of what passes through it.
#[derive(Debug)]
struct Capture {
    head: Vec<u8>,
    head_limit: usize,
    tail: VecDeque<u8>,
    tail_limit: usize,
    total: u64,
}

impl Capture {
    fn new(limit: usize) -> Self {
        let tail_limit = limit / 2;
        Self {
            head: Vec::new(),
            head_limit: limit - tail_limit,
            tail: VecDeque::new(),
            tail_limit,
            total: 0,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(self.head_limit - self.head.len()));
        self.head.extend_from_slice(first);
        // Of a piece longer than the ring only its end would be left.
        let rest = &rest[rest.len().saturating_sub(self.tail_limit)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(self.tail_limit);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    fn finish(self) -> Captured {
        Captured {
            head: self.head,
            tail: self.tail.into(),
            total: self.total,
        }
    }
}

/// Reads one stream of one attempt.
#[derive(Debug)]
struct StreamReader {
    /// None once everything has been read.
    pipe: Option<Receiver>,
    capture: Capture,
    lines: LineSplitter,
    budget: Budget,
    log: LogFields,
}

/// What every line of output is logged with.
#[derive(Debug)]
struct LogFields {
    attempt: Attempt,
    replica: Arc<str>,
    stream: &'static str,
}

impl LogFields {
    fn line(&self, line: &str) {
        let Self {
            attempt,
            replica,
            stream,
        } = self;
        tracing::info!(
            target: OUTPUT_LOG_TARGET,
            job = %attempt.job.name, scheduled_at = %attempt.scheduled_at,
            attempt = attempt.number, token = attempt.token.get(), replica = &**replica,
            stream,
            "{line}"
        );
    }

    fn left_out(&self, bytes: u64) {
        let Self {
            attempt,
            replica,
            stream,
        } = self;
        tracing::warn!(
            job = %attempt.job.name, scheduled_at = %attempt.scheduled_at,
            attempt = attempt.number, token = attempt.token.get(), replica = &**replica,
            stream, bytes,
            "output was left out of the log: the job writes faster than {} KiB/s; \
             its first and last part are kept for `soloist logs`",
            LOG_RATE / 1024
        );
    }

    fn read_failed(&self, error: &io::Error) {
        let Self {
            attempt,
            replica,
            stream,
        } = self;
        tracing::warn!(
            job = %attempt.job.name, scheduled_at = %attempt.scheduled_at,
            attempt = attempt.number, token = attempt.token.get(), replica = &**replica,
            stream, %error,
            "failed to read a job's output: the rest of it is lost"
        );
    }
}

impl StreamReader {
    fn new(pipe: Option<Receiver>, log: LogFields) -> Self {
        Self {
            pipe,
            capture: Capture::new(log.attempt.job.command.output_limit),
            lines: LineSplitter::default(),
            budget: Budget::new(SystemClock.boot()),
            log,
        }
    }

    /// Completes when there is something to read; never once everything has been.
    async fn readable(&self) {
        match &self.pipe {
            // An error shows again, and is dealt with, when it is read from.
            Some(pipe) => drop(pipe.readable().await),
            None => pending().await,
        }
    }

    /// Takes what is there, up to a turn's worth. Whether there may be more.
    fn take_turn(&mut self) -> bool {
        let mut chunk = [0; READ_SIZE];
        for _ in 0..READS_PER_TURN {
            let Some(pipe) = &self.pipe else { return false };
            match pipe.try_read(&mut chunk) {
                Ok(0) => self.end(),
                Ok(count) => self.take(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.log.read_failed(&error);
                    self.end();
                }
            }
        }
        true
    }

    fn take(&mut self, bytes: &[u8]) {
        self.capture.push(bytes);
        if !tracing::enabled!(target: OUTPUT_LOG_TARGET, tracing::Level::INFO) {
            return;
        }
        if let Some(unlogged) = self.budget.refill(SystemClock.boot()) {
            self.log.left_out(unlogged);
        }
        let (budget, log) = (&mut self.budget, &self.log);
        match budget.is_spent() {
            true => budget.leave_out(bytes.len()),
            false => self.lines.push(bytes, |line| {
                if budget.pays_for(line.len()) {
                    log.line(line);
                }
            }),
        }
    }

    fn end(&mut self) {
        self.pipe = None;
        let (budget, log) = (&mut self.budget, &self.log);
        self.lines.finish(|line| {
            if budget.pays_for(line.len()) {
                log.line(line);
            }
        });
        if budget.unlogged() > 0 {
            log.left_out(budget.unlogged());
            *budget = Budget::new(SystemClock.boot());
        }
    }

    fn finish(mut self) -> Captured {
        self.end();
        self.capture.finish()
    }
}

/// What there is to read for a job that is given nothing.
fn nothing() -> io::Result<OwnedFd> {
    Ok(File::open("/dev/null")?.into())
}

/// Both output streams of one attempt.
#[derive(Debug)]
pub(super) struct OutputReader {
    stdout: StreamReader,
    stderr: StreamReader,
}

impl OutputReader {
    /// A reader, and what the job is to write to. Where the output isn't captured there is
    /// nothing to read.
    pub(super) fn open(
        attempt: &Attempt,
        mode: OutputMode,
        replica: &Arc<str>,
    ) -> io::Result<(Self, Streams)> {
        let (pipes, streams) = match mode {
            OutputMode::Inherit | OutputMode::InheritAll => {
                let streams = Streams {
                    stdin: match mode {
                        OutputMode::InheritAll => io::stdin().as_fd().try_clone_to_owned()?,
                        OutputMode::Inherit | OutputMode::Capture => nothing()?,
                    },
                    stdout: io::stdout().as_fd().try_clone_to_owned()?,
                    stderr: io::stderr().as_fd().try_clone_to_owned()?,
                };
                ((None, None), streams)
            }
            OutputMode::Capture => {
                let (stdout_reader, stdout) = pipe()?;
                let (stderr_reader, stderr) = pipe()?;
                let readers = (Some(stdout_reader), Some(stderr_reader));
                let streams = Streams {
                    stdin: nothing()?,
                    stdout,
                    stderr,
                };
                (readers, streams)
            }
        };
        let fields = |stream| LogFields {
            attempt: attempt.clone(),
            replica: Arc::clone(replica),
            stream,
        };
        let reader = Self {
            stdout: StreamReader::new(pipes.0, fields("stdout")),
            stderr: StreamReader::new(pipes.1, fields("stderr")),
        };
        Ok((reader, streams))
    }

    /// Reads some of whichever stream has some; neither can hold up the other, nor the rest of
    /// the process. Pending for ever once both have ended. Cancel safe.
    pub(super) async fn read(&mut self) {
        let more = tokio::select! {
            () = self.stdout.readable() => self.stdout.take_turn(),
            () = self.stderr.readable() => self.stderr.take_turn(),
        };
        if more {
            tokio::task::yield_now().await;
        }
    }

    /// Whether all there will ever be has been read: every writer has closed its end.
    pub(super) fn has_ended(&self) -> bool {
        self.stdout.pipe.is_none() && self.stderr.pipe.is_none()
    }

    /// Stops reading; whoever still writes gets SIGPIPE.
    pub(super) fn finish(self) -> Output {
        Output {
            stdout: self.stdout.finish(),
            stderr: self.stderr.finish(),
        }
    }
}

/// Close-on-exec at both ends; only the reading end doesn't block.
fn pipe() -> io::Result<(Receiver, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    Ok((
        Receiver::from_owned_fd(OwnedFd::from(reader))?,
        writer.into(),
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn captured(limit: usize, pieces: &[&[u8]]) -> Captured {
        let mut capture = Capture::new(limit);
        pieces.iter().for_each(|piece| capture.push(piece));
        capture.finish()
    }

    #[test]
    fn short_output_is_kept_whole() {
        let output = captured(8, &["aä".as_bytes(), b"\0\xff\nz"]);
        let whole = [output.head.as_slice(), output.tail.as_slice()].concat();
        assert_eq!(output.cut(), 0);
        assert_eq!(whole, b"a\xc3\xa4\0\xff\nz");
    }

    #[test]
    fn long_output_keeps_its_ends_and_counts_the_rest() {
        let output = captured(4, &[b"ab", b"cdefg", b"hij"]);
        assert_eq!(
            (output.head.as_slice(), output.tail.as_slice()),
            (&b"ab"[..], &b"ij"[..])
        );
        assert_eq!(output.cut(), 6);
    }

    proptest! {
        #[test]
        fn the_ends_are_kept_however_the_output_is_cut_into_reads(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
            limit in 0usize..60,
        ) {
            let slices: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            let whole = pieces.concat();
            let output = captured(limit, &slices);
            let kept = output.head.len() + output.tail.len();
            prop_assert_eq!(kept, whole.len().min(limit));
            prop_assert_eq!(output.total, whole.len() as u64);
            prop_assert!(whole.starts_with(&output.head));
            prop_assert!(whole.ends_with(&output.tail));
        }
    }
}
