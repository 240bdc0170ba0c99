//! A user who is allowed what the manual says that soloist needs, and nothing more.

use crate::redis::RedisServer;

const MANUAL: &str = include_str!("../../../docs/redis.md");

/// The words of the rule in the manual, for a namespace, without user and password.
///
/// # Panics
///
/// When the manual has none.
#[must_use]
pub fn rule(namespace: &str) -> Vec<String> {
    let (_, rule) = MANUAL.split_once(">PASSWORD ").expect("a rule");
    let (rule, _) = rule.split_once("```").expect("its end");
    let words = rule.split_whitespace().filter(|word| *word != "\\");
    words
        .map(|word| word.replace("NAMESPACE", namespace))
        .collect()
}

/// The same for a cluster.
///
/// # Panics
///
/// When the manual has none.
#[must_use]
pub fn rule_in_cluster(namespace: &str) -> Vec<String> {
    let (_, added) = MANUAL.rsplit_once("ACL SETUSER USER ").expect("a rule");
    let (added, _) = added.split_once("```").expect("its end");
    let added = added.split_whitespace().map(str::to_owned);
    rule(namespace).into_iter().chain(added).collect()
}

/// Makes a user of this name, with any password, who is allowed just that; answers the user's URL.
///
/// # Panics
///
/// When the server doesn't take the rule.
pub fn set_user(server: &RedisServer, user: &str, rule: &[String]) -> String {
    let mut command = vec!["ACL", "SETUSER", user, "reset", "on", "nopass"];
    command.extend(rule.iter().map(String::as_str));
    assert_eq!(server.command(&command), "OK", "{rule:?}");
    format!("redis://{user}:any@127.0.0.1:{}", server.port())
}
