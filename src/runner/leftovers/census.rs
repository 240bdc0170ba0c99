//! Who is a leftover: one look at all processes, and what follows from it.
//!
//! | a process | is taken if |
//! |---|---|
//! | with the run id and the name in its environment | no guardian or keeper lives above it |
//! | whose parent is taken | always, whatever its environment says |
//! | in the session or process group of one taken | its leader is gone or taken, it acts as the same user, and no guardian lives above it |
//!
//! Never taken: this process and those above it, an attempt that this process is itself a part
//! of (a job that starts a daemon), and guardians that are not themselves started by a leftover.
//! A session or group counts only if it can be nobody's but the attempt's: it is not this
//! process's, nobody in it belongs to another attempt or to a daemon, and, for a session, one
//! that is taken is in the group that was made with it, as a job's first process is.
//!
//! Processes come and go during the look. What that can do is to hide a newcomer until the next
//! one. It can't make one look unguarded: who is above a process is not taken from the look
//! but followed step by step, and begun anew if somebody on the way is gone.

use std::collections::{HashMap, HashSet};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, geteuid, getpid, test_kill_process};

use super::process::{self, Process, variable};
use super::{Leftover, SweepError};
use crate::guardian::{GUARDIAN_NAME, GUARDIAN_VARIABLE, KEEPER_NAME};

const RUN_ID: &str = "SOLOIST_RUN_ID";
const REPLICA: &str = "SOLOIST_REPLICA";
const JOB: &str = "SOLOIST_JOB";
/// What a guardian is executed with and its keepers share. Jobs never have it: their
/// environment is made from scratch.
const GUARDIAN: &str = GUARDIAN_VARIABLE;

/// The names of both, for those that this user can't look into.
const GUARDIAN_COMMANDS: [&str; 2] = [GUARDIAN_NAME, KEEPER_NAME];

/// The name of a daemon. One that is part of no job answers for what is below it: it lives
/// while its guardian is being replaced.
const DAEMON_COMMAND: &str = "soloist";

/// How often to list the processes in one look. A listing is made at once and read bit by bit;
/// what is forked meanwhile is in the next.
const LISTINGS_LIMIT: u32 = 8;

/// How long the kernel takes to set a program up, more or less.
const EXECUTION: Duration = Duration::from_micros(200);

/// How often the way up from a process is begun anew because somebody on it has ended. One that
/// is still not to be seen then is hidden from this user.
const WALKS_LIMIT: u32 = 10;

/// Whose processes are looked for.
#[derive(Clone, Debug)]
pub(super) enum Whose {
    /// Those of a replica's earlier lives, by its name.
    Replica(String),
    /// Those of an attempt, whoever is above them.
    Run(String),
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The oldest first.
    pub(super) leftovers: Vec<Leftover>,
    /// Those of the replica of whom it can't be seen who is above them.
    pub(super) undecided: Vec<Leftover>,
    /// Those below guardians and keepers that are stopped, and these.
    pub(super) below_stopped: Vec<(Leftover, Vec<Process>)>,
    /// Whether one that was looked for ended during the look. It may have a successor.
    pub(super) missed_one: bool,
}

/// What an environment says of its process.
#[derive(Debug)]
struct Mark {
    run_id: String,
    replica: String,
    job: String,
}

impl Mark {
    fn of(environment: &[u8]) -> Option<Self> {
        let text = |name| variable(environment, name).map(|value| value.to_string_lossy());
        Some(Self {
            run_id: text(RUN_ID)?.into_owned(),
            replica: text(REPLICA).unwrap_or_default().into_owned(),
            job: text(JOB).unwrap_or_default().into_owned(),
        })
    }
}

/// Who is above a process.
#[derive(Debug)]
enum Above {
    /// Nobody who answers for it.
    Nobody,
    /// A guardian, a keeper or a daemon. With those of them that are stopped.
    Guardian { stopped: Vec<Process> },
    /// It can't be seen.
    Unknown,
    /// The process has ended.
    Ended,
}

/// What processes are in together; its leader's pid is its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Band {
    Session(i32),
    Group(i32),
}

impl Band {
    fn leader(self) -> i32 {
        let (Self::Session(leader) | Self::Group(leader)) = self;
        leader
    }

    fn of(process: &Process) -> [Self; 2] {
        [Self::Session(process.session), Self::Group(process.group)]
    }
}

/// All processes, and what those of jobs have in their environment.
#[derive(Debug, Default)]
pub(super) struct Census {
    processes: HashMap<i32, Process>,
    marks: HashMap<i32, Mark>,
    /// Guardians, keepers, daemons.
    guardians: HashSet<i32>,
    /// Those that had no environment.
    blank: Vec<i32>,
    /// This process and those above it.
    lineage: HashSet<i32>,
    /// This process's own session and group.
    own_bands: Option<[Band; 2]>,
    /// The attempt that this process is part of.
    own_run: Option<String>,
}

