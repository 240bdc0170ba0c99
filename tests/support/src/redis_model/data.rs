//! Keys and values, and the commands on them.

use std::collections::BTreeMap;

use super::reply::Reply;
use super::streams::Stream;

type Bytes = Vec<u8>;

/// All that a server holds.
#[derive(Clone, Debug, Default)]
pub struct Data {
    hashes: BTreeMap<Bytes, BTreeMap<Bytes, Bytes>>,
    sorted: BTreeMap<Bytes, BTreeMap<Bytes, f64>>,
    pub(super) streams: BTreeMap<Bytes, Stream>,
}

impl Data {
    /// A field of a hash, for tests to look at.
    #[must_use]
    pub fn field(&self, key: &str, field: &str) -> Option<String> {
        let value = self.hashes.get(key.as_bytes())?.get(field.as_bytes())?;
        Some(String::from_utf8_lossy(value).into_owned())
    }

    pub(super) fn command(&mut self, name: &str, words: &[Bytes], now_us: i64) -> Reply {
        let Some((key, rest)) = words.split_first() else {
            return wrong(name);
        };
        match (name, rest) {
            ("HGET", [field]) => self.get(key, field),
            ("HMGET", fields) => {
                Reply::Array(fields.iter().map(|field| self.get(key, field)).collect())
            }
            ("HGETALL", []) => {
                let pairs = self.hash(key).into_iter();
                Reply::bulks(pairs.flat_map(|(field, value)| [field, value]))
            }
            ("HKEYS", []) => Reply::bulks(self.hash(key).into_keys()),
            ("HSET", pairs) if !pairs.is_empty() && pairs.len().is_multiple_of(2) => {
                self.set(key, pairs)
            }
            ("HDEL", fields) => remove(&mut self.hashes, key, fields),
            ("ZADD", pairs) if !pairs.is_empty() && pairs.len().is_multiple_of(2) => {
                self.add(key, pairs)
            }
            ("ZREM", members) => remove(&mut self.sorted, key, members),
            ("ZCARD", []) => Reply::count(self.sorted.get(key).map_or(0, BTreeMap::len)),
            ("ZRANGEBYSCORE", [min, max, options @ ..]) => self.range(key, [min, max], options),
            ("UNLINK" | "DEL", _) => {
                Reply::count(words.iter().filter(|key| self.forget(key)).count())
            }
            ("EXISTS", _) => Reply::count(words.iter().filter(|key| self.has(key)).count()),
            ("RENAME", [to]) => self.rename(key, to),
            ("XADD" | "XTRIM" | "XRANGE" | "XREVRANGE", rest) => {
                self.on_stream(name, key, rest, now_us)
            }
            _ => wrong(name),
        }
    }

    fn get(&self, key: &[u8], field: &[u8]) -> Reply {
        let value = self.hashes.get(key).and_then(|hash| hash.get(field));
        value.cloned().map_or(Reply::Nil, Reply::Bulk)
    }

    fn hash(&self, key: &[u8]) -> BTreeMap<Bytes, Bytes> {
        self.hashes.get(key).cloned().unwrap_or_default()
    }

    fn set(&mut self, key: &[u8], pairs: &[Bytes]) -> Reply {
        let hash = self.hashes.entry(key.to_vec()).or_default();
        let pairs = pairs.chunks_exact(2);
        let added = pairs.filter(|pair| hash.insert(pair[0].clone(), pair[1].clone()).is_none());
        Reply::count(added.count())
    }

    fn add(&mut self, key: &[u8], pairs: &[Bytes]) -> Reply {
        let mut scores = Vec::new();
        for pair in pairs.chunks_exact(2) {
            match number(&pair[0]) {
                Some(score) => scores.push((pair[1].clone(), score)),
                None => return Reply::Error("ERR value is not a valid float".to_owned()),
            }
        }
        let set = self.sorted.entry(key.to_vec()).or_default();
        let scores = scores.into_iter();
        let added = scores.filter(|(member, score)| set.insert(member.clone(), *score).is_none());
        Reply::count(added.count())
    }

    fn range(&self, key: &[u8], [min, max]: [&[u8]; 2], options: &[Bytes]) -> Reply {
        let (Some(min), Some(max)) = (bound(min), bound(max)) else {
            return Reply::Error("ERR min or max is not a float".to_owned());
        };
        let mut limit = (0, usize::MAX);
        let mut with_scores = false;
        let mut options = options.iter();
        while let Some(option) = options.next() {
            match option.as_slice() {
                b"WITHSCORES" => with_scores = true,
                b"LIMIT" => {
                    let mut next = || options.next().and_then(|word| number(word));
                    let (Some(skipped), Some(count)) = (next(), next()) else {
                        return wrong("ZRANGEBYSCORE");
                    };
                    limit = (skipped as usize, count as usize);
                }
                _ => return wrong("ZRANGEBYSCORE"),
            }
        }
        let within = |score: f64| {
            let above = score > min.0 || (score == min.0 && !min.1);
            above && (score < max.0 || (score == max.0 && !max.1))
        };
        let set = self.sorted.get(key).into_iter().flatten();
        let mut found: Vec<(&Bytes, f64)> = set
            .map(|(member, score)| (member, *score))
            .filter(|(_, score)| within(*score))
            .collect();
        found.sort_by(|one, other| one.1.total_cmp(&other.1).then(one.0.cmp(other.0)));
        let found = found.into_iter().skip(limit.0).take(limit.1);
        Reply::bulks(found.flat_map(|(member, score)| {
            let score = with_scores.then(|| score.to_string().into_bytes());
            std::iter::once(member.clone()).chain(score)
        }))
    }

    fn has(&self, key: &[u8]) -> bool {
        self.hashes.contains_key(key)
            || self.sorted.contains_key(key)
            || self.streams.contains_key(key)
    }

    fn forget(&mut self, key: &[u8]) -> bool {
        let was_there = self.has(key);
        self.hashes.remove(key);
        self.sorted.remove(key);
        self.streams.remove(key);
        was_there
    }

    fn rename(&mut self, from: &[u8], to: &[u8]) -> Reply {
        if !self.has(from) {
            return Reply::Error("ERR no such key".to_owned());
        }
        if from == to {
            return Reply::Status("OK".to_owned());
        }
        self.forget(to);
        if let Some(hash) = self.hashes.remove(from) {
            self.hashes.insert(to.to_vec(), hash);
        }
        if let Some(set) = self.sorted.remove(from) {
            self.sorted.insert(to.to_vec(), set);
        }
        if let Some(stream) = self.streams.remove(from) {
            self.streams.insert(to.to_vec(), stream);
        }
        Reply::Status("OK".to_owned())
    }
}

pub(super) fn wrong(name: &str) -> Reply {
    Reply::Error(format!("ERR the model knows no such {name}"))
}

fn number(word: &[u8]) -> Option<f64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// A bound of scores, and whether it is left out itself.
fn bound(word: &[u8]) -> Option<(f64, bool)> {
    match word.strip_prefix(b"(") {
        Some(rest) => Some((number(rest)?, true)),
        None => Some((number(word)?, false)),
    }
}

/// What is empty isn't there.
fn remove<V>(
    all: &mut BTreeMap<Bytes, BTreeMap<Bytes, V>>,
    key: &[u8],
    members: &[Bytes],
) -> Reply {
    let Some(one) = all.get_mut(key) else {
        return Reply::Integer(0);
    };
    let gone = members
        .iter()
        .filter(|member| one.remove(*member).is_some());
    let gone = gone.count();
    if one.is_empty() {
        all.remove(key);
    }
    Reply::count(gone)
}
