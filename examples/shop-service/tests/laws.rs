//! Three processes of the service on one Redis and one database, on SQLite and on PostgreSQL: one is
//! killed while it closes orders, one stands still past its lease, one is told to end. Each order is
//! closed once, and each instant of the job has one last word.

mod service;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use service::{Attempt, Database, Fleet, Instance, eventually};
use test_support::machine::stood_still;
use test_support::redis::RedisServer;

const JOB: &str = "/jobs/close-expired-orders";

/// How long an order may stay unpaid.
const OLD: Duration = Duration::from_millis(800);

/// From one instant of the job to the next, in seconds.
const EACH: i64 = 1;

/// Room for a signal before the transaction, and within it.
const OPTIONS: [&str; 12] = [
    "--schedule",
    "* * * * * *",
    "--older-than",
    "800ms",
    "--lease-ttl",
    "5s",
    "--shutdown-grace",
    "0s",
    "--slow-start",
    "500ms",
    "--slow",
    "400ms",
];

/// What customers were told: the number of each order, how many items, and whether it is paid.
#[derive(Default)]
struct Book(BTreeMap<i64, (i64, bool)>);

impl Book {
    /// So many customers come, to one instance after the other; one in three pays.
    fn come(&mut self, fleet: &Fleet, customers: usize) {
        for number in 0..customers {
            let instance = &fleet.instances[number % fleet.instances.len()];
            let quantity = i64::try_from(number % 4 + 1).expect("a few");
            let body = json!({ "quantity": quantity }).to_string();
            let (status, placed) = instance.post("/orders", &body);
            assert_eq!(status, 201, "{placed}");
            let order = placed["order"].as_i64().expect("a number");
            let paid = number % 3 == 2 && {
                let (status, answer) = instance.post(&format!("/orders/{order}/pay"), "");
                // One who is slow to pay may come too late.
                assert!(matches!(status, 204 | 409), "{answer}");
                status == 204
            };
            assert!(self.0.insert(order, (quantity, paid)).is_none());
        }
    }

    fn paid_items(&self) -> i64 {
        let paid = self.0.values().filter(|(_, paid)| *paid);
        paid.map(|(quantity, _)| quantity).sum()
    }

    /// Each order is what its customer was told, or was closed, once.
    fn judge(&self, database: &Database) {
        database.assert_sound();
        let all = i64::try_from(self.0.len()).expect("a few");
        assert_eq!(database.number("SELECT count(*) FROM orders"), all);
        for (order, (_, paid)) in &self.0 {
            let state = if *paid { "paid" } else { "closed" };
            let sql =
                format!("SELECT count(*) FROM orders WHERE id = {order} AND state = '{state}'");
            assert_eq!(database.number(&sql), 1, "order {order} is not {state}");
            let sql = format!("SELECT count(*) FROM closings WHERE order_id = {order}");
            assert_eq!(database.number(&sql), i64::from(!paid), "order {order}");
        }
        let paid = self.0.values().filter(|(_, paid)| *paid).count();
        assert!(paid > 10 && self.0.len() - paid > 20, "{paid} of {all}");
        assert_eq!(database.number(STOCK), 300_000 - self.paid_items());
    }
}

const STOCK: &str = "SELECT CAST(sum(stock) AS bigint) FROM products";
const UNPAID: &str = "SELECT count(*) FROM orders WHERE state = 'unpaid'";
const CLOSINGS: &str = "SELECT count(*) FROM closings";

#[test]
fn on_sqlite_each_order_is_closed_once_whatever_becomes_of_instances() {
    survive(&Database::sqlite());
}

#[test]
fn on_postgres_each_order_is_closed_once_whatever_becomes_of_instances() {
    survive(&Database::postgres());
}

fn survive(database: &Database) {
    let stood_before = stood_still();
    let mut fleet = Fleet::of(3, &RedisServer::shared().url(), database, &OPTIONS);
    let mut book = Book::default();
    book.come(&fleet, 18);
    let killed = kill_one_inside_its_transaction(&mut fleet);
    book.come(&fleet, 18);
    let frozen = freeze_one_before_its_write(&mut fleet, database, &mut book);
    let triggered = trigger_in_the_pause(&fleet);
    assert_eq!(database.number(UNPAID), 0, "the trigger has closed them");
    let ended = end_one_at_work(&mut fleet);
    book.come(&fleet, 18);
    eventually("all is closed", || database.number(UNPAID) == 0);
    let stock = 300_000 - book.paid_items();
    for instance in &fleet.instances {
        // Of each instance by its own plain job.
        eventually("fresh shelves", || {
            let (_, shelves) = instance.get("/stock");
            let shelves = shelves.as_object().expect("products").values();
            shelves.filter_map(Value::as_i64).sum::<i64>() == stock
        });
    }
    pause(&fleet);
    let lines = fleet.any().history();
    for instance in &mut fleet.instances {
        instance.terminate();
        assert!(instance.ended().success(), "{} ended badly", instance.name);
    }
    book.judge(database);
    judge_what_was_done(&fleet, &lines);
    // What falls due while the machine stands still may come too late for the next.
    let may_be_missed = stood_still() > stood_before;
    judge_ledger(&lines, &[killed, frozen, ended, triggered], may_be_missed);
}

