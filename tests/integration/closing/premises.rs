//! The shop itself: its database, its program, its table of jobs; and whether all is well in it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use test_support::postgres::PostgresServer;

use super::attempts::{Attempt, attempts, cut_short};
use crate::fleet::{Fleet, SOON};
use test_support::dice::Dice;

/// What both jobs run. An attempt notes its beginning, and its end if it comes to it. What it
/// tells goes to files: a pipe is not read while its replica stands still. The program is in a
/// session of its own, where it would get away from all who kill by process group.
const SCRIPT: &str = r#"
cd "${0%/*}" || exit
plan=PLAN second=${SOLOIST_SCHEDULED_AT:17:2}
run="$SOLOIST_JOB $SOLOIST_SCHEDULED_AT $SOLOIST_ATTEMPT $SOLOIST_FENCING_TOKEN"
run="$run $SOLOIST_REPLICA $$"
if [ "$SOLOIST_JOB" = close-expired-orders ]; then
    case ${plan:(10#$second + 7 * SOLOIST_ATTEMPT) % 60:1} in
        b) slow="--slow-start 2s" ;; # before its transaction: may be stale when it begins
        i) slow="--slow 3s" ;; # inside: whoever takes over has to wait
    esac
    set -- --older-than 2s $slow
else
    set -- new-orders --count ORDERS
fi
echo "$run began" >>notes
setsid PROGRAM "$@" >>"$SOLOIST_JOB.out" 2>>"$SOLOIST_JOB.err"
code=$?
echo "$run $code" >>notes
exit "$code"
"#;

/// How many orders one attempt places.
const ORDERS: i64 = 3;

pub(crate) const LEASE_TTL: Duration = Duration::from_secs(2);

/// How long an attempt has to be at work to be one of the slow.
const AT_WORK: Duration = Duration::from_millis(200);

/// The letters of the script's plan, one for each second of a minute.
const PACES: &[u8] = b"ffffffbbbi";

pub(crate) const CLOSER: &str = r#"
[jobs.close-expired-orders]
schedule = "* * * * * *"
command = ["bash", "SCRIPT"]
lease_ttl = "TTL"
"#;

