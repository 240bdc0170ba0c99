//! A Redis server in memory, for tests that decide what arrives when: it runs the real scripts,
//! and has as many of the commands as those use. A test beside its users holds that it answers as
//! a real server does.
//!
//! Must never: read a clock, or leave anything to chance: who asks says what time it is.

mod data;
mod reply;
mod script;
mod streams;
#[cfg(test)]
mod tests;

pub use self::data::Data;
pub use self::reply::{Reply, read_command};
pub use self::script::Scripts;

/// A server: what it holds, and which process it is.
#[derive(Debug)]
pub struct ModelServer {
    /// Survives the process if the test lets it.
    pub data: Data,
    /// Drawn anew at each start of a real one.
    pub run_id: String,
}

impl ModelServer {
    /// Carries out a command: its words, at this time of the server's clock.
    pub fn call(&mut self, words: &[Vec<u8>], now_us: i64, scripts: &Scripts) -> Reply {
        let word = |at: usize| words.get(at).map(Vec::as_slice).unwrap_or_default();
        match name(words).as_str() {
            "SCRIPT" if word(1).eq_ignore_ascii_case(b"LOAD") => match scripts.load(word(2)) {
                Ok(digest) => Reply::Bulk(digest.into_bytes()),
                Err(error) => Reply::Error(error),
            },
            "EVAL" => match scripts.load(word(1)) {
                Ok(digest) => scripts.run(&digest, &words[2..], self, now_us),
                Err(error) => Reply::Error(error),
            },
            "EVALSHA" => {
                let digest = String::from_utf8_lossy(word(1)).into_owned();
                scripts.run(&digest, &words[2..], self, now_us)
            }
            _ => self.command(words, now_us),
        }
    }

    /// One that scripts may use as well.
    fn command(&mut self, words: &[Vec<u8>], now_us: i64) -> Reply {
        match name(words).as_str() {
            "PING" => Reply::Status("PONG".to_owned()),
            "CONFIG" => Reply::Array(Vec::new()),
            "PUBLISH" => Reply::Integer(0),
            "INFO" => Reply::text(&format!(
                "redis_version:7.4.0\r\nrun_id:{}\r\nrole:master\r\n",
                self.run_id
            )),
            "TIME" => Reply::Array(vec![
                Reply::text(&now_us.div_euclid(1_000_000).to_string()),
                Reply::text(&now_us.rem_euclid(1_000_000).to_string()),
            ]),
            name => self.data.command(name, &words[1..], now_us),
        }
    }
}

fn name(words: &[Vec<u8>]) -> String {
    let name = words.first().map(Vec::as_slice).unwrap_or_default();
    String::from_utf8_lossy(name).to_uppercase()
}
