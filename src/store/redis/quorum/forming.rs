//! When several servers can speak for the ledger, and which of them knows the last step.
//!
//! A server counts as long as it is the process that took the last step that it took: one that was
//! started again may have lost a promise or a step, and counts only when it has taken over what a
//! majority of the others hold. Where too few count, because most were started again, those that
//! kept data may speak, after a loss; with no data anywhere, all of them together.
//!
//! Must never: let a majority speak that shares no server with the one that took the last step.

use super::super::reply::{Shown, Standing};

/// What one server said.
pub(super) struct View {
    /// Which server.
    pub(super) number: usize,
    pub(super) shown: Shown,
    pub(super) standing: Standing,
}

impl View {
    /// It has data, and is the process that took the last step of that.
    pub(super) fn counts(&self) -> bool {
        !self.standing.ballot.is_empty() && self.standing.member == self.shown.process
    }
}

/// Why nobody can speak for the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unformed {
    /// Another ballot is promised: this is its number.
    Outbid(u64),
    /// So many answered, and count.
    TooFew { answered: usize, counted: usize },
}

/// Servers that speak for the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Formed {
    /// Places in the list of views.
    pub(super) counted: Vec<usize>,
    /// The ballot of the last step.
    pub(super) ballot: String,
    /// What was acknowledged may be lost.
    pub(super) after_loss: bool,
}

impl Formed {
    /// Those who have taken the last step.
    pub(super) fn newest<'f>(&'f self, views: &'f [View]) -> impl Iterator<Item = usize> + 'f {
        let is_newest = |at: &usize| views[*at].standing.ballot == self.ballot;
        self.counted.iter().copied().filter(is_newest)
    }
}

/// More than half.
pub(super) const fn majority(all: usize) -> usize {
    all / 2 + 1
}

/// Whether those who answered can speak for the ledger of `all` servers.
pub(super) fn form(views: &[&View], all: usize) -> Result<Formed, Unformed> {
    let places = || 0..views.len();
    let is_member = |at: &usize| views[*at].counts();
    let has_data = |at: &usize| !views[*at].standing.ballot.is_empty();
    let members: Vec<usize> = places().filter(is_member).collect();
    let with_data: Vec<usize> = places().filter(has_data).collect();
    // Those who are silent may well be the ones who have what one that was started again has
    // forgotten: as long as a majority may not have been, they are waited for.
    let is_lost = views.len() - members.len() > all - majority(all);
    let (counted, after_loss) = if members.len() >= majority(all) {
        (members, false)
    } else if is_lost && with_data.len() >= majority(all) {
        (with_data, true)
    } else if views.len() == all {
        (places().collect(), true)
    } else {
        return Err(Unformed::TooFew {
            answered: views.len(),
            counted: members.len(),
        });
    };
    let promises = |at: &&usize| views[**at].standing.granted;
    if counted.iter().filter(promises).count() < majority(all) {
        let highest = counted
            .iter()
            .map(|at| number_of(&views[*at].standing.promised));
        return Err(Unformed::Outbid(highest.max().unwrap_or(0)));
    }
    let counted: Vec<usize> = counted.iter().filter(promises).copied().collect();
    let newest = counted.iter().map(|at| views[*at].standing.ballot.clone());
    Ok(Formed {
        ballot: newest.max().unwrap_or_default(),
        counted,
        after_loss,
    })
}

/// A ballot as text: numbers first, as long as each other, so that the order of texts is theirs.
pub(super) fn ballot(number: u64, proposer: uuid::Uuid) -> String {
    format!("{number:016x}-{}", proposer.simple())
}

/// The ballot that stands for what the step of `ballot` comes after, where a majority has to be
/// brought to that first. Who was promised `ballot` was promised that as well: it is below it, and
/// above all that are below it. It must not be the ballot under which the step was first taken:
/// others may have been taken since by a minority, and would count as newer than what a majority
/// has then.
pub(super) fn foundation(ballot: &str) -> &str {
    let last = ballot.len().saturating_sub(1);
    ballot.get(..last).unwrap_or_default()
}

/// The number in a ballot; 0 in none.
pub(super) fn number_of(ballot: &str) -> u64 {
    let number = ballot.split('-').next().unwrap_or_default();
    u64::from_str_radix(number, 16).unwrap_or(0)
}

