//! Which server program tests start, and which version it is.

use std::process::{Command, Stdio};

use crate::redis::RedisServer;

/// Names another program than the one on PATH: an older or newer Redis, or Valkey. `redis.sh` reads
/// it too.
const VARIABLE: &str = "SOLOIST_TEST_REDIS_SERVER";

/// # Panics
///
/// When there is none.
pub(crate) fn require() {
    let program = std::env::var(VARIABLE).unwrap_or_else(|_| "redis-server".to_owned());
    let found = Command::new(&program)
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    assert!(
        found.is_ok_and(|status| status.success()),
        "this test needs {program} (7.0 or newer) on PATH and found none: \
         run `make test`, or scripts/install-test-tools, which installs it; \
         {VARIABLE} names another program"
    );
}

/// What a server calls itself, as in `redis 7.0.15` or `valkey 8.0.1`.
#[must_use]
pub fn version(server: &RedisServer) -> String {
    let info = server.command(&["INFO", "server"]);
    let field = |name: &str| {
        let mut lines = info.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
    };
    // Valkey says which Redis it is like, too.
    match (field("valkey_version"), field("redis_version")) {
        (Some(valkey), _) => format!("valkey {valkey}"),
        (None, redis) => format!("redis {}", redis.unwrap_or("unknown")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_says_which_version_it_is() {
        let version = version(RedisServer::shared());
        let (name, number) = version.split_once(' ').expect("two words");
        assert!(["redis", "valkey"].contains(&name), "{version}");
        assert!(
            number.split('.').all(|part| part.parse::<u32>().is_ok()),
            "{version}"
        );
    }
}
