//! A schedule as one line of text that the ledger keeps, so that what was due can be told when
//! the table has another one by then.
//!
//! Must never: change its form; the ledger has lines in it.

use jiff::tz::TimeZone;

use super::{DstFold, DstGap, Schedule};

/// What stands for a schedule without calendars.
const ALL_DAYS: &str = "all";

impl DstGap {
    const ALL: [Self; 2] = [Self::RunAfter, Self::Skip];

    const fn as_str(self) -> &'static str {
        match self {
            DstGap::RunAfter => "run_after",
            DstGap::Skip => "skip",
        }
    }
}

impl DstFold {
    const ALL: [Self; 3] = [Self::First, Self::Last, Self::Both];

    /// As jobs.toml spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            DstFold::First => "first",
            DstFold::Last => "last",
            DstFold::Both => "both",
        }
    }
}

/// The parts of an identity: rule, zone, gap, fold, days.
fn parts(text: &str) -> Option<[&str; 5]> {
    let (rest, days) = text.rsplit_once(" days=")?;
    let (rest, fold) = rest.rsplit_once(" fold=")?;
    let (rest, gap) = rest.rsplit_once(" gap=")?;
    let (rule, zone) = rest.rsplit_once(" zone=")?;
    Some([rule, zone, gap, fold, days])
}

/// Two identities that differ, for people: the rules as they were written, and of what else
/// decides only what is not the same, in words of jobs.toml.
pub fn told_apart(before: &str, after: &str) -> [String; 2] {
    let (Some(old), Some(new)) = (parts(before), parts(after)) else {
        return [before, after].map(str::to_owned);
    };
    let days = match [old[4], new[4]] {
        [ALL_DAYS, _] => ["on all days", "without the days that calendars take"],
        [_, ALL_DAYS] => ["without the days that calendars take", "on all days"],
        _ => [
            "with other days of its calendars",
            "with these days of its calendars",
        ],
    };
    let differ = |part: usize| old[part] != new[part];
    let words = |own: [&str; 5], days: &str| {
        let mut text = own[0].to_owned();
        for (part, word) in [
            (1, format!(" in {}", own[1])),
            (2, format!(" with dst_gap = {:?}", own[2])),
            (3, format!(" with dst_fold = {:?}", own[3])),
            (4, format!(" {days}")),
        ] {
            if differ(part) {
                text += &word;
            }
        }
        text
    };
    [words(old, days[0]), words(new, days[1])]
}

impl Schedule {
    /// Canonical text of all that decides when the schedule is due: its rule, zone, policies, and
    /// a number for the days that calendars leave. Equal on all replicas with equal tables; `H`
    /// still depends on the job's name.
    pub fn identity(&self) -> String {
        let words: Vec<_> = self.text().split_ascii_whitespace().collect();
        let days = match &self.0.days {
            Some(days) => format!("{:016x}", days.open().digest()),
            None => ALL_DAYS.to_owned(),
        };
        format!(
            "{} zone={} gap={} fold={} days={days}",
            words.join(" "),
            self.zone_name(),
            self.0.gap.as_str(),
            self.0.fold.as_str(),
        )
    }

    /// The schedule of a job, from its [`Schedule::identity`]. Calendars can't be had back from
    /// that: where it had some, the schedule is due on all days. None for any other text.
    pub fn from_identity(text: &str, name: &str) -> Option<Self> {
        let [rule, zone, gap, fold, days] = parts(text)?;
        let hexadecimal = days.len() == 16 && days.bytes().all(|byte| byte.is_ascii_hexdigit());
        let gap = DstGap::ALL.into_iter().find(|one| one.as_str() == gap)?;
        let fold = DstFold::ALL.into_iter().find(|one| one.as_str() == fold)?;
        let zone = TimeZone::get(zone).ok()?;
        let schedule = Self::parse(rule, name, zone, gap, fold).ok();
        schedule.filter(|_| days == ALL_DAYS || hexadecimal)
    }

    fn zone_name(&self) -> String {
        match (self.zone().iana_name(), self.zone().to_fixed_offset()) {
            (Some(name), _) => name.into(),
            (None, Ok(offset)) => offset.to_string(),
            (None, Err(_)) => "unnamed".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(text: &str, zone: &str, gap: DstGap, fold: DstFold) -> Schedule {
        let zone = TimeZone::get(zone).unwrap();
        Schedule::parse(text, "report", zone, gap, fold).unwrap()
    }

    #[test]
    fn a_schedule_is_had_back_from_its_identity() {
        for text in [
            "0 3 * * *",
            "H H(0-5) * * MON-FRI",
            "@every 90s",
            "@daily",
            "@manual",
        ] {
            for zone in ["UTC", "Europe/Berlin", "Australia/Lord_Howe"] {
                for gap in DstGap::ALL {
                    for fold in DstFold::ALL {
                        let one = schedule(text, zone, gap, fold);
                        let other = Schedule::from_identity(&one.identity(), "report").unwrap();
                        assert_eq!(other.identity(), one.identity());
                        let after = crate::scheduler::time::Timestamp::from_second(1_795_212_000);
                        assert_eq!(other.next_after(after), one.next_after(after));
                    }
                }
            }
        }
    }

    #[test]
    fn two_that_differ_are_told_by_what_was_written_and_what_is_not_the_same() {
        let identity = |rule: &str, zone, gap, fold| schedule(rule, zone, gap, fold).identity();
        let (skip, first) = (DstGap::Skip, DstFold::First);
        let one = identity("@every 20s", "UTC", DstGap::RunAfter, first);
        let other = identity("@every 30s", "UTC", DstGap::RunAfter, first);
        assert_eq!(told_apart(&one, &other), ["@every 20s", "@every 30s"]);
        let one = identity("0 3 * * *", "UTC", skip, first);
        let other = identity("0 3 * * *", "Asia/Shanghai", skip, DstFold::Both);
        let told = [
            "0 3 * * * in UTC with dst_fold = \"first\"",
            "0 3 * * * in Asia/Shanghai with dst_fold = \"both\"",
        ];
        assert_eq!(told_apart(&one, &other), told);
        let some = one.replace("days=all", "days=0123456789abcdef");
        let told = told_apart(&one, &some);
        assert_eq!(told[0], "0 3 * * * on all days");
        assert_eq!(told[1], "0 3 * * * without the days that calendars take");
        let more = one.replace("days=all", "days=0123456789abcde0");
        let told = told_apart(&more, &some);
        assert!(told[0] != told[1] && !told[0].contains("0123"), "{told:?}");
        assert_eq!(told_apart("x", &one), ["x", one.as_str()]);
    }

    #[test]
    fn another_text_is_no_identity() {
        let good = schedule("0 3 * * *", "UTC", DstGap::Skip, DstFold::Both).identity();
        assert_eq!(good, "0 3 * * * zone=UTC gap=skip fold=both days=all");
        for bad in [
            "",
            "0 3 * * *",
            &good.replace("UTC", "Europe/Atlantis"),
            &good.replace("skip", "hop"),
            &good.replace("both", "neither"),
            &good.replace("days=all", "days=some"),
            &good.replace("0 3", "0 25"),
        ] {
            assert!(Schedule::from_identity(bad, "report").is_none(), "{bad}");
        }
        let filtered = good.replace("days=all", "days=0123456789abcdef");
        assert!(Schedule::from_identity(&filtered, "report").is_some());
    }
}
