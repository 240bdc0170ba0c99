//! A table that is changed under a fleet at work: by SIGHUP, and by a change of its files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::process::Signal;
use test_support::machine::while_it_runs;
use test_support::redis::RedisServer;

use crate::fleet::{Fleet, Replica, SOON, instant_ns, now_ns, sleep_until_ns};
use crate::{alone, together};

const SECOND: i128 = 1_000_000_000;

/// Jobs that all tables have, and how many tables follow one another.
const STAYING: usize = 30;
const ROUNDS: usize = 40;

/// A table of jobs that stay, of which the descriptions change, and one that comes and goes.
fn table(round: usize) -> String {
    let mut text = String::new();
    for number in 0..STAYING {
        let _ = writeln!(
            text,
            "[jobs.stays-{number}]\nschedule = \"* * * * * *\"\ncommand = [PROBE, \"1\"]\n\
             description = \"as of round {round}\"\n"
        );
    }
    let _ = writeln!(
        text,
        "[jobs.passing-{}]\nschedule = \"* * * * * *\"\ncommand = [PROBE, \"300\"]\n",
        round % 3
    );
    text
}

#[test]
fn reloads_under_load_lose_and_double_nothing() {
    let _machine = alone();
    while_it_runs(reload_under_load);
}

fn reload_under_load() -> Result<(), String> {
    let redis = RedisServer::start();
    let fleet = Fleet::new(redis.url(), &table(0));
    let mut replicas = fleet.start_ready(["a", "b", "c"]);
    let from = (now_ns() / SECOND + 4) * SECOND;
    sleep_until_ns(from);
    for round in 1..=ROUNDS {
        fleet.set_table(&table(round));
        for (number, replica) in replicas.iter().enumerate() {
            replica.signal(Signal::HUP);
            // At every part of a second, and each replica at another.
            let at = from + SECOND / 4 * round as i128 + SECOND / 13 * number as i128;
            sleep_until_ns(at);
        }
    }
    let until = (now_ns() / SECOND) * SECOND;
    replicas.iter_mut().for_each(Replica::drain);
    let mut starts: BTreeMap<(String, String), usize> = BTreeMap::new();
    for run in fleet.runs() {
        *starts.entry((run.job, run.scheduled_at)).or_default() += 1;
    }
    let twice: Vec<_> = starts.iter().filter(|(_, count)| **count > 1).collect();
    assert!(twice.is_empty(), "more than once: {twice:?}");
    let stayed = starts
        .keys()
        .filter(|(job, at)| job.starts_with("stays") && (from..until).contains(&instant_ns(at)));
    let (_, history, _) = fleet.output(&["history", "-n", "10000"]);
    assert_eq!(history.matches(" lost").count(), 0, "{history}");
    let expected = STAYING * usize::try_from((until - from) / SECOND).expect("seconds");
    let stayed = stayed.count();
    if stayed != expected {
        let tail = replicas[0].tail();
        return Err(format!("{stayed} of {expected} ran: {tail}"));
    }
    let reloads = |replica: &Replica| replica.lines_with("the table was read again");
    let taken: usize = replicas.iter().map(reloads).sum();
    println!(
        "reloads under load: {taken} tables taken by three replicas, {expected} occurrences of \
         jobs that stayed, each once"
    );
    // Signals that come while one is being dealt with are one.
    assert!(taken > ROUNDS, "{taken}");
    Ok(())
}

const TICK: &str = "[jobs.tick]\nschedule = \"* * * * * *\"\ncommand = [PROBE, \"1\"]\n";
const TOCK: &str = "[jobs.tock]\nschedule = \"* * * * * *\"\ncommand = [PROBE, \"1\"]\n";

/// Waits until a job has run after now.
fn runs_again(fleet: &Fleet, job: &str) {
    let now = now_ns();
    let since = |started: i128| started > now;
    fleet.wait_for_runs(SOON, |runs| {
        let again = runs
            .iter()
            .any(|run| run.job == job && since(run.started_ns));
        again.then_some(())
    });
}

