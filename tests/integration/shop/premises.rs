//! The shop itself: its database, its program, its table of jobs; and whether all is well in it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use test_support::postgres::PostgresServer;

use super::Dice;
use super::attempts::{Attempt, attempts};
use crate::fleet::{Fleet, SOON};

/// What both jobs run. An attempt notes its beginning and its end. It is in a process group of
/// its own, with files for its output, as a pipe would break when the replica dies.
const SCRIPT: &str = r#"
cd "${0%/*}" || exit
set -m # gives a process in the background its own group
plan=PLAN second=${SOLOIST_SCHEDULED_AT:17:2}
attempt() {
    run="$SOLOIST_JOB $SOLOIST_SCHEDULED_AT $SOLOIST_ATTEMPT $SOLOIST_FENCING_TOKEN"
    echo "$run began" >>notes
    PROGRAM "$@"
    code=$?
    echo "$run $code" >>notes
    exit "$code"
}
if [ "$SOLOIST_JOB" = close-expired-orders ]; then
    case ${plan:(10#$second + 7 * SOLOIST_ATTEMPT) % 60:1} in
        b) slow="--slow-start 5s" ;; # before its transaction: may be stale when it begins
        i) slow="--slow 3s" ;; # inside: whoever takes over has to wait
    esac
    set -- --older-than 2s $slow
else
    set -- new-orders --count 3
fi
attempt "$@" >>"$SOLOIST_JOB.out" 2>>"$SOLOIST_JOB.err" &
wait "$!"
"#;

/// The letters of the script's plan, one for each second of a minute.
const PACES: &[u8] = b"ffffffbbbi";

pub(crate) const CLOSER: &str = r#"
[jobs.close-expired-orders]
schedule = "* * * * * *"
command = ["bash", "SCRIPT"]
lease_ttl = "2s"
"#;

/// Nobody wants an order placed twice, so a lost attempt is not run again.
const CUSTOMERS: &str = r#"
[jobs.new-orders]
schedule = "* * * * * *"
command = ["bash", "SCRIPT"]
lease_ttl = "2s"
on_crash = "skip"
"#;

/// A shop, the replicas that keep it, and the notes of their attempts.
pub(crate) struct Shop {
    dir: TempDir,
    program: PathBuf,
    url: String,
    pub(crate) fleet: Fleet,
}

