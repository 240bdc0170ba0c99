//! However an attempt is ended: TERM to the whole tree, its grace, KILL, and nobody is alive when
//! the ledger says so.

use std::time::Duration;

use serde_json::Value;
use test_support::family::{Kind, Member};
use test_support::fleet::{Fleet, SOON, now_ns};
use test_support::machine::{LATE, alone, together};
use test_support::process::{Deaths, Ended, Signal};
use test_support::redis::{RedisServer, fresh_namespace};

use crate::figures::{Since, millis, nanos};
use crate::scene::{
    Family, Ground, family_job, field_ns, fleet, fleet_on, fresh_name, processes_of, shell_job,
    table, wait_for_families, wait_for_outcome,
};

const KINDS: [Kind; 2] = [Kind::Stubborn, Kind::Listening];

/// How much later than it happened a watch may have seen a death, or a member that it was told to end.
fn seen_late_ns(ended: &Ended) -> i128 {
    nanos(LATE + ended.still())
}

/// Not before its grace is over, and not long after.
const GRACE_SLACK: Duration = Duration::from_millis(500);

/// The members as they are now, with when they were told to end.
fn now_known(fleet: &Fleet, family: &Family) -> Vec<Member> {
    let known = family.processes();
    let mut members = fleet.members();
    members.retain(|member| known.contains(&member.process));
    members
}

/// TERM came first, to all; KILL after the grace, to those who stayed.
fn told_then_killed(what: &str, fleet: &Fleet, family: &Family, ended: &Ended, grace: Duration) {
    for member in now_known(fleet, family) {
        let died = ended.of(member.process);
        let died = died.unwrap_or_else(|| panic!("{what}: lives on: {member:#?}"));
        let is_known = !ended.dead_before().contains(&member.process);
        if family.kind != Kind::Listening || member.role == "deaf" || !is_known {
            continue;
        }
        let told = *member.told_ns.first().unwrap_or_else(|| {
            panic!("{what}: was never told to end: {member:#?}");
        });
        let stayed = died - told;
        eprintln!(
            "{what}: {:<8} was told, and dead {} later",
            member.role,
            millis(stayed)
        );
        if member.role == "session" {
            assert!(
                stayed < nanos(GRACE_SLACK + ended.still()),
                "it ends when it is told: {member:#?}"
            );
        } else {
            let least = nanos(grace) - seen_late_ns(ended);
            assert!(
                stayed >= least,
                "{what}: killed within its grace: {member:#?}"
            );
            let most = nanos(grace + GRACE_SLACK + ended.still());
            assert!(stayed <= most, "{what}: killed late: {member:#?}");
        }
    }
}

/// The ledger's word came after the last death.
fn recorded_after_the_last_death(what: &str, family: &Family, ended: &Ended, end: &Value) {
    let mut seen = family.processes();
    seen.retain(|process| !ended.dead_before().contains(process));
    if seen.is_empty() {
        eprintln!("{what}: NOT SHOWN: all were dead before anybody watched");
        return;
    }
    let last = ended.last(seen).expect("all are dead");
    let ahead = field_ns(end, "ended_at") - last;
    eprintln!(
        "{what}: {:<9} {} recorded {} after the last death",
        family.kind.name(),
        end["outcome"],
        millis(ahead)
    );
    assert!(ahead >= -seen_late_ns(ended), "{what}: {end:#}");
}

fn ended_attempt(fleet: &Fleet, family: &Family) -> Value {
    let run_id = family.members[0].run_id.as_str();
    let end = wait_for_outcome(fleet, family.kind.name(), |attempt| {
        attempt["run_id"] == run_id
    });
    assert_eq!(
        family.alive(),
        [],
        "alive after its end was recorded: {end:#}"
    );
    end
}

fn ended_attempts(fleet: &Fleet, families: &[Family]) -> Vec<Value> {
    let ended = families.iter().map(|family| ended_attempt(fleet, family));
    ended.collect()
}

#[test]
fn a_timeout_ends_the_whole_tree() {
    let _machine = together();
    Ground::each(time_out);
}

fn time_out(ground: Ground) {
    let keys = "timeout = \"1500ms\"\nkill_grace = \"1s\"";
    let jobs = KINDS.map(|kind| family_job(kind, keys));
    let Some(fleet) = ground.fleet("", &jobs) else {
        return;
    };
    let mut replica = fleet.start(&fresh_name());
    let families = wait_for_families(&fleet, &KINDS, |_| true);
    let deaths = Deaths::watch(&processes_of(&families), SOON);
    let ends = ended_attempts(&fleet, &families);
    let ended = deaths.join();
    for (family, end) in families.iter().zip(&ends) {
        assert_eq!(end["outcome"], "timed_out", "{end:#}");
        told_then_killed("timeout", &fleet, family, &ended, Duration::from_secs(1));
        recorded_after_the_last_death("timeout", family, &ended, end);
    }
    replica.signal(Signal::TERM);
    replica.signal(Signal::INT);
    replica.wait(SOON);
}

