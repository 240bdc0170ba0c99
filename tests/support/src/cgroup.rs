//! Cgroups (cgroups(7), version 2) to start replicas in: one that was delegated to them, as a
//! service manager does, or one that is somebody else's.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{XattrFlags, setxattr};

/// How long the end of what is killed in one may take.
const EMPTY_WITHIN: Duration = Duration::from_secs(5);

/// A cgroup of the test's own. Dropped, whatever is in it is killed, and it is removed.
#[derive(Debug)]
pub struct Cgroup {
    outer: PathBuf,
    inner: PathBuf,
}

impl Cgroup {
    /// One that nobody may make others in. None where this user can make none.
    #[must_use]
    pub fn of_somebody_else() -> Option<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let outer = own()?.join(format!("test-{}-{number}", std::process::id()));
        // Two levels: what is right below a delegated one counts as delegated.
        let inner = outer.join("inner");
        let made = Self { outer, inner };
        fs::create_dir(&made.outer).ok()?;
        fs::create_dir(&made.inner).ok()?;
        made.inner.join("cgroup.kill").exists().then_some(made)
    }

    /// One that carries systemd's mark of a delegated cgroup.
    #[must_use]
    pub fn delegated() -> Option<Self> {
        let made = Self::of_somebody_else()?;
        let marked = ["trusted.delegate", "user.delegate"]
            .iter()
            .any(|mark| setxattr(&made.inner, *mark, b"1", XattrFlags::empty()).is_ok());
        marked.then_some(made)
    }

    /// What a process writes `0` to in order to get in.
    #[must_use]
    pub fn door(&self) -> PathBuf {
        self.inner.join("cgroup.procs")
    }

    /// The cgroups that were made in it.
    #[must_use]
    pub fn made_within(&self) -> Vec<PathBuf> {
        below(&self.inner)
    }
}

/// The cgroup of this process. None where there is no version 2.
fn own() -> Option<PathBuf> {
    let cgroups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = cgroups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    let mounted = mount.split(' ').nth(4)?;
    Some(Path::new(mounted).join(own.trim_start_matches('/')))
}

fn below(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    directories.map(|entry| entry.path()).collect()
}

/// Removes a cgroup and those in it, once the kernel lets go of them.
fn remove(dir: &Path, end: Instant) {
    for inner in below(dir) {
        remove(&inner, end);
    }
    while fs::remove_dir(dir).is_err() && dir.exists() && Instant::now() < end {
        sleep(Duration::from_millis(2));
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::write(self.outer.join("cgroup.kill"), "1");
        remove(&self.outer, Instant::now() + EMPTY_WITHIN);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn whoever_is_in_a_dropped_cgroup_is_dead_and_it_is_gone() {
        let Some(cgroup) = Cgroup::of_somebody_else() else {
            eprintln!("NOT SHOWN: this user can make no cgroup");
            return;
        };
        let mut inside = Command::new("sh")
            .args([
                "-c",
                "echo 0 > \"$0\" && mkdir \"${0%/*}/more\" && exec sleep 60",
            ])
            .arg(cgroup.door())
            .spawn()
            .unwrap();
        // It makes that once it is in.
        let end = Instant::now() + Duration::from_secs(20);
        while cgroup.made_within().is_empty() {
            if inside.try_wait().unwrap().is_some() {
                eprintln!("NOT SHOWN: this user can put nobody into a cgroup");
                return;
            }
            assert!(Instant::now() < end, "it is not in");
            sleep(Duration::from_millis(1));
        }
        let outer = cgroup.outer.clone();
        drop(cgroup);
        assert!(!outer.exists());
        assert!(!inside.wait().unwrap().success());
    }
}
