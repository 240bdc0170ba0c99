//! Tables of families, and who is who among the processes.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use test_support::cgroup::Cgroup;
use test_support::family::{Kind, Member};
use test_support::fleet::{Fleet, Replica, SOON};
use test_support::process::Process;
use test_support::redis::{RedisServer, fresh_namespace};

/// How long it may take until a daemon has what it has from its start on.
const SETTLED: Duration = Duration::from_secs(5);

/// A name that no other test's replica has: who starts continues stopped guardians of its name, and
/// ends what jobs of its name left behind.
pub(crate) fn fresh_name() -> String {
    static NAMES: AtomicU32 = AtomicU32::new(0);
    format!("replica-{}", NAMES.fetch_add(1, Ordering::Relaxed))
}

/// A job of each second, so that it starts soon. Once it runs, the others are skipped.
pub(crate) fn family_job(kind: Kind, keys: &str) -> String {
    let name = kind.name();
    format!("[jobs.{name}]\nschedule = \"* * * * * *\"\ncommand = [FAMILY, \"{name}\"]\n{keys}\n")
}

/// A job of each second that runs a shell.
pub(crate) fn shell_job(name: &str, script: &str, keys: &str) -> String {
    format!("[jobs.{name}]\nschedule = \"* * * * * *\"\nshell = '''{script}'''\n{keys}\n")
}

/// A job of each second that takes so long.
pub(crate) fn probe_job(name: &str, millis: u32) -> String {
    format!("[jobs.{name}]\nschedule = \"* * * * * *\"\ncommand = [PROBE, \"{millis}\"]\n")
}

/// How a daemon can know what belongs to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ground {
    /// By the tree of processes, as in a cgroup that is somebody else's.
    Tree,
    /// By a cgroup of the job's own, as in one that was delegated.
    Cgroups,
}

impl Ground {
    /// Both of them, one after the other.
    pub(crate) fn each(test: impl Fn(Self)) {
        for ground in [Self::Tree, Self::Cgroups] {
            eprintln!("what belongs to a job is known by: {ground:?}");
            test(ground);
        }
    }

    /// A fleet of this kind. None where this user can't have it.
    pub(crate) fn fleet(self, scheduler: &str, jobs: &[String]) -> Option<Fleet> {
        let cgroup = match self {
            // Who can make no cgroups here leaves the daemon none either.
            Self::Tree => Cgroup::of_somebody_else(),
            Self::Cgroups => {
                let delegated = Cgroup::delegated();
                if delegated.is_none() {
                    eprintln!("NOT SHOWN with cgroups: this user can make none here");
                }
                Some(delegated?)
            }
        };
        let redis = RedisServer::shared();
        Some(fleet_as_is(redis, scheduler, jobs).within(cgroup))
    }
}

/// A fleet in a namespace of its own on the server that all tests share.
pub(crate) fn fleet(scheduler: &str, jobs: &[String]) -> Fleet {
    fleet_on(RedisServer::shared(), scheduler, jobs)
}

/// A fleet in a namespace of its own on this server, without cgroups for its jobs: that is harder.
pub(crate) fn fleet_on(redis: &RedisServer, scheduler: &str, jobs: &[String]) -> Fleet {
    fleet_as_is(redis, scheduler, jobs).within(Cgroup::of_somebody_else())
}

/// A fleet in a namespace of its own on this server, with cgroups or without: as it comes.
pub(crate) fn fleet_as_is(redis: &RedisServer, scheduler: &str, jobs: &[String]) -> Fleet {
    let namespace = fresh_namespace();
    Fleet::new(redis.url(), &table(&namespace, scheduler, jobs))
}

/// A whole table.
pub(crate) fn table(namespace: &str, scheduler: &str, jobs: &[String]) -> String {
    let jobs = jobs.concat();
    format!("[scheduler]\nnamespace = \"{namespace}\"\n{scheduler}\n\n{jobs}")
}

/// One attempt's family, all of it.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    pub(crate) kind: Kind,
    pub(crate) members: Vec<Member>,
}

impl Family {
    pub(crate) fn processes(&self) -> Vec<Process> {
        self.members.iter().map(|member| member.process).collect()
    }