#[test]
fn a_drain_ends_the_whole_tree() {
    let _machine = together();
    Ground::each(drain);
}

fn drain(ground: Ground) {
    let keys = "kill_grace = \"1s\"";
    let jobs = KINDS.map(|kind| family_job(kind, keys));
    let Some(fleet) = ground.fleet("shutdown_grace = \"1s\"", &jobs) else {
        return;
    };
    let mut replica = fleet.start(&fresh_name());
    let families = wait_for_families(&fleet, &KINDS, |_| true);
    let deaths = Deaths::watch(&processes_of(&families), SOON);
    let asked_ns = now_ns();
    replica.drain();
    eprintln!("drain: took {}", millis(now_ns() - asked_ns));
    for family in &families {
        assert_eq!(family.alive(), [], "alive after the daemon's end");
    }
    let ended = deaths.join();
    for family in &families {
        let end = ended_attempt(&fleet, family);
        assert_eq!(end["outcome"], "handed_over", "{end:#}");
        told_then_killed("drain", &fleet, family, &ended, Duration::from_secs(1));
        recorded_after_the_last_death("drain", family, &ended, &end);
        let told = now_known(&fleet, family)
            .into_iter()
            .flat_map(|member| member.told_ns);
        for told_ns in told {
            let grace = told_ns - asked_ns;
            assert!(grace >= 950_000_000, "told within shutdown_grace: {grace}");
        }
    }
}

#[test]
fn a_lease_that_is_lost_ends_the_whole_tree() {
    let _machine = together();
    let redis = RedisServer::start();
    let keys = "lease_ttl = \"3s\"\nkill_grace = \"500ms\"";
    let fleet = fleet_on(&redis, "", &KINDS.map(|kind| family_job(kind, keys)));
    let mut replica = fleet.start(&fresh_name());
    let families = wait_for_families(&fleet, &KINDS, |_| true);
    let members = processes_of(&families);
    let deaths = Deaths::watch(&members, SOON);
    redis.freeze();
    // Nothing is renewed from now on.
    let lost_ns = now_ns();
    let ended = deaths.join();
    let last = ended.last(members).map(|died| died - lost_ns);
    redis.thaw();
    let last = last.expect("all are dead");
    eprintln!("store frozen, TTL 3 s: last death after {}", millis(last));
    let lease = nanos(Duration::from_secs(3) + ended.still());
    assert!(last < lease, "the lease was over: {last}");
    for family in &families {
        let grace = Duration::from_millis(500);
        told_then_killed("lost lease", &fleet, family, &ended, grace);
        let end = ended_attempt(&fleet, family);
        assert!(
            end["outcome"] == "handed_over" || end["outcome"] == "lost",
            "{end:#}"
        );
    }
    replica.signal(Signal::TERM);
    replica.signal(Signal::INT);
    replica.wait(SOON);
}

/// The store answers, and knows nothing of the lease any more. Somebody else may have it by now:
/// the grace is cut to nothing.
#[test]
fn a_lease_that_the_store_denies_ends_the_whole_tree_at_the_next_renewal() {
    let _machine = together();
    let keys = "lease_ttl = \"3s\"\nkill_grace = \"5s\"";
    let jobs = KINDS.map(|kind| family_job(kind, keys));
    let fleet = fleet("", &[]);
    let namespace = fresh_namespace();
    fleet.set_table(&table(&namespace, "", &jobs));
    let mut replica = fleet.start(&fresh_name());
    let families = wait_for_families(&fleet, &KINDS, |_| true);
    let members = processes_of(&families);
    let deaths = Deaths::watch(&members, SOON);
    let records = format!("soloist:{{{namespace}}}:jobs");
    let names = KINDS.map(Kind::name);
    let removed = RedisServer::shared().command(&["HDEL", &records, names[0], names[1]]);
    assert_eq!(removed, "2", "the records are where they were");
    let lost_ns = now_ns();
    let ended = deaths.join();
    let last = ended.last(members).expect("all are dead") - lost_ns;
    eprintln!("lease denied, TTL 3 s: last death after {}", millis(last));
    // Renewals are a sixth of it apart.
    assert!(
        last < nanos(Duration::from_millis(500) + GRACE_SLACK + ended.still()),
        "{last}"
    );
    replica.signal(Signal::TERM);
    replica.signal(Signal::INT);
    replica.wait(SOON);
}

