//! Tells when the files of a table change, by inotify(7).
//!
//! What is watched are the *directories* of files: editors write another file and rename it, and a
//! ConfigMap is a symbolic link `..data` that is put in the place of the former one, so that the
//! file that was watched would never change. Names that are links are followed, and the directories
//! that they lead to are watched as well.
//!
//! Must never: poll; or take part of a change for the whole of it, as far as that can be told: it
//! waits until nothing has happened for a moment.

use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::StreamExt;
use inotify::{EventStream, Inotify, WatchMask};

/// A change is over when nothing has happened for so long.
const QUIET: Duration = Duration::from_millis(200);

/// Where something happens all the time, what there is is looked at anyway.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// A file system that doesn't answer for so long is taken to hold what it held.
const PATIENCE: Duration = Duration::from_secs(10);

/// As many as the kernel follows (path_resolution(7)).
const LINKS_FOLLOWED: u32 = 40;

/// Room for the events of one read.
const BUFFER: usize = 4096;

/// The files of a table, watched.
pub(super) struct Files {
    sources: Vec<PathBuf>,
    events: EventStream<[u8; BUFFER]>,
    /// What they held, where that could be read.
    content: Option<u64>,
}

impl Files {
    /// Watches files, and directories in which more may appear.
    pub(super) async fn watch(sources: &[PathBuf]) -> io::Result<Self> {
        let sources = sources.to_vec();
        let watched = in_time(move || watches(&sources).map(|inotify| (inotify, sources))).await;
        let (inotify, sources) = watched.ok_or(io::ErrorKind::TimedOut)??;
        Ok(Self {
            // Before it is read what they hold: a change from here on is an event.
            events: inotify.into_event_stream([0; BUFFER])?,
            content: content(&sources).await,
            sources,
        })
    }

    /// Waits until they hold something else; for ever where nothing is watched.
    pub(super) async fn changed(files: &mut Option<Self>) {
        let Some(files) = files else {
            return std::future::pending().await;
        };
        loop {
            if files.events.next().await.is_none() {
                return std::future::pending().await;
            }
            let settled = async {
                while let Ok(Some(_)) = tokio::time::timeout(QUIET, files.events.next()).await {}
            };
            let _ = tokio::time::timeout(LONGEST_WAIT, settled).await;
            let content = content(&files.sources).await;
            if std::mem::replace(&mut files.content, content) != content {
                return;
            }
        }
    }
}

/// Watches the directories of files, and those in which more may appear.
fn watches(sources: &[PathBuf]) -> io::Result<Inotify> {
    let inotify = Inotify::init()?;
    let mask = WatchMask::CLOSE_WRITE
        | WatchMask::CREATE
        | WatchMask::DELETE
        | WatchMask::MOVE
        | WatchMask::ATTRIB
        | WatchMask::DELETE_SELF
        | WatchMask::MOVE_SELF;
    for directory in directories(sources) {
        inotify.watches().add(directory, mask)?;
    }
    Ok(inotify)
}

/// The directories in which a change of a file shows.
fn directories(sources: &[PathBuf]) -> BTreeSet<PathBuf> {
    let mut directories = BTreeSet::new();
    let mut followed = HashSet::new();
    for source in sources {
        if source.is_dir() {
            directories.insert(source.clone());
        }
        follow(source, LINKS_FOLLOWED, &mut followed, &mut directories);
    }
    directories
}

/// Adds the directories that hold a file and each link on the way to it.
fn follow(
    path: &Path,
    links: u32,
    followed: &mut HashSet<PathBuf>,
    directories: &mut BTreeSet<PathBuf>,
) {
    // Where a link leads back, there are as many ways to a file as one likes.
    if !followed.insert(path.to_owned()) {
        return;
    }
    directories.insert(holder(path));
    for ancestor in path.ancestors() {
        if let Ok(target) = std::fs::read_link(ancestor)
            && links > 0
        {
            let holder = holder(ancestor);
            let rest = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
            let led_to = holder.join(target).join(rest);
            directories.insert(holder);
            follow(&led_to, links - 1, followed, directories);
        }
    }
}

/// The directory that a name stands in, or the nearest above that is there: a file may be named
/// before there is a directory for it.
fn holder(path: &Path) -> PathBuf {
    let above = path.ancestors().skip(1);
    let named = above.filter(|one| *one != Path::new(""));
    let there = named.into_iter().find(|one| one.is_dir());
    there.unwrap_or(Path::new(".")).to_owned()
}

/// Does what waits for a file system, off the threads that everything else needs. What hangs keeps
/// its own.
async fn in_time<T: Send + 'static>(look: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let looked = tokio::time::timeout(PATIENCE, tokio::task::spawn_blocking(look));
    looked.await.ok()?.ok()
}

/// What files hold and directories list, in a number; none where that can't be read in time.
pub(super) async fn content(sources: &[PathBuf]) -> Option<u64> {
    let sources = sources.to_vec();
    in_time(move || {
        let mut hasher = DefaultHasher::new();
        for source in &sources {
            source.hash(&mut hasher);
            held(source, &mut hasher);
        }
        hasher.finish()
    })
    .await
}

fn held(source: &Path, hasher: &mut DefaultHasher) {
    // What can't be read is something else than what can; and of a pipe nothing may be taken.
    let Ok(found) = std::fs::metadata(source) else {
        return 0.hash(hasher);
    };
    if found.is_dir() {
        let entries = std::fs::read_dir(source).into_iter().flatten().flatten();
        let names: BTreeSet<_> = entries.map(|entry| entry.file_name()).collect();
        (1, names).hash(hasher);
    } else if found.is_file() {
        // Who may read it counts: tokens that anybody could read are refused.
        (2, found.mode(), std::fs::read(source).ok()).hash(hasher);
    } else {
        3.hash(hasher);
    }
}
