//! A link to a server that a test may cut without anybody being told: what is sent into it is
//! held back, and arrives late if it is mended. It may also refuse everybody, or lose what the server
//! says. One connection alone may be stalled, or closed in the middle of a reply.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

/// How long it is waited for a request.
const PATIENCE: Duration = Duration::from_secs(60);

/// Of what was sent, so much is kept to look for a needle in.
const NEEDLE_LIMIT: usize = 256;

/// A relay from a port of its own to one on 127.0.0.1. It ends with the test process.
#[derive(Clone, Debug)]
pub struct Relay {
    port: u16,
    gate: Arc<Gate>,
}

#[derive(Debug, Default)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
    ends: Mutex<Vec<Weak<Ends>>>,
}

/// Both ends of a connection.
#[derive(Debug)]
struct Ends {
    client: TcpStream,
    server: TcpStream,
}

#[derive(Debug, Default)]
struct State {
    requests_cut: bool,
    replies_cut: bool,
    refusing: bool,
    losing_replies: bool,
    trap: Option<Trap>,
    delay: Duration,
    /// What came to harm.
    harmed: u64,
}

/// What is done as soon as a client sends something.
#[derive(Debug)]
struct Trap {
    needle: Vec<u8>,
    action: Action,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    /// Nothing passes this way any more.
    Cut(Way),
    /// Nothing passes on the connection that sent it, for ever.
    Stall,
    /// Of the reply to it, the first byte passes; then its connection is closed.
    Break,
}

/// One client's connection.
#[derive(Debug, Default)]
struct Connection {
    stalled: AtomicBool,
    breaking: AtomicBool,
    /// Something that the server said on it is lost.
    torn: AtomicBool,
}

/// In which direction something passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Requests,
    Replies,
}

impl State {
    fn is_cut(&self, way: Way) -> bool {
        match way {
            Way::Requests => self.requests_cut,
            Way::Replies => self.replies_cut,
        }
    }

    /// Acts if the needle was sent, which is forgotten then: it may be waited for again.
    fn spring(&mut self, sent: &mut Vec<u8>, connection: &Connection) {
        let sprung = self.trap.take_if(|trap| contains(sent, &trap.needle));
        match sprung.map(|trap| trap.action) {
            Some(Action::Cut(Way::Requests)) => self.requests_cut = true,
            Some(Action::Cut(Way::Replies)) => self.replies_cut = true,
            Some(Action::Stall) => connection.stalled.store(true, Ordering::SeqCst),
            Some(Action::Break) => connection.breaking.store(true, Ordering::SeqCst),
            None => return,
        }
        self.harmed += 1;
        sent.clear();
    }
}

fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|part| part == needle)
}

impl Gate {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    fn wait_while(&self, mut condition: impl FnMut(&State) -> bool) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.changed.wait_while(state, |state| condition(state));
        drop(state.unwrap_or_else(PoisonError::into_inner));
    }

    fn wait_until_open(&self, way: Way, connection: &Connection) {
        self.change(|state| state.harmed += u64::from(state.is_cut(way)));
        self.wait_while(|state| state.is_cut(way) || connection.stalled.load(Ordering::SeqCst));
    }

    /// How long what passes has to wait.
    fn delay(&self) -> Duration {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.harmed += u64::from(!state.delay.is_zero());
        state.delay
    }

    /// Whether what the server just said on this connection is lost.
    fn loses(&self, connection: &Connection) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.losing_replies {
            state.harmed += 1;
            connection.torn.store(true, Ordering::SeqCst);
        }
        state.losing_replies
    }

    /// Whether nobody may connect now.
    fn refuses(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.harmed += u64::from(state.refusing);
        state.refusing
    }

    fn keep(&self, ends: &Arc<Ends>) {
        let mut all = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|ends| ends.strong_count() > 0);
        all.push(Arc::downgrade(ends));
    }

    /// Closes all connections; says how many there were.
    fn close_all(&self) -> u64 {
        let mut all = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        let living = all.drain(..).filter_map(|ends| ends.upgrade());
        let closed = living.map(|ends| {
            let _ = ends.client.shutdown(Shutdown::Both);
            let _ = ends.server.shutdown(Shutdown::Both);
        });
        closed.count() as u64
    }
}

