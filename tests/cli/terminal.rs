//! A terminal with somebody who looks at it and types.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// How long anything on it may take.
const SOON: Duration = Duration::from_secs(20);

/// What begins a frame, and what ends it.
const BEGIN: &str = "\x1b[H";
const END: &str = "\x1b[J";

pub(crate) struct Terminal {
    own_end: File,
    child: Child,
    shown: Receiver<Vec<u8>>,
    unread: String,
}

impl Terminal {
    /// Runs a command on a terminal of that size, which is its controlling one.
    pub(crate) fn run(command: &Command, rows: u16, columns: u16) -> Self {
        let own_end = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&own_end).expect("granted");
        unlockpt(&own_end).expect("unlocked");
        let path = ptsname(&own_end, Vec::new()).expect("a name");
        let other =
            open(&path, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("its other end");
        let other = File::from(other);
        let own_end = File::from(own_end);
        resize(&own_end, rows, columns);
        let mut onto = Command::new("setsid");
        onto.arg("--ctty").arg(command.get_program());
        onto.args(command.get_args()).env_clear();
        onto.envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        onto.env("PATH", "/usr/bin:/bin").env("TERM", "xterm");
        onto.current_dir(command.get_current_dir().expect("a place"));
        let stdio = || Stdio::from(other.try_clone().expect("a descriptor"));
        onto.stdin(stdio()).stdout(stdio()).stderr(stdio());
        let child = onto.spawn().expect("setsid of util-linux");
        let mut reader = own_end.try_clone().expect("a descriptor");
        let (tell, shown) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // A terminal whose other end is closed by all fails to be read.
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                if tell.send(bytes[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self {
            own_end,
            child,
            shown,
            unread: String::new(),
        }
    }

    /// Waits for a frame that is as wanted, and gives its lines.
    pub(crate) fn wait_for(&mut self, what: &str, wanted: impl Fn(&str) -> bool) -> Vec<String> {
        let until = Instant::now() + SOON;
        loop {
            while let Some((frame, rest)) = self.unread.split_once(END) {
                let (before, frame) = frame.split_once(BEGIN).expect("a frame");
                assert_eq!(before, "", "nothing is written beside a frame");
                let frame = frame.replace("\x1b[2J", "").replace("\x1b[K\r\n", "\n");
                self.unread = rest.to_owned();
                if wanted(&frame) {
                    return frame.lines().map(str::to_owned).collect();
                }
            }
            let left = until.saturating_duration_since(Instant::now());
            let Ok(bytes) = self.shown.recv_timeout(left) else {
                panic!("no {what} after {SOON:?}; there is {:?}", self.unread);
            };
            // A character may come in two parts: no frame is taken for whole before its end.
            self.unread += &String::from_utf8_lossy(&bytes);
        }
    }

    /// Types, as on its keyboard.
    pub(crate) fn type_in(&mut self, keys: &[u8]) {
        self.own_end.write_all(keys).expect("typed");
    }

    /// Gives it another size, which its foreground is told of.
    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        resize(&self.own_end, rows, columns);
    }

    /// Waits for the end of what runs on it.
    pub(crate) fn wait(mut self) -> ExitStatus {
        ended(&mut self.child)
    }
}

fn resize(terminal: &File, rows: u16, columns: u16) {
    let size = Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(terminal, size).expect("a size");
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for the end of a process that has been told to end.
pub(crate) fn ended(child: &mut Child) -> ExitStatus {
    let until = Instant::now() + SOON;
    while Instant::now() < until {
        if let Some(status) = child.try_wait().expect("a child") {
            return status;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    panic!("it runs on after {SOON:?}");
}
