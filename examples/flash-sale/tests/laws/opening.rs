//! A sale is opened once and closed once, whoever dies or freezes on the way.
//!
//! Must never: count on who of two comes first.

use crate::market::Market;

/// Short enough to wait for, and long enough for a busy machine.
const TTL: [&str; 2] = ["--ttl", "3s"];

/// With `TTL` behind them.
fn words<'w>(words: &[&'w str]) -> Vec<&'w str> {
    [words, &TTL].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_open_it_at_once_one_does() {
    let market = Market::new();
    let all = [(); 5].map(|()| market.starts(&["open", "--stock", "100"]));
    let ended = all.map(|one| one.ends());
    let done = ended.iter().filter(|one| one.code == Some(0)).count();
    let refused = ended.iter().filter(|one| one.code == Some(4)).count();
    assert_eq!((done, refused), (1, 4), "{ended:?}");
    assert_eq!(market.counters().await.stock, 100);
    assert_eq!(market.warehouse(), 9_900, "taken once");
    market.assert_no_lease_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_opening_is_refused_and_so_is_one_after_the_end() {
    let market = Market::open(100);
    market.sell(7).await;
    let again = market.runs(&["open", "--stock", "100"]);
    assert_eq!(again.code, Some(4), "{again:?}");
    assert!(
        again.said.contains("with 100 items, and is open"),
        "{again:?}"
    );
    assert_eq!(market.counters().await.stock, 93);
    assert_eq!(market.runs(&["close"]).code, Some(0));
    let again = market.runs(&["open", "--stock", "100"]);
    assert_eq!(again.code, Some(4), "{again:?}");
    let counters = market.counters().await;
    assert_eq!((counters.stock, counters.unsold), (0, 93));
    assert_eq!(market.warehouse(), 9_993);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_opening_that_was_killed_on_the_way_is_gone_on_with() {
    for moment in ["sale", "books"] {
        let market = Market::new();
        let open = words(&["open", "--stock", "100"]);
        let mut killed = market.starts(&[&open[..], &["--ask-before", moment]].concat());
        killed.says("press Enter", 1);
        killed.dies();
        assert_eq!(market.warehouse(), 9_900);
        let other = market.runs(&words(&["open", "--stock", "50"]));
        assert_eq!(other.code, Some(4), "another number: {other:?}");
        let closed = market.runs(&words(&["close"]));
        assert_eq!(closed.code, Some(4), "half open: {closed:?}");
        assert!(closed.said.contains("again with 100 items"), "{closed:?}");
        let next = market.runs(&open);
        assert_eq!(next.code, Some(0), "{moment}: {next:?}");
        assert_eq!(market.counters().await.stock, 100);
        assert_eq!(market.warehouse(), 9_900, "taken once");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closing_that_was_killed_on_the_way_is_gone_on_with() {
    for moment in ["sale", "books"] {
        let market = Market::open(100);
        market.sell(30).await;
        let mut killed = market.starts(&words(&["close", "--ask-before", moment]));
        killed.says("press Enter", 1);
        killed.dies();
        assert_eq!(market.warehouse(), 9_900, "not yet");
        for _ in 0..2 {
            let closed = market.runs(&words(&["close"]));
            assert_eq!(closed.code, Some(0), "{moment}: {closed:?}");
            assert!(closed.said.contains("70 items were put back"), "{closed:?}");
            assert_eq!(market.warehouse(), 9_970, "put back once");
        }
        let report = market.runs(&["report"]);
        assert_eq!(report.code, Some(0), "{report:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_opening_that_was_frozen_comes_too_late() {
    let market = Market::new();
    let open = words(&["open", "--stock", "100"]);
    let mut frozen = market.starts(&[&open[..], &["--ask-before", "sale"]].concat());
    frozen.says("before Sale", 1);
    frozen.signal("STOP");
    // Its lease runs out; another one opens the sale, and it is closed again.
    assert_eq!(market.runs(&open).code, Some(0));
    market.sell(1).await;
    assert_eq!(market.runs(&words(&["close"])).code, Some(0));
    let before = market.counters().await;

    frozen.enter();
    frozen.signal("CONT");
    let frozen = frozen.ends();
    assert_eq!(frozen.code, Some(4), "{frozen:?}");
    assert!(frozen.said.contains("newer lease was here"), "{frozen:?}");
    assert_eq!(market.counters().await, before);
    assert_eq!(market.warehouse(), 9_999);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_told_to_stop_gives_the_lease_back_at_once() {
    let market = Market::new();
    let hour = ["open", "--stock", "100", "--ttl", "1h"];
    let mut stopped = market.starts(&[&hour[..], &["--ask-before", "sale"]].concat());
    stopped.says("before Sale", 1);
    stopped.signal("TERM");
    let stopped = stopped.ends();
    assert_eq!(stopped.code, Some(3), "{stopped:?}");
    let next = market.runs(&hour);
    assert_eq!(next.code, Some(0), "{next:?}");
    assert_eq!(market.warehouse(), 9_900);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closing_that_was_frozen_puts_nothing_back_a_second_time() {
    let market = Market::open(100);
    market.sell(30).await;
    let mut frozen = market.starts(&words(&["close", "--ask-before", "books"]));
    frozen.says("before Books", 1);
    frozen.signal("STOP");
    assert_eq!(market.runs(&words(&["close"])).code, Some(0));
    assert_eq!(market.warehouse(), 9_970);
    frozen.enter();
    frozen.signal("CONT");
    let frozen = frozen.ends();
    assert_eq!(frozen.code, Some(4), "{frozen:?}");
    assert!(frozen.said.contains("newer lease was here"), "{frozen:?}");
    assert_eq!(market.warehouse(), 9_970);
}