impl Census {
    /// Looks at every process. Environments are read where this user may read them.
    pub(super) fn take() -> Result<Self, SweepError> {
        let own_pid = own_pid()?;
        let mut census = Self {
            own_run: std::env::var(RUN_ID).ok(),
            ..Self::default()
        };
        let mut seen = HashSet::new();
        for _ in 0..LISTINGS_LIMIT {
            let listed = process::pids().map_err(SweepError::NoProc)?;
            let before = seen.len();
            for pid in listed {
                if seen.insert(pid) {
                    census.add(pid);
                }
            }
            if seen.len() == before {
                break;
            }
        }
        // One without an environment may just be being executed.
        sleep(EXECUTION);
        for pid in std::mem::take(&mut census.blank) {
            census.add(pid);
        }
        let own = census.processes.get(&own_pid);
        census.own_bands = Some(own.map(Band::of).ok_or(SweepError::OtherNamespace)?);
        census.lineage = lineage(&census.processes, own_pid);
        Ok(census)
    }

    /// Looks at one process, its environment right after the rest: it may be gone in a moment.
    fn add(&mut self, pid: i32) {
        let Some(process) = Process::read(pid) else {
            return;
        };
        if !process.is_kernel_thread() && !process.is_zombie() {
            let user = geteuid();
            let readable = user.is_root() || process.user() == Some(user.as_raw());
            let environment = readable.then(|| process.environment()).flatten();
            if environment.as_ref().is_some_and(Vec::is_empty) {
                self.blank.push(pid);
            }
            let environment = environment.unwrap_or_default();
            if is_guardian(&process, &environment) || is_daemon(&process, &environment) {
                self.guardians.insert(pid);
            } else if let Some(mark) = Mark::of(&environment) {
                self.marks.insert(pid, mark);
            }
        }
        self.processes.insert(pid, process);
    }

    /// Finds those that are looked for, and the kin of `known` ones.
    pub(super) fn find(&self, whose: &Whose, known: &[Leftover]) -> Found {
        let mut found = Found::default();
        let mut taken: HashMap<i32, Leftover> = HashMap::new();
        for leftover in known {
            let same = self.processes.get(&leftover.process.pid);
            if same.is_some_and(|now| now.is_same(&leftover.process) && !now.is_zombie()) {
                taken.insert(leftover.process.pid, leftover.clone());
            }
        }
        for (pid, mark) in &self.marks {
            let process = &self.processes[pid];
            if taken.contains_key(pid) || !self.is_wanted(whose, process, mark) {
                continue;
            }
            let leftover = leftover(process, mark.run_id.clone(), mark.job.clone());
            match who_is_above(whose, process) {
                Above::Nobody => drop(taken.insert(*pid, leftover)),
                Above::Guardian { stopped } if stopped.is_empty() => {}
                Above::Guardian { stopped } => found.below_stopped.push((leftover, stopped)),
                Above::Unknown => found.undecided.push(leftover),
                Above::Ended => found.missed_one = true,
            }
        }
        self.add_kin(whose, &mut taken);
        found.leftovers = taken.into_values().collect();
        let younger = |a: &Leftover, b: &Leftover| a.process.is_younger_than(&b.process);
        found
            .leftovers
            .sort_by(|a, b| younger(a, b).cmp(&younger(b, a)));
        found
    }

    fn is_wanted(&self, whose: &Whose, process: &Process, mark: &Mark) -> bool {
        let matches = match whose {
            Whose::Replica(name) => mark.replica == *name,
            Whose::Run(run_id) => mark.run_id == *run_id,
        };
        let own =
            self.lineage.contains(&process.pid) || self.own_run.as_ref() == Some(&mark.run_id);
        matches && !own
    }

    /// Adds descendants and companions, and theirs, until there are no more.
    fn add_kin(&self, whose: &Whose, taken: &mut HashMap<i32, Leftover>) {
        loop {
            let bands = self.bands_of(taken);
            let others = self.processes.values().filter(|process| {
                let can_be = !process.is_kernel_thread() && !process.is_zombie();
                let known = taken.contains_key(&process.pid) || self.lineage.contains(&process.pid);
                can_be && !known
            });
            let kin = others.filter_map(|process| {
                let child_of = taken.get(&process.parent);
                let companion_of = || self.companion(whose, process, &bands);
                let relative = child_of.cloned().or_else(companion_of)?;
                Some(leftover(process, relative.run_id, relative.job))
            });
            let kin: Vec<Leftover> = kin.collect();
            if kin.is_empty() {
                return;
            }
            taken.extend(kin.into_iter().map(|kin| (kin.process.pid, kin)));
        }
    }

    /// The one taken whose session or group this process shares, if it is to go with it.
    fn companion(
        &self,
        whose: &Whose,
        process: &Process,
        bands: &HashMap<Band, Leftover>,
    ) -> Option<Leftover> {
        let [session, group] = Band::of(process);
        let relative = bands.get(&session).or_else(|| bands.get(&group))?;
        let same_user = process.user().is_some() && process.user() == relative.process.user();
        if !same_user || self.guardians.contains(&process.pid) {
            return None;
        }
        let unguarded = matches!(who_is_above(whose, process), Above::Nobody);
        unguarded.then(|| relative.clone())
    }

