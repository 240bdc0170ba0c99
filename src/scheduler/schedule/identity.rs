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
        let (rest, days) = text.rsplit_once(" days=")?;
        let (rest, fold) = rest.rsplit_once(" fold=")?;
        let (rest, gap) = rest.rsplit_once(" gap=")?;
        let (rule, zone) = rest.rsplit_once(" zone=")?;
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
