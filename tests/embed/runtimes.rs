//! Runtimes that are not as `#[tokio::main]` makes them, and what becomes of what users hand over.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use futures_util::FutureExt as _;
use soloist::{Context, Error, Event, Job, Scheduler};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

const LONG: Duration = Duration::from_secs(10);

fn runtime() -> Runtime {
    let mut builder = Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime")
}

async fn nothing(_: Context) -> Result<(), Error> {
    Ok(())
}

fn job() -> Job {
    Job::new("a", "* * * * * *", nothing)
}

#[test]
fn a_stream_ends_also_where_its_scheduler_never_had_a_turn() {
    let first = runtime();
    let (scheduler, mut events) = first.block_on(async {
        let builder = Scheduler::builder().store("memory:").job(job());
        let events = builder.events();
        (builder.start().await.expect("it starts"), events)
    });
    // Its task was spawned, and not polled yet.
    drop(first);
    let all = async { while events.next().await.is_some() {} };
    let ended = runtime().block_on(async { timeout(LONG, all).await });
    ended.expect("nothing happens there any more");
    drop(scheduler);
}

#[test]
fn functions_need_no_timers_and_no_sockets_of_their_runtime() {
    let bare = Builder::new_current_thread().build().expect("a runtime");
    bare.block_on(async {
        let builder = Scheduler::builder().store("memory:").job(job());
        let mut events = builder.events();
        let scheduler = builder.start().await.expect("it starts");
        let mut has_run = false;
        while !has_run {
            let event = events.next().await.expect("one ends");
            has_run = matches!(event, Event::Ended { .. });
        }
        scheduler.shutdown().await.expect("it ends");
    });
}

#[test]
fn where_no_runtime_is_there_is_an_error_and_no_panic() {
    let started = Scheduler::builder().store("memory:").job(job()).start();
    let error = started.now_or_never().expect("it does not wait");
    let error = error.expect_err("there is no runtime");
    assert!(matches!(error, Error::NoRuntime), "{error:?}");
    assert!(error.to_string().contains("#[tokio::main]"), "{error}");
}

/// Says where it is dropped.
struct Captured(mpsc::Sender<Option<String>>);

impl Drop for Captured {
    fn drop(&mut self) {
        let name = thread::current().name().map(str::to_owned);
        let _ = self.0.send(name);
    }
}

#[test]
fn what_a_function_has_captured_is_dropped_where_it_ran() {
    for aborts in [false, true] {
        let (dropped, said) = mpsc::channel();
        let captured = Captured(dropped);
        runtime().block_on(async {
            let job = Job::new("a", "* * * * * *", move |_| {
                let _ = &captured;
                async { Ok::<_, Error>(()) }
            });
            let builder = Scheduler::builder().store("memory:").job(job);
            let scheduler = builder.start().await.expect("it starts");
            match aborts {
                true => scheduler.abort().await.expect("it ends"),
                false => scheduler.shutdown().await.expect("it ends"),
            };
        });
        let here = thread::current().name().map(str::to_owned);
        assert_eq!(said.try_recv().expect("it is dropped by then"), here);
    }
}
