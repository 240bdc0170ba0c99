//! What people are told.
//!
//! Must never: hold a whole sentence, but for what somebody looks for in it.

use test_support::redis::RedisServer;

use crate::market::Market;

#[test]
fn a_user_has_one_order_and_is_told_it_again() {
    let market = Market::new();
    let early = market.runs(&["buy", "--user", "ann"]);
    assert_eq!(early.code, Some(4), "{early:?}");
    assert!(early.said.contains("not open"), "{early:?}");
    assert_eq!(market.runs(&["open", "--stock", "1"]).code, Some(0));
    let first = market.runs(&["buy", "--user", "ann"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    let order = first.said.trim().strip_prefix("sold: ").expect("an order");
    let late = market.runs(&["buy", "--user", "bob"]);
    assert_eq!(late.code, Some(4), "{late:?}");
    assert!(late.said.contains("sold out"), "{late:?}");
    assert_eq!(market.runs(&["close"]).code, Some(0));
    let again = market.runs(&["buy", "--user", "ann"]);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(again.said.trim(), format!("sold before: {order}"));
}

#[test]
fn what_can_not_be_done_is_told_with_the_cure() {
    let market = Market::new();
    let told = |words: &[&str], code: i32, what: &str| {
        let ended = market.runs(words);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.said.contains(what), "{ended:?}");
    };
    told(&["close"], 4, "never opened");
    told(&["open", "--stock", "10001"], 4, "has 10000 items");
    told(&["open", "--stock", "0"], 2, "not in 1..");
    told(
        &["open", "--stock", "1", "--ttl", "1ms"],
        3,
        "from 1s to 1h",
    );
    told(&["report", "--sale", "a}b"], 2, "can't stand here");
    told(
        &["report", "--redis", "redis://127.0.0.1:1"],
        3,
        "127.0.0.1:1",
    );
    told(&["report", "--redis", "nonsense"], 3, "looks like redis://");
    assert_eq!(market.warehouse(), 10_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_is_reported() {
    let market = Market::open(5);
    market.sell(2).await;
    let fine = market.runs(&["report"]);
    assert_eq!(fine.code, Some(0), "{fine:?}");
    assert!(fine.said.contains("2 on their way"), "{fine:?}");
    let key = format!("{{flash-sale:{}}}:sale", market.name);
    RedisServer::shared().command(&["HINCRBY", &key, "stock", "1"]);
    let damaged = market.runs(&["report"]);
    assert_eq!(damaged.code, Some(1), "{damaged:?}");
    assert!(
        damaged.said.contains("5 items became 4 on sale"),
        "{damaged:?}"
    );
    RedisServer::shared().command(&["DEL", &key]);
    let lost = market.runs(&["report"]);
    assert_eq!(lost.code, Some(1), "{lost:?}");
    assert!(lost.said.contains("Redis has lost the sale"), "{lost:?}");
    let closed = market.runs(&["close"]);
    assert_eq!(closed.code, Some(3), "{closed:?}");
    assert!(closed.said.contains("has lost its data"), "{closed:?}");
}