impl Relay {
    /// A relay to this port.
    ///
    /// # Panics
    ///
    /// When there is no free port.
    #[must_use]
    pub fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let relay = Self {
            port: listener.local_addr().expect("a bound address").port(),
            gate: Arc::default(),
        };
        let gate = Arc::clone(&relay.gate);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let gate = Arc::clone(&gate);
                thread::spawn(move || connect(client, port, &gate));
            }
        });
        relay
    }

    /// `redis://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Nothing passes from now on, and nobody is told. Who connects waits as well.
    pub fn cut(&self) {
        self.gate.change(|state| {
            state.requests_cut = true;
            state.replies_cut = true;
        });
    }

    /// The next request that has `needle` in it is held back, with all that clients send after
    /// it.
    pub fn cut_at_request(&self, needle: &str) {
        self.set(needle, Action::Cut(Way::Requests));
    }

    /// What was held back goes on, up to the next request that has `needle` in it.
    pub fn mend_and_cut_at_request(&self, needle: &str) {
        let needle = needle.as_bytes().to_vec();
        let action = Action::Cut(Way::Requests);
        self.gate.change(|state| {
            *state = State::default();
            state.trap = Some(Trap { needle, action });
        });
    }

    /// The next request that has `needle` in it passes, and nothing that the server says after.
    pub fn cut_at_reply_to(&self, needle: &str) {
        self.set(needle, Action::Cut(Way::Replies));
    }

    /// The connection on which the next request comes that has `needle` in it is dead from then
    /// on, that request included, and nobody is told. Others go on.
    pub fn stall_connection_at_request(&self, needle: &str) {
        self.set(needle, Action::Stall);
    }

    /// Of the reply to the next request that has `needle` in it the first byte arrives, and then
    /// the end of the connection.
    pub fn break_reply_to(&self, needle: &str) {
        self.set(needle, Action::Break);
    }

    /// All connections end, and who connects is closed at once.
    pub fn refuse(&self) {
        self.gate.change(|state| state.refusing = true);
        let closed = self.gate.close_all();
        self.gate.change(|state| state.harmed += closed);
    }

    /// What is asked arrives, and nothing that the server says. A connection on which something was
    /// lost is closed instead of going on, once this is mended.
    pub fn lose_replies(&self) {
        self.gate.change(|state| state.losing_replies = true);
    }

    /// How often something was held back, delayed, lost or refused, and how many connections were
    /// closed, since all was well.
    #[must_use]
    pub fn harmed(&self) -> u64 {
        let state = self.gate.state.lock();
        state.unwrap_or_else(PoisonError::into_inner).harmed
    }

    /// All that passes takes so much longer, each way.
    pub fn delay(&self, delay: Duration) {
        self.gate.change(|state| state.delay = delay);
    }

    fn set(&self, needle: &str, action: Action) {
        let needle = needle.as_bytes().to_vec();
        self.gate
            .change(|state| state.trap = Some(Trap { needle, action }));
    }

    /// Waits until such a request has come.
    ///
    /// # Panics
    ///
    /// When none comes.
    pub fn wait_until_cut(&self) {
        let state = self.gate.state.lock();
        let state = state.unwrap_or_else(PoisonError::into_inner);
        let waits = |state: &mut State| state.trap.is_some();
        let waited = self.gate.changed.wait_timeout_while(state, PATIENCE, waits);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let sprung = state.trap.is_none();
        drop(state);
        assert!(sprung, "no such request within {PATIENCE:?}");
    }

    /// Whether such a request has come.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        let state = self.gate.state.lock();
        let state = state.unwrap_or_else(PoisonError::into_inner);
        state.trap.is_none()
    }

    /// All goes on, with what was held back first.
    pub fn mend(&self) {
        self.gate.change(|state| *state = State::default());
    }
}

fn connect(client: TcpStream, port: u16, gate: &Arc<Gate>) {
    let connection = Arc::new(Connection::default());
    gate.wait_until_open(Way::Requests, &connection);
    if gate.refuses() {
        return;
    }
    let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else {
        return;
    };
    let ends = Arc::new(Ends { client, server });
    gate.keep(&ends);
    let Ends { client, server } = &*ends;
    let (Ok(from_client), Ok(to_server)) = (client.try_clone(), server.try_clone()) else {
        return;
    };
    let (there, same) = (Arc::clone(gate), Arc::clone(&connection));
    thread::spawn(move || pass(from_client, to_server, &there, &same, Way::Requests));
    if let (Ok(from_server), Ok(to_client)) = (server.try_clone(), client.try_clone()) {
        pass(from_server, to_client, gate, &connection, Way::Replies);
    }
}

