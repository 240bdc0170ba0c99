//! What one server holds, and what another one lacks of it.
//!
//! Must never: take what is each server's own for a part of the ledger.

use std::collections::BTreeMap;

use redis::Value;

use super::super::super::keys;
use super::super::super::reply::{bytes, pairs};

/// Fields of the jobs hash by name: records, and what the group shares.
pub(super) type Values = BTreeMap<Vec<u8>, Vec<u8>>;

/// What a server holds at one moment: it comes in one answer.
#[derive(Default)]
pub(super) struct Held {
    pub(super) values: Values,
    /// That of its last step; empty where it took none.
    pub(super) ballot: String,
    /// As which process it took that.
    pub(super) member: String,
    /// Of what is put aside; empty elsewhere.
    pub(super) mark: String,
}

impl Held {
    /// Reads the whole hash.
    pub(super) fn read(answer: &Value) -> Option<Self> {
        let mut held = Self::default();
        for [field, value] in pairs(answer)? {
            held.values
                .insert(bytes(field)?.to_vec(), bytes(value)?.to_vec());
        }
        let mut own = |field: &str| {
            let value = held.values.remove(field.as_bytes()).unwrap_or_default();
            String::from_utf8(value).ok()
        };
        let [ballot, member, mark] = [keys::BALLOT, keys::MEMBER, keys::MARK].map(&mut own);
        let _promises = [keys::PROMISED, keys::PEACE_US, keys::NEXT].map(own);
        Some(Self {
            ballot: ballot?,
            member: member?,
            mark: mark?,
            values: held.values,
        })
    }

    /// It counts, as the process that it is.
    pub(super) fn counts(&self, process: &str) -> bool {
        !self.ballot.is_empty() && self.member == process
    }
}

/// What has to change for one to hold what another one holds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Difference<'h> {
    /// What is other or new there.
    pub(super) values: Vec<(&'h [u8], &'h [u8])>,
    /// What isn't there any more.
    pub(super) gone: Vec<&'h [u8]>,
}

impl<'h> Difference<'h> {
    /// What `here` lacks of `there`.
    pub(super) fn between(there: &'h Values, here: &'h Values) -> Self {
        let values = there
            .iter()
            .filter(|(field, value)| here.get(*field) != Some(*value));
        Self {
            values: values.map(|(field, value)| (&**field, &**value)).collect(),
            gone: gone(there, here).collect(),
        }
    }

    /// How much it is.
    pub(super) fn len(&self) -> usize {
        self.values.len() + self.gone.len()
    }

    /// The jobs whose records are other or new there.
    pub(super) fn jobs(&self) -> impl Iterator<Item = &'h [u8]> {
        let fields = self.values.iter().map(|(field, _)| *field);
        fields.filter(|field| is_job(field))
    }

    /// Fields that go beside these, as they are in `here` and not in `there`.
    pub(super) fn also_gone(&mut self, there: &'h Values, here: &'h Values) {
        self.gone.extend(gone(there, here));
        self.gone.sort_unstable();
        self.gone.dedup();
    }
}

fn gone<'h>(there: &'h Values, here: &'h Values) -> impl Iterator<Item = &'h [u8]> {
    let fields = here.keys().filter(|field| !there.contains_key(*field));
    fields.map(Vec::as_slice)
}

fn is_job(field: &[u8]) -> bool {
    field.first() != Some(&keys::GROUP_MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(of: &[(&str, &str)]) -> Values {
        let owned = |text: &str| text.as_bytes().to_vec();
        of.iter()
            .map(|(field, value)| (owned(field), owned(value)))
            .collect()
    }

    #[test]
    fn what_is_other_new_or_gone_differs_and_nothing_else() {
        let there = values(&[("#token", "7"), ("a", "1|x"), ("b", "2|x"), ("new", "-|x")]);
        let here = values(&[("#token", "6"), ("a", "1|x"), ("b", "1|x"), ("old", "-|x")]);
        let difference = Difference::between(&there, &here);
        assert_eq!(difference.jobs().collect::<Vec<_>>(), [&b"b"[..], b"new"]);
        assert_eq!(difference.gone, [b"old"]);
        assert_eq!(difference.len(), 4);
        assert_eq!(Difference::between(&there, &there), Difference::default());
    }

    #[test]
    fn what_is_a_servers_own_is_no_part_of_what_it_holds() {
        let word = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let own = ["#promised", "#peace_us", "#ballot", "#member", "#mark"];
        let fields = own.into_iter().chain(["#epoch", "job"]);
        let told = fields.flat_map(|field| [word(field), word(field)]);
        let held = Held::read(&Value::Array(told.collect())).unwrap();
        assert_eq!(held.ballot, "#ballot");
        assert_eq!(held.mark, "#mark");
        assert!(held.counts("#member") && !held.counts("another"));
        assert_eq!(held.values, values(&[("#epoch", "#epoch"), ("job", "job")]));
    }
}
