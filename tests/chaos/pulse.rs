//! Whether the server answers at all: the test asks it again and again, on a connection of its own. Where it doesn't,
//! and no fault was put to it, the machine or its disk stood still, and nobody can keep a bound.
//!
//! Must never: excuse anything but time.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use test_support::fleet::now_ns;

use crate::stage::nanos;

/// From one question to the next, and how long an answer may take.
const EVERY: Duration = Duration::from_millis(100);
const SOON_ENOUGH: Duration = Duration::from_millis(300);

/// An answer that never comes.
const PATIENCE: Duration = Duration::from_secs(10);

/// When the server gave no answer: from and until, in nanoseconds since the epoch.
type Gaps = Arc<Mutex<Vec<(i128, i128)>>>;

/// Asks until it is dropped.
#[derive(Debug)]
pub(crate) struct Pulse {
    gaps: Gaps,
    over: Arc<AtomicBool>,
}

impl Pulse {
    pub(crate) fn of(port: u16) -> Self {
        let pulse = Self {
            gaps: Gaps::default(),
            over: Arc::default(),
        };
        let (gaps, over) = (Arc::clone(&pulse.gaps), Arc::clone(&pulse.over));
        std::thread::spawn(move || {
            while !over.load(Ordering::SeqCst) {
                let asked_ns = now_ns();
                let answered = ask(port).is_ok();
                if !answered || now_ns() - asked_ns > nanos(SOON_ENOUGH) {
                    let mut gaps = gaps.lock().unwrap_or_else(PoisonError::into_inner);
                    gaps.push((asked_ns, now_ns()));
                }
                std::thread::sleep(EVERY);
            }
        });
        pulse
    }

    /// The gaps so far.
    pub(crate) fn gaps(&self) -> Vec<(i128, i128)> {
        let gaps = self.gaps.lock().unwrap_or_else(PoisonError::into_inner);
        gaps.clone()
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
    }
}

fn ask(port: u16) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"PING\r\n")?;
    stream.read_exact(&mut [0; 5])
}
