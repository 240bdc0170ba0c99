//! What is said on the wire (<https://redis.io/docs/latest/develop/reference/protocol-spec/>).

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// There is none.
    Nil,
    /// A number.
    Integer(i64),
    /// Bytes.
    Bulk(Vec<u8>),
    /// A word of the server's own.
    Status(String),
    /// It begins with its code.
    Error(String),
    /// Several.
    Array(Vec<Reply>),
}

impl Reply {
    pub(super) fn text(text: &str) -> Self {
        Self::Bulk(text.as_bytes().to_vec())
    }

    pub(super) fn count(count: usize) -> Self {
        Self::Integer(i64::try_from(count).expect("few enough"))
    }

    pub(super) fn bulks(parts: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self::Array(parts.into_iter().map(Self::Bulk).collect())
    }

    /// Adds the bytes of it.
    pub fn encode(&self, to: &mut Vec<u8>) {
        match self {
            Self::Nil => to.extend_from_slice(b"$-1\r\n"),
            Self::Integer(number) => to.extend_from_slice(format!(":{number}\r\n").as_bytes()),
            Self::Status(word) => to.extend_from_slice(format!("+{word}\r\n").as_bytes()),
            Self::Error(error) => to.extend_from_slice(format!("-{error}\r\n").as_bytes()),
            Self::Bulk(bytes) => {
                to.extend_from_slice(format!("${}\r\n", bytes.len()).as_bytes());
                to.extend_from_slice(bytes);
                to.extend_from_slice(b"\r\n");
            }
            Self::Array(parts) => {
                to.extend_from_slice(format!("*{}\r\n", parts.len()).as_bytes());
                parts.iter().for_each(|part| part.encode(to));
            }
        }
    }
}

/// Takes the first command off what was received, if all of it is there: its words.
///
/// # Panics
///
/// Where it is none.
pub fn read_command(received: &mut Vec<u8>) -> Option<Vec<Vec<u8>>> {
    let mut at = 0;
    let count = number(received, &mut at, b'*')?;
    let mut words = Vec::with_capacity(count);
    for _ in 0..count {
        let length = number(received, &mut at, b'$')?;
        words.push(received.get(at..at + length)?.to_vec());
        at += length + 2;
    }
    (at <= received.len()).then(|| {
        received.drain(..at);
        words
    })
}

/// The number on a line that begins with `mark`.
fn number(received: &[u8], at: &mut usize, mark: u8) -> Option<usize> {
    let line = received.get(*at..)?;
    let end = line.windows(2).position(|pair| pair == b"\r\n")?;
    assert_eq!(line[0], mark, "a command is a list of words");
    *at += end + 2;
    let digits = std::str::from_utf8(&line[1..end]).expect("digits");
    Some(digits.parse().expect("a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_read_once_all_of_it_is_there() {
        let bytes = b"*2\r\n$4\r\nHGET\r\n$1\r\nk\r\n";
        for length in 0..bytes.len() {
            assert_eq!(read_command(&mut bytes[..length].to_vec()), None);
        }
        let mut received = [bytes.as_slice(), b"*1\r\n$4"].concat();
        let words = read_command(&mut received).expect("one is there");
        assert_eq!(words, [b"HGET".to_vec(), b"k".to_vec()]);
        assert_eq!(received, b"*1\r\n$4");
    }
}
