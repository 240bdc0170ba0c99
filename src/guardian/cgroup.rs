//! A cgroup for each attempt, where this process may make them (cgroups(7), version 2).
//!
//! With one, a job is killed by the kernel as a whole (`cgroup.kill`), and what all of its
//! processes together used is known. Without one everything works, by the tree of processes.
//!
//! Cgroups are made only where they were delegated: below a unit with `Delegate=yes`, which
//! systemd marks, or at the top of a cgroup namespace, as in a container. Elsewhere they are
//! somebody else's, even for root.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{Access, access, getxattr};
use rustix::io::Errno;
use rustix::process::{Pid, getpid, test_kill_process};

use super::wire::{PeakMemory, Used};

/// What an attempt's cgroup is called: this, the PID namespace and the pid of the daemon, and the
/// run id.
const PREFIX: &str = "soloist-";

/// Where the daemon itself goes: a cgroup that hands controllers down has no processes itself.
const DAEMON: &str = "soloist";

/// How systemd marks a cgroup that it has delegated (systemd.resource-control(5), "Delegate=";
/// `trusted.` for units that run as root).
const DELEGATED: [&str; 2] = ["user.delegate", "trusted.delegate"];

/// How often to look whether a cgroup that was killed is empty, and how far apart.
const EMPTY_LOOKS: u32 = 100;
const EMPTY_LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// One attempt's cgroup. Removed when dropped, if it is empty by then.
#[derive(Debug)]
pub(super) struct Cgroup {
    dir: PathBuf,
}

impl Cgroup {
    /// Makes one below `base`.
    pub(super) fn make(base: &Path, name: &str) -> io::Result<Self> {
        let dir = base.join(name);
        fs::create_dir(&dir)?;
        Ok(Self { dir })
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Kills everything in it; nobody can fork past that.
    pub(super) fn kill(&self) {
        let _ = fs::write(self.dir.join("cgroup.kill"), "1");
    }

    /// Waits until what was killed is gone, as a rule for a millisecond.
    fn wait_until_empty(&self) {
        for _ in 0..EMPTY_LOOKS {
            if !self.is_populated() {
                return;
            }
            thread::sleep(EMPTY_LOOK_INTERVAL);
        }
    }

    /// Whether a process lives in it.
    pub(super) fn is_populated(&self) -> bool {
        field(&self.read("cgroup.events"), "populated") == Some(1)
    }

    /// What a file of it says, in one read: they are short. Empty where there is none.
    fn read(&self, file: &str) -> String {
        let mut text = [0; 2048];
        let file = fs::File::open(self.dir.join(file));
        let read = file.and_then(|mut file| file.read(&mut text));
        String::from_utf8_lossy(&text[..read.unwrap_or(0)]).into_owned()
    }

    /// What it used so far. Memory needs the controller, time doesn't.
    pub(super) fn used(&self) -> Used {
        let stat = self.read("cpu.stat");
        let peak = self.read("memory.peak");
        Used {
            cpu: field(&stat, "usage_usec").map(Duration::from_micros),
            peak_memory: peak.trim().parse().ok().map(PeakMemory::OfAll),
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // What is not empty yet is swept by the next daemon.
        remove(&self.dir);
    }
}

/// Removes a cgroup and those that the job made in it, if they are empty.
fn remove(dir: &Path) {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    below.for_each(|entry| remove(&entry.path()));
    let _ = fs::remove_dir(dir);
}

/// The value of a line `name value`.
fn field(lines: &str, name: &str) -> Option<u64> {
    let values = lines.lines().filter_map(|line| line.split_once(' '));
    let mut found = values.filter(|(known, _)| *known == name);
    found.next()?.1.trim().parse().ok()
}

/// What this daemon calls the cgroup of an attempt.
pub(crate) fn name_of(run_id: &str) -> String {
    let (namespace, pid) = (pid_namespace(), getpid().as_raw_pid());
    format!("{PREFIX}{namespace}-{pid}-{run_id}")
}

/// The number of the namespace in which this process has its pid (pid_namespaces(7)): another
/// daemon beside it, in another one, may have the same.
fn pid_namespace() -> String {
    let link = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let digits = link
        .to_string_lossy()
        .replace(|c: char| !c.is_ascii_digit(), "");
    if digits.is_empty() {
        "0".to_owned()
    } else {
        digits
    }
}

/// Finds the place for this daemon's attempts, hands it the memory controller if that can be
/// done without moving anybody else's process, and removes what dead daemons left in it.
/// None where nothing is delegated.
pub(crate) fn prepare() -> Option<PathBuf> {
    let base = find(
        &read("/proc/self/mountinfo"),
        &read("/proc/self/cgroup"),
        is_delegated,
    )?;
    access(&base, Access::WRITE_OK).ok()?;
    access(base.join("cgroup.procs"), Access::WRITE_OK).ok()?;
    hand_down_memory(&base);
    sweep(&base);
    // Whether they can be made, and killed, shows by making one.
    let made = Cgroup::make(&base, &name_of("probe")).ok()?;
    // Linux 5.14.
    let can_be_killed = made.dir.join("cgroup.kill").exists();
    can_be_killed.then_some(base)
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Kills what is left of an attempt whose keeper is dead, and removes its cgroup once it is
/// empty. Whether that is done; to be called again until it is.
pub(crate) fn end(base: &Path, name: &str) -> bool {
    let left = Cgroup {
        dir: base.join(name),
    };
    left.kill();
    !left.is_populated()
}

/// This process's own cgroup, or the one above (systemd's `DelegateSubgroup=`), whichever was
/// delegated.
fn find(mounts: &str, cgroups: &str, is_delegated: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    let own = cgroups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let (root, mounted) = mounts.lines().find_map(cgroup2)?;
    let below = Path::new(own).strip_prefix(root).ok()?;
    let dir = mounted.join(below);
    if below.as_os_str().is_empty() || is_delegated(&dir) {
        return Some(dir);
    }
    let above = dir.parent().filter(|above| is_delegated(above))?;
    Some(above.to_owned())
}

/// Root and mount point of a line of proc_pid_mountinfo(5) that is of a cgroup2 file system.
fn cgroup2(line: &str) -> Option<(&Path, PathBuf)> {
    let (mount, kind) = line.split_once(" - ")?;
    let mut fields = mount.split(' ').skip(3);
    let (root, at) = (fields.next()?, fields.next()?);
    let is_cgroup2 = kind.starts_with("cgroup2 ");
    is_cgroup2.then(|| (Path::new(root), PathBuf::from(at)))
}

fn is_delegated(dir: &Path) -> bool {
    DELEGATED.iter().any(|mark| {
        let mut value = [0; 8];
        let read = getxattr(dir, *mark, &mut value[..]);
        read.is_ok_and(|length| value[..length] == *b"1")
    })
}

/// Enables the memory controller for what is below. That takes a cgroup without processes, so
/// the daemon moves down, if it is alone.
fn hand_down_memory(base: &Path) {
    let has = |file: &str| {
        let controllers = fs::read_to_string(base.join(file)).unwrap_or_default();
        controllers
            .split_ascii_whitespace()
            .any(|name| name == "memory")
    };
    if !has("cgroup.controllers") || has("cgroup.subtree_control") {
        return;
    }
    let procs = fs::read_to_string(base.join("cgroup.procs")).unwrap_or_default();
    let own = getpid().as_raw_pid().to_string();
    if procs.split_ascii_whitespace().any(|pid| pid != own) {
        return;
    }
    if procs.contains(&own) {
        let below = base.join(DAEMON);
        let made = fs::create_dir(&below);
        if made.is_err_and(|error| error.kind() != io::ErrorKind::AlreadyExists)
            || fs::write(below.join("cgroup.procs"), &own).is_err()
        {
            return;
        }
    }
    let _ = fs::write(base.join("cgroup.subtree_control"), "+memory");
}

/// Ends what is left in the cgroups of daemons that are gone, and removes them.
fn sweep(base: &Path) {
    let Ok(entries) = fs::read_dir(base) else {
        return;
    };
    let namespace = pid_namespace();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let daemon = name.to_str().and_then(|name| daemon_in(name, &namespace));
        if daemon.is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH)) {
            let left = Cgroup { dir: entry.path() };
            left.kill();
            left.wait_until_empty();
        }
    }
}

