//! What a store holds beneath its answers: records, the index of when somebody should look at
//! them, and the marks of all jobs together.

use std::collections::BTreeMap;

use soloist::store::memory::MemoryStore;

/// The records of a namespace as they are kept. Equal where two engines hold the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Raw {
    /// Of each job its agenda in milliseconds, and its record.
    pub(crate) records: BTreeMap<String, (Option<i64>, String)>,
    /// The index by agenda.
    pub(crate) agenda: BTreeMap<String, i64>,
    /// The highest token, and the time in microseconds at which it was granted.
    pub(crate) marks: (u64, i64),
}

impl Raw {
    pub(crate) fn of_memory(memory: &MemoryStore) -> Self {
        let image = memory.image();
        let mut raw = Self::default();
        for (job, agenda, text) in image.records() {
            let agenda = agenda.map(|at| at.as_millis());
            raw.put(job.as_str(), agenda, text);
            raw.agenda
                .extend(agenda.map(|at| (job.as_str().to_owned(), at)));
        }
        let (token, clock_us) = image.marks();
        raw.marks = (token.get(), clock_us);
        raw
    }

    pub(crate) fn put(&mut self, job: &str, agenda: Option<i64>, text: &str) {
        let record = (agenda, text.to_owned());
        self.records.insert(job.to_owned(), record);
    }
}