impl Shop {
    pub(crate) fn open(store: &str, dice: &mut Dice) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let program = program();
        let plan: String = (0..60)
            .map(|_| char::from(PACES[dice.index(PACES.len())]))
            .collect();
        let script = SCRIPT
            .replace("PLAN", &plan)
            .replace("PROGRAM", &program.display().to_string());
        std::fs::write(dir.path().join("job"), script).expect("a script");
        let shop = Self {
            program,
            url: PostgresServer::shared().fresh_database(),
            fleet: Fleet::new(store, ""),
            dir,
        };
        // Makes the tables, too, before anybody asks for them.
        let (code, told) = shop.run(&["new-orders", "--count", "0"]);
        assert_eq!(code, Some(0), "{told}");
        shop.fleet.set_table(&shop.table(&[CLOSER, CUSTOMERS]));
        shop
    }

    pub(crate) fn table(&self, jobs: &[&str]) -> String {
        let script = self.dir.path().join("job");
        let defaults = format!("[defaults]\nenv = {{ DATABASE_URL = \"{}\" }}\n", self.url);
        defaults
            + &jobs
                .concat()
                .replace("SCRIPT", &script.display().to_string())
    }

    /// The replica that closes orders right now.
    pub(crate) fn closer(&self) -> Option<String> {
        let status = self.fleet.json(&["status", "--json"]);
        let jobs = status["jobs"].as_array().expect("jobs");
        let closer = jobs.iter().find(|job| job["job"] == "close-expired-orders");
        Some(closer?["holder"].as_str()?.to_owned())
    }

    /// The attempts, once none of them is left: that of a dead replica may take its time.
    pub(crate) fn wait_until_all_have_ended(&self) -> Vec<Attempt> {
        let end = Instant::now() + SOON;
        loop {
            let attempts = attempts(&self.read("notes"));
            if attempts.iter().all(|attempt| attempt.code.is_some()) {
                return attempts;
            }
            assert!(Instant::now() < end, "they go on: {attempts:#?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn wait_until_nothing_is_unpaid(&self) {
        let end = Instant::now() + SOON;
        while self.number("SELECT count(*) FROM orders WHERE state = 'unpaid'") > 0 {
            assert!(Instant::now() < end, "orders stay unpaid and open");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    pub(crate) fn is_sound_by_its_own_audit(&self) {
        let (code, told) = self.run(&["audit"]);
        assert!(
            code == Some(0) && told.starts_with("audit passed; 0 orders unpaid"),
            "{code:?}: {told}"
        );
    }

    /// Not the audit's queries: the audit might be wrong.
    pub(crate) fn is_sound_by_other_queries(&self) {
        let wrongly_closed = "SELECT count(*) FROM orders WHERE
            (SELECT count(*) FROM closings WHERE order_id = orders.id)
            <> CASE state WHEN 'paid' THEN 0 ELSE 1 END";
        assert_eq!(self.number(wrongly_closed), 0, "not closed exactly once");
        // Nothing is unpaid any more: what is not in stock was paid for.
        let wrong_stock = "SELECT count(*) FROM products LEFT JOIN
            (SELECT product_id, sum(quantity) AS sold FROM orders
             WHERE state = 'paid' GROUP BY product_id) AS sales ON product_id = products.id
            WHERE stock + coalesce(sold, 0) <> initial_stock";
        assert_eq!(self.number(wrong_stock), 0, "products with a wrong stock");
    }

    /// What is in the database is what the programs said they did, and those that were refused
    /// did nothing.
    pub(crate) fn is_as_its_programs_told(&self, attempts: &[Attempt]) {
        let failed = |attempt: &&Attempt| attempt.code != Some(0) && !attempt.is_stale();
        if let Some(failed) = attempts.iter().find(failed) {
            let errors = self.read("close-expired-orders.err") + &self.read("new-orders.err");
            panic!("{failed:?}, and these are the errors of all:\n{errors}");
        }
        let made = numbers_after(&self.read("new-orders.out"), "");
        assert_eq!(self.number("SELECT count(*) FROM orders"), made);
        let closed = numbers_after(&self.read("close-expired-orders.out"), "closed ");
        assert_eq!(self.number("SELECT count(*) FROM closings"), closed);
        let tokens = "SELECT coalesce(string_agg(DISTINCT token::text, ' '), '') FROM closings";
        let tokens = PostgresServer::shared().query(&self.url, tokens);
        let written: HashSet<&str> = tokens.split(' ').collect();
        for attempt in attempts.iter().filter(|attempt| attempt.is_stale()) {
            assert!(!written.contains(&*attempt.token), "wrote: {attempt:?}");
        }
    }

    pub(crate) fn number(&self, query: &str) -> i64 {
        let answer = PostgresServer::shared().query(&self.url, query);
        answer.parse().expect("a number")
    }

    /// What an attempt wrote; nothing where none came so far.
    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.path().join(name)).unwrap_or_default()
    }

    fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = Command::new(&self.program)
            .args(arguments)
            .env("DATABASE_URL", &self.url)
            .output()
            .expect("the program starts");
        let told = [output.stdout, output.stderr].concat();
        (
            output.status.code(),
            String::from_utf8_lossy(&told).into_owned(),
        )
    }
}

/// The sum of the numbers that follow `word` at the beginning of lines.
fn numbers_after(text: &str, word: &str) -> i64 {
    text.lines()
        .filter_map(|line| {
            line.strip_prefix(word)?
                .split(' ')
                .next()?
                .parse::<i64>()
                .ok()
        })
        .sum()
}

/// The program of the example, built beside this test's own.
fn program() -> PathBuf {
    let own = Path::new(env!("CARGO_BIN_EXE_soloist"));
    let profile = own.parent().expect("a directory of the profile");
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "-p", "close-expired-orders"]);
    build
        .arg("--target-dir")
        .arg(profile.parent().expect("a target directory"));
    if profile.ends_with("release") {
        build.arg("--release");
    }
    let status = build.current_dir(env!("CARGO_MANIFEST_DIR")).status();
    assert!(status.expect("cargo starts").success(), "the build failed");
    profile.join("close-expired-orders")
}
