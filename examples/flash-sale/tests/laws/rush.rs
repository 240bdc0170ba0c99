//! Ten thousand at once.
//!
//! Must never: hold a limit on speed, which hangs on the machine.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use flash_sale::sale::{Bought, Sale};
use redis::aio::MultiplexedConnection;
use tokio::task::JoinSet;

use crate::market::Market;

const BUYERS: usize = 10_000;
const CONNECTIONS: usize = 4;

/// Each of so many users asks twice, all at once, over a few connections.
async fn rush(market: &Market) -> (Vec<(usize, Bought)>, Duration) {
    let mut sales = Vec::new();
    for _ in 0..CONNECTIONS {
        sales.push(market.sale().await);
    }
    let mut all = JoinSet::new();
    let begun = Instant::now();
    for number in 0..BUYERS * 2 {
        let user = number % BUYERS;
        let sale: Sale = sales[number % CONNECTIONS].clone();
        all.spawn(async move {
            let bought = sale.buy(&format!("user-{user}")).await;
            (user, bought.expect("Redis answers"))
        });
    }
    let bought = all.join_all().await;
    (bought, begun.elapsed())
}

/// As many round trips that do nothing, over as many connections.
async fn bare() -> Duration {
    let client = redis::Client::open(Market::url()).expect("a URL");
    let mut connections: Vec<MultiplexedConnection> = Vec::new();
    for _ in 0..CONNECTIONS {
        let connection = client.get_multiplexed_async_connection().await;
        let mut connection = connection.expect("Redis answers");
        connection.set_response_timeout(crate::LONG);
        connections.push(connection);
    }
    let mut all = JoinSet::new();
    let begun = Instant::now();
    for number in 0..BUYERS * 2 {
        let mut connection = connections[number % CONNECTIONS].clone();
        all.spawn(async move {
            let ping = redis::cmd("PING");
            let _: String = ping.query_async(&mut connection).await.expect("an answer");
        });
    }
    all.join_all().await;
    begun.elapsed()
}

fn show(what: &str, took: Duration, bare: Duration) {
    let rate = |took: Duration| (BUYERS * 2) as f64 / took.as_secs_f64();
    println!(
        "{what}: {} purchases asked for in {took:.0?}, {:.0}/s; a bare round trip as often: \
         {:.0}/s; ratio {:.2}",
        BUYERS * 2,
        rate(took),
        rate(bare),
        rate(took) / rate(bare)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn of_ten_thousand_who_want_one_of_a_hundred_a_hundred_get_one_each() {
    let market = Market::open(100);
    let (answers, took) = rush(&market).await;
    show("100 items", took, bare().await);

    let mut sold = HashMap::new();
    for (user, bought) in &answers {
        if let Bought::Sold(order) = bought {
            assert_eq!(sold.insert(*user, order), None, "two for user {user}");
        }
    }
    assert_eq!(sold.len(), 100);
    let orders: HashSet<&String> = sold.values().copied().collect();
    assert_eq!(orders.len(), 100, "each order has an id of its own");
    for (user, bought) in &answers {
        match bought {
            Bought::Has(order) => assert_eq!(sold.get(user), Some(&order), "its own"),
            Bought::Sold(_) | Bought::SoldOut => {}
            Bought::NotOpen => panic!("it is open"),
        }
    }
    let has = |one: &&(usize, Bought)| matches!(one.1, Bought::Has(_));
    let told_again = answers.iter().filter(has).count();
    assert!(told_again <= 100, "{told_again}");

    let counters = market.counters().await;
    assert_eq!((counters.stock, counters.unsold), (0, 0));
    assert_eq!((counters.buyers, counters.orders), (100, 100));

    let drained = market.runs(&["drain", "--until-empty"]);
    assert_eq!(drained.code, Some(0), "{drained:?}");
    market.assert_all_is_written_once();
    let closed = market.runs(&["close"]);
    assert!(closed.said.contains("0 items were put back"), "{closed:?}");
    assert_eq!(market.warehouse(), 9_900);
    market.assert_no_lease_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_there_is_enough_everybody_gets_one() {
    let market = Market::open(BUYERS as u64);
    let (answers, took) = rush(&market).await;
    show("enough for all", took, bare().await);
    let count = |wanted: fn(&Bought) -> bool| answers.iter().filter(|one| wanted(&one.1)).count();
    assert_eq!(count(|one| matches!(one, Bought::Sold(_))), BUYERS);
    assert_eq!(count(|one| matches!(one, Bought::Has(_))), BUYERS);
    let counters = market.counters().await;
    assert_eq!(counters.stock, 0);
    assert_eq!(counters.buyers, BUYERS as u64);
    assert_eq!(counters.orders, BUYERS as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_bought_while_the_sale_is_closed_is_sold_or_put_back_and_never_both() {
    let market = Market::open(5_000);
    let sale = market.sale().await;
    let mut all = JoinSet::new();
    let closing = market.starts(&["close"]);
    // They come until one of them finds it closed.
    for part in 0..8 {
        let sale = sale.clone();
        all.spawn(async move {
            let mut sold = 0;
            for number in 0.. {
                let bought = sale.buy(&format!("{part}-{number}")).await;
                match bought.expect("Redis answers") {
                    Bought::Sold(_) => sold += 1,
                    Bought::SoldOut | Bought::NotOpen => return sold,
                    Bought::Has(order) => panic!("nobody asked for {order}"),
                }
            }
            sold
        });
    }
    let sold: u64 = all.join_all().await.into_iter().sum();
    let closed = closing.ends();
    assert_eq!(closed.code, Some(0), "{closed:?}");
    println!("{sold} of 5000 were sold before the sale was closed");
    let counters = market.counters().await;
    assert_eq!(counters.buyers, sold);
    assert_eq!(counters.unsold, 5_000 - sold);
    assert_eq!(market.warehouse(), 10_000 - sold);
}
