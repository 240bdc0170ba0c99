//! Word from other processes that there is something to look for: a small file next to the
//! database is written to, and whoever watches it (inotify(7)) looks at the store for itself.
//! Each kind of news has a byte of the file, which is another one after each time.
//!
//! Must never: be needed. A watch that can't be made or breaks costs a renewal interval.

use std::fs::OpenOptions;
use std::io::{self, PipeReader, PipeWriter};
use std::mem::MaybeUninit;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use tokio::sync::broadcast;

use crate::store::StoreEvent;

/// Room for some hundred notices; a file of which one watch is held makes small ones.
const BUFFER_BYTES: usize = 4096;

/// The kinds of news, in the order of their bytes.
const KINDS: [StoreEvent; 3] = [
    StoreEvent::Opening,
    StoreEvent::StopAsked,
    StoreEvent::PauseChanged,
];

/// The bytes of the file.
type Counts = [u8; KINDS.len()];

/// The file that is written to when there are news of a namespace.
pub(super) fn path(database: &Path, namespace: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(format!("-news-{namespace}"));
    name.into()
}

/// Tells all who watch.
pub(super) fn tell(path: &Path, event: StoreEvent) -> io::Result<()> {
    let event = match event {
        // A byte says nothing of whose: all who wait look.
        StoreEvent::Turn(_) => StoreEvent::Opening,
        other => other,
    };
    let Some(kind) = KINDS.iter().position(|kind| *kind == event) else {
        return Ok(());
    };
    let file = open(path)?;
    // Two that tell at once may write the same byte: it is another one than before all the same.
    let count = counts(&file)[kind].wrapping_add(1);
    file.write_all_at(&[count], kind as u64)
}

/// What the file has; a file that is too short has zeros.
fn counts(file: &std::fs::File) -> Counts {
    let mut counts = Counts::default();
    for (kind, count) in counts.iter_mut().enumerate() {
        let mut byte = [0];
        if file.read_exact_at(&mut byte, kind as u64).is_ok() {
            *count = byte[0];
        }
    }
    counts
}

fn open(path: &Path) -> io::Result<std::fs::File> {
    OpenOptions::new()
        .read(true)
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
                tracing::debug!(path = %path.display(), %error, "news are found by looking from now on");
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
    let mut before = counts(&open(path)?);
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
            let now = counts(&open(path)?);
            let changed = |kind: &usize| now[*kind] != before[*kind];
            for kind in (0..KINDS.len()).filter(changed) {
                // Nobody may be listening; that is no fault.
                let _ = events.send(KINDS[kind]);
            }
            before = now;
        }
        if gone {
            look_at(notices, path)?;
        }
    }
}
