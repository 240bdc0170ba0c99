//! The log: lines for people or JSON for machines, on stderr, so that stdout is the result's.
//!
//! What jobs write comes under the target `soloist::output`, a line an event, and can be turned
//! off by it: `--log-level info,soloist::output=off`.

use std::io;

use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;

use super::args::{Global, LogFormat};
use super::{Exit, complain, stderr_has_colour};
use crate::config::nearest;

/// The words for how much is logged, from least to most.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

const DEFAULT_LEVEL: &str = "info";

/// How many lines wait for whoever reads stderr. Beyond these they are dropped: a reader that
/// stands still must not hold up a renewal.
const LINES_WAITING: usize = 16_384;

/// Dropped at the end of the process, it tells of lines that were lost and has the last ones
/// written.
pub(super) struct LogEnd {
    dropped: ErrorCounter,
    _written: WorkerGuard,
}

impl Drop for LogEnd {
    fn drop(&mut self) {
        let lines = self.dropped.dropped_lines();
        if lines > 0 {
            tracing::warn!(
                lines,
                "the log was not read as fast as it grew: lines were dropped"
            );
        }
    }
}

/// Starts the log of this process. What waits is written when the answer is dropped.
pub(super) fn start(global: &Global) -> Result<LogEnd, Exit> {
    let level = global.log_level.as_deref().map(str::trim);
    let level = level
        .filter(|level| !level.is_empty())
        .unwrap_or(DEFAULT_LEVEL);
    let filter = read_filter(level).map_err(|(message, hint)| {
        let message = format!("`--log-level` or SOLOIST_LOG_LEVEL: {message}");
        complain(Exit::Usage, &message, Some(&hint))
    })?;
    let (writer, end) = NonBlockingBuilder::default()
        .lossy(true)
        .buffered_lines_limit(LINES_WAITING)
        .thread_name("log")
        .finish(io::stderr());
    let dropped = writer.error_counter();
    // Complaints about a log that can't be written would go to the same stderr, and panic.
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        .with_ansi(stderr_has_colour())
        .log_internal_errors(false);
    match global.log_format.unwrap_or_default() {
        LogFormat::Text => builder.with_target(false).init(),
        LogFormat::Json => builder
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .init(),
    }
    Ok(LogEnd {
        dropped,
        _written: end,
    })
}

/// Reads a filter; on failure message and hint. The library takes any word for the name of a
/// module, so that `inof` would silence everything: such words are refused here.
fn read_filter(text: &str) -> Result<EnvFilter, (String, String)> {
    let directives: Vec<_> = text.split(',').map(str::trim).collect();
    for directive in &directives {
        let (module, level) = match directive.split_once('=') {
            Some((module, level)) => (Some(module), level),
            None if directive.contains("::") || *directive == "soloist" => {
                (Some(*directive), "info")
            }
            None => (None, *directive),
        };
        let is_level = LEVELS.iter().any(|known| known.eq_ignore_ascii_case(level));
        if !is_level || module == Some("") {
            let longer = LEVELS.into_iter().find(|known| level.starts_with(known));
            let hint = match longer.or_else(|| nearest(level, LEVELS)) {
                Some(near) if !is_level => format!("did you mean `{near}`?"),
                _ => format!("the levels are {}", LEVELS.join(", ")),
            };
            return Err((format!("`{directive}` is no level"), hint));
        }
    }
    EnvFilter::builder()
        .parse(directives.join(","))
        .map_err(|error| {
            let hint = "for example `info` or `info,soloist::output=off`";
            (format!("`{text}` is no filter: {error}"), hint.into())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_alone_and_by_module_are_filters() {
        for text in [
            "off",
            "INFO",
            "debug",
            "info,soloist::output=off",
            "warn, soloist=trace",
            "soloist::output",
        ] {
            assert!(read_filter(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_misspelt_level_does_not_silence_the_log() {
        for (text, hint) in [
            ("inof", "did you mean `info`?"),
            ("warning", "did you mean `warn`?"),
            ("verbose", "the levels are"),
            ("info,soloist=loud", "the levels are"),
            ("info,,", "the levels are"),
            ("=info", "the levels are"),
        ] {
            let (_, told) = read_filter(text).expect_err(text);
            assert!(told.starts_with(hint), "{text}: {told}");
        }
    }
}
