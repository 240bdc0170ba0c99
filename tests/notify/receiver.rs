//! A server that takes notifications down, in the manner that the test asks for.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// How long anything may take that has to come.
const IN_TIME: Duration = Duration::from_secs(60);

/// How a request is answered.
#[derive(Clone, Debug)]
pub(crate) enum Manner {
    /// With a status and headers.
    Status(u16, &'static str),
    /// Not at all: the connection is reset.
    Reset,
    /// Not at all, for as long as the client cares to wait.
    Silence,
    /// Taken, and then a body that comes byte by byte and never ends.
    Drips,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Names in small letters.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    /// It was answered as taken.
    pub(crate) taken: bool,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(other, _)| other == name)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).expect("JSON")
    }

    pub(crate) fn event(&self) -> String {
        let json = self.json();
        json["data"]["event"].as_str().expect("an event").to_owned()
    }
}

#[derive(Default)]
struct State {
    requests: Vec<Request>,
    manners: VecDeque<Manner>,
    always: Option<Manner>,
}

/// See the module.
pub(crate) struct Receiver {
    address: SocketAddr,
    state: Arc<(Mutex<State>, Condvar)>,
}

impl Receiver {
    /// One that takes all, but for the first requests.
    pub(crate) fn start(manners: impl IntoIterator<Item = Manner>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let state = State {
            manners: manners.into_iter().collect(),
            ..State::default()
        };
        let receiver = Self {
            address: listener.local_addr().expect("an address"),
            state: Arc::new((Mutex::new(state), Condvar::new())),
        };
        let state = Arc::clone(&receiver.state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&state);
                std::thread::spawn(move || serve(stream, &state));
            }
        });
        receiver
    }

    /// From now on all requests are answered so, or as taken.
    pub(crate) fn always(&self, manner: Option<Manner>) {
        self.state.0.lock().expect("a state").always = manner;
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.state.0.lock().expect("a state").requests.clone()
    }

    /// Those that were answered as taken.
    pub(crate) fn taken(&self) -> Vec<Request> {
        let mut requests = self.requests();
        requests.retain(|request| request.taken);
        requests
    }

    /// Waits until the requests are as wanted.
    pub(crate) fn wait_for<T>(&self, wanted: impl Fn(&[Request]) -> Option<T>) -> T {
        let deadline = Instant::now() + IN_TIME;
        let (state, changed) = &*self.state;
        let mut state = state.lock().expect("a state");
        loop {
            if let Some(found) = wanted(&state.requests) {
                return found;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "it never came: {:#?}", state.requests);
            state = changed.wait_timeout(state, left).expect("a state").0;
        }
    }

    /// Waits until so many were taken.
    pub(crate) fn wait_for_taken(&self, count: usize) -> Vec<Request> {
        self.wait_for(|requests| {
            let taken = requests.iter().filter(|request| request.taken);
            let taken: Vec<Request> = taken.cloned().collect();
            (taken.len() >= count).then_some(taken)
        })
    }
}

fn serve(mut stream: TcpStream, state: &(Mutex<State>, Condvar)) {
    let Some(mut request) = read(&stream) else {
        return;
    };
    let manner = {
        let mut state = state.0.lock().expect("a state");
        let always = state.always.clone();
        always.or_else(|| state.manners.pop_front())
    };
    let manner = manner.unwrap_or(Manner::Status(204, ""));
    request.taken = matches!(manner, Manner::Status(200..=299, _) | Manner::Drips);
    {
        state.0.lock().expect("a state").requests.push(request);
        state.1.notify_all();
    }
    match manner {
        Manner::Status(code, headers) => {
            let answer = format!(
                "HTTP/1.1 {code} Whatever\r\n{headers}content-length: 0\r\nconnection: close\r\n\r\n"
            );
            let _ = stream.write_all(answer.as_bytes());
        }
        Manner::Reset => {
            let linger = Some(Duration::ZERO);
            rustix::net::sockopt::set_socket_linger(&stream, linger).expect("a socket");
        }
        Manner::Silence => {
            // Until the client hangs up.
            let _ = stream.read(&mut [0]);
        }
        Manner::Drips => {
            let head = "HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n";
            let mut open = stream.write_all(head.as_bytes()).is_ok();
            while open {
                std::thread::sleep(Duration::from_millis(100));
                open = stream.write_all(b".").is_ok();
            }
        }
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut request = Request {
        method,
        path,
        headers,
        body: String::new(),
        taken: false,
    };
    let length = request.header("content-length").unwrap_or("0");
    let mut body = vec![0; length.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    request.body = String::from_utf8(body).ok()?;
    Some(request)
}
