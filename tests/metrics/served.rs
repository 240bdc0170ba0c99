//! The page as a daemon serves it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use test_support::fleet::{Fleet, Replica, SOON};
use test_support::redis::RedisServer;

use crate::page::Page;
use crate::promtool;

pub(crate) const ALL: &[crate::Law] = &[
    (
        "a_daemon_serves_its_page_in_the_format_that_is_asked_for",
        a_daemon_serves_its_page_in_the_format_that_is_asked_for,
    ),
    (
        "a_refused_table_shows_until_it_is_mended",
        a_refused_table_shows_until_it_is_mended,
    ),
];

const TABLE: &str = "[jobs.tick]\nschedule = \"* * * * * *\"\nshell = \"true\"\n";

fn start(fleet: &Fleet) -> (Replica, String) {
    let replica = fleet.start_with("a", |command| {
        command.args(["--listen", "127.0.0.1:0"]);
    });
    let line = replica.wait_for_line(&["serving health and API over HTTP"]);
    let address = line.split("address=").nth(1).expect("an address");
    let address = address.split_whitespace().next().expect("an address");
    (replica, address.to_owned())
}

/// The head and the body of an answer.
fn get(address: &str, accept: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).expect("a server");
    stream.set_read_timeout(Some(SOON)).expect("a limit");
    let request = format!(
        "GET /metrics HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\naccept: {accept}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).expect("a server");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.to_lowercase(), body.to_owned())
}

fn wait_for(address: &str, what: &str, wanted: impl Fn(&Page) -> bool) -> Page {
    let end = Instant::now() + SOON;
    loop {
        let page = Page::of(get(address, "*/*").1);
        if wanted(&page) {
            return page;
        }
        assert!(Instant::now() < end, "not {what}:\n{}", page.text);
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn a_daemon_serves_its_page_in_the_format_that_is_asked_for() {
    let redis = RedisServer::start();
    let fleet = Fleet::new(redis.url(), TABLE);
    let (mut replica, address) = start(&fleet);
    let page = wait_for(&address, "a success", |page| {
        page.value("soloist_ready") == 1.0 && page.ended("tick", "succeeded") >= 2.0
    });
    promtool::is_clean(&page.text);
    let prometheus =
        "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5";
    let (head, body) = get(&address, prometheus);
    let content = "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert!(head.contains(content), "{head}");
    let dir = tempfile::tempdir().expect("a directory");
    promtool::is_openmetrics(&body, dir.path());
    let (head, _) = get(&address, "text/plain");
    let content = "content-type: text/plain; version=0.0.4; charset=utf-8";
    assert!(head.contains(content), "{head}");
    replica.drain();
}

fn a_refused_table_shows_until_it_is_mended() {
    let redis = RedisServer::start();
    let fleet = Fleet::new(redis.url(), TABLE);
    let (replica, address) = start(&fleet);
    replica.wait_until_ready();
    let successful = "soloist_config_last_reload_successful";
    let ok = wait_for(&address, "well", |page| page.value(successful) == 1.0);
    fleet.set_table("no table");
    replica.signal(Signal::HUP);
    let refused = wait_for(&address, "refused", |page| page.value(successful) == 0.0);
    let number = "soloist_config_reloads_total{result=\"refused\"}";
    assert_eq!((ok.value(number), refused.value(number)), (0.0, 1.0));
    fleet.set_table(TABLE);
    replica.signal(Signal::HUP);
    wait_for(&address, "mended", |page| page.value(successful) == 1.0);
}