    pub(crate) fn of_role(&self, role: &str) -> Process {
        let found = self.members.iter().find(|member| member.role == role);
        found.expect("a member of that role").process
    }

    pub(crate) fn alive(&self) -> Vec<Process> {
        let mut alive = self.processes();
        alive.retain(|process| process.is_alive());
        alive
    }

    pub(crate) fn scheduled_at(&self) -> &str {
        &self.members[0].scheduled_at
    }
}

/// Waits for a whole family of each of these kinds, as wanted.
pub(crate) fn wait_for_families(
    fleet: &Fleet,
    kinds: &[Kind],
    wanted: impl Fn(&Member) -> bool,
) -> Vec<Family> {
    fleet.wait_for_members(SOON, |members| {
        kinds
            .iter()
            .map(|kind| whole_family(members, *kind, &wanted))
            .collect()
    })
}

fn whole_family(
    members: &[Member],
    kind: Kind,
    wanted: impl Fn(&Member) -> bool,
) -> Option<Family> {
    let of_kind = |member: &&Member| member.job == kind.name() && wanted(member);
    let mut candidates = members.iter().filter(of_kind);
    candidates.find_map(|first| {
        let same = |member: &&Member| member.run_id == first.run_id;
        let members: Vec<Member> = members.iter().filter(same).cloned().collect();
        (members.len() == kind.size()).then_some(Family { kind, members })
    })
}

pub(crate) fn processes_of(families: &[Family]) -> Vec<Process> {
    families.iter().flat_map(Family::processes).collect()
}

/// The one guardian of a daemon.
pub(crate) fn guardian_of(replica: &Replica) -> Process {
    guardian_other_than(replica, None)
}

/// The guardian that took the place of this one.
pub(crate) fn guardian_other_than(replica: &Replica, old: Option<Process>) -> Process {
    let daemon = replica.process();
    let end = Instant::now() + SETTLED;
    loop {
        let mut guardians = daemon.children_named("job-guardian");
        guardians.retain(|guardian| Some(*guardian) != old);
        if let [guardian] = guardians[..] {
            return guardian;
        }
        assert!(
            Instant::now() < end,
            "one child `job-guardian` of {daemon:?} was expected, but there are {guardians:?}; \
             all children: {:?}\n{}",
            names(&daemon.children()),
            replica.tail()
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The keepers of a guardian, as many as are expected.
pub(crate) fn keepers_of(guardian: Process, expected: usize) -> Vec<Process> {
    let end = Instant::now() + SETTLED;
    loop {
        let keepers = guardian.children_named("job-keeper");
        if keepers.len() == expected {
            return keepers;
        }
        assert!(
            Instant::now() < end,
            "{expected} children `job-keeper` of {guardian:?} were expected; all children: {:?}",
            names(&guardian.children())
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn names(processes: &[Process]) -> Vec<(i32, String)> {
    let name = |process: &Process| (process.pid, process.comm());
    processes.iter().map(name).collect()
}

/// The attempts of a job in the ledger, the newest first.
pub(crate) fn history(fleet: &Fleet, job: &str) -> Vec<Value> {
    let answer = fleet.json(&["history", job, "-n", "1000", "--json"]);
    answer.as_array().expect("a list").clone()
}

/// Waits for an attempt like that in the ledger. What was skipped or missed is none, also where its
/// line was written with an attempt's.
pub(crate) fn wait_for_outcome(fleet: &Fleet, job: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let end = Instant::now() + SOON;
    let never_started = ["skipped", "missed"].map(Value::from);
    loop {
        let attempts = history(fleet, job);
        if let Some(found) = attempts
            .iter()
            .find(|attempt| !never_started.contains(&attempt["outcome"]) && wanted(attempt))
        {
            return found.clone();
        }
        assert!(Instant::now() < end, "not in the ledger: {attempts:#?}");
        // The command itself takes long enough between two looks.
    }
}

/// An RFC 3339 instant in nanoseconds since the epoch.
pub(crate) fn instant_ns(text: &str) -> i128 {
    let instant: jiff::Timestamp = text.parse().expect("an instant");
    instant.as_nanosecond()
}

/// The same, of a field of an attempt.
pub(crate) fn field_ns(attempt: &Value, field: &str) -> i128 {
    instant_ns(attempt[field].as_str().expect("an instant"))
}