#[test]
fn a_broken_table_is_told_everywhere_and_the_one_before_stays_until_it_is_mended() {
    let _machine = together();
    let redis = RedisServer::start();
    let fleet = Fleet::new(redis.url(), TICK);
    let mut replica = fleet.start("r1");
    replica.wait_until_ready();
    fleet.set_table(&format!("{TICK}\nshedule = \"* * * * *\"\n"));
    replica.signal(Signal::HUP);
    replica.wait_for_line(&["ERROR", "jobs.toml:5:1: unknown key `shedule`"]);
    replica.wait_for_line(&[
        "ERROR",
        "refused, and the one before stays",
        "jobs.toml:5:1",
    ]);
    runs_again(&fleet, "tick");
    fleet.set_table(TICK);
    // The next occurrence is later than the next look.
    runs_again(&fleet, "tick");
    let status = fleet.json(&["status", "--json"]);
    let refused = status["replicas"][0]["table_refused"].as_str();
    assert!(
        refused.is_some_and(|cause| cause.contains("shedule")),
        "{status:#}"
    );
    let (_, text, _) = fleet.output(&["status"]);
    assert!(text.contains("r1 goes on with an older table: "), "{text}");

    fleet.set_table(TOCK);
    replica.signal(Signal::HUP);
    replica.wait_for_line(&["goes on with another table", "enrolled=1", "removed=1"]);
    runs_again(&fleet, "tock");
    let status = fleet.json(&["status", "--json"]);
    assert!(
        status["replicas"][0].get("table_refused").is_none(),
        "{status:#}"
    );
    replica.drain();
}

#[test]
fn what_waits_for_the_next_start_is_told_as_long_as_it_is_not_what_runs() {
    let _machine = together();
    let redis = RedisServer::start();
    let fleet = Fleet::new(redis.url(), TICK);
    let mut replica = fleet.start("r1");
    replica.wait_until_ready();
    let listening = format!("[scheduler]\nlisten = \"127.0.0.1:7373\"\n{TICK}");
    fleet.set_table(&listening);
    replica.signal(Signal::HUP);
    let told = ["WARN", "`listen`", "takes effect at the next one"];
    replica.wait_for_line(&told);
    fleet.set_table(TOCK);
    replica.signal(Signal::HUP);
    replica.wait_for_line(&["goes on with another table", "enrolled=1", "removed=1"]);
    assert_eq!(replica.lines_with("takes effect at the next one"), 1);
    replica.drain();
}

#[test]
fn a_running_attempt_of_a_removed_job_goes_on_to_its_end() {
    let _machine = together();
    let redis = RedisServer::start();
    let long = "[jobs.long]\nschedule = \"@manual\"\ncommand = [PROBE, \"2500\"]\n";
    let fleet = Fleet::new(redis.url(), long);
    let mut replica = fleet.start("r1");
    replica.wait_until_ready();
    assert_eq!(fleet.output(&["trigger", "long"]).0, Some(0));
    fleet.wait_for_runs(SOON, |runs| (runs.len() == 1).then_some(()));
    fleet.set_table(TICK);
    replica.signal(Signal::HUP);
    replica.wait_for_line(&["goes on with another table", "removed=1"]);
    replica.wait_for_line(&["attempt succeeded", "job=long"]);
    runs_again(&fleet, "tick");
    replica.drain();
}

