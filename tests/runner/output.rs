//! What a job writes, kept and logged, however much and whatever it is.

use std::fmt;
use std::sync::Mutex;

use soloist::runner::OUTPUT_LOG_TARGET;
use tracing::field::{Field, Visit};
use tracing::span;

use super::*;

#[tokio::test]
async fn both_streams_are_kept_apart() {
    let bench = Bench::new();
    let ending = bench
        .run(bench.shell("echo out; echo err >&2; printf end"))
        .await;
    assert_eq!(stdout_of(&ending), "out\nend");
    assert_eq!(whole(&ending.output.stderr), "err\n");
}

#[tokio::test]
async fn binary_output_is_kept_byte_for_byte() {
    let bench = Bench::new();
    let ending = bench.run(bench.shell(r"printf '\0\377\200\n\0'")).await;
    assert_eq!(ending.output.stdout.head, b"\0\xff\x80\n\0");
    assert_eq!(ending.output.stdout.total, 5);
}

#[tokio::test]
async fn of_long_output_the_ends_are_kept_and_all_of_it_is_counted() {
    let bench = Bench::new();
    let mut job = bench.shell("printf first; head -c 1000000 /dev/zero; printf final");
    job.command.output_limit = 10;
    let stdout = bench.run(job).await.output.stdout;
    assert_eq!(
        (stdout.head.as_slice(), stdout.tail.as_slice()),
        (&b"first"[..], &b"final"[..])
    );
    assert_eq!((stdout.total, stdout.cut()), (1_000_010, 1_000_000));
}

#[tokio::test]
async fn a_limit_of_zero_keeps_nothing_and_counts() {
    let bench = Bench::new();
    let mut job = bench.shell("printf abc");
    job.command.output_limit = 0;
    let stdout = bench.run(job).await.output.stdout;
    assert_eq!(
        (stdout.head.len(), stdout.tail.len(), stdout.total),
        (0, 0, 3)
    );
}

/// The most memory that this process has held so far, in KiB.
fn peak_memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .expect("VmHWM");
    line.split_ascii_whitespace()
        .nth(1)
        .and_then(|kib| kib.parse().ok())
        .expect("KiB")
}

#[tokio::test]
async fn a_flood_without_line_breaks_is_read_to_its_end_in_flat_memory() {
    const FLOOD: u64 = 256 << 20;
    let bench = Bench::new();
    let before = peak_memory_kib();
    let ending = bench
        .run(bench.shell(&format!("head -c {FLOOD} /dev/zero")))
        .await;
    let grown = peak_memory_kib() - before;
    assert_eq!(ending.output.stdout.total, FLOOD);
    // Other tests run meanwhile; a quarter of the flood would already be a leak.
    assert!(grown < FLOOD / 4 / 1024, "grew by {grown} KiB");
}

#[tokio::test]
async fn a_flood_does_not_hold_up_a_stop() {
    let bench = Bench::new();
    let trial = bench.start(bench.shell("echo >up; exec cat /dev/zero"));
    bench.line_in("up").await;
    trial.running.stop(LONG);
    let ending = trial.ended().await;
    assert_eq!(
        (ending.how, ending.detail.signal),
        (EndedHow::Stopped, Some(15))
    );
}

#[tokio::test]
async fn a_process_that_left_the_session_with_stdout_open_ends_with_its_job() {
    let bench = Bench::new();
    // It is out of the group, and reparented, before the job ends.
    let script = "echo said; (setsid sh -c 'echo $$ >escaped; exec sleep 1000' &) ; \
                  while [ ! -s escaped ]; do sleep 0.01; done";
    let ending = bench.run(bench.shell(script)).await;
    assert!(!is_alive(&bench.line_in("escaped").await), "it escaped");
    assert_eq!(
        (ending.how, stdout_of(&ending).as_str()),
        (EndedHow::Succeeded, "said\n")
    );
}

#[tokio::test]
async fn output_that_is_inherited_is_not_kept() {
    let bench = Bench::new();
    let (told, ending) = oneshot::channel();
    let on_end = |ending| told.send(ending).expect("the test still listens");
    let job = attempt(bench.shell("exit 4"));
    bench.runner.start(job, OutputMode::Inherit, on_end);
    let ending = within_limit(ending).await.unwrap();
    assert_eq!(ending.detail.exit_code, Some(4));
    assert_eq!(ending.output, Output::default());
}

/// Keeps the fields of every event of the output's target, as `name=value`.
#[derive(Clone, Debug, Default)]
struct Log {
    lines: Arc<Mutex<Vec<Vec<String>>>>,
}

struct Fields(Vec<String>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push(format!("{field}={value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push(format!("{field}={value:?}"));
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn event(&self, event: &tracing::Event<'_>) {
        if event.metadata().target() == OUTPUT_LOG_TARGET {
            let mut fields = Fields(Vec::new());
            event.record(&mut fields);
            fields.0.sort();
            self.lines
                .lock()
                .expect("no test panics with it")
                .push(fields.0);
        }
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[tokio::test]
async fn each_line_is_logged_with_what_identifies_the_attempt() {
    let bench = Bench::new();
    let log = Log::default();
    // With one dispatcher alone, tracing asks whichever thread comes first to a line of code
    // whether anybody listens, and remembers the answer for all; with two it asks them.
    let _second = tracing::Dispatch::new(Log::default());
    // The attempt's task runs on this thread.
    let logging = tracing::subscriber::set_default(log.clone());
    bench
        .run(bench.shell(r"printf 'one\ntwo'; printf '\377\n' >&2"))
        .await;
    drop(logging);
    let mut lines = std::mem::take(&mut *log.lines.lock().unwrap());
    lines.sort_by_key(|fields| fields.iter().any(|field| field == "stream=stderr"));
    let messages: Vec<&str> = lines.iter().map(|fields| fields[2].as_str()).collect();
    assert_eq!(messages, ["message=one", "message=two", "message=\u{fffd}"]);
    let identity = |stream: &str| {
        let stream = format!("stream={stream}");
        ["attempt=3", "job=close-expired-orders", "replica=replica-1"]
            .map(str::to_owned)
            .into_iter()
            .chain(["scheduled_at=2026-11-20T22:00:00Z".to_owned(), stream])
            .chain(["token=1795212000000001".to_owned()])
            .collect::<Vec<_>>()
    };
    for (fields, stream) in lines.iter_mut().zip(["stdout", "stdout", "stderr"]) {
        fields.remove(2);
        assert_eq!(*fields, identity(stream));
    }
}
