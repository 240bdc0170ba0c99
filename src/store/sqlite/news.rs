//! Word from other processes that something was handed over: a small file next to the database
//! is written to, and whoever watches it (inotify(7)) looks at the store for itself.
//!
//! Must never: be needed. A watch that can't be made or breaks costs a renewal interval.

use std::fs::OpenOptions;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::mem::MaybeUninit;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use tokio::sync::broadcast;

use crate::store::StoreEvent;

/// Room for some hundred notices; a file of which one watch is held makes small ones.
const BUFFER_BYTES: usize = 4096;

/// The file that is written to when something of a namespace is handed over.
pub(super) fn path(database: &Path, namespace: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(format!("-news-{namespace}"));
    name.into()
}

/// Tells all who watch.
pub(super) fn tell(path: &Path) -> io::Result<()> {
    // Of constant length, so that it never grows; each write is a notice even so.
    open(path)?.write_all(b"!")
}

fn open(path: &Path) -> io::Result<std::fs::File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

/// A running watch; it ends when this is dropped.
pub(super) struct Watch {
    /// The watching thread sees the other end close.
    _end: PipeWriter,
}

/// Watches the file and passes on each notice, until the watch is dropped.
pub(super) fn watch(path: PathBuf, events: broadcast::Sender<StoreEvent>) -> io::Result<Watch> {
    let (ended, end) = io::pipe()?;
    let notices = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    look_at(&notices, &path)?;
    thread::Builder::new()
        .name("soloist-news".to_owned())
        .spawn(move || {
            if let Err(error) = listen(&notices, &ended, &path, &events) {
                tracing::debug!(path = %path.display(), %error, "hand-overs are found by looking from now on");
            }
        })?;
    Ok(Watch { _end: end })
}

fn look_at(notices: &std::os::fd::OwnedFd, path: &Path) -> io::Result<()> {
    open(path)?;
    inotify::add_watch(notices, path, WatchFlags::MODIFY | WatchFlags::DELETE_SELF)?;
    Ok(())
}

fn listen(
    notices: &std::os::fd::OwnedFd,
    ended: &PipeReader,
    path: &Path,
    events: &broadcast::Sender<StoreEvent>,
) -> io::Result<()> {
    let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
    loop {
        let mut waiting = [
            PollFd::new(notices, PollFlags::IN),
            PollFd::new(ended, PollFlags::IN),
        ];
        match poll(&mut waiting, None) {
            Err(Errno::INTR) => continue,
            result => result?,
        };
        if !waiting[1].revents().is_empty() {
            return Ok(());
        }
        let mut reader = inotify::Reader::new(notices, &mut buffer);
        let (mut written, mut gone) = (false, false);
        loop {
            match reader.next() {
                Ok(notice) => {
                    written |= notice.events().contains(ReadFlags::MODIFY);
                    gone |= notice.events().contains(ReadFlags::IGNORED);
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        if written {
            // Nobody may be listening; that is no fault.
            let _ = events.send(StoreEvent::HandedOver);
        }
        if gone {
            look_at(notices, path)?;
        }
    }
}