    /// The sessions and groups that are nobody's but theirs, each with one of them.
    fn bands_of(&self, taken: &HashMap<i32, Leftover>) -> HashMap<Band, Leftover> {
        let mut bands = HashMap::new();
        for leftover in taken.values() {
            let [session, group] = Band::of(&leftover.process);
            let made_together = session.leader() == group.leader();
            for band in [Some(group), made_together.then_some(session)]
                .into_iter()
                .flatten()
            {
                if !self.own_bands.is_some_and(|own| own.contains(&band))
                    && self.is_without_leader(band, taken)
                {
                    bands.insert(band, leftover.clone());
                }
            }
        }
        for (pid, process) in &self.processes {
            let run_id = self.marks.get(pid).map(|mark| &mark.run_id);
            for band in Band::of(process) {
                let of_others = bands.get(&band).is_some_and(|leftover: &Leftover| {
                    let other_run = run_id.is_some_and(|run_id| *run_id != leftover.run_id);
                    self.guardians.contains(pid) || other_run
                });
                if of_others {
                    bands.remove(&band);
                }
            }
        }
        bands
    }

    /// Whether the leader is gone, or taken itself. (While anybody is left in a session or
    /// group, its leader's pid is given to nobody else.)
    fn is_without_leader(&self, band: Band, taken: &HashMap<i32, Leftover>) -> bool {
        let leader = band.leader();
        match (self.processes.get(&leader), Pid::from_raw(leader)) {
            // Of another PID namespace.
            (_, None) => false,
            (Some(process), _) => process.is_zombie() || taken.contains_key(&leader),
            // Gone, or only hidden.
            (None, Some(leader)) => test_kill_process(leader) == Err(rustix::io::Errno::SRCH),
        }
    }
}

fn leftover(process: &Process, run_id: String, job: String) -> Leftover {
    Leftover {
        pid: process.pid.unsigned_abs(),
        run_id,
        job,
        command: process.command.clone(),
        process: process.clone(),
    }
}

/// The pid of this process, if `/proc` is this PID namespace's: the numbers of another one must
/// not be mistaken for ours.
fn own_pid() -> Result<i32, SweepError> {
    let own = getpid().as_raw_pid();
    let shown = std::fs::read_link("/proc/self").map_err(SweepError::NoProc)?;
    if shown.to_str() == Some(own.to_string().as_str()) {
        Ok(own)
    } else {
        Err(SweepError::OtherNamespace)
    }
}

fn lineage(processes: &HashMap<i32, Process>, own_pid: i32) -> HashSet<i32> {
    let mut lineage = HashSet::new();
    let mut next = Some(own_pid);
    while let Some(pid) = next.filter(|pid| lineage.insert(*pid)) {
        next = processes.get(&pid).map(|process| process.parent);
    }
    lineage
}

fn is_guardian(process: &Process, environment: &[u8]) -> bool {
    let command = process.command.as_str();
    GUARDIAN_COMMANDS.contains(&command) || variable(environment, GUARDIAN).is_some()
}

/// A daemon stands above its jobs too, and while its guardian is being replaced, alone.
fn is_daemon(process: &Process, environment: &[u8]) -> bool {
    process.command == DAEMON_COMMAND && variable(environment, RUN_ID).is_none()
}

/// Who is above a process; nobody, where that isn't asked for.
fn who_is_above(whose: &Whose, process: &Process) -> Above {
    match whose {
        Whose::Run(_) => Above::Nobody,
        Whose::Replica(_) => (0..WALKS_LIMIT)
            .find_map(|_| walk_up(process))
            .unwrap_or(Above::Unknown),
    }
}

/// Follows the parents, as they are now. None if somebody on the way has ended: whom he left
/// behind has another parent now.
///
/// A process that loses its parent goes to the next living subreaper above, and guardians and
/// keepers are subreapers: so no step leads past a living one. One that got a dead parent's pid
/// gives itself away by being younger than its supposed child.
fn walk_up(process: &Process) -> Option<Above> {
    let Some(mut child) = process.now() else {
        return Some(Above::Ended);
    };
    let (mut guarded, mut stopped) = (false, Vec::new());
    while child.parent != 0 {
        let parent = match Process::read(child.parent) {
            Some(parent) if parent.is_younger_than(&child) => return None,
            Some(parent) => parent,
            // Hidden, and it has nobody above it.
            None if child.parent == 1 => break,
            None => return None,
        };
        let environment = parent.environment().unwrap_or_default();
        let is_guardian = is_guardian(&parent, &environment);
        guarded |= is_guardian || is_daemon(&parent, &environment);
        // A daemon that is stopped was stopped by somebody, and stays so.
        if is_guardian && parent.is_stopped() {
            stopped.push(parent.clone());
        }
        child = parent;
    }
    Some(if guarded {
        Above::Guardian { stopped }
    } else {
        Above::Nobody
    })
}