/// The time that most servers agree on, whatever the clock of one of them says.
pub(super) fn median(mut clocks: Vec<i64>) -> i64 {
    clocks.sort_unstable();
    clocks
        .get(clocks.len().saturating_sub(1) / 2)
        .copied()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use uuid::Uuid;

    use super::*;
    use crate::store::draft::Reading;
    use crate::store::rules::{Group, Life};

    const NEXT: u64 = 100;

    fn text(number: u64) -> String {
        match number {
            0 => String::new(),
            number => ballot(number, Uuid::nil()),
        }
    }

    /// A server that promised and took steps; `same` where it was not started again since.
    fn view(number: usize, promised: u64, taken: u64, same: bool) -> View {
        let process = "p".to_owned();
        View {
            number,
            shown: Shown {
                reading: Reading {
                    clock_us: 0,
                    life: Life::Steady,
                    group: Group::default(),
                    records: BTreeMap::new(),
                },
                process: process.clone(),
                epoch: String::new(),
                values: BTreeMap::new(),
            },
            standing: Standing {
                promised: text(promised),
                ballot: text(taken),
                member: if same { process } else { "another".to_owned() },
                granted: promised < NEXT,
            },
        }
    }

    fn formed(views: &[View], all: usize) -> Result<(Vec<usize>, u64, bool), Unformed> {
        let formed = form(&Vec::from_iter(views), all)?;
        let counted = formed.counted.iter().map(|at| views[*at].number);
        Ok((
            counted.collect(),
            number_of(&formed.ballot),
            formed.after_loss,
        ))
    }

    #[test]
    fn a_majority_that_was_not_started_again_speaks_and_the_newest_step_counts() {
        let views = [view(0, 7, 5, true), view(1, 7, 7, true)];
        assert_eq!(formed(&views, 3), Ok((vec![0, 1], 7, false)));
        let too_few = Unformed::TooFew {
            answered: 1,
            counted: 1,
        };
        assert_eq!(formed(&views[..1], 3), Err(too_few));
    }

    #[test]
    fn one_that_was_started_again_does_not_count_while_others_do() {
        let views = [
            view(0, 9, 9, false),
            view(1, 7, 7, true),
            view(2, 7, 7, true),
        ];
        assert_eq!(formed(&views, 3), Ok((vec![1, 2], 7, false)));
        // Without a majority beside it nobody speaks: the silent one may know of a later step.
        let too_few = Unformed::TooFew {
            answered: 2,
            counted: 1,
        };
        assert_eq!(formed(&views[..2], 3), Err(too_few));
    }

    #[test]
    fn where_a_majority_was_started_again_those_that_kept_data_speak_after_a_loss() {
        let views = [
            view(0, 9, 9, false),
            view(1, 7, 7, false),
            view(2, 7, 7, true),
        ];
        assert_eq!(formed(&views[..2], 3), Ok((vec![0, 1], 9, true)));
        assert_eq!(formed(&views, 3), Ok((vec![0, 1, 2], 9, true)));
    }

    #[test]
    fn one_that_lost_everything_makes_no_majority_unless_all_are_there() {
        let views = [
            view(0, 0, 0, false),
            view(1, 7, 7, true),
            view(2, 0, 0, false),
        ];
        let too_few = Unformed::TooFew {
            answered: 2,
            counted: 1,
        };
        assert_eq!(formed(&views[..2], 3), Err(too_few));
        assert_eq!(formed(&views, 3), Ok((vec![0, 1, 2], 7, true)));
    }

    #[test]
    fn a_first_start_takes_all_of_them() {
        let views = [0, 1, 2].map(|number| view(number, 0, 0, false));
        assert_eq!(formed(&views, 3), Ok((vec![0, 1, 2], 0, true)));
        assert!(formed(&views[..2], 3).is_err());
    }

    #[test]
    fn a_higher_promise_outbids() {
        let views = [
            view(0, NEXT + 1, 7, true),
            view(1, NEXT + 1, 7, true),
            view(2, 7, 7, true),
        ];
        assert_eq!(formed(&views, 3), Err(Unformed::Outbid(NEXT + 1)));
        let views = [
            view(0, NEXT + 1, 7, true),
            view(1, 7, 7, true),
            view(2, 7, 7, true),
        ];
        assert_eq!(formed(&views, 3), Ok((vec![1, 2], 7, false)));
    }

    #[test]
    fn ballots_are_ordered_by_number_and_then_by_proposer() {
        let (low, high) = (Uuid::from_u128(1), Uuid::from_u128(2));
        assert!(ballot(9, high) < ballot(10, low));
        assert!(ballot(9, low) < ballot(9, high));
        assert_eq!(number_of(&ballot(1 << 60, high)), 1 << 60);
    }

    #[test]
    fn what_a_step_comes_after_is_above_all_that_is_below_the_step() {
        let others = [Uuid::from_u128(1 << 90), Uuid::from_u128(3 << 90)];
        let step = ballot(9, Uuid::from_u128(2 << 90));
        assert!(foundation(&step) < &*step);
        assert!(*foundation(&step) > *ballot(9, others[0]));
        assert!(*foundation(&step) > *ballot(8, others[1]));
        assert!(*foundation(&step) < *ballot(9, others[1]));
        assert_eq!(number_of(foundation(&step)), 9);
        assert_eq!(foundation(""), "");
    }

    #[test]
    fn one_wrong_clock_does_not_move_the_time() {
        assert_eq!(median(vec![100, 101, 999_999]), 101);
        assert_eq!(median(vec![-999_999, 100, 101]), 100);
        assert_eq!(median(vec![5, 7]), 5);
    }
}
