//! A private Redis server that a test may kill, freeze and start again.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::redis_program;
use crate::resp::{converse, converse_again};

const SCRIPT: &str = include_str!("redis.sh");

/// Somebody may take the chosen port before the server does; then another one is tried.
const START_ATTEMPTS: u32 = 3;

/// How long a server may take to answer after its start, on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// From one look whether it answers to the next.
const START_POLL: Duration = Duration::from_millis(5);

/// A Redis server of the test's own on 127.0.0.1, without persistence unless asked for.
/// Dropping it ends the server and removes its files; so does the end of the test process,
/// whatever its cause.
#[derive(Debug)]
pub struct RedisServer {
    supervisor: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    port: u16,
    tls_port: Option<u16>,
    pid: u32,
    dir: PathBuf,
}

/// How a server is started.
#[derive(Clone, Debug, Default)]
pub struct RedisOptions {
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    tls: bool,
    cluster: bool,
    config: Option<String>,
}

/// What `INFO commandstats` tells of one command.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CommandStat {
    /// How many times it was called.
    pub calls: u64,
    /// How many microseconds of the server's time that took.
    pub usec: u64,
}

impl RedisOptions {
    /// Keeps an append-only file, written through at every command, so that a kill loses
    /// nothing.
    #[must_use]
    pub fn appendonly(self) -> Self {
        self.argument("--appendonly", "yes")
            .argument("--appendfsync", "always")
    }

    /// Adds an argument of redis-server, such as `("--maxmemory", "3mb")`.
    #[must_use]
    pub fn argument(mut self, name: &str, value: &str) -> Self {
        self.arguments.extend([name.to_owned(), value.to_owned()]);
        self
    }

    /// Listens for TLS on a port of its own beside the plain one; certificates are arguments.
    #[must_use]
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Is a node of a cluster, with a port of its own for the others.
    #[must_use]
    pub fn cluster(mut self) -> Self {
        self.cluster = true;
        self
    }

    /// Whether it listens for TLS.
    #[must_use]
    pub fn has_tls(&self) -> bool {
        self.tls
    }

    /// Watches over other servers instead of keeping data, as its configuration says.
    #[must_use]
    pub fn sentinel(mut self) -> Self {
        self.arguments.push("--sentinel".to_owned());
        self
    }

    /// Has the server read this configuration file, and write to it.
    #[must_use]
    pub fn config(mut self, text: &str) -> Self {
        self.config = Some(text.to_owned());
        self
    }

    /// Adds variables to the server's environment.
    #[must_use]
    pub fn environment(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        self.environment.extend(variables);
        self
    }

    /// Starts a server and returns once it answers.
    ///
    /// # Panics
    ///
    /// When Redis is not installed, or does not start.
    #[must_use]
    pub fn start(&self) -> RedisServer {
        redis_program::require();
        let mut failures = String::new();
        for _ in 0..START_ATTEMPTS {
            let mut server = RedisServer::supervise(free_port(), self);
            match server.launch() {
                Ok(()) => return server,
                Err(log) => failures.push_str(&log),
            }
        }
        panic!("Redis did not start {START_ATTEMPTS} times over:\n{failures}");
    }
}

impl RedisServer {
    /// Starts a server without persistence and returns once it answers.
    ///
    /// # Panics
    ///
    /// When Redis is not installed, or does not start.
    #[must_use]
    pub fn start() -> Self {
        Self::options().start()
    }

    /// Says how a server is to be started.
    #[must_use]
    pub fn options() -> RedisOptions {
        RedisOptions::default()
    }

    /// The server that all tests of this process share; take a
    /// [`fresh_namespace`] each, and do it no harm.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<RedisServer> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// `redis://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The port for TLS on 127.0.0.1.
    ///
    /// # Panics
    ///
    /// When the server was started without.
    #[must_use]
    pub fn tls_port(&self) -> u16 {
        self.tls_port.expect("started with `tls`")
    }

    /// The port by which other servers know it: that for TLS, where it has one.
    #[must_use]
    pub fn announced_port(&self) -> u16 {
        self.tls_port.unwrap_or(self.port)
    }

