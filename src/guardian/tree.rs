//! The processes below this one: who they are, and signals to all of them.
//!
//! Below a subreaper (`PR_SET_CHILD_SUBREAPER`, prctl(2)) the tree is complete: a process whose
//! parent ended becomes the subreaper's child, whatever session, group or environment it gave
//! itself. So the tree, not a group or a marker, says what a job has started.
//!
//! Children of this process can't be mistaken: their pids are theirs until this process reaps
//! them. Deeper ones can end and their pids be given away between two looks; they are signalled
//! through a pidfd, opened before a last look at who they are.

use std::collections::HashSet;
use std::fs;

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, kill_process, kill_process_group,
    pidfd_open, pidfd_send_signal, waitid,
};

/// How often to look for those that are new: they get fewer from look to look.
const HALT_LIMIT: u32 = 8;

/// The children of this process, zombies among them. None where `/proc` doesn't say, or is
/// another PID namespace's, whose numbers mean other processes here.
pub(crate) fn children() -> Vec<Pid> {
    let own = getpid();
    let named = fs::read_link("/proc/self");
    match named.is_ok_and(|named| named.as_os_str() == own.as_raw_pid().to_string().as_str()) {
        true => children_of(own),
        false => Vec::new(),
    }
}

/// For when `/proc` doesn't say who the children are: signals what there is in the group that
/// this child has made, be it reaped or not. As long as one of the group is our child, the
/// number can be no other group's.
pub(super) fn signal_group(leader: Pid, signal: Signal) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    if waitid(WaitId::Pgid(Some(leader)), options).is_ok() {
        let _ = kill_process_group(leader, signal);
    }
}

/// Sends a signal to these children of this process and to everything below them.
///
/// Who is forked meanwhile may be missed: whoever wants everybody has to come back, when one of
/// them has ended, until nobody is left. How many were found.
pub(super) fn signal(children: &[Pid], signal: Signal) -> usize {
    // The whole tree first: once a process is killed, what was below it is here and there.
    let below = descendants(children);
    let found = children.len() + below.len();
    for child in children {
        // Refused is only what is another user's, by way of setuid, and what has ended.
        let _ = kill_process(*child, signal);
    }
    for (pid, parent) in below {
        signal_descendant(pid, parent, signal);
    }
    found
}

/// Stops the children of this process and everything below them, and those that they fork
/// meanwhile: who is stopped forks no more, and holds a place under the limit of processes,
/// which one that is killed leaves to the next.
pub(super) fn halt() {
    let mut before = 0;
    for _ in 0..HALT_LIMIT {
        let found = signal(&children(), Signal::STOP);
        if found <= before {
            return;
        }
        before = found;
    }
}

/// Everything below these processes, each with the parent that it was found under.
fn descendants(of: &[Pid]) -> Vec<(Pid, Pid)> {
    let mut seen: HashSet<Pid> = of.iter().copied().collect();
    let mut found = Vec::new();
    let mut parents = of.to_vec();
    while let Some(parent) = parents.pop() {
        for child in children_of(parent) {
            if seen.insert(child) {
                found.push((child, parent));
                parents.push(child);
            }
        }
    }
    found
}

fn signal_descendant(pid: Pid, parent: Pid, signal: Signal) {
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else {
        return; // it has ended
    };
    // Its parent may have ended, and then it is ours; anything else is another process.
    if parent_of(pid).is_some_and(|now| now == parent || now == getpid()) {
        let _ = pidfd_send_signal(&pidfd, signal);
    }
}

/// Kills the guardians of a child of this process, a daemon; how many it had.
#[cfg(feature = "daemon")]
pub(crate) fn kill_guardians_of(daemon: Pid) -> usize {
    let is_guardian = |child: &Pid| {
        let name = fs::read_to_string(format!("/proc/{}/comm", child.as_raw_pid()));
        name.is_ok_and(|name| name.trim_end() == super::GUARDIAN_NAME)
    };
    let guardians: Vec<Pid> = children_of(daemon)
        .into_iter()
        .filter(is_guardian)
        .collect();
    for guardian in &guardians {
        signal_descendant(*guardian, daemon, Signal::KILL);
    }
    guardians.len()
}

