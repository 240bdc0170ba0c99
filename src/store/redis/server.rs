//! What the server says of itself when a connection is made, and whether it will do.
//!
//! Must never: let a server pass on which a script could run unguarded: before Redis 7.0 there
//! are no script flags, so a script would write half of what it decided and stop.

use std::fmt;

use redis::{Pipeline, Value};

use super::fault::Fault;

/// Redis 7.0: script flags, XADD with a partial id. Valkey began at 7.2 and gives that as its
/// Redis version.
const OLDEST_VERSION: Version = Version(7, 0);

/// The part of `INFO` that matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerInfo {
    /// Whose data these are, as [`process`] has it.
    pub(super) process: String,
    pub(super) version: Version,
    /// It takes writes: it is nobody's replica.
    pub(super) is_master: bool,
}

/// A version of Redis, or the one that a server claims to be compatible with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version(u32, u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

impl ServerInfo {
    /// What a new connection asks. One section each: several in one command came with 7.0, and
    /// an older server is to be told from its version, not from a syntax error.
    pub(super) fn questions() -> Pipeline {
        let mut commands = redis::pipe();
        for section in ["server", "replication"] {
            commands.cmd("INFO").arg(section);
        }
        commands
    }

    /// Reads the answers, and refuses a server that won't do.
    pub(super) fn read(place: &str, answers: &[Value]) -> Result<Self, Fault> {
        let text: String = answers.iter().map(text_of).collect();
        let field = |name: &str| field(&text, name);
        let version = field("redis_version").and_then(parse_version);
        let (Some(run_id), Some(version)) = (field("run_id"), version) else {
            let cause = "its INFO tells neither run_id nor redis_version";
            return Err(Fault::refused(place, cause, NEEDED));
        };
        if version < OLDEST_VERSION {
            return Err(Fault::refused(
                place,
                format!("it is Redis {version}"),
                NEEDED,
            ));
        }
        Ok(Self {
            process: process(run_id, field("master_replid2")),
            version,
            is_master: field("role").is_none_or(|role| role == "master"),
        })
    }
}

/// Which process this is, by an id that is drawn anew at each start; and since when it is a master,
/// if it was a replica before: its data may have been replaced by older ones meanwhile, in the same
/// process (`INFO replication`: at a promotion `master_replid2` becomes the id of the history that
/// it followed). `lua/common.lua` does the same.
fn process(run_id: &str, followed: Option<&str>) -> String {
    let followed = followed.unwrap_or_default();
    match followed.bytes().all(|digit| digit == b'0') {
        true => run_id.to_owned(),
        false => format!("{run_id}/{followed}"),
    }
}

const NEEDED: &str = "soloist needs Redis 7.0, Valkey 7.2 or newer";

pub(super) fn text_of(answer: &Value) -> &str {
    match answer {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).unwrap_or_default(),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => text,
        _ => "",
    }
}

pub(super) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value.trim())
}

fn parse_version(text: &str) -> Option<Version> {
    let mut parts = text.split('.').map(|part| part.parse().ok());
    Some(Version(parts.next()??, parts.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(info: &str) -> Result<ServerInfo, String> {
        let answers = [Value::BulkString(info.as_bytes().to_vec())];
        ServerInfo::read("redis://there", &answers).map_err(|fault| fault.error.to_string())
    }

    #[test]
    fn a_server_that_is_too_old_is_told_what_is_needed() {
        let error = read("redis_version:6.2.14\r\nrun_id:abc\r\n").unwrap_err();
        assert_eq!(
            error,
            "the store at redis://there refuses: it is Redis 6.2; \
             soloist needs Redis 7.0, Valkey 7.2 or newer"
        );
        assert!(read("garbage").is_err());
    }

    #[test]
    fn valkey_passes_by_the_version_it_is_compatible_with() {
        let info = "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.0\r\n\
            run_id:abc\r\n";
        let server = read(info).unwrap();
        assert_eq!(server.process, "abc");
    }

    #[test]
    fn a_promotion_makes_another_process_of_it() {
        let never = "master_replid2:0000000000\r\n";
        let followed = "master_replid2:00de00\r\n";
        let of = |more: &str| read(&format!("redis_version:7.2.4\r\nrun_id:abc\r\n{more}"));
        assert_eq!(of(never).unwrap().process, "abc");
        assert_eq!(of(followed).unwrap().process, "abc/00de00");
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(read("redis_version:10.0.0\r\nrun_id:abc\r\n").is_ok());
    }
}