/// `kill -9` with orders changed and not committed: another instance closes them.
fn kill_one_inside_its_transaction(fleet: &mut Fleet) -> String {
    let (place, cut_short) = fleet.first_to_say("changed but not committed");
    let mut killed = fleet.take(place);
    killed.kill();
    assert_taken_over(fleet, &cut_short, &killed);
    fleet.start(); // As a Deployment would.
    fleet.instances.last_mut().expect("started").find();
    cut_short.scheduled_at
}

/// SIGSTOP between the check of the lease and the write, for longer than the lease lasts. When the
/// instance goes on there are orders that it would close, and it is refused.
fn freeze_one_before_its_write(fleet: &mut Fleet, database: &Database, book: &mut Book) -> String {
    let (place, stale) = fleet.first_to_say("not begun yet");
    let frozen = fleet.take(place);
    frozen.freeze();
    let newest = database.number("SELECT max(token) FROM fence");
    assert!(newest < stale.token, "frozen too late: it has written");
    assert_taken_over(fleet, &stale, &frozen);

    pause(fleet);
    book.come(fleet, 9);
    std::thread::sleep(OLD); // From here on they are expired.
    let before = [UNPAID, CLOSINGS, STOCK].map(|query| database.number(query));
    assert!(before[0] > 0, "nothing to close");
    frozen.thaw();
    let token = stale.token;
    let refused = format!("came too late: refused, nothing was changed token={token}");
    let done = format!("closed expired orders token={token}");
    eventually("the late write", || {
        frozen.said.contains(&refused) || frozen.said.contains(&done)
    });
    assert!(!frozen.said.contains(&done), "the late write was done");
    let after = [UNPAID, CLOSINGS, STOCK].map(|query| database.number(query));
    assert_eq!(before, after, "what is refused changes nothing");
    fleet.instances.push(frozen);
    stale.scheduled_at
}

fn pause(fleet: &Fleet) {
    let (status, answer) = fleet.any().post(&format!("{JOB}/pause"), "");
    assert_eq!(status, 200, "{answer}");
    eventually("nothing runs", || !fleet.any().is_running());
}

#[track_caller]
fn assert_taken_over(fleet: &Fleet, cut_short: &Attempt, from: &Instance) {
    let lines = fleet.settled(&cut_short.scheduled_at);
    let told: Vec<_> = lines.iter().map(|line| line["outcome"].as_str()).collect();
    assert_eq!(told, [Some("lost"), Some("succeeded")], "{lines:#?}");
    assert_eq!(lines[1]["attempt"], 2);
    assert_ne!(lines[1]["replica"], from.name.as_str());
    assert!(lines[1]["token"].as_i64() > Some(cut_short.token));
}

/// SIGTERM in the middle: it ends well, and another one begins at once, not when a lease is over.
fn end_one_at_work(fleet: &mut Fleet) -> String {
    let (place, cut_short) = fleet.first_to_say("not begun yet");
    let mut ended = fleet.take(place);
    let stood_before = stood_still();
    ended.terminate();
    assert!(ended.ended().success());
    let lines = fleet.settled(&cut_short.scheduled_at);
    let told: Vec<_> = lines.iter().map(|line| line["outcome"].as_str()).collect();
    assert_eq!(told, [Some("handed_over"), Some("succeeded")], "{lines:#?}");
    assert_eq!(lines[0]["replica"], ended.name.as_str());
    assert_ne!(lines[1]["replica"], ended.name.as_str());
    let after = instant(&lines[1]["started_at"]).duration_since(instant(&lines[0]["ended_at"]));
    let still = stood_still() - stood_before;
    let most = SignedDuration::try_from(Duration::from_secs(1) + still).expect("short");
    assert!(after < most, "{after:?} later");
    cut_short.scheduled_at
}

/// A trigger is run though the job is paused; then the pause is over.
fn trigger_in_the_pause(fleet: &Fleet) -> String {
    let (status, answer) = fleet.any().post(&format!("{JOB}/trigger"), "");
    assert_eq!(status, 202, "{answer}");
    let at = answer["scheduled_at"].as_str().expect("an instant");
    fleet.settled(at);
    let resumed = fleet.any().post(&format!("{JOB}/resume"), "");
    assert_eq!(resumed, (200, json!({ "was_paused": true })));
    at.to_owned()
}

