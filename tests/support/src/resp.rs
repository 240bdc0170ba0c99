//! What the tests themselves say to a Redis server: one command, one reply (RESP2).

use std::io::{BufRead, BufReader, ErrorKind, Result, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// How long a command of the test's own may take, on a busy machine.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

/// How it is seen that the other side closed a connection.
const CLOSED: [ErrorKind; 3] = [
    ErrorKind::BrokenPipe,
    ErrorKind::ConnectionReset,
    ErrorKind::UnexpectedEof,
];

/// Sends one command and reads one reply (RESP2).
pub(crate) fn converse(port: u16, arguments: &[&str]) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(COMMAND_TIMEOUT))?;
    let mut request = format!("*{}\r\n", arguments.len());
    for argument in arguments {
        request.push_str(&format!("${}\r\n{argument}\r\n", argument.len()));
    }
    stream.write_all(request.as_bytes())?;
    read_reply(&mut BufReader::new(stream))
}

/// The same for what may be asked twice: it is, where the server closes the connection.
pub(crate) fn converse_again(port: u16, arguments: &[&str]) -> Result<String> {
    match converse(port, arguments) {
        Err(error) if CLOSED.contains(&error.kind()) => converse(port, arguments),
        answer => answer,
    }
}

fn read_reply(stream: &mut impl BufRead) -> Result<String> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let line = line.trim_end();
    let (kind, rest) = line.split_at_checked(1).ok_or(ErrorKind::UnexpectedEof)?;
    let length = || usize::try_from(rest.parse::<i64>().unwrap_or(-1)).ok();
    match kind {
        "$" => {
            let Some(length) = length() else {
                return Ok(String::new());
            };
            let mut bytes = vec![0; length + 2];
            stream.read_exact(&mut bytes)?;
            bytes.truncate(length);
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        }
        "*" => {
            let elements: Result<Vec<String>> = (0..length().unwrap_or(0))
                .map(|_| read_reply(stream))
                .collect();
            Ok(elements?.join("\n"))
        }
        _ => Ok(rest.to_owned()),
    }
}
