//! What a user of the server has to be allowed, and which of it one isn't.
//!
//! Each permission is tried by a call that changes nothing: the server judges permission before
//! it looks at the arguments, so what would write is asked in a form that it refuses. Before
//! 7.2 a script that is denied a command doesn't say which, hence all that asking.
//!
//! Must never: change anything, or need a permission of its own.

use redis::{Pipeline, Value};

use super::fault::Fault;
use super::keys::Keys;
use super::news::Spread;

/// Stands for a key among the words of a command.
const KEY: &str = "\0key";
/// Stands for the channel.
const CHANNEL: &str = "\0channel";

/// A rule, and the call by which it is tried; none where that would do something.
pub(super) type Trial = (&'static str, &'static [&'static str]);

/// What `min_replicas_ack` needs: of no replica, and so without a wait.
pub(super) const OF_ACKNOWLEDGEMENTS: &[Trial] = &[("+wait", &["WAIT", "0", "0"])];

/// Every command that is used, with a call of it that does nothing. `SELECT` and those that
/// every user may call are left out.
const TRIALS: [Trial; 21] = [
    ("+eval", &["EVAL", "return 0", "0"]),
    ("+evalsha", &["EVALSHA", "no digest", "0"]),
    ("+script|load", &["SCRIPT", "LOAD", "return 0"]),
    ("+info", &["INFO", "server"]),
    ("+time", &["TIME"]),
    ("+hget", &["HGET", KEY, ""]),
    ("+hgetall", &["HGETALL", KEY]),
    ("+hkeys", &["HKEYS", KEY]),
    ("+hmget", &["HMGET", KEY, ""]),
    // A field without its value.
    ("+hset", &["HSET", KEY, "", "", ""]),
    ("+hdel", &["HDEL", KEY, ""]),
    ("+zadd", &["ZADD", KEY, "no number", ""]),
    ("+zrem", &["ZREM", KEY, ""]),
    ("+zcard", &["ZCARD", KEY]),
    ("+zrangebyscore", &["ZRANGEBYSCORE", KEY, "0", "0"]),
    ("+xadd", &["XADD", KEY, "no id", "", ""]),
    ("+xtrim", &["XTRIM", KEY, "MAXLEN", "0"]),
    ("+xrange", &["XRANGE", KEY, "-", "+", "COUNT", "1"]),
    ("+xrevrange", &["XREVRANGE", KEY, "+", "-", "COUNT", "1"]),
    ("+unlink", &["UNLINK", KEY]),
    // A key that is not there has no other name.
    ("+rename", &["RENAME", KEY, KEY]),
];

/// Without these, news don't travel, and all else works: a message that says nothing, and what
/// isn't tried, as it would turn the connection into one that only listens.
const OF_NEWS: [Trial; 2] = [("+publish", &["PUBLISH", CHANNEL, ""]), ("+subscribe", &[])];

/// The same in a cluster.
const OF_SHARDED_NEWS: [Trial; 2] = [
    ("+spublish", &["SPUBLISH", CHANNEL, ""]),
    ("+ssubscribe", &[]),
];

/// What only a cluster needs. Whoever may not ask for the way never comes to trying.
const OF_CLUSTER: [Trial; 3] = [
    ("+cluster|keyslot", &[]),
    ("+cluster|nodes", &[]),
    ("+asking", &["ASKING"]),
];

/// What only needs to be allowed where a database other than 0 is used.
const SELECT: &str = "+select";

/// The whole of what a user needs, for `ACL SETUSER`.
pub(super) fn whole_rule(keys: &Keys) -> String {
    let mut words = vec![keys_rule(keys), channel_rule(keys)];
    words.extend(trials_of(keys).map(|(rule, _)| (*rule).to_owned()));
    // A cluster has one database.
    if keys.spread == Spread::Everywhere {
        words.push(SELECT.to_owned());
    }
    words.join(" ")
}

fn of_news(keys: &Keys) -> &'static [Trial] {
    match keys.spread {
        Spread::Everywhere => &OF_NEWS,
        Spread::Shard => &OF_SHARDED_NEWS,
    }
}

fn trials_of(keys: &Keys) -> impl Iterator<Item = &'static Trial> {
    let of_cluster: &[Trial] = match keys.spread {
        Spread::Everywhere => &[],
        Spread::Shard => &OF_CLUSTER,
    };
    TRIALS.iter().chain(of_cluster).chain(of_news(keys))
}

fn keys_rule(keys: &Keys) -> String {
    format!("~{}*", keys.prefix)
}

fn channel_rule(keys: &Keys) -> String {
    format!("&{}", keys.events)
}

/// What whoever may not subscribe lacks.
pub(super) fn rules_of_listening(keys: &Keys) -> [String; 2] {
    let subscribe = match keys.spread {
        Spread::Everywhere => "+subscribe",
        Spread::Shard => "+ssubscribe",
    };
    [subscribe.to_owned(), channel_rule(keys)]
}

/// A key that is never used, of which a kind that is never used otherwise can't be.
fn unused_key(keys: &Keys) -> String {
    format!("{}#", keys.history_prefix)
}

/// All keys that a user has to be allowed; of histories and outputs any will do.
fn all_keys(keys: &Keys) -> [String; 6] {
    [
        keys.jobs.clone(),
        keys.agenda.clone(),
        keys.replicas.clone(),
        keys.tables.clone(),
        unused_key(keys),
        format!("{}#", keys.output_prefix),
    ]
}

