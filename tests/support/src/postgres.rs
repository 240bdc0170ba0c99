//! A private PostgreSQL server.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

const SCRIPT: &str = include_str!("postgres.sh");

/// Somebody may take the chosen port before the server does; then another one is tried.
const START_ATTEMPTS: u32 = 3;

/// A PostgreSQL server of the test's own, without fsync, open to superuser `postgres` on
/// 127.0.0.1. Dropping it ends the server and removes its files; so does the end of the test
/// process, whatever its cause.
#[derive(Debug)]
pub struct PostgresServer {
    supervisor: Child,
    programs: PathBuf,
    directory: PathBuf,
    port: u16,
}

impl PostgresServer {
    /// Starts a server and returns once it accepts connections.
    ///
    /// # Panics
    ///
    /// When PostgreSQL is not installed, or does not start.
    #[must_use]
    pub fn start() -> Self {
        let programs = find_programs().expect(
            "this test needs the PostgreSQL server and found none: \
             run `make test`, or scripts/install-test-tools, which installs it",
        );
        let mut failures = String::new();
        for _ in 0..START_ATTEMPTS {
            match Self::start_on(free_port(), &programs) {
                Ok(server) => return server,
                Err(output) => failures.push_str(&output),
            }
        }
        panic!("PostgreSQL did not start {START_ATTEMPTS} times over:\n{failures}");
    }

    /// The server that all tests of this process share: starting one takes a second or two.
    /// Take a [`fresh_database`](Self::fresh_database) each.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<PostgresServer> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// The URL of the database that every server has, `postgres`.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_of("postgres")
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where its files are, its log among them, for as long as it lives.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Creates an empty database and returns its URL.
    ///
    /// # Panics
    ///
    /// When the server refuses.
    #[must_use]
    pub fn fresh_database(&self) -> String {
        static CREATED: AtomicU32 = AtomicU32::new(0);
        let name = format!("fresh_{}", CREATED.fetch_add(1, Ordering::Relaxed));
        self.execute(&format!("CREATE DATABASE {name}"));
        self.url_of(&name)
    }

    /// Asks a database, given by its URL, for one value, as psql prints it.
    ///
    /// # Panics
    ///
    /// When the server refuses.
    #[must_use]
    pub fn query(&self, url: &str, sql: &str) -> String {
        self.psql(url, &["--no-align", "--tuples-only"], sql)
            .trim_end()
            .to_owned()
    }

    fn execute(&self, sql: &str) {
        self.psql(&self.url(), &[], sql);
    }

    /// Runs SQL through psql, so that tests need no client library.
    fn psql(&self, url: &str, options: &[&str], sql: &str) -> String {
        let output = Command::new(self.programs.join("psql"))
            .args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1"])
            .args(options)
            .args(["--command", sql, url])
            .output()
            .expect("psql starts");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{sql}: {complaint}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn url_of(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// What the supervisor printed is the error.
    fn start_on(port: u16, programs: &Path) -> Result<Self, String> {
        let mut supervisor = supervise(port, programs);
        let stdout = supervisor.stdout.take().expect("stdout is a pipe");
        let mut printed = String::new();
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if let Some(directory) = line.strip_prefix("ready ") {
                return Ok(Self {
                    supervisor,
                    programs: programs.to_path_buf(),
                    directory: directory.into(),
                    port,
                });
            }
            printed.push_str(&line);
            printed.push('\n');
        }
        let _ = supervisor.wait();
        Err(printed)
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        drop(self.supervisor.stdin.take());
        let _ = self.supervisor.wait();
    }
}

/// Starts postgres.sh; as user `postgres` when the test runs as root, because the server refuses
/// to run as root. In a process group of its own, so that Ctrl-C at the terminal ends the test
/// and leaves the supervisor alive to clean up.
fn supervise(port: u16, programs: &Path) -> Child {
    use std::os::unix::process::CommandExt as _;

    let mut command = if runs_as_root() {
        let mut su = Command::new("su");
        su.args([
            "postgres",
            "-s",
            "/bin/sh",
            "-c",
            SCRIPT,
            "--",
            "postgres.sh",
        ]);
        su.env_remove("TMPDIR"); // root's may be closed to others
        su
    } else {
        let mut sh = Command::new("sh");
        sh.args(["-c", SCRIPT, "postgres.sh"]);
        sh
    };
    command
        .arg(programs)
        .arg(port.to_string())
        .current_dir("/") // the test's own may be closed to user `postgres`
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell starts")
}

fn runs_as_root() -> bool {
    let id = Command::new("id").arg("-u").output().expect("id starts");
    id.stdout.trim_ascii() == b"0"
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("a bound address").port()
}

/// PATH first; then where distributions put the server, which Debian keeps off PATH. Of several
/// versions, the newest.
fn find_programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).find(|dir| is_complete(dir));
    on_path.or_else(|| {
        let parents = [
            "/usr/lib/postgresql", // Debian, Ubuntu
            "/opt/homebrew/opt",   // Homebrew on ARM
            "/usr/local/opt",      // Homebrew on Intel
        ];
        let versions = parents.into_iter().flat_map(programs_under);
        versions
            .filter(|dir| is_complete(dir))
            .max_by_key(|dir| version_in(dir))
    })
}

