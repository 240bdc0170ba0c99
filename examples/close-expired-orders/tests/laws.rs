//! The laws of the example, each on a real SQLite file and on a real PostgreSQL server.

mod shop;

use shop::{Ran, TestShop, finish, signal};

macro_rules! on_each_database {
    ($($law:ident)*) => {
        mod sqlite {
            $(#[test] fn $law() { super::$law(&super::TestShop::on_sqlite()); })*
        }
        mod postgres {
            $(#[test] fn $law() { super::$law(&super::TestShop::on_postgres()); })*
        }
    };
}

on_each_database! {
    closing_gives_the_stock_of_expired_unpaid_orders_back
    the_limit_may_be_below_a_second
    a_stale_token_is_refused_and_changes_nothing
    one_attempt_may_run_several_transactions
    the_largest_token_fits
    each_job_has_a_fence_of_its_own
    without_a_token_nothing_is_closed
    the_database_refuses_a_program_that_skips_the_fence
    an_attempt_frozen_before_its_transaction_is_refused_when_it_wakes
    an_attempt_frozen_in_its_transaction_loses_it
    a_killed_attempt_loses_nothing_and_the_next_one_finishes_the_work
    racing_attempts_of_one_token_close_each_order_once
    racing_attempts_of_many_tokens_close_each_order_once
    racing_processes_create_the_schema_once
    a_sold_out_shop_takes_no_orders
    the_audit_finds_stock_given_back_twice
    the_audit_finds_an_order_closed_twice
    the_audit_finds_a_closing_without_a_record
    the_audit_finds_a_stale_write
}

fn closing_gives_the_stock_of_expired_unpaid_orders_back(shop: &TestShop) {
    let old = shop.run(None, &["new-orders", "--count", "6", "--placed-ago", "31m"]);
    assert_eq!(old.stdout, "6 new orders for 12 items, 2 paid at once\n");
    shop.place_orders(6);

    let ran = shop.run(Some(1_763_700_000_000_000), &["--older-than", "30m"]);

    let line = "closed 4 orders, put 6 items back on sale (token 1763700000000000, attempt 1)\n";
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), line), "{ran:?}");
    assert_eq!(
        (
            shop.orders("unpaid"),
            shop.orders("paid"),
            shop.orders("closed")
        ),
        (4, 4, 4)
    );
    assert_eq!(
        shop.number("SELECT CAST(sum(stock) AS bigint) FROM products"),
        300_000 - 12 - 6
    );
    shop.assert_sound();
}

fn the_limit_may_be_below_a_second(shop: &TestShop) {
    shop.run(
        None,
        &["new-orders", "--count", "1", "--placed-ago", "700ms"],
    );
    assert_eq!(shop.run(Some(1), &["--older-than", "1h"]).code, Some(0));
    assert_eq!(shop.orders("unpaid"), 1);
    assert_eq!(shop.run(Some(1), &["--older-than", "600ms"]).code, Some(0));
    assert_eq!(shop.orders("closed"), 1);
    shop.assert_sound();
}

fn a_stale_token_is_refused_and_changes_nothing(shop: &TestShop) {
    shop.close(10);
    shop.place_orders(3);
    let before = shop.contents();

    let ran = shop.close(9);

    assert_eq!(ran.code, Some(4), "{ran:?}");
    let reason = "a newer attempt (token 10) has already written; this one (token 9) is stale";
    assert!(
        ran.stderr.contains(reason) && ran.stdout.is_empty(),
        "{ran:?}"
    );
    assert_eq!(shop.contents(), before);
    shop.assert_sound();
}

fn one_attempt_may_run_several_transactions(shop: &TestShop) {
    for _ in 0..2 {
        shop.place_orders(3);
        assert_eq!(shop.close(10).code, Some(0));
        assert_eq!(shop.orders("unpaid"), 0);
    }
}