    /// Where the server keeps its files.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The server's process id; another one after [`restart`](Self::restart).
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Ends the server by SIGKILL; its files stay.
    pub fn kill(&mut self) {
        self.request("kill", "killed");
    }

    /// Kills the server and starts it again on the same port and the same files.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn restart(&mut self) {
        self.kill();
        if let Err(log) = self.launch() {
            panic!("Redis did not start again:\n{log}");
        }
    }

    /// Stops the process as it is (SIGSTOP): connections stay open and nothing is answered.
    pub fn freeze(&self) {
        self.signal("STOP");
        // It may go on for a moment, and take a command that it doesn't answer.
        while !is_stopped(self.pid) && !has_ended(self.pid) {
            thread::sleep(START_POLL);
        }
    }

    /// Lets a frozen process go on (SIGCONT).
    pub fn thaw(&self) {
        self.signal("CONT");
    }

    /// It does not answer: it is dead, or frozen.
    #[must_use]
    pub fn is_down(&self) -> bool {
        has_ended(self.pid)
            || is_stopped(self.pid)
            || !Path::new("/proc").join(self.pid.to_string()).exists()
    }

    /// Sends a command on a connection of its own. Answers the reply as text: an array with an
    /// element a line, nil as an empty text, an error with its code first.
    ///
    /// # Panics
    ///
    /// When the server does not answer.
    pub fn command(&self, arguments: &[&str]) -> String {
        converse(self.port, arguments).expect("the server answers")
    }

    /// The same for a question, which may be asked twice: it is, where the server closes the
    /// connection. One that a Sentinel gives another role does that to all of them (`CLIENT KILL
    /// TYPE normal`, a part of its order).
    ///
    /// # Panics
    ///
    /// When the server does not answer.
    pub fn question(&self, arguments: &[&str]) -> String {
        converse_again(self.port, arguments).expect("the server answers")
    }

    /// What the server counted since its start or `CONFIG RESETSTAT`, by command, in lower case.
    #[must_use]
    pub fn commandstats(&self) -> BTreeMap<String, CommandStat> {
        let text = self.command(&["INFO", "commandstats"]);
        text.lines().filter_map(parse_stat).collect()
    }

    fn supervise(port: u16, options: &RedisOptions) -> Self {
        use std::os::unix::process::CommandExt as _;

        let tls_port = options.tls.then(free_port);
        let tls = tls_port.map(|port| ["--tls-port".to_owned(), port.to_string()]);
        // Another one with each try: somebody may have taken it meanwhile.
        let cluster = options.cluster.then(|| {
            let port = free_port().to_string();
            ["--cluster-enabled", "yes", "--cluster-port", &port].map(str::to_owned)
        });
        // In a process group of its own, so that Ctrl-C at the terminal ends the test and leaves
        // the supervisor alive to clean up.
        let mut supervisor = Command::new("sh")
            .args(["-c", SCRIPT, "redis.sh", &port.to_string()])
            .args(tls.iter().flatten())
            .args(cluster.iter().flatten())
            .args(&options.arguments)
            .envs(options.environment.iter().cloned())
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell starts");
        let mut answers = BufReader::new(supervisor.stdout.take().expect("stdout is a pipe"));
        let dir = PathBuf::from(expect_line(&mut answers, "dir "));
        if let Some(text) = &options.config {
            std::fs::write(dir.join("redis.conf"), text).expect("a file is written");
        }
        Self {
            requests: supervisor.stdin.take(),
            supervisor,
            answers,
            port,
            tls_port,
            pid: 0,
            dir,
        }
    }

    /// The error is what the server logged.
    fn launch(&mut self) -> Result<(), String> {
        let pid = self.request("start", "started ");
        self.pid = pid.parse().expect("a process id");
        let deadline = Instant::now() + START_TIMEOUT;
        let mine = format!("process_id:{pid}");
        while Instant::now() < deadline && !has_ended(self.pid) {
            let answer = converse(self.port, &["INFO", "server"]).unwrap_or_default();
            if answer.lines().any(|line| line == mine) && self.is_loaded() {
                return Ok(());
            }
            thread::sleep(START_POLL);
        }
        Err(std::fs::read_to_string(self.dir.join("log")).unwrap_or_default())
    }

    fn is_loaded(&self) -> bool {
        converse(self.port, &["PING"]).is_ok_and(|answer| answer == "PONG")
    }

    fn request(&mut self, request: &str, answer: &str) -> String {
        let requests = self.requests.as_mut().expect("open until dropped");
        writeln!(requests, "{request}").expect("the supervisor reads");
        expect_line(&mut self.answers, answer)
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args([&format!("-{name}"), &self.pid.to_string()])
            .status()
            .expect("kill starts");
        assert!(status.success(), "SIG{name} reaches the server");
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        drop(self.requests.take());
        let _ = self.supervisor.wait();
    }
}

