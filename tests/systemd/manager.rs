//! A service manager's end of the line: a socket of the test's own, and what was heard on it.

use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use test_support::fleet::{Fleet, Replica, SOON};

/// Hears what a daemon has to tell.
pub(crate) struct Manager {
    socket: UnixDatagram,
    name: String,
}

/// One message, and when it was heard.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) text: String,
    pub(crate) at: Instant,
}

impl Message {
    /// The value that it gives a name.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let mut values = self.text.lines().filter_map(|line| line.split_once('='));
        values.find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    pub(crate) fn says(&self, line: &str) -> bool {
        self.text.lines().any(|said| said == line)
    }

    pub(crate) fn status(&self) -> &str {
        self.value("STATUS").unwrap_or_default()
    }
}

impl Manager {
    /// One that listens in the file system.
    pub(crate) fn at(dir: &Path) -> Self {
        let path = dir.join("notify");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        Self {
            socket,
            name: path.display().to_string(),
        }
    }

    /// One that listens in the abstract.
    pub(crate) fn in_the_abstract(name: &str) -> Self {
        let address = SocketAddr::from_abstract_name(name).expect("a name");
        let socket = UnixDatagram::bind_addr(&address).expect("a socket");
        Self {
            socket,
            name: format!("@{name}"),
        }
    }

    /// Starts a replica as a service.
    pub(crate) fn start(&self, fleet: &Fleet, more: &[(&str, &str)]) -> Replica {
        fleet.start_with("r1", |command| self.is_told_by(command, more))
    }

    /// Starts a replica as a service by way of another program.
    pub(crate) fn start_by(
        &self,
        fleet: &Fleet,
        wrapper: &[&str],
        more: &[(&str, &str)],
    ) -> Replica {
        let run = fleet.command(&["run", "--replica", "r1"]);
        let mut command = Command::new(wrapper[0]);
        command.args(&wrapper[1..]);
        command.arg(run.get_program()).args(run.get_args());
        self.is_told_by(&mut command, more);
        Replica::start(command, "r1")
    }

    fn is_told_by(&self, command: &mut Command, more: &[(&str, &str)]) {
        command
            .env("NOTIFY_SOCKET", &self.name)
            .envs(more.iter().copied());
    }

    /// The next message, if there is one in time.
    pub(crate) fn hear(&self, within: Duration) -> Option<Message> {
        let end = Instant::now() + within;
        let mut text = [0; 8192];
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let timeout = left.max(Duration::from_millis(1));
            self.socket
                .set_read_timeout(Some(timeout))
                .expect("a timeout");
            match self.socket.recv(&mut text) {
                Ok(length) => {
                    return Some(Message {
                        text: String::from_utf8_lossy(&text[..length]).into_owned(),
                        at: Instant::now(),
                    });
                }
                // Where this process was stopped meanwhile.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }

    /// Hears on up to the message that is wanted; gives all of them.
    pub(crate) fn hear_until(&self, wanted: impl Fn(&Message) -> bool) -> Vec<Message> {
        let mut heard = Vec::new();
        loop {
            let Some(message) = self.hear(SOON) else {
                panic!("not within {SOON:?}: {heard:#?}");
            };
            let done = wanted(&message);
            heard.push(message);
            if done {
                return heard;
            }
        }
    }

    /// Hears on up to a message with this line, and gives that.
    pub(crate) fn hear_line(&self, line: &str) -> Message {
        let heard = self.hear_until(|message| message.says(line));
        heard.last().expect("at least that one").clone()
    }
}
