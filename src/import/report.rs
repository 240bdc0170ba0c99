//! What became of a text: what was carried over, what was not, and what means something else.
//!
//! Must never: hold a value of `env`, or a command line, which may have a password in it.

use std::fmt;

/// What the table lacks before more than one host may have it.
const STORE_TO_COME: &str = "add `store` and `namespace` in [scheduler], the same on all hosts, before several have this table: without a store in common each host has one of its own, and runs every job";

/// What became of a text, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What the text is called.
    pub label: String,
    /// `crontab` or `Kubernetes`.
    pub format: &'static str,
    /// How many jobs the table has.
    pub carried: usize,
    /// What can't be carried over.
    pub refused: Vec<Refusal>,
    /// What is different in one job: its name and place, and how.
    pub by_job: Vec<(String, Vec<String>)>,
    /// What is different in all jobs, or in most.
    pub everywhere: Vec<String>,
}

/// What can't be carried over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Where it stands: `line 7`.
    pub place: String,
    /// Why not, and what to do.
    pub reason: String,
}

impl Report {
    /// Whether everything was carried over, with differences or without.
    pub fn is_complete(&self) -> bool {
        self.refused.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |number: usize, one: &str| match number {
            1 => format!("1 {one}"),
            more => format!("{more} {one}s"),
        };
        let jobs = count(self.carried, "job");
        write!(f, "{} ({}): {jobs} carried over", self.label, self.format)?;
        if !self.refused.is_empty() {
            write!(f, ", {} not", self.refused.len())?;
        }
        writeln!(f)?;
        if !self.refused.is_empty() {
            writeln!(f, "\nnot carried over")?;
        }
        for Refusal { place, reason } in &self.refused {
            writeln!(f, "  {place}: {reason}")?;
        }
        if !self.by_job.is_empty() {
            writeln!(f, "\ndifferent, job by job")?;
        }
        for (job, differences) in &self.by_job {
            writeln!(f, "  {job}")?;
            for difference in differences {
                writeln!(f, "    - {difference}")?;
            }
        }
        if self.carried > 0 && !self.everywhere.is_empty() {
            writeln!(f, "\ndifferent in every job")?;
            for difference in &self.everywhere {
                writeln!(f, "  - {difference}")?;
            }
        }
        // No crontab names a store, so that no table that is written here does.
        if self.carried > 0 {
            writeln!(f, "\n{STORE_TO_COME}")?;
        }
        Ok(())
    }
}
