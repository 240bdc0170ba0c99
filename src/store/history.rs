//! Ended attempts as the ledger keeps them, and the form in which their output is kept.

use serde::{Deserialize, Serialize};

use crate::scheduler::job::JobName;
use crate::scheduler::lease::{AttemptDetail, Captured, FencingToken, Outcome, Output, RunId};
use crate::scheduler::time::Timestamp;

/// One line of the ledger: an attempt that ended, or an occurrence that never started
/// (attempt 0, no token).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptRecord {
    /// Whose.
    pub job: JobName,
    /// Of which occurrence.
    pub scheduled_at: Timestamp,
    /// Which attempt, counted from 1; 0 where none was made.
    pub attempt: u32,
    /// Its id, or that of the claim that settled the occurrence.
    pub run_id: RunId,
    /// Its token; 0 where none was made.
    pub token: FencingToken,
    /// The name of the replica that ran it, or that settled the occurrence.
    pub replica: String,
    /// When it was granted, by the store's clock.
    pub started_at: Timestamp,
    /// When its end was written down, by the store's clock.
    pub ended_at: Timestamp,
    /// How it ended.
    pub outcome: Outcome,
    /// What else is known.
    pub detail: AttemptDetail,
}

/// The lengths that head a stored output.
#[derive(Serialize, Deserialize)]
struct Lengths {
    stdout: (usize, usize, u64),
    stderr: (usize, usize, u64),
}

/// Puts an output into bytes: a line of JSON with the lengths, then the four parts as they
/// are, so that binary output stays what it was.
pub(super) fn encode_output(output: &Output) -> Vec<u8> {
    let lengths = |part: &Captured| (part.head.len(), part.tail.len(), part.total);
    let header = Lengths {
        stdout: lengths(&output.stdout),
        stderr: lengths(&output.stderr),
    };
    let mut bytes = serde_json::to_vec(&header).unwrap_or_default();
    bytes.push(b'\n');
    for part in [&output.stdout, &output.stderr] {
        bytes.extend_from_slice(&part.head);
        bytes.extend_from_slice(&part.tail);
    }
    bytes
}

/// Reads back what [`encode_output`] wrote; none for anything else.
pub(super) fn decode_output(bytes: &[u8]) -> Option<Output> {
    let line = bytes.iter().position(|&byte| byte == b'\n')?;
    let header: Lengths = serde_json::from_slice(&bytes[..line]).ok()?;
    let mut rest = &bytes[line + 1..];
    let mut take = |length: usize| {
        let (part, left) = rest.split_at_checked(length)?;
        rest = left;
        Some(part.to_vec())
    };
    let mut captured = |(head, tail, total)| {
        Some(Captured {
            head: take(head)?,
            tail: take(tail)?,
            total,
        })
    };
    Some(Output {
        stdout: captured(header.stdout)?,
        stderr: captured(header.stderr)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_output_is_read_back_as_it_was_written() {
        let output = Output {
            stdout: Captured {
                head: vec![0, 10, 255],
                tail: b"end\n".to_vec(),
                total: 1 << 40,
            },
            stderr: Captured {
                head: b"x".to_vec(),
                tail: Vec::new(),
                total: 1,
            },
        };
        assert_eq!(decode_output(&encode_output(&output)), Some(output));
    }

    #[test]
    fn a_torn_output_is_not_read_as_a_whole_one() {
        let output = Output {
            stdout: Captured {
                head: b"abc".to_vec(),
                tail: Vec::new(),
                total: 3,
            },
            stderr: Captured::default(),
        };
        let bytes = encode_output(&output);
        assert_eq!(decode_output(&bytes[..bytes.len() - 1]), None);
        assert_eq!(decode_output(b"no header"), None);
    }
}