/// The calls by which permissions are tried.
pub(super) fn trials(keys: &Keys, also: &'static [Trial]) -> Pipeline {
    let mut commands = redis::pipe();
    for (_, words) in tried(keys).chain(also) {
        let mut words = words.iter();
        let command = commands.cmd(words.next().copied().unwrap_or_default());
        for word in words {
            match *word {
                KEY => command.arg(unused_key(keys)),
                CHANNEL => command.arg(&keys.events),
                word => command.arg(word),
            };
        }
    }
    for key in all_keys(keys) {
        commands.cmd("EVAL").arg("return 0").arg(1).arg(key);
    }
    commands
}

fn tried(keys: &Keys) -> impl Iterator<Item = &'static Trial> {
    trials_of(keys).filter(|(_, words)| !words.is_empty())
}

/// What a user isn't allowed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Lacking {
    /// Nothing works without these.
    pub(super) needed: Vec<String>,
    /// It takes longer without these.
    pub(super) of_news: Vec<String>,
}

/// Reads the answers to [`trials`].
pub(super) fn lacking(keys: &Keys, also: &'static [Trial], answers: &[Value]) -> Lacking {
    let (of_commands, of_keys) = answers
        .split_at_checked(tried(keys).count() + also.len())
        .unwrap_or_default();
    let mut lacking = Lacking::default();
    let denied = tried(keys)
        .chain(also)
        .zip(of_commands)
        .filter(|(_, answer)| is_denied(answer));
    let denied: Vec<_> = denied.map(|(trial, _)| trial).collect();
    let may_evaluate = !denied.iter().any(|(rule, _)| *rule == "+eval");
    // Where a key is denied, so is every command on it: nothing is known of the command.
    let keys_are_denied = may_evaluate && of_keys.iter().any(is_denied);
    if keys_are_denied {
        lacking.needed.push(keys_rule(keys));
    }
    for (rule, words) in denied {
        if of_news(keys).iter().any(|(of_news, _)| of_news == rule) {
            lacking.of_news = vec![(*rule).to_owned(), channel_rule(keys)];
        } else if !(keys_are_denied && words.contains(&KEY)) {
            lacking.needed.push((*rule).to_owned());
        }
    }
    lacking
}

fn is_denied(answer: &Value) -> bool {
    matches!(answer, Value::ServerError(error) if error.code() == "NOPERM")
}

/// Tells that news don't travel.
pub(super) fn warn_of_news(store: &str, user: &str, rules: &[String]) {
    let rules = rules.join(" ");
    tracing::warn!(
        store,
        "news to other replicas don't travel, and are found later: \
         the user `{user}` lacks {rules}; allow it with ACL SETUSER {user} {rules}"
    );
}

/// What is told of a user who isn't allowed something.
pub(super) fn lacks(place: &str, user: &str, rules: &[&str], keys: Option<&Keys>) -> Fault {
    let rules = rules.join(" ");
    let whole = keys.map_or_else(
        || "docs/redis.md has all that soloist needs".to_owned(),
        |keys| {
            format!(
                "all that soloist needs is ACL SETUSER {user} {}",
                whole_rule(keys)
            )
        },
    );
    Fault::refused(
        place,
        format!("the user `{user}` may not do what soloist does (NOPERM): {rules} is missing"),
        format!("allow it with ACL SETUSER {user} {rules}; {whole}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(denied: &[usize]) -> Vec<Value> {
        let keys = Keys::new("shop");
        let count = tried(&keys).count() + all_keys(&keys).len();
        let answer = |at| match denied.contains(&at) {
            true => redis::parse_redis_value(b"-NOPERM no\r\n").unwrap(),
            false => Value::Okay,
        };
        (0..count).map(answer).collect()
    }

    fn needed(denied: &[usize]) -> Vec<String> {
        lacking(&Keys::new("shop"), &[], &answers(denied)).needed
    }

    #[test]
    fn a_denied_key_is_told_from_denied_commands() {
        assert_eq!(
            lacking(&Keys::new("shop"), &[], &answers(&[])),
            Lacking::default()
        );
        assert_eq!(needed(&[5, 9]), ["+hget", "+hset"]);
        let commands = tried(&Keys::new("shop")).count();
        let all: Vec<usize> = (5..commands + 5).collect();
        assert_eq!(needed(&all), [keys_rule(&Keys::new("shop"))]);
        assert_eq!(needed(&[commands + 4]), [keys_rule(&Keys::new("shop"))]);
    }

    #[test]
    fn the_manual_has_the_whole_rule() {
        let manual = include_str!("../../../docs/redis.md");
        let rule = whole_rule(&Keys::new("NAMESPACE"));
        let words = manual.split_whitespace().filter(|word| *word != "\\");
        let manual = words.collect::<Vec<_>>().join(" ");
        assert!(manual.contains(&rule), "{rule}");
        let (_, of_clusters) = manual.rsplit_once("ACL SETUSER USER").unwrap();
        let of_cluster = OF_CLUSTER.iter().chain(&OF_SHARDED_NEWS);
        let rules: Vec<&str> = of_cluster.map(|(rule, _)| *rule).collect();
        let (of_clusters, _) = of_clusters.split_once("```").unwrap();
        assert_eq!(of_clusters.trim(), rules.join(" "));
    }
}