fn is_complete(dir: &Path) -> bool {
    ["initdb", "pg_ctl", "postgres", "psql"]
        .iter()
        .all(|program| dir.join(program).is_file())
}

fn programs_under(parent: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(parent) else {
        return Vec::new();
    };
    let versions = entries.flatten();
    versions.map(|entry| entry.path().join("bin")).collect()
}

/// The first number in a path such as `/usr/lib/postgresql/15/bin`.
fn version_in(dir: &Path) -> u32 {
    let text = dir.to_string_lossy();
    let digits = text
        .split(|c: char| !c.is_ascii_digit())
        .find(|part| !part.is_empty());
    digits.and_then(|part| part.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read as _, Write as _};
    use std::net::TcpStream;
    use std::time::Duration;

    use super::*;

    /// Its length and its number, see "Message Formats" in PostgreSQL's manual.
    const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

    #[test]
    fn the_newest_version_is_chosen_by_number_not_by_spelling() {
        assert!(
            version_in(Path::new("/usr/lib/postgresql/15/bin"))
                > version_in(Path::new("/usr/lib/postgresql/9/bin"))
        );
    }

    #[test]
    fn a_dropped_server_is_gone() {
        let server = PostgresServer::start();
        let connection = connect(server.port());
        let directory = server.directory().to_path_buf();
        assert!(directory.exists());
        drop(server);
        assert_closed(connection);
        assert!(!directory.exists());
    }

    #[test]
    fn a_killed_test_takes_its_server_along() {
        let mut killed = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "postgres::tests::serve", "--ignored"])
            .arg("--nocapture")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program starts");
        let stdout = killed.stdout.take().expect("a pipe");
        let port = BufReader::new(stdout)
            .lines()
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("serving on ")?.parse().ok())
            .expect("a port");
        let connection = connect(port);

        killed.kill().expect("SIGKILL");
        killed.wait().expect("killed");

        assert_closed(connection);
    }

    #[test]
    #[ignore = "the child of a_killed_test_takes_its_server_along"]
    fn serve() {
        let server = PostgresServer::start();
        println!("\nserving on {}", server.port());
        // Ends with the parent too, should that die before it kills.
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        drop(server);
    }

    #[test]
    fn fresh_databases_are_distinct() {
        let server = PostgresServer::shared();
        assert_ne!(server.fresh_database(), server.fresh_database());
    }

    #[test]
    fn a_query_answers_the_database_that_was_asked() {
        let server = PostgresServer::shared();
        let url = server.fresh_database();
        let name = server.query(&url, "SELECT current_database()");
        assert!(url.ends_with(&format!("/{name}")), "{url}: {name}");
    }

    /// A connection that a backend has answered. One that only waits to be accepted may be so by a
    /// server that is being stopped, which tells it so once it has asked for something, and waits
    /// for that, and with its own end, for `authentication_timeout`: a minute.
    fn connect(port: u16) -> TcpStream {
        let mut connection = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
        let limit = Some(Duration::from_secs(30));
        connection.set_read_timeout(limit).expect("a limit");
        connection.write_all(&SSL_REQUEST).expect("a request");
        let mut answer = [0];
        connection.read_exact(&mut answer).expect("an answer");
        assert!(b"SN".contains(&answer[0]), "{answer:?}");
        connection
    }

    /// The server's end of a connection closes with the server.
    fn assert_closed(mut connection: TcpStream) {
        let read = connection.read(&mut [0]);
        let closed = match &read {
            Ok(length) => *length == 0,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        };
        assert!(closed, "the server lives: {read:?}");
    }
}