/// A namespace that no other test of this process has.
#[must_use]
pub fn fresh_namespace() -> String {
    static CREATED: AtomicU32 = AtomicU32::new(0);
    format!("test-{}", CREATED.fetch_add(1, Ordering::Relaxed))
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("a bound address").port()
}

fn expect_line(answers: &mut impl BufRead, start: &str) -> String {
    let mut line = String::new();
    answers.read_line(&mut line).expect("the supervisor writes");
    let rest = line.trim_end().strip_prefix(start);
    rest.unwrap_or_else(|| panic!("`{start}` was expected and `{line}` came"))
        .to_owned()
}

/// A process that ended stays as a zombie until the supervisor looks for it.
fn has_ended(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"))
    else {
        return false; // no such file system: the time-out tells
    };
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| rest.trim_start().starts_with('Z'))
}

fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
    stat.is_ok_and(|stat| {
        stat.rsplit_once(')')
            .is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
    })
}

/// Reads `cmdstat_evalsha:calls=8,usec=1234,usec_per_call=154.25,…`.
fn parse_stat(line: &str) -> Option<(String, CommandStat)> {
    let (name, numbers) = line.strip_prefix("cmdstat_")?.split_once(':')?;
    let number = |key: &str| {
        let mut pairs = numbers.split(',').filter_map(|pair| pair.split_once('='));
        pairs.find(|(name, _)| *name == key)?.1.parse().ok()
    };
    let stat = CommandStat {
        calls: number("calls")?,
        usec: number("usec")?,
    };
    Some((name.to_owned(), stat))
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn a_dropped_server_is_gone() {
        let server = RedisServer::start();
        let address = ("127.0.0.1", server.port());
        let dir = server.dir.clone();
        assert!(TcpStream::connect(address).is_ok() && dir.exists());
        drop(server);
        assert!(TcpStream::connect(address).is_err() && !dir.exists());
    }

    #[test]
    fn a_frozen_server_is_ended_too() {
        let server = RedisServer::start();
        let address = ("127.0.0.1", server.port());
        server.freeze();
        drop(server);
        assert!(TcpStream::connect(address).is_err());
    }

    #[test]
    fn data_is_kept_over_a_kill_only_where_asked_for() {
        for (mut server, kept) in [
            (RedisServer::start(), ""),
            (RedisServer::options().appendonly().start(), "value"),
        ] {
            let (port, pid) = (server.port(), server.pid());
            assert_eq!(server.command(&["SET", "key", "value"]), "OK");
            server.restart();
            assert_eq!(server.command(&["GET", "key"]), kept);
            assert_eq!(server.port(), port);
            assert_ne!(server.pid(), pid);
        }
    }

    #[test]
    fn commands_are_counted_by_name() {
        let server = RedisServer::start();
        server.command(&["CONFIG", "RESETSTAT"]);
        for _ in 0..3 {
            server.command(&["GET", "key"]);
        }
        assert_eq!(server.commandstats()["get"].calls, 3);
    }

    #[test]
    fn replies_of_all_kinds_are_text() {
        let server = RedisServer::shared();
        let key = fresh_namespace();
        assert_eq!(server.command(&["RPUSH", &key, "a", "b"]), "2");
        assert_eq!(server.command(&["LRANGE", &key, "0", "-1"]), "a\nb");
        assert!(server.command(&["GET", &key]).starts_with("WRONGTYPE "));
    }
}