/// Passes what comes on, until either side closes.
fn pass(mut from: TcpStream, mut to: TcpStream, gate: &Gate, connection: &Connection, way: Way) {
    let _ = to.set_nodelay(true);
    let mut buffer = [0; 16 * 1024];
    // What was sent last, as a needle may come in two parts.
    let mut sent = Vec::new();
    loop {
        let mut length = from.read(&mut buffer).unwrap_or(0);
        if way == Way::Requests {
            sent.extend_from_slice(&buffer[..length]);
            gate.change(|state| state.spring(&mut sent, connection));
            sent.drain(..sent.len().saturating_sub(NEEDLE_LIMIT));
        }
        gate.wait_until_open(way, connection);
        thread::sleep(gate.delay());
        if way == Way::Replies && length > 0 {
            if gate.loses(connection) {
                continue;
            }
            if connection.torn.load(Ordering::SeqCst) {
                break;
            }
        }
        let breaks = way == Way::Replies && connection.breaking.load(Ordering::SeqCst);
        length = if breaks { length.min(1) } else { length };
        if length == 0 || to.write_all(&buffer[..length]).is_err() || breaks {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_into_a_cut_link_arrives_when_it_is_mended() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Relay::to(server.local_addr().unwrap().port());
        let mut client = TcpStream::connect(("127.0.0.1", relay.port)).unwrap();
        let (mut served, _) = server.accept().unwrap();
        let mut buffer = [0; 4];
        client.write_all(b"ping").unwrap();
        served.read_exact(&mut buffer).unwrap();
        assert_eq!(&buffer, b"ping");
        relay.cut();
        client.write_all(b"late").unwrap();
        served
            .set_read_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        assert!(served.read(&mut buffer).is_err(), "the link is cut");
        relay.mend();
        served
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        served.read_exact(&mut buffer).unwrap();
        assert_eq!(&buffer, b"late");
    }

    #[test]
    fn a_stalled_connection_leaves_the_others_alone() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Relay::to(server.local_addr().unwrap().port());
        let mut buffer = [0; 6];
        let connect = || {
            let client = TcpStream::connect(("127.0.0.1", relay.port)).unwrap();
            (client, server.accept().unwrap().0)
        };
        let ((mut one, mut served), (mut two, mut also)) = (connect(), connect());
        relay.stall_connection_at_request("needle");
        one.write_all(b"needle").unwrap();
        relay.wait_until_cut();
        two.write_all(b"needle").unwrap();
        also.read_exact(&mut buffer).unwrap();
        served
            .set_read_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        assert!(served.read(&mut buffer).is_err(), "it is stalled");
        relay.break_reply_to("needle");
        two.write_all(b"needle").unwrap();
        also.read_exact(&mut buffer).unwrap();
        also.write_all(b"reply").unwrap();
        assert_eq!(two.read(&mut buffer).unwrap(), 1);
        assert_eq!(two.read(&mut buffer).unwrap(), 0, "it is closed");
    }

    #[test]
    fn who_is_refused_is_told_and_nobody_else_is_when_it_is_mended() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Relay::to(server.local_addr().unwrap().port());
        let mut client = TcpStream::connect(("127.0.0.1", relay.port)).unwrap();
        let (mut served, _) = server.accept().unwrap();
        let mut buffer = [0; 4];
        client.write_all(b"ping").unwrap();
        served.read_exact(&mut buffer).unwrap();
        let patience = Some(Duration::from_secs(10));
        client.set_read_timeout(patience).unwrap();
        assert_eq!(relay.harmed(), 0);
        relay.refuse();
        assert_eq!(client.read(&mut buffer).unwrap_or(0), 0, "it is closed");
        assert_eq!(relay.harmed(), 1);
        let mut refused = TcpStream::connect(("127.0.0.1", relay.port)).unwrap();
        assert_eq!(refused.read(&mut buffer).unwrap_or(0), 0, "it is closed");
        relay.mend();
        let mut client = TcpStream::connect(("127.0.0.1", relay.port)).unwrap();
        let (mut served, _) = server.accept().unwrap();
        client.write_all(b"ping").unwrap();
        served.read_exact(&mut buffer).unwrap();
    }

    #[test]
    fn a_connection_that_lost_a_reply_never_shows_a_later_one() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Relay::to(server.local_addr().unwrap().port());
        let mut client = TcpStream::connect(("127.0.0.1", relay.port)).unwrap();
        let (mut served, _) = server.accept().unwrap();
        let mut buffer = [0; 4];
        relay.lose_replies();
        client.write_all(b"ping").unwrap();
        served.read_exact(&mut buffer).unwrap();
        served.write_all(b"lost").unwrap();
        while relay.harmed() == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        relay.mend();
        served.write_all(b"late").unwrap();
        assert_eq!(client.read(&mut buffer).unwrap_or(0), 0, "it is closed");
    }

    #[test]
    fn a_reply_is_held_back_though_its_request_has_arrived() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Relay::to(server.local_addr().unwrap().port());
        let mut client = TcpStream::connect(("127.0.0.1", relay.port)).unwrap();
        let (mut served, _) = server.accept().unwrap();
        let mut buffer = [0; 4];
        relay.cut_at_reply_to("needle");
        client.write_all(b"nee").unwrap();
        served.read_exact(&mut buffer[..3]).unwrap();
        client.write_all(b"dle.").unwrap();
        relay.wait_until_cut();
        served.read_exact(&mut buffer).unwrap();
        assert_eq!(&buffer, b"dle.");
        served.write_all(b"pong").unwrap();
        client
            .set_read_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        assert!(client.read(&mut buffer).is_err(), "the reply is held back");
        relay.mend();
        client
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        client.read_exact(&mut buffer).unwrap();
        assert_eq!(&buffer, b"pong");
    }
}
