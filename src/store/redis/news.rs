//! News as they are published: a word for each kind.
//!
//! Must never: carry what somebody could rely on. Those who hear of it look for themselves.

use std::collections::BTreeSet;

use uuid::Uuid;

use crate::store::StoreEvent;

const WORDS: [(&str, StoreEvent); 3] = [
    ("look", StoreEvent::Opening),
    ("stop", StoreEvent::StopAsked),
    ("pause", StoreEvent::PauseChanged),
];

/// How far news go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spread {
    /// To all who listen at the server.
    Everywhere,
    /// To those who listen at a node of a cluster that has the channel's slot. Else each message
    /// would go to all nodes (<https://redis.io/docs/latest/develop/pubsub/>, "Sharded Pub/Sub").
    Shard,
}

impl Spread {
    /// The command that publishes.
    pub(super) fn publish(self) -> &'static str {
        match self {
            Self::Everywhere => "PUBLISH",
            Self::Shard => "SPUBLISH",
        }
    }
}

/// What the word for somebody's turn begins with; its id follows.
const TURN: &str = "turn:";

/// What is published; empty where there are none.
pub(super) fn message(news: &BTreeSet<StoreEvent>) -> String {
    let word = |event: &StoreEvent| match event {
        StoreEvent::Turn(id) => Some(format!("{TURN}{id}")),
        event => {
            let known = WORDS.iter().find(|(_, known)| known == event);
            known.map(|(word, _)| (*word).to_owned())
        }
    };
    let words: Vec<String> = news.iter().filter_map(word).collect();
    words.join(" ")
}

fn read_word(word: &str) -> Option<StoreEvent> {
    let turn = word.strip_prefix(TURN);
    if let Some(id) = turn.and_then(|id| Uuid::try_parse(id).ok()) {
        return Some(StoreEvent::Turn(id));
    }
    let known = WORDS.iter().find(|(known, _)| *known == word);
    known.map(|(_, event)| *event)
}

/// What a message says: an empty one nothing, as it is sent to find out whether one may. One that
/// nobody here would write is as good as the plainest of them.
pub(super) fn read(message: &str) -> Vec<StoreEvent> {
    if message.is_empty() {
        return Vec::new();
    }
    let news: Vec<_> = message.split(' ').filter_map(read_word).collect();
    match news.is_empty() {
        true => vec![StoreEvent::Opening],
        false => news,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_are_read_as_they_were_told() {
        for news in [
            vec![StoreEvent::Opening],
            vec![StoreEvent::StopAsked],
            vec![StoreEvent::Opening, StoreEvent::StopAsked],
            vec![StoreEvent::StopAsked, StoreEvent::PauseChanged],
            vec![
                StoreEvent::Turn(Uuid::from_u128(7)),
                StoreEvent::Turn(Uuid::from_u128(8)),
            ],
        ] {
            assert_eq!(read(&message(&news.iter().copied().collect())), news);
        }
        assert_eq!(message(&BTreeSet::new()), "");
        assert_eq!(read(""), []);
        assert_eq!(read("something else"), [StoreEvent::Opening]);
    }
}
