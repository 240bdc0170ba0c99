//! A client that sends what it is told, right or wrong, and reads what comes.
//!
//! Must never: mend a request; to be wrong is what some of them are for.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// Longer than any answer may take.
pub(crate) const AGES: Duration = Duration::from_secs(20);

/// Where a replica listens.
#[derive(Clone, Debug)]
pub(crate) struct Client(pub(crate) SocketAddr);

/// What came.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Client {
    /// Sends bytes and the end of them, and reads all that comes.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect_timeout(&self.0, AGES).expect("a connection");
        stream.set_read_timeout(Some(AGES)).expect("set");
        stream.set_write_timeout(Some(AGES)).expect("set");
        // It may have heard enough.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        if let Err(error) = stream.read_to_end(&mut answer) {
            let hung = matches!(
                error.kind(),
                std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
            );
            assert!(
                !hung,
                "no answer within {AGES:?} to {:?}",
                String::from_utf8_lossy(bytes)
            );
        }
        answer
    }

    /// Sends a request.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            request += &format!("Host: {}\r\n", self.0);
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() || method == "POST" {
            request += &format!("Content-Length: {}\r\n", body.len());
        }
        let answer = self.raw(format!("{request}\r\n{body}").as_bytes());
        Answer::read(&answer)
            .unwrap_or_else(|| panic!("{method} {path}: {:?}", String::from_utf8_lossy(&answer)))
    }

    /// Asks for something without a token.
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "")
    }

    /// Asks with a token.
    pub(crate) fn get_as(&self, token: &str, path: &str) -> Answer {
        self.send(
            "GET",
            path,
            &[("Authorization", &format!("Bearer {token}"))],
            "",
        )
    }

    /// Orders something.
    pub(crate) fn post_as(&self, token: &str, path: &str) -> Answer {
        self.send(
            "POST",
            path,
            &[("Authorization", &format!("Bearer {token}"))],
            "",
        )
    }

    /// The items of a list, page by page.
    pub(crate) fn all(&self, path: &str) -> Vec<Value> {
        let mut items = Vec::new();
        let mut next = Some(path.to_owned());
        while let Some(path) = next {
            let page = self.get(&path).json();
            items.extend(page["items"].as_array().expect("a list").clone());
            next = page["next"].as_str().map(str::to_owned);
        }
        items
    }
}

impl Answer {
    /// Reads the first answer; none where there is no whole head.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n")?;
        let status = head
            .strip_prefix("HTTP/1.1 ")
            .or(head.strip_prefix("HTTP/1.0 "))?;
        Some(Self {
            status: status.get(..3)?.parse().ok()?,
            head: head.to_owned(),
            body: body.to_owned(),
        })
    }

    /// A header of it.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        let found = lines.find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim())
    }

    /// Its body.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Checks that it is an error as RFC 9457 has it, of this kind.
    pub(crate) fn assert_problem(&self, status: u16, kind: &str) {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json"),
            "{self:?}"
        );
        let problem = self.json();
        assert_eq!(
            problem["type"],
            format!("urn:soloist:problem:{kind}"),
            "{self:?}"
        );
        assert_eq!(problem["status"], status, "{self:?}");
        assert!(
            problem["title"]
                .as_str()
                .is_some_and(|title| !title.is_empty())
        );
        assert!(
            problem["detail"]
                .as_str()
                .is_some_and(|detail| !detail.is_empty()),
            "{self:?}"
        );
    }
}
