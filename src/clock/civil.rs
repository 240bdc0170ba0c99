//! Instants as other programs have them: the standard library's, and RFC 3339.
//!
//! Must never: lose more than what is below a millisecond.

use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::scheduler::time::{Timestamp, millis};

/// Why a text is no [`Timestamp`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no instant: write it as `2026-11-20T22:00:00Z`, with its offset from UTC")]
pub struct NoInstant {
    text: String,
}

/// RFC 3339 with any offset: `2026-11-20T22:00:00Z`, `2026-11-21T06:00:00+08:00`.
impl FromStr for Timestamp {
    type Err = NoInstant;

    fn from_str(text: &str) -> Result<Self, NoInstant> {
        let read = jiff::Timestamp::from_str(text).map(Timestamp::from);
        read.map_err(|_| NoInstant { text: text.into() })
    }
}

/// Rounded down to a millisecond.
impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        match time.duration_since(UNIX_EPOCH) {
            Ok(since) => Timestamp::from_millis(millis(since)),
            // Before 1970: rounded down too, which is away from the epoch.
            Err(before) => {
                let whole_ms = before.duration() + Duration::from_nanos(999_999);
                Timestamp::from_millis(-millis(whole_ms))
            }
        }
    }
}

/// Instants that the host's type can't hold become the epoch.
impl From<Timestamp> for SystemTime {
    fn from(at: Timestamp) -> Self {
        let distance = Duration::from_millis(at.as_millis().unsigned_abs());
        let time = match at.as_millis() < 0 {
            true => UNIX_EPOCH.checked_sub(distance),
            false => UNIX_EPOCH.checked_add(distance),
        };
        time.unwrap_or(UNIX_EPOCH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_survives_the_way_to_the_standard_library_and_back() {
        for millis in [0, 1, -1, 1_795_212_000_123, -62_135_596_800_000] {
            let at = Timestamp::from_millis(millis);
            assert_eq!(Timestamp::from(SystemTime::from(at)), at);
            assert_eq!(at.to_string().parse(), Ok(at));
        }
        let before = UNIX_EPOCH - Duration::from_micros(1);
        assert_eq!(Timestamp::from(before), Timestamp::from_millis(-1));
    }

    #[test]
    fn an_instant_without_an_offset_is_none() {
        for text in ["", "now", "2026-11-20", "2026-11-20T22:00:00"] {
            let error = Timestamp::from_str(text).unwrap_err();
            assert!(error.to_string().contains("offset"), "{error}");
        }
        let east = Timestamp::from_str("2026-11-21T06:00:00+08:00").unwrap();
        assert_eq!(east.to_string(), "2026-11-20T22:00:00Z");
    }
}
