//! A thread of soloist's own in a program that it is embedded in: for renewals and connections, which may
//! not wait until that program's runtime has a thread for them.
//!
//! Programs compute where they should await. On a runtime shared with them nothing is renewed
//! meanwhile, and what they do is done by another replica too. tokio doesn't even move a task from a
//! worker that is busy, if it was woken there last, however many others are idle.
//!
//! Must never: run what users wrote.

use std::cell::Cell;
use std::future::pending;
use std::io;
use std::marker::PhantomData;
use std::process;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use tokio::runtime::{self, EnterGuard, Handle};

/// Its runtime; none before it is needed first. It lives as long as the process.
static RUNTIME: Mutex<Option<Own>> = Mutex::new(None);

struct Own {
    runtime: Handle,
    /// The process that has the thread. A child that was forked from it has a copy of this, and none.
    process: u32,
}

impl Own {
    fn of_this_process(known: Option<&Self>) -> Option<Handle> {
        let own = known.filter(|own| own.process == process::id());
        own.map(|own| own.runtime.clone())
    }
}

thread_local! {
    /// What is opened on this thread is to live on the own one.
    static ENTERED: Cell<bool> = const { Cell::new(false) };
}

/// Its runtime: one of one thread, for all of this process.
pub(crate) fn runtime() -> io::Result<Handle> {
    let mut known = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(runtime) = Own::of_this_process(known.as_ref()) {
        return Ok(runtime);
    }
    let (sender, built) = mpsc::sync_channel(1);
    let thread = thread::Builder::new().name("soloist".to_owned());
    thread.spawn(move || live(&sender))?;
    let ended = |_| Err(io::Error::other("it panicked"));
    let runtime = built.recv().unwrap_or_else(ended)?;
    *known = Some(Own {
        runtime: runtime.clone(),
        process: process::id(),
    });
    Ok(runtime)
}

/// For as long as the process does.
fn live(built: &mpsc::SyncSender<io::Result<Handle>>) {
    ENTERED.set(true);
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    // Whoever asks waits for it.
    let _ = built.send(
        runtime
            .as_ref()
            .map(|one| one.handle().clone())
            .map_err(copy),
    );
    if let Ok(runtime) = runtime {
        runtime.block_on(pending::<()>());
    }
}

fn copy(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), error.to_string())
}

/// Has what is opened until the guard is dropped live on `runtime`, be that the own one or another.
#[must_use]
pub(crate) fn enter(runtime: &Handle, is_own: bool) -> Entered<'_> {
    Entered {
        before: ENTERED.replace(is_own),
        _runtime: runtime.enter(),
        _of_this_thread: PhantomData,
    }
}

/// Where what is opened here is to live, if that is the own thread.
#[cfg(feature = "redis")]
pub(crate) fn entered() -> Option<Handle> {
    let known = || RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    let own = || Own::of_this_process(known().as_ref());
    ENTERED.get().then(own).flatten()
}

/// Until it is dropped: see [`enter`].
pub(crate) struct Entered<'r> {
    before: bool,
    _runtime: EnterGuard<'r>,
    _of_this_thread: PhantomData<*const ()>,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        ENTERED.set(self.before);
    }
}