/// The main process ends by itself, and with it the attempt: what it left behind goes too.
#[test]
fn a_job_that_ends_leaves_nobody_behind() {
    let _machine = together();
    Ground::each(end_by_itself);
}

fn end_by_itself(ground: Ground) {
    let families = [Kind::Setsid, Kind::DoubleFork, Kind::Stubborn];
    let jobs = families
        .map(|kind| family_job(kind, "kill_grace = \"500ms\"").replace("\"]", "\", \"700\"]"));
    let Some(fleet) = ground.fleet("", &jobs) else {
        return;
    };
    let mut replica = fleet.start(&fresh_name());
    let families = wait_for_families(&fleet, &families, |_| true);
    let deaths = Deaths::watch(&processes_of(&families), SOON);
    let ends = ended_attempts(&fleet, &families);
    let ended = deaths.join();
    for (family, end) in families.iter().zip(&ends) {
        assert_eq!(end["outcome"], "succeeded", "{end:#}");
        recorded_after_the_last_death("leader ended", family, &ended, end);
    }
    replica.signal(Signal::TERM);
    replica.signal(Signal::INT);
    replica.wait(SOON);
}

/// A tree that never stands still: by the time that a process was seen, its child is the job.
#[test]
fn a_job_that_forks_without_end_is_ended_too() {
    let _machine = together();
    Ground::each(fork_without_end);
}

fn fork_without_end(ground: Ground) {
    let script = "sh \"$HOPPER\" & sleep 60";
    let Some(fleet) = ground.fleet("", &[]) else {
        return;
    };
    let hopper = fleet.dir().join("hopper.sh");
    let hops = fleet.dir().join("hops");
    std::fs::write(
        &hopper,
        "echo $$ >> \"$HOPS\"\nsetsid sh \"$HOPPER\" &\nexit 0\n",
    )
    .expect("a script");
    let env = format!(
        "env = {{ HOPPER = \"{}\", HOPS = \"{}\" }}\ntimeout = \"1s\"\nkill_grace = \"200ms\"",
        hopper.display(),
        hops.display()
    );
    let table = std::fs::read_to_string(fleet.config()).expect("a table");
    fleet.set_table(&format!("{table}{}", shell_job("hops", script, &env)));
    let mut replica = fleet.start(&fresh_name());
    let end = wait_for_outcome(&fleet, "hops", |attempt| attempt["attempt"] == 1);
    replica.signal(Signal::TERM);
    replica.wait(SOON);
    let before = std::fs::read_to_string(&hops)
        .expect("hops")
        .lines()
        .count();
    std::thread::sleep(Duration::from_millis(500));
    let after = std::fs::read_to_string(&hops)
        .expect("hops")
        .lines()
        .count();
    eprintln!(
        "a job that forks without end: {before} hops, {} after its end",
        after - before
    );
    // Whatever came of it, it ends here.
    let _ = std::fs::remove_file(&hopper);
    assert_eq!(end["outcome"], "timed_out", "{end:#}");
    assert_eq!(after, before, "it goes on");
}

/// The same, as fast as the machine forks: no look at who is there is true when it is over.
#[test]
fn a_job_that_never_stands_still_is_ended_too() {
    let _machine = alone();
    Ground::each(never_stand_still);
}

fn never_stand_still(ground: Ground) {
    let keys = "timeout = \"1s\"\nkill_grace = \"200ms\"";
    let job =
        format!("[jobs.hop]\nschedule = \"* * * * * *\"\ncommand = [FAMILY, \"hop\"]\n{keys}\n");
    let Some(fleet) = ground.fleet("", &[job]) else {
        return;
    };
    let hops = || {
        let bytes = std::fs::read(fleet.family_log().with_extension("log.hops"));
        bytes.map_or(0, |bytes| {
            u64::from_ne_bytes(bytes.try_into().expect("a long"))
        })
    };
    let since = Since::now();
    let mut replica = fleet.start(&fresh_name());
    let end = wait_for_outcome(&fleet, "hop", |_| true);
    replica.signal(Signal::TERM);
    replica.signal(Signal::INT);
    replica.wait(SOON);
    let before = hops();
    std::thread::sleep(Duration::from_millis(500));
    let after = hops();
    let took = field_ns(&end, "ended_at") - field_ns(&end, "started_at");
    eprintln!(
        "never standing still, {ground:?}: {before} hops in {}, {} after its end",
        millis(took),
        after - before
    );
    assert_eq!(end["outcome"], "timed_out", "{end:#}");
    assert_eq!(after, before, "it goes on");
    assert!(took < 3_000_000_000 + since.still_ns(), "{end:#}");
}