fn the_largest_token_fits(shop: &TestShop) {
    const LARGEST: i64 = (1 << 53) - 1;
    assert_eq!(shop.close(LARGEST).code, Some(0));
    assert_eq!(shop.close(LARGEST - 1).code, Some(4));
    assert_eq!(shop.close(LARGEST + 1).code, Some(2), "soloist gives none");
}

fn each_job_has_a_fence_of_its_own(shop: &TestShop) {
    let close_as = |job, token| shop.run(Some(token), &["--older-than", "0s", "--job", job]);
    assert_eq!(close_as("one", 10).code, Some(0));
    assert_eq!(close_as("other", 9).code, Some(0));
    assert_eq!(close_as("one", 9).code, Some(4));
}

fn without_a_token_nothing_is_closed(shop: &TestShop) {
    shop.place_orders(3);

    let ran = shop.run(None, &["--older-than", "0s"]);

    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("SOLOIST_FENCING_TOKEN") && ran.stderr.contains("--token"));
    assert_eq!(shop.orders("unpaid"), 2);
}

fn the_database_refuses_a_program_that_skips_the_fence(shop: &TestShop) {
    shop.place_orders(1);
    shop.close(10);
    let refusal = shop
        .try_execute(&closing_record(9))
        .expect_err("a stale write");
    assert!(refusal.contains("stale fencing token"), "{refusal}");
}

fn an_attempt_frozen_before_its_transaction_is_refused_when_it_wakes(shop: &TestShop) {
    shop.place_orders(3);
    let arguments = ["--older-than", "0s", "--slow-start", "2s"];
    let frozen = shop.spawn_until(1, &arguments, "not begun yet");
    signal(&frozen, "STOP");

    assert_eq!(shop.close(2).code, Some(0));
    shop.place_orders(3);
    let before = shop.contents();
    signal(&frozen, "CONT");

    assert_eq!(finish(frozen).code, Some(4));
    assert_eq!(shop.contents(), before);
    shop.assert_sound();
}

/// PostgreSQL takes the transaction away after a while. SQLite has no server that could: there
/// the newer attempt waits for the file until the frozen one is killed.
fn an_attempt_frozen_in_its_transaction_loses_it(shop: &TestShop) {
    shop.place_orders(3);
    let arguments = ["--older-than", "0s", "--slow", "2s"];
    let mut frozen = shop.spawn_until(1, &arguments, "changed but not committed");
    signal(&frozen, "STOP");
    let newer = shop.spawn(Some(2), &["--older-than", "0s"]);

    if !shop.is_postgres() {
        frozen.kill().expect("killed");
    }
    let newer = finish(newer);
    assert_eq!(newer.code, Some(0), "{newer:?}");
    assert!(newer.stdout.starts_with("closed 2 orders"), "{newer:?}");

    signal(&frozen, "CONT");
    let woken = finish(frozen).code;
    assert_eq!(woken, if shop.is_postgres() { Some(3) } else { None });
    shop.assert_sound();
}

fn a_killed_attempt_loses_nothing_and_the_next_one_finishes_the_work(shop: &TestShop) {
    shop.place_orders(30);
    let before = shop.contents();
    let arguments = ["--older-than", "0s", "--slow", "10m"];
    let mut killed = shop.spawn_until(1, &arguments, "changed but not committed");

    killed.kill().expect("killed");
    finish(killed);

    assert_eq!(shop.contents(), before);
    shop.assert_sound();
    let next = shop.close(2);
    assert!(
        next.stdout
            .starts_with("closed 20 orders, put 30 items back"),
        "{next:?}"
    );
    shop.assert_sound();
}

fn racing_attempts_of_one_token_close_each_order_once(shop: &TestShop) {
    let ran = race(shop, [7; 8]);
    assert!(ran.iter().all(|ran| ran.code == Some(0)), "{ran:?}");
}

