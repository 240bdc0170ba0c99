//! The daemon is killed, alone and together with those who watch over it: no process of any job
//! lives on.

use std::collections::BTreeMap;
use std::time::Duration;

use test_support::family::Kind;
use test_support::fleet::{Fleet, Replica, now_ns};
use test_support::machine::together;
use test_support::process::{Deaths, Process, Signal};

use crate::figures::{Figures, nanos};
use crate::scene::{Ground, family_job, fresh_name, processes_of, wait_for_families};

/// What the promise allows.
const LIMIT: Duration = Duration::from_secs(1);

/// How long survivors are looked for, to tell those that are late from those that stay.
const WATCHED: Duration = Duration::from_secs(3);

/// Lives with one job of each kind: five tries each.
const LIVES: usize = 12;
/// And where the daemon isn't the only one that is struck.
const FEW_LIVES: usize = 3;

/// Who can be struck. All of it is there by the time that a job runs.
struct Tree {
    daemon: Process,
    guardian: Option<Process>,
    keepers: Vec<Process>,
}

impl Tree {
    fn under(replica: &Replica) -> Self {
        let daemon = replica.process();
        let guardian = daemon.children_named("job-guardian").first().copied();
        let keepers = guardian.map(|guardian| guardian.children_named("job-keeper"));
        Self {
            daemon,
            guardian,
            keepers: keepers.unwrap_or_default(),
        }
    }

    fn guardian(&self) -> Process {
        self.guardian
            .expect("a child `job-guardian` of the daemon while jobs run")
    }

    /// One for each running job.
    fn keepers(&self) -> &[Process] {
        assert_eq!(self.keepers.len(), Kind::ALL.len(), "children `job-keeper`");
        &self.keepers
    }
}

/// How long the last process of each kind lived on, and the last of the daemon's own, while the
/// machine ran.
#[derive(Default)]
struct Survey {
    kinds: BTreeMap<Kind, Figures>,
    helpers: Figures,
    /// The cgroups that a daemon had made for its jobs.
    most_cgroups: usize,
}

impl Survey {
    /// A daemon with a job of each kind is struck, so many times over.
    fn of(lives: usize, strike: impl Fn(&Tree)) -> Self {
        Self::on(Ground::Tree, lives, strike)
    }

    fn on(ground: Ground, lives: usize, strike: impl Fn(&Tree)) -> Self {
        let jobs = Kind::ALL.map(|kind| family_job(kind, ""));
        let mut survey = Self::default();
        for _life in 0..lives {
            let Some(fleet) = ground.fleet("", &jobs) else {
                break;
            };
            survey.life(&fleet, &strike);
        }
        survey
    }

    fn life(&mut self, fleet: &Fleet, strike: impl Fn(&Tree)) {
        let replica = fleet.start(&fresh_name());
        let families = wait_for_families(fleet, &Kind::ALL, |_| true);
        let members = processes_of(&families);
        let mut helpers = replica.process().descendants();
        helpers.retain(|process| !members.contains(process));
        let watched: Vec<Process> = members.iter().chain(&helpers).copied().collect();
        let tree = Tree::under(&replica);
        let cgroups = fleet
            .cgroup()
            .map_or(0, |cgroup| cgroup.made_within().len());
        self.most_cgroups = self.most_cgroups.max(cgroups);
        let deaths = Deaths::watch(&watched, WATCHED);
        let struck_ns = now_ns();
        strike(&tree);
        let ended = deaths.join();
        let still_ns = nanos(ended.still());
        let took = |processes: Vec<Process>| Some(ended.last(processes)? - struck_ns - still_ns);
        for family in &families {
            let figures = self.kinds.entry(family.kind).or_default();
            figures.add(took(family.processes()));
        }
        if !helpers.is_empty() {
            self.helpers.add(took(helpers.clone()));
        }
        for helper in helpers {
            helper.signal(Signal::KILL);
        }
    }

    fn hold(&self, what: &str) {
        let mut total = Figures::default();
        for (kind, figures) in &self.kinds {
            eprintln!("{what}: {:<12} {}", kind.name(), figures.tell());
            total.merge(figures);
        }
        eprintln!("{what}: all kinds    {}", total.tell());
        eprintln!("{what}: guardian and keepers {}", self.helpers.tell());
        total.assert_within(what, LIMIT);
        self.helpers.assert_within(what, LIMIT);
    }
}

fn kill(process: Process) {
    process.signal(Signal::KILL);
}

#[test]
fn every_process_of_every_job_dies_with_a_killed_daemon() {
    let _machine = together();
    let survey = Survey::of(LIVES, |tree| kill(tree.daemon));
    let tries: usize = survey.kinds.values().map(Figures::tries).sum();
    assert!(tries >= 50, "{tries}");
    assert_eq!(survey.most_cgroups, 0, "without cgroups");
    survey.hold("kill -9 of the daemon");
}

#[test]
fn every_process_of_every_job_dies_with_a_killed_daemon_that_has_cgroups() {
    let _machine = together();
    let survey = Survey::on(Ground::Cgroups, FEW_LIVES, |tree| kill(tree.daemon));
    if survey.kinds.is_empty() {
        return;
    }
    assert!(
        survey.most_cgroups >= Kind::ALL.len(),
        "{}",
        survey.most_cgroups
    );
    survey.hold("with cgroups, kill -9 of the daemon");
}

#[test]
fn every_process_dies_with_a_daemon_and_a_guardian_that_are_killed_together() {
    let _machine = together();
    let survey = Survey::of(FEW_LIVES, |tree| {
        kill(tree.guardian());
        kill(tree.daemon);
    });
    survey.hold("kill -9 of guardian, then daemon");
    let survey = Survey::of(FEW_LIVES, |tree| {
        kill(tree.daemon);
        kill(tree.guardian());
    });
    survey.hold("kill -9 of daemon, then guardian");
}

#[test]
fn every_process_dies_with_a_killed_daemon_whose_guardian_is_frozen() {
    let _machine = together();
    let survey = Survey::of(FEW_LIVES, |tree| {
        tree.guardian().signal(Signal::STOP);
        kill(tree.daemon);
    });
    survey.hold("guardian frozen, kill -9 of the daemon");
}

#[test]
fn every_process_dies_with_a_killed_daemon_whose_keepers_are_frozen() {
    let _machine = together();
    let survey = Survey::of(FEW_LIVES, |tree| {
        for keeper in tree.keepers() {
            keeper.signal(Signal::STOP);
        }
        kill(tree.daemon);
    });
    survey.hold("keepers frozen, kill -9 of the daemon");
}

#[test]
fn every_process_dies_with_a_killed_daemon_that_was_frozen_before() {
    let _machine = together();
    let survey = Survey::of(FEW_LIVES, |tree| {
        tree.daemon.signal(Signal::STOP);
        kill(tree.daemon);
    });
    survey.hold("daemon frozen, then kill -9 of it");
}
