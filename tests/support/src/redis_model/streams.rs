//! Streams (<https://redis.io/docs/latest/develop/data-types/streams/>).

use super::data::{Data, wrong};
use super::reply::Reply;

type Id = (u64, u64);

/// Entries in the order of their ids.
#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
    entries: Vec<(Id, Vec<Vec<u8>>)>,
    last: Id,
}

impl Data {
    pub(super) fn on_stream(
        &mut self,
        name: &str,
        key: &[u8],
        words: &[Vec<u8>],
        now_us: i64,
    ) -> Reply {
        let words_as_text: Vec<_> = words
            .iter()
            .map(|word| String::from_utf8_lossy(word))
            .collect();
        let words_as_text: Vec<&str> = words_as_text.iter().map(AsRef::as_ref).collect();
        match (name, words_as_text.as_slice()) {
            ("XADD", ["MAXLEN", "=", limit, id, ..]) => {
                let stream = self.streams.entry(key.to_vec()).or_default();
                let added = stream.add(id, &words[4..], now_us);
                if let (Reply::Bulk(_), Ok(limit)) = (&added, limit.parse()) {
                    stream.keep_newest(limit);
                }
                added
            }
            ("XADD", [id, ..]) => {
                let stream = self.streams.entry(key.to_vec()).or_default();
                stream.add(id, &words[1..], now_us)
            }
            ("XTRIM", ["MINID", "=", id]) => self.trim(key, id),
            ("XRANGE", [from, to, rest @ ..]) => self.list(key, [from, to], rest, false),
            ("XREVRANGE", [to, from, rest @ ..]) => self.list(key, [from, to], rest, true),
            _ => wrong(name),
        }
    }

    fn trim(&mut self, key: &[u8], id: &str) -> Reply {
        let (Some(stream), Some((id, _))) = (self.streams.get_mut(key), bound(id, 0)) else {
            return Reply::Integer(0);
        };
        let before = stream.entries.len();
        stream.entries.retain(|(entry, _)| *entry >= id);
        Reply::count(before - stream.entries.len())
    }

    fn list(&self, key: &[u8], [from, to]: [&str; 2], rest: &[&str], backward: bool) -> Reply {
        let count = match rest {
            [] => Some(usize::MAX),
            ["COUNT", count] => count.parse().ok(),
            _ => None,
        };
        let (Some(from), Some(to), Some(count)) = (bound(from, 0), bound(to, u64::MAX), count)
        else {
            return Reply::Error(
                "ERR Invalid stream ID specified as stream command argument".into(),
            );
        };
        let within = |id: Id| {
            (id > from.0 || (id == from.0 && !from.1)) && (id < to.0 || (id == to.0 && !to.1))
        };
        let entries = self
            .streams
            .get(key)
            .map_or(&[][..], |stream| &stream.entries);
        let found = entries.iter().filter(|(id, _)| within(*id));
        let mut found: Vec<_> = found.collect();
        if backward {
            found.reverse();
        }
        let shown = found.into_iter().take(count).map(|(id, fields)| {
            Reply::Array(vec![
                Reply::text(&format!("{}-{}", id.0, id.1)),
                Reply::bulks(fields.iter().cloned()),
            ])
        });
        Reply::Array(shown.collect())
    }
}

impl Stream {
    fn add(&mut self, id: &str, fields: &[Vec<u8>], now_us: i64) -> Reply {
        let after = |ms: u64| match ms.cmp(&self.last.0) {
            std::cmp::Ordering::Less => None,
            std::cmp::Ordering::Equal => Some((ms, self.last.1 + 1)),
            std::cmp::Ordering::Greater => Some((ms, 0)),
        };
        let id = match (id, id.split_once('-')) {
            ("*", _) => {
                let now = u64::try_from(now_us / 1000).unwrap_or(0);
                after(now.max(self.last.0))
            }
            (_, Some((ms, "*"))) => ms.parse().ok().and_then(after),
            _ => bound(id, 0).map(|(id, _)| id).filter(|id| *id > self.last),
        };
        let Some(id) = id else {
            let cause =
                "ERR The ID specified in XADD is equal or smaller than the target stream top item";
            return Reply::Error(cause.to_owned());
        };
        self.last = id;
        self.entries.push((id, fields.to_vec()));
        Reply::text(&format!("{}-{}", id.0, id.1))
    }

    fn keep_newest(&mut self, limit: usize) {
        let gone = self.entries.len().saturating_sub(limit);
        self.entries.drain(..gone);
    }
}

/// An id, and whether it is left out itself.
fn bound(word: &str, sequence: u64) -> Option<(Id, bool)> {
    let (word, left_out) = match word.strip_prefix('(') {
        Some(rest) => (rest, true),
        None => (word, false),
    };
    let id = match (word, word.split_once('-')) {
        ("-", _) => (0, 0),
        ("+", _) => (u64::MAX, u64::MAX),
        (_, Some((ms, sequence))) => (ms.parse().ok()?, sequence.parse().ok()?),
        (ms, None) => (ms.parse().ok()?, sequence),
    };
    Some((id, left_out))
}