/// Whatever an instance committed is an attempt of the ledger, once. One that was handed over may have
/// come to its end even so.
fn judge_what_was_done(fleet: &Fleet, lines: &[Value]) {
    let said = fleet.said.iter();
    let mut done: Vec<i64> = said
        .flat_map(|said| said.numbers("closed expired orders token="))
        .collect();
    done.sort_unstable();
    let ended = |line: &&Value| {
        let outcome = line["outcome"].as_str();
        matches!(outcome, Some("succeeded" | "handed_over"))
    };
    let ended = lines.iter().filter(ended);
    let mut ended: Vec<i64> = ended.filter_map(|line| line["token"].as_i64()).collect();
    ended.sort_unstable();
    assert_eq!(done, ended, "closed by instances, and by the ledger");
}

/// Each instant of the schedule has one last word. Those that were looked at succeeded; another one
/// may have been skipped, as the job was busy or paused.
fn judge_ledger(lines: &[Value], looked_at: &[String], may_be_missed: bool) {
    let mut last_words: BTreeMap<Timestamp, Vec<&str>> = BTreeMap::new();
    for line in lines
        .iter()
        .filter(|line| line["next_attempt_at"].is_null())
    {
        let outcome = line["outcome"].as_str().expect("an outcome");
        for at in instants(line) {
            last_words.entry(at).or_default().push(outcome);
        }
    }
    for (at, outcomes) in &last_words {
        let is_sound = match outcomes[..] {
            ["succeeded"] | ["skipped"] => true,
            ["missed"] => may_be_missed,
            _ => false,
        };
        assert!(is_sound, "{at}: {outcomes:?} in {lines:#?}");
    }
    for at in looked_at {
        let at: Timestamp = at.parse().expect("an instant");
        assert_eq!(last_words[&at], ["succeeded"], "{at}");
    }
    last_words.retain(|at, _| is_scheduled(*at)); // The trigger has an instant of its own.
    let at: Vec<i64> = last_words.keys().map(|at| at.as_second()).collect();
    assert!(
        at.windows(2).all(|pair| pair[1] - pair[0] == EACH),
        "{at:?}"
    );
    let succeeded = last_words.values().filter(|all| **all == ["succeeded"]);
    let (all, succeeded) = (last_words.len(), succeeded.count());
    eprintln!("{all} instants, {succeeded} of them ran to their end, once each");
}

/// What a line stands for: an instant, or all of the schedule in a stretch of time.
fn instants(line: &Value) -> Vec<Timestamp> {
    let last = instant(&line["scheduled_at"]);
    if line["since"].is_null() {
        return vec![last];
    }
    let seconds = instant(&line["since"]).as_second() + 1..=last.as_second();
    let all = seconds.map(|second| Timestamp::from_second(second).expect("in range"));
    let all: Vec<_> = all.filter(|at| is_scheduled(*at)).collect();
    assert_eq!(line["occurrences"].as_u64(), u64::try_from(all.len()).ok());
    all
}

fn is_scheduled(at: Timestamp) -> bool {
    at.as_millisecond() % (EACH * 1000) == 0
}

fn instant(value: &Value) -> Timestamp {
    let text = value.as_str().expect("an instant");
    text.parse().expect("an instant")
}

#[test]
fn an_order_is_taken_while_the_store_of_the_leases_is_away() {
    let database = Database::sqlite();
    let mut redis = RedisServer::start();
    let fleet = Fleet::of(1, &redis.url(), &database, &[]);
    redis.kill();
    let away = |health: &Value| {
        health["jobs"]
            .as_str()
            .is_some_and(|jobs| jobs.starts_with("away"))
    };
    eventually("it is noticed", || away(&fleet.any().get("/healthz").1));
    assert_eq!(fleet.any().get("/healthz").0, 200, "it can sell");
    let (status, placed) = fleet.any().post("/orders", r#"{"quantity": 2}"#);
    assert_eq!(status, 201, "{placed}");
    let (status, refused) = fleet.any().post(&format!("{JOB}/trigger"), "");
    assert_eq!(status, 503, "{refused}");
    redis.restart();
    eventually("it is back", || {
        fleet.any().get("/healthz").1["jobs"] == "ready"
    });
}

#[test]
fn what_makes_no_sense_is_refused_with_a_reason() {
    let database = Database::sqlite();
    let fleet = Fleet::of(1, &RedisServer::shared().url(), &database, &[]);
    let shop = fleet.any();
    assert_eq!(shop.post("/orders", r#"{"quantity": 0}"#).0, 400);
    assert_eq!(
        shop.post("/orders", r#"{"quantity": 1000000}"#).0,
        409,
        "sold out"
    );
    assert_eq!(shop.post("/orders/17/pay", "").0, 409, "there is none");
    let (status, refused) = shop.post("/jobs/close-expired-order/trigger", "");
    let told = "no job is called `close-expired-order`: did you mean `close-expired-orders`?";
    assert_eq!((status, refused["error"].as_str()), (404, Some(told)));
    assert_eq!(database.number("SELECT count(*) FROM orders"), 0);
}
