//! What an attempt used, as the ledger keeps it: a part of the JSON of its detail.
//!
//! Must never: keep a line of the ledger from being read. A line from before there was a usage
//! has none, and a measure that this version doesn't know is as good as none.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What an attempt used of its host, each part where it could be measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time of all its processes together, in user and in system mode, in whole
    /// microseconds: `usage_usec` of its cgroup's `cpu.stat`, or `ru_utime` and `ru_stime` of
    /// getrusage(2) where it has no cgroup of its own.
    #[serde(
        rename = "cpu_us",
        with = "micros",
        skip_serializing_if = "Option::is_none",
        default
    )]
    pub cpu: Option<Duration>,
    /// The most memory that it held at one moment.
    #[serde(flatten)]
    pub peak_memory: Option<PeakMemory>,
}

/// The most memory that an attempt held at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeakMemory {
    /// How much, in bytes.
    #[serde(rename = "peak_memory_bytes")]
    pub bytes: u64,
    /// Whose memory that is.
    #[serde(rename = "peak_memory_of")]
    pub of: MeasuredOf,
}

/// Whose memory was measured: it depends on what the host allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MeasuredOf {
    /// All processes of the attempt together, with the pages of files that they caused to be
    /// read: `memory.peak` of its cgroup.
    AllProcesses,
    /// The resident set of the largest one of them alone, for want of a cgroup: `ru_maxrss` of
    /// getrusage(2).
    LargestProcess,
}

impl MeasuredOf {
    /// As the ledger and `--json` spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            MeasuredOf::AllProcesses => "all_processes",
            MeasuredOf::LargestProcess => "largest_process",
        }
    }
}

/// A duration as a number of whole microseconds.
mod micros {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        time: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let micros = time.map(|time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
        micros.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_micros))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::lease::AttemptDetail;

    const USAGE: Usage = Usage {
        cpu: Some(Duration::from_micros(1_200_001)),
        peak_memory: Some(PeakMemory {
            bytes: 1 << 40,
            of: MeasuredOf::AllProcesses,
        }),
    };

    fn detail(usage: Option<Usage>) -> AttemptDetail {
        AttemptDetail {
            exit_code: Some(3),
            usage,
            ..AttemptDetail::default()
        }
    }

    #[test]
    fn a_usage_is_kept_as_integers_of_a_named_unit() {
        let text = serde_json::to_string(&detail(Some(USAGE))).unwrap();
        let expected = r#"{"exit_code":3,"usage":{"cpu_us":1200001,"peak_memory_bytes":1099511627776,"peak_memory_of":"all_processes"}}"#;
        assert_eq!(text, expected);
    }

    #[test]
    fn each_part_of_a_usage_is_read_back_without_the_others() {
        let of = MeasuredOf::LargestProcess;
        let peak_memory = Some(PeakMemory { bytes: 0, of });
        for usage in [
            USAGE,
            Usage { cpu: None, ..USAGE },
            Usage {
                peak_memory,
                ..USAGE
            },
            Usage {
                peak_memory: None,
                ..USAGE
            },
            Usage::default(),
        ] {
            let detail = detail(Some(usage));
            let text = serde_json::to_string(&detail).unwrap();
            let read: AttemptDetail = serde_json::from_str(&text).unwrap();
            assert_eq!(read, detail, "{text}");
        }
    }

    #[test]
    fn a_detail_from_before_there_was_a_usage_has_none() {
        let read: AttemptDetail = serde_json::from_str(r#"{"exit_code":3}"#).unwrap();
        assert_eq!(read, detail(None));
        let text = serde_json::to_string(&read).unwrap();
        assert_eq!(text, r#"{"exit_code":3}"#, "and none is written");
    }

    #[test]
    fn a_measure_of_a_later_version_costs_no_more_than_itself() {
        let text = r#"{"exit_code":3,"usage":{"cpu_us":1200001,"peak_memory_bytes":1,"peak_memory_of":"a_word","more":[1]}}"#;
        let read: AttemptDetail = serde_json::from_str(text).unwrap();
        let usage = Usage {
            peak_memory: None,
            ..USAGE
        };
        assert_eq!(read, detail(Some(usage)));
    }

    #[test]
    fn a_measure_is_spelt_as_it_is_kept() {
        for of in [MeasuredOf::AllProcesses, MeasuredOf::LargestProcess] {
            assert_eq!(serde_json::to_value(of).unwrap(), of.as_str());
        }
    }
}