fn racing_attempts_of_many_tokens_close_each_order_once(shop: &TestShop) {
    let ran = race(shop, [4, 8, 1, 7, 3, 6, 2, 5]);
    assert!(
        ran.iter().all(|ran| matches!(ran.code, Some(0 | 4))),
        "{ran:?}"
    );
    assert_eq!(
        ran[1].code,
        Some(0),
        "the newest attempt is never refused: {ran:?}"
    );
}

/// Eight closers at once, while customers go on ordering and an auditor looks on.
fn race(shop: &TestShop, tokens: [i64; 8]) -> Vec<Ran> {
    shop.run(
        None,
        &["new-orders", "--count", "300", "--placed-ago", "1h"],
    );
    let customers: Vec<_> = (0..2)
        .map(|_| shop.spawn(None, &["new-orders", "--count", "60"]))
        .collect();
    let closers = tokens.map(|token| shop.spawn(Some(token), &["--older-than", "30m"]));
    shop.assert_sound();
    let ran: Vec<Ran> = closers.into_iter().map(finish).collect();
    shop.assert_sound();
    for customer in customers.into_iter().map(finish) {
        assert_eq!(customer.code, Some(0), "{customer:?}");
    }

    shop.assert_sound();
    assert_eq!(shop.number("SELECT count(*) FROM orders"), 300 + 2 * 60);
    assert_eq!(shop.orders("closed"), 200);
    assert_eq!(shop.number("SELECT count(*) FROM closings"), 200);
    ran
}

fn racing_processes_create_the_schema_once(shop: &TestShop) {
    let racers = [(); 8].map(|()| shop.spawn(None, &["new-orders", "--count", "3"]));
    for racer in racers.map(finish) {
        assert_eq!(racer.code, Some(0), "{racer:?}");
    }
    assert_eq!(shop.number("SELECT count(*) FROM orders"), 24);
    shop.assert_sound();
}

fn a_sold_out_shop_takes_no_orders(shop: &TestShop) {
    shop.assert_sound(); // the first to come creates the shop
    shop.execute("UPDATE products SET stock = 2, initial_stock = 2");

    let ran = shop.run(None, &["new-orders", "--count", "12"]);

    assert!(ran.stdout.contains("sold out"), "{ran:?}");
    assert!(shop.number("SELECT CAST(sum(stock) AS bigint) FROM products") < 2);
    shop.assert_sound();
}

fn the_audit_finds_stock_given_back_twice(shop: &TestShop) {
    shop.place_orders(3);
    shop.close(10);
    shop.assert_sound();
    shop.execute("UPDATE products SET stock = stock + 1 WHERE id = 1");
    shop.assert_damaged("products whose stock does not add up: 1");
}

fn the_audit_finds_an_order_closed_twice(shop: &TestShop) {
    shop.place_orders(1);
    shop.close(10);
    shop.assert_sound();
    shop.execute(&closing_record(10));
    shop.assert_damaged("orders closed more than once: 1");
}

fn the_audit_finds_a_closing_without_a_record(shop: &TestShop) {
    shop.place_orders(1);
    shop.close(10);
    shop.execute("DELETE FROM closings");
    shop.assert_damaged("orders closed without a record");
}

fn the_audit_finds_a_stale_write(shop: &TestShop) {
    shop.place_orders(1);
    shop.close(10);
    let table = if shop.is_postgres() {
        "ON closings"
    } else {
        ""
    };
    shop.execute(&format!(
        "DROP TRIGGER closing_needs_the_newest_token {table}"
    ));
    shop.execute(&closing_record(9));
    shop.assert_damaged("closings with a token lower than the one before: 1");
}

#[test]
fn an_empty_url_is_no_shop() {
    let ran = TestShop::on_sqlite().run(None, &["--database", "", "audit"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

/// What an attempt with this token would record about order 1.
fn closing_record(token: i64) -> String {
    format!(
        "INSERT INTO closings (order_id, job, token, attempt, run_id)
         VALUES (1, 'close-expired-orders', {token}, 1, 'injected')"
    )
}