#[test]
fn files_that_are_watched_are_read_again_however_they_are_replaced() {
    let _machine = together();
    let redis = RedisServer::start();
    let watch = "[scheduler]\nwatch = true\n";
    let fleet = Fleet::new(redis.url(), &format!("{watch}{TICK}"));
    let mut replica = fleet.start("r1");
    replica.wait_until_ready();
    let taken = |count: usize| {
        let line = "goes on with another table";
        let end = now_ns() + i128::try_from(SOON.as_nanos()).expect("a while");
        while replica.lines_with(line) < count {
            assert!(now_ns() < end, "{}", replica.tail());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    };
    // Written over in place.
    fleet.set_table(&format!("{watch}{TOCK}"));
    taken(1);
    // Written beside it and renamed, as editors do.
    let text = fs::read_to_string(fleet.config()).expect("a table");
    let beside = fleet.dir().join("jobs.toml.new");
    fs::write(&beside, text.replace("tock", "renamed")).expect("a file");
    fs::rename(&beside, fleet.config()).expect("a rename");
    taken(2);
    runs_again(&fleet, "renamed");
    // Something else in the directory, and a table that says the same: nothing happens.
    fs::write(fleet.dir().join("other.txt"), "x").expect("a file");
    let text = fs::read_to_string(fleet.config()).expect("a table");
    fs::write(fleet.config(), &text).expect("a table");
    fs::write(fleet.config(), text.replace("renamed", "last")).expect("a table");
    taken(3);
    runs_again(&fleet, "last");
    assert_eq!(replica.lines_with("goes on with another table"), 3);
    replica.drain();
}

/// Puts a table into a volume in the way of the kubelet: a directory of its own for each version,
/// a link `..data` that is put in the place of the former one, and a link to the file through it.
fn mount(volume: &Path, version: &str, table: &str) {
    let dir = volume.join(format!("..{version}"));
    fs::create_dir(&dir).expect("a directory");
    fs::write(dir.join("jobs.toml"), table).expect("a table");
    let beside = volume.join("..data_tmp");
    symlink(format!("..{version}"), &beside).expect("a link");
    fs::rename(&beside, volume.join("..data")).expect("a swap");
    if !volume.join("jobs.toml").exists() {
        symlink("..data/jobs.toml", volume.join("jobs.toml")).expect("a link");
    }
}

#[test]
fn a_config_map_that_is_swapped_is_read_again() {
    let _machine = together();
    let redis = RedisServer::start();
    let watch = "[scheduler]\nwatch = true\n";
    let fleet = Fleet::new(redis.url(), &format!("{watch}{TICK}"));
    let first = fs::read_to_string(fleet.config()).expect("a table");
    let volume = fleet.dir().join("volume");
    fs::create_dir(&volume).expect("a directory");
    mount(&volume, "2026_11_21_01", &first);
    // Reached through one more link.
    fs::remove_file(fleet.config()).expect("a file");
    symlink("volume/jobs.toml", fleet.config()).expect("a link");
    let mut replica = fleet.start("r1");
    replica.wait_until_ready();
    for (version, name) in [("2026_11_21_02", "second"), ("2026_11_21_03", "third")] {
        mount(&volume, version, &first.replace("tick", name));
        runs_again(&fleet, name);
    }
    assert_eq!(replica.lines_with("goes on with another table"), 2);
    replica.drain();
}

#[test]
fn what_changes_while_it_is_read_is_read_again() {
    let _machine = together();
    let redis = RedisServer::start();
    let watch = "[scheduler]\nwatch = true\n";
    let fleet = Fleet::new(redis.url(), &format!("{watch}{TICK}"));
    let mut replica = fleet.start("r1");
    replica.wait_until_ready();
    let text = fs::read_to_string(fleet.config()).expect("a table");
    pipe_at(&fleet.config());
    // Opens when the replica reads.
    let mut pipe = fs::OpenOptions::new()
        .write(true)
        .open(fleet.config())
        .expect("a reader");
    let beside = fleet.dir().join("jobs.toml.new");
    fs::write(&beside, text.replace("tick", "newest")).expect("a file");
    fs::rename(&beside, fleet.config()).expect("a rename");
    std::io::Write::write_all(&mut pipe, text.replace("tick", "tock").as_bytes())
        .expect("a reader");
    drop(pipe);
    runs_again(&fleet, "newest");
    replica.drain();
}

/// A pipe in the place of the table: whoever reads it waits for this test.
fn pipe_at(path: &Path) {
    fs::remove_file(path).expect("a file");
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        path,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
    )
    .expect("a pipe");
}

#[test]
fn a_hangup_while_the_first_table_is_read_kills_nobody_and_is_heard_later() {
    let _machine = together();
    let redis = RedisServer::start();
    let fleet = Fleet::new(redis.url(), TICK);
    let text = fs::read_to_string(fleet.config()).expect("a table");
    pipe_at(&fleet.config());
    let mut replica = fleet.start("r1");
    // Opens when the replica reads.
    let mut pipe = fs::OpenOptions::new()
        .write(true)
        .open(fleet.config())
        .expect("a reader");
    replica.signal(Signal::HUP);
    let beside = fleet.dir().join("jobs.toml.new");
    fs::write(&beside, text.replace("tick", "tock")).expect("a file");
    fs::rename(&beside, fleet.config()).expect("a rename");
    std::io::Write::write_all(&mut pipe, text.as_bytes()).expect("a reader");
    drop(pipe);
    replica.wait_for_line(&["goes on with another table", "enrolled=1", "removed=1"]);
    runs_again(&fleet, "tock");
    replica.drain();
}

#[test]
fn a_table_that_can_not_be_read_to_its_end_is_refused_and_the_next_one_is_taken() {
    let _machine = together();
    let redis = RedisServer::start();
    let fleet = Fleet::new(redis.url(), TICK);
    let mut replica = fleet.start("r1");
    replica.wait_until_ready();
    pipe_at(&fleet.config());
    replica.signal(Signal::HUP);
    let refused = [
        "ERROR",
        "refused, and the one before stays",
        "could not be read within",
    ];
    let end = now_ns() + 60 * SECOND;
    while !replica
        .log()
        .lines()
        .any(|line| refused.iter().all(|part| line.contains(part)))
    {
        assert!(now_ns() < end, "{}", replica.tail());
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    runs_again(&fleet, "tick");
    fs::remove_file(fleet.config()).expect("a pipe");
    fleet.set_table(TOCK);
    replica.signal(Signal::HUP);
    runs_again(&fleet, "tock");
    replica.drain();
}