/// The daemon's pid in the name of an attempt's cgroup. Of one in another namespace nobody here
/// can say whether it lives.
fn daemon_in(name: &str, namespace: &str) -> Option<Pid> {
    let rest = name.strip_prefix(PREFIX)?.strip_prefix(namespace)?;
    let (pid, _) = rest.strip_prefix('-')?.split_once('-')?;
    Pid::from_raw(pid.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIFIED: &str =
        "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";
    const HYBRID: &str = "30 23 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro\n\
        31 30 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";
    const SERVICE: &str = "0::/system.slice/soloist.service";

    fn found(mounts: &str, own: &str, delegated: &str) -> Option<String> {
        let found = find(mounts, own, |dir| dir == Path::new(delegated));
        found.map(|dir| dir.to_string_lossy().into_owned())
    }

    #[test]
    fn cgroups_are_made_where_they_were_delegated_and_nowhere_else() {
        let unit = "/sys/fs/cgroup/system.slice/soloist.service";
        assert_eq!(found(UNIFIED, SERVICE, unit).as_deref(), Some(unit));
        let subgroup = format!("{SERVICE}/main");
        assert_eq!(found(UNIFIED, &subgroup, unit).as_deref(), Some(unit));
        assert_eq!(found(UNIFIED, SERVICE, "/sys/fs/cgroup/user.slice"), None);
    }

    #[test]
    fn the_top_of_a_namespace_is_ours() {
        let own = "12:memory:/x\n0::/";
        assert_eq!(found(UNIFIED, own, "").as_deref(), Some("/sys/fs/cgroup/"));
        let unified = Some("/sys/fs/cgroup/unified/");
        assert_eq!(found(HYBRID, own, "").as_deref(), unified);
    }

    #[test]
    fn without_version_2_there_is_no_place() {
        assert_eq!(found(HYBRID, "12:memory:/x", ""), None);
        let version_1 = "31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory";
        assert_eq!(found(version_1, SERVICE, ""), None);
    }

    #[test]
    fn only_cgroups_of_attempts_in_this_namespace_name_a_daemon() {
        let own = pid_namespace();
        assert_eq!(daemon_in(&name_of("0193-ab"), &own), Some(getpid()));
        for other in ["soloist", "soloist-a-b", "soloist-7-42-a", "other-42-a"] {
            assert_eq!(daemon_in(other, &own), None, "{other}");
        }
        assert_eq!(daemon_in("soloist-7-42-a", "7"), Pid::from_raw(42));
    }

    #[test]
    fn fields_are_read_by_their_whole_name() {
        let stat = "usage_usec 12\nuser_usec 5\n";
        assert_eq!(field(stat, "usage_usec"), Some(12));
        assert_eq!(field(stat, "usage"), None);
    }
}
