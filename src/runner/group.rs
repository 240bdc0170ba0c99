//! Signals to the process group of an attempt, and who is left in it.
//!
//! A group's id is its leader's pid. It can't be given to anybody else while the leader has
//! not been reaped, or any member is left: [`ProcessGroup::signal`] may be called only then.

use std::fs;
use std::io;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// The process group of one attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProcessGroup {
    leader: Pid,
}

impl ProcessGroup {
    /// The group that this process leads.
    pub(super) fn led_by(leader: Pid) -> Self {
        Self { leader }
    }

    /// Sends to every member at once. The kernel delivers to a group atomically with regard to
    /// fork(2): a member can't slip away by forking. Only before the leader is reaped.
    pub(super) fn signal(self, signal: Signal) {
        match kill_process_group(self.leader, signal) {
            // Nobody is left, or they are all another user's, by way of setuid.
            Ok(()) | Err(Errno::SRCH | Errno::PERM) => {}
            Err(error) => {
                tracing::warn!(group = self.leader.as_raw_pid(), ?signal, %error, "failed to signal a process group");
            }
        }
    }

    /// Whether nobody is left in it, not even a zombie. Cheap; to be asked once the leader has
    /// been reaped, for until then there is.
    pub(super) fn is_gone(self) -> bool {
        test_kill_process_group(self.leader) == Err(Errno::SRCH)
    }

    /// The members that are neither dead nor zombies. A look into `/proc`, some ten
    /// microseconds for every process of the host. Members hidden from this user (hidepid,
    /// proc(5)) are overlooked.
    pub(super) fn living_members(self) -> io::Result<Vec<u32>> {
        let mut living = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            // Not getpgid(2): it says 0 for kernel threads and for groups of another pid
            // namespace, which rustix takes for impossible.
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            if group_of_living(&stat) == Some(self.leader.as_raw_pid()) {
                living.push(pid);
            }
        }
        Ok(living)
    }
}

/// The group of a process that is neither dead nor a zombie (proc_pid_stat(5)). The name, in
/// parentheses, may hold any character, parentheses too; state, parent and group follow it.
fn group_of_living(stat: &str) -> Option<i32> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace();
    match fields.next()? {
        "Z" | "X" | "x" => None,
        _ => fields.nth(1)?.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn state_and_group_are_read_past_any_name() {
        assert_eq!(group_of_living("12 (sh) S 1 10 12 0"), Some(10));
        assert_eq!(group_of_living("12 (sh) Z 1 10 12 0"), None);
        assert_eq!(group_of_living("12 (a) Z b) 7) D 1 10 12 0"), Some(10));
        assert_eq!(group_of_living("12 (S) X 1 10 12 0"), None);
        assert_eq!(group_of_living("2 (kthreadd) S 0 0 0 0"), Some(0));
        assert_eq!(group_of_living(""), None);
    }

    #[test]
    fn a_leader_is_seen_in_its_group_until_it_is_reaped() {
        let mut command = Command::new("/bin/sleep");
        let mut child = command.arg("1000").process_group(0).spawn().unwrap();
        let group = ProcessGroup::led_by(Pid::from_child(&child));
        assert!(!group.is_gone());
        assert_eq!(group.living_members().unwrap(), [child.id()]);
        group.signal(Signal::KILL);
        child.wait().unwrap();
        assert!(group.is_gone());
        assert!(group.living_members().unwrap().is_empty());
    }
}
