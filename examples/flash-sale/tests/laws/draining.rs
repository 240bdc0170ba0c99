//! Whoever is killed while it writes orders down.
//!
//! Must never: take an order for written because a worker said so.

use std::time::Duration;

use flash_sale::books::Order;
use redis::cmd;
use test_support::redis::RedisServer;

use crate::market::Market;

/// Soon enough to wait for, and longer than a worker is at a few orders.
const IDLE: &str = "300ms";

fn stream(market: &Market) -> String {
    format!("{{flash-sale:{}}}:orders", market.name)
}

/// How many orders were taken and not acknowledged.
async fn taken(market: &Market) -> u64 {
    let mut pending = cmd("XPENDING");
    pending.arg(stream(market)).arg("books");
    let client = redis::Client::open(Market::url()).expect("a URL");
    let connection = client.get_multiplexed_async_connection().await;
    let mut connection = connection.expect("Redis answers");
    let (taken, _, _, _): (u64, redis::Value, redis::Value, redis::Value) =
        pending.query_async(&mut connection).await.expect("a group");
    taken
}

/// Writes down what there is, with what others have left.
#[track_caller]
fn drain(market: &Market) -> String {
    let drained = market.runs(&["drain", "--until-empty", "--idle", IDLE]);
    assert_eq!(drained.code, Some(0), "{drained:?}");
    drained.said
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_before_the_commit_nothing_is_lost() {
    let market = Market::open(30);
    market.sell(30).await;
    let mut killed = market.starts(&["drain", "--batch", "10", "--ask-before", "books"]);
    killed.says("before Books", 1);
    killed.dies();
    assert_eq!(market.orders(), []);
    drain(&market);
    market.assert_all_is_written_once();
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_after_the_commit_nothing_is_written_twice() {
    let market = Market::open(30);
    market.sell(30).await;
    let mut killed = market.starts(&["drain", "--batch", "10", "--ask-before", "ack"]);
    killed.says("before Ack", 1);
    killed.dies();
    assert_eq!(market.orders().len(), 10, "written, and not acknowledged");
    let said = drain(&market);
    assert!(said.contains("wrote 10 orders, 0 of them new"), "{said}");
    market.assert_all_is_written_once();
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_that_are_killed_again_and_again_write_every_order_once() {
    let market = Market::open(2_000);
    market.sell(2_000).await;
    let work = ["drain", "--batch", "5", "--idle", IDLE];
    let mut workers: Vec<_> = (0..3).map(|_| market.starts(&work)).collect();
    let mut at = Vec::new();
    for round in 1..10 {
        // Wherever it is then.
        while market.orders().len() < round * 200 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        workers.remove(0).dies();
        at.push(market.orders().len());
        workers.push(market.starts(&work));
    }
    drain(&market);
    for worker in workers {
        worker.signal("TERM");
        let ended = worker.ends();
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    println!("workers were killed when so many of 2000 orders were written: {at:?}");
    assert_eq!(market.orders().len(), 2_000);
    market.assert_all_is_written_once();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_worker_that_goes_on_after_another_took_over_changes_nothing() {
    let market = Market::open(10);
    market.sell(10).await;
    let mut frozen = market.starts(&["drain", "--ask-before", "books"]);
    frozen.says("before Books", 1);
    frozen.signal("STOP");
    drain(&market);
    let written = market.orders();
    frozen.enter();
    frozen.signal("CONT");
    frozen.says("wrote 10 orders, 0 of them new", 1);
    frozen.signal("TERM");
    assert_eq!(frozen.ends().code, Some(0));
    assert_eq!(market.orders(), written);
    market.assert_all_is_written_once();
}

#[tokio::test(flavor = "multi_thread")]
async fn to_drain_twice_changes_nothing() {
    let market = Market::open(200);
    market.sell(150).await;
    drain(&market);
    let written: Vec<Order> = market.orders();
    assert_eq!(written.len(), 150);
    assert!(!drain(&market).contains("wrote"), "nothing is left");
    // All of it again, from the first on.
    let set = ["XGROUP", "SETID", &stream(&market), "books", "0"];
    assert_eq!(RedisServer::shared().command(&set), "OK");
    let said = drain(&market);
    assert!(said.contains("wrote 100 orders, 0 of them new"), "{said}");
    assert_eq!(market.orders(), written);
    market.assert_all_is_written_once();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_told_to_stop_leaves_nothing_half_done() {
    let market = Market::new();
    // It may come before the sale is opened, and waits.
    let mut worker = market.starts(&["drain", "--batch", "5"]);
    let opened = market.runs(&["open", "--stock", "1000"]);
    assert_eq!(opened.code, Some(0), "{opened:?}");
    market.sell(1_000).await;
    worker.says("wrote", 1);
    worker.signal("TERM");
    let ended = worker.ends();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    println!("told to stop at {} of 1000 orders", market.orders().len());
    assert_eq!(taken(&market).await, 0, "all that it took is acknowledged");
    drain(&market);
    market.assert_all_is_written_once();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_comes_back_when_its_redis_does() {
    let mut server = RedisServer::options().appendonly().start();
    let market = Market::new();
    let url = server.url();
    let there = |words: &[&'static str]| {
        let words = [words, &["--redis"]].concat();
        let words: Vec<&str> = words.into_iter().chain([url.as_str()]).collect();
        market.starts(&words)
    };
    let opened = there(&["open", "--stock", "9"]).ends();
    assert_eq!(opened.code, Some(0), "{opened:?}");
    let mut worker = there(&["drain"]);
    let bought = there(&["buy", "--user", "early"]).ends();
    assert_eq!(bought.code, Some(0), "{bought:?}");
    worker.says("wrote 1 orders", 1);
    server.kill();
    worker.says("Next try in", 1);
    server.restart();
    let bought = there(&["buy", "--user", "late"]).ends();
    assert_eq!(bought.code, Some(0), "{bought:?}");
    worker.says("wrote 1 orders", 2);
    let report = there(&["report"]).ends();
    assert!(
        report.said.contains("2 orders in the books, 0 on"),
        "{report:?}"
    );
}