/// The children of a process, of all its threads (proc_pid_task(5)).
fn children_of(parent: Pid) -> Vec<Pid> {
    let parent = parent.as_raw_pid();
    let Ok(tasks) = fs::read_dir(format!("/proc/{parent}/task")) else {
        return Vec::new(); // it has ended
    };
    let mut children = Vec::new();
    for task in tasks.flatten() {
        match fs::read_to_string(task.path().join("children")) {
            Ok(pids) => children.extend(pids.split_ascii_whitespace().filter_map(to_pid)),
            // A kernel without CONFIG_PROC_CHILDREN has the task and not the file.
            Err(_) if task.path().exists() => return children_by_looking_at_all(parent),
            Err(_) => {}
        }
    }
    children
}

/// The slow way: some ten microseconds for every process of the host.
fn children_by_looking_at_all(parent: i32) -> Vec<Pid> {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let all = processes.filter_map(|entry| to_pid(entry.ok()?.file_name().to_str()?));
    let is_child = |pid: &Pid| parent_of(*pid).map(Pid::as_raw_pid) == Some(parent);
    all.filter(is_child).collect()
}

fn parent_of(pid: Pid) -> Option<Pid> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    parent_in(&stat)
}

/// The parent in a line of proc_pid_stat(5). The name, in parentheses, may hold any character,
/// parentheses too; state and parent follow it.
fn parent_in(stat: &str) -> Option<Pid> {
    let (_, after_name) = stat.rsplit_once(')')?;
    to_pid(after_name.split_ascii_whitespace().nth(1)?)
}

fn to_pid(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    #[test]
    fn a_parent_is_read_past_any_name() {
        let parent = |stat| parent_in(stat).map(Pid::as_raw_pid);
        assert_eq!(parent("12 (sh) S 1 10 12 0"), Some(1));
        assert_eq!(parent("12 (a) Z b) 7) D 13 10 12 0"), Some(13));
        assert_eq!(parent("2 (kthreadd) S 0 0 0 0"), None);
        assert_eq!(parent(""), None);
    }

    /// A shell with one child.
    fn parent_and_child() -> Child {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "sleep 1000 & echo; wait"]);
        let mut shell = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = [0];
        std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut line).unwrap();
        shell
    }

    /// Ends both. From the child up, as an orphan here becomes somebody else's child.
    fn end(mut shell: Child) {
        for child in children_of(Pid::from_child(&shell)) {
            kill_process(child, Signal::KILL).unwrap();
        }
        shell.kill().unwrap();
        shell.wait().unwrap();
    }

    fn state_of(pid: Pid) -> Option<String> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
        let (_, after_name) = stat.rsplit_once(')')?;
        Some(after_name.split_ascii_whitespace().next()?.to_owned())
    }

    #[test]
    fn both_ways_to_find_children_find_the_same() {
        let shell = parent_and_child();
        let parent = Pid::from_child(&shell);
        let all = children_by_looking_at_all(parent.as_raw_pid());
        let fast = children_of(parent);
        end(shell);
        assert_eq!(fast.len(), 1);
        assert_eq!(fast, all);
    }

    #[test]
    fn children_and_grandchildren_are_signalled() {
        let shell = parent_and_child();
        let parent = Pid::from_child(&shell);
        let both = [parent, children_of(parent)[0]];
        assert_eq!(signal(&[parent], Signal::STOP), 2);
        while !both
            .iter()
            .all(|pid| state_of(*pid).as_deref() == Some("T"))
        {
            std::thread::yield_now();
        }
        end(shell);
    }

    #[test]
    fn a_process_that_is_found_under_another_parent_is_left_alone() {
        let shell = parent_and_child();
        let parent = Pid::from_child(&shell);
        let sleep = children_of(parent)[0];
        let nobody_s_parent = sleep;
        signal_descendant(sleep, nobody_s_parent, Signal::KILL);
        let state = state_of(sleep);
        end(shell);
        assert_ne!(state.as_deref(), Some("Z"), "it was killed");
    }
}