/// Nobody wants an order placed twice, so a lost attempt is not run again.
const CUSTOMERS: &str = r#"
[jobs.new-orders]
schedule = "* * * * * *"
command = ["bash", "SCRIPT"]
lease_ttl = "TTL"
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
            .replace("ORDERS", &ORDERS.to_string())
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
        let jobs = jobs.concat();
        let jobs = jobs.replace("SCRIPT", &script.display().to_string());
        defaults + &jobs.replace("TTL", &format!("{}s", LEASE_TTL.as_secs()))
    }

    /// An attempt to close orders that takes its time and is in the middle of it.
    pub(crate) fn wait_for_closer_at_work(&self, within: Duration) -> Option<Attempt> {
        let end = Instant::now() + within;
        while Instant::now() < end {
            let before = self.last_closer();
            std::thread::sleep(AT_WORK);
            let now = self.last_closer().filter(|now| self.is_at_work(now));
            if let Some(now) = now
                && before.is_some_and(|before| before.token == now.token)
            {
                return Some(now);
            }
        }
        None
    }

    fn last_closer(&self) -> Option<Attempt> {
        let mut attempts = self.attempts().into_iter().rev();
        attempts.find(|attempt| attempt.closes)
    }

    /// Not at its end, nor dead without one.
    fn is_at_work(&self, attempt: &Attempt) -> bool {
        let script = self.dir.path().join("job").display().to_string();
        let command = std::fs::read_to_string(format!("/proc/{}/cmdline", attempt.pid));
        attempt.code.is_none() && command.is_ok_and(|command| command.contains(&script))
    }

    pub(crate) fn attempts(&self) -> Vec<Attempt> {
        attempts(&self.read("notes"))
    }

    /// Waits until the attempts are as wanted, but not for ever.
    pub(crate) fn wait_for(&self, within: Duration, wanted: impl Fn(&[Attempt]) -> bool) {
        let end = Instant::now() + within;
        while Instant::now() < end && !wanted(&self.attempts()) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The attempts, none of which may be there any more: replicas that were killed took theirs
    /// along, and those that left in order waited for theirs.
    pub(crate) fn is_left_by_all(&self) -> Vec<Attempt> {
        let attempts = self.attempts();
        let left = attempts.iter().find(|attempt| self.is_at_work(attempt));
        assert!(left.is_none(), "it goes on: {left:#?}");
        attempts
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

    /// What is in the database is what the programs said they did: those that were refused did
    /// nothing, and those that were cut short did all or nothing, perhaps without saying so.
    pub(crate) fn is_as_its_programs_told(&self, attempts: &[Attempt]) {
        let failed =
            |attempt: &&Attempt| attempt.code.is_some_and(|code| code != 0) && !attempt.is_stale();
        if let Some(failed) = attempts.iter().find(failed) {
            let errors = self.read("close-expired-orders.err") + &self.read("new-orders.err");
            panic!("{failed:?}, and these are the errors of all:\n{errors}");
        }
        let told: i64 = told(&self.read("new-orders.out"), "").map(|(n, _)| n).sum();
        let made = self.number("SELECT count(*) FROM orders");
        let untold = ORDERS * i64::try_from(cut_short(attempts, false).len()).expect("few");
        assert!((told..=told + untold).contains(&made), "{made} of {told}");
        let mut written = self.closings();
        for (closed, token) in told_of_closings(&self.read("close-expired-orders.out")) {
            let written = written.remove(&token).unwrap_or(0);
            assert_eq!(written, closed, "closed with token {token}");
        }
        for attempt in cut_short(attempts, true) {
            written.remove(&attempt.token);
        }
        // Those that were refused, if any.
        assert_eq!(written, HashMap::new(), "closed by nobody who could");
    }

    /// How many orders were closed with each token.
    fn closings(&self) -> HashMap<String, i64> {
        let counts = "SELECT token || ' ' || count(*) FROM closings GROUP BY token";
        let counts = PostgresServer::shared().query(&self.url, counts);
        let pairs = counts.lines().filter_map(|line| line.split_once(' '));
        pairs
            .map(|(token, count)| (token.to_owned(), count.parse().expect("a number")))
            .collect()
    }

    /// What came to its end is in the ledger with it, unless its replica could not tell; and who
    /// was refused had been taken over from.
    pub(crate) fn is_as_the_ledger_has_it(&self, attempts: &[Attempt]) {
        let listing = self
            .fleet
            .json(&["history", "close-expired-orders", "-n", "1000", "--json"]);
        let mut outcomes = HashMap::new();
        for one in listing.as_array().expect("attempts") {
            let outcome = one["outcome"].as_str().expect("an outcome");
            outcomes.insert(one["token"].to_string(), outcome);
        }
        for attempt in attempts.iter().filter(|attempt| attempt.closes) {
            let outcome = outcomes.get(&attempt.token).copied().unwrap_or("none");
            let fits = match attempt.code {
                Some(0) => ["succeeded", "lost"].contains(&outcome),
                Some(_) => outcome == "lost",
                None => outcome != "succeeded" && outcome != "none",
            };
            assert!(fits, "{outcome}: {attempt:?}");
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

/// The numbers that follow `word` at the beginning of lines, each with the rest of its line.
fn told<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = (i64, &'a str)> {
    text.lines().filter_map(move |line| {
        let (number, rest) = line.strip_prefix(word)?.split_once(' ')?;
        Some((number.parse().ok()?, rest))
    })
}

/// How many orders each attempt said that it closed, with its token.
fn told_of_closings(text: &str) -> impl Iterator<Item = (i64, String)> {
    told(text, "closed ").map(|(closed, rest)| {
        let token = rest
            .split_once("(token ")
            .and_then(|(_, rest)| rest.split_once(','));
        (closed, token.expect("a token").0.to_owned())
    })
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
