//! A sale of a test's own, in the Redis that all tests share, with its books; and the program run
//! on it.
//!
//! Must never: know how a sale works.

use std::io::{BufRead, BufReader, Read, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;

use flash_sale::books::{Books, Order};
use flash_sale::sale::{Bought, Counters, Sale};
use soloist::Leases;
use tempfile::TempDir;
use test_support::redis::{RedisServer, fresh_namespace};

use crate::LONG;

pub(crate) struct Market {
    pub(crate) name: String,
    dir: TempDir,
}

impl Market {
    pub(crate) fn new() -> Self {
        Self {
            name: fresh_namespace(),
            dir: TempDir::new().expect("a directory"),
        }
    }

    /// With so many items on sale.
    pub(crate) fn open(stock: u64) -> Self {
        let market = Self::new();
        let opened = market.runs(&["open", "--stock", &stock.to_string()]);
        assert_eq!(opened.code, Some(0), "{opened:?}");
        market
    }

    pub(crate) fn url() -> String {
        RedisServer::shared().url()
    }

    /// A connection of its own.
    pub(crate) async fn sale(&self) -> Sale {
        let sale = Sale::connect(&Self::url(), &self.name).await;
        sale.expect("Redis answers")
    }

    pub(crate) async fn counters(&self) -> Counters {
        self.sale().await.counters().await.expect("Redis answers")
    }

    /// So many users buy one each.
    pub(crate) async fn sell(&self, count: usize) {
        let sale = self.sale().await;
        for user in 0..count {
            let bought = sale.buy(&format!("user-{user}")).await;
            let bought = bought.expect("Redis answers");
            assert!(matches!(bought, Bought::Sold(_)), "{bought:?}");
        }
    }

    pub(crate) async fn leases(&self) -> Leases {
        let leases = Leases::open(&Self::url(), flash_sale::trade::NAMESPACE).await;
        leases.expect("the store can be used")
    }

    /// Nobody has the lease of the sale, or waits for it.
    pub(crate) async fn assert_no_lease_is_left(&self) {
        let names = self.leases().await.names().await.expect("it answers");
        let mine = names.iter().find(|name| name.name.as_str() == self.name);
        assert_eq!(mine, None);
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("books.db")
    }

    pub(crate) fn books(&self) -> Books {
        Books::open(&self.file()).expect("books")
    }

    pub(crate) fn orders(&self) -> Vec<Order> {
        self.books().orders(&self.name).expect("orders")
    }

    pub(crate) fn warehouse(&self) -> u64 {
        self.books().warehouse().expect("a number")
    }

    /// Each order that Redis gave out is in the books once, with its user, and nothing else is.
    pub(crate) fn assert_all_is_written_once(&self) {
        let key = format!("{{flash-sale:{}}}:buyers", self.name);
        let lines = RedisServer::shared().command(&["HGETALL", &key]);
        let lines: Vec<&str> = lines.lines().collect();
        let sold = lines.chunks_exact(2).map(|pair| Order {
            id: pair[1].to_owned(),
            user: pair[0].to_owned(),
        });
        let mut sold: Vec<Order> = sold.collect();
        let mut written = self.orders();
        sold.sort();
        written.sort();
        assert_eq!(written, sold);
        let report = self.runs(&["report"]);
        assert_eq!(report.code, Some(0), "{report:?}");
    }

    /// Starts the program on the sale.
    pub(crate) fn starts(&self, arguments: &[&str]) -> Program {
        let mut child = Command::new(env!("CARGO_BIN_EXE_flash-sale"))
            .args(["--sale", &self.name, "--books"])
            .arg(self.file())
            .args(arguments)
            .env("REDIS_URL", Self::url())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let (said, lines) = mpsc::channel();
        hand_on(child.stdout.take().expect("a pipe"), said.clone());
        hand_on(child.stderr.take().expect("a pipe"), said);
        Program {
            keyboard: child.stdin.take().expect("a pipe"),
            child,
            lines,
            said: String::new(),
        }
    }

    pub(crate) fn runs(&self, arguments: &[&str]) -> Ended {
        self.starts(arguments).ends()
    }
}

fn hand_on(pipe: impl Read + Send + 'static, lines: mpsc::Sender<String>) {
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            // A test that has ended wants to know no more.
            let _ = lines.send(line);
        }
    });
}

/// The program at work.
pub(crate) struct Program {
    child: Child,
    keyboard: ChildStdin,
    lines: mpsc::Receiver<String>,
    said: String,
}

/// How a program ended, and all that it said.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) said: String,
}

impl Program {
    /// Waits until it has said so, so many times.
    pub(crate) fn says(&mut self, what: &str, times: usize) {
        while self.said.matches(what).count() < times {
            let line = self.lines.recv_timeout(LONG);
            let line = line.unwrap_or_else(|_| panic!("no {what:?} was said:\n{}", self.said));
            self.said.push_str(&line);
            self.said.push('\n');
        }
    }

    pub(crate) fn enter(&mut self) {
        self.keyboard.write_all(b"\n").expect("it reads");
    }

    /// `STOP` freezes it as a paused host would; `CONT` lets it go on.
    pub(crate) fn signal(&self, name: &str) {
        let kill = Command::new("kill")
            .args([format!("-{name}"), self.child.id().to_string()])
            .status();
        assert!(kill.expect("kill starts").success());
    }

    /// By SIGKILL.
    pub(crate) fn dies(self) {
        self.signal("KILL");
        assert_eq!(self.ends().code, None);
    }

    /// Waits for its end.
    pub(crate) fn ends(mut self) -> Ended {
        // Both pipes are closed at its end, and not before.
        loop {
            match self.lines.recv_timeout(LONG) {
                Ok(line) => {
                    self.said.push_str(&line);
                    self.said.push('\n');
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => panic!("it runs on:\n{}", self.said),
            }
        }
        Ended {
            code: self.child.wait().expect("it has ended").code(),
            said: std::mem::take(&mut self.said),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It has mostly ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
