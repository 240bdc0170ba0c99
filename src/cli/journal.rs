//! Lines for systemd's journal, which adds time, host and process itself: each begins with its
//! priority, as sd-daemon(3) has it, and has neither time nor colour.
//!
//! Must never: be chosen where stderr is not the journal: elsewhere `<6>` is noise.

use std::fmt::{self, Write as _};

use rustix::fs::fstat;
use rustix::stdio::stderr;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::{Format, Full, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// How the journal ranks a line: as syslog(3) does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Priority {
    /// Somebody should see to it.
    Error = 3,
    /// Somebody may want to.
    Warning = 4,
    /// As it goes.
    Info = 6,
    /// For whoever looks for a fault.
    Debug = 7,
}

impl From<&Level> for Priority {
    fn from(level: &Level) -> Self {
        match *level {
            Level::ERROR => Self::Error,
            Level::WARN => Self::Warning,
            Level::INFO => Self::Info,
            Level::DEBUG | Level::TRACE => Self::Debug,
        }
    }
}

/// Whether what is written to stderr goes to the journal: systemd says to which file it connected
/// the unit's output, and a process may have been given another since (systemd.exec(5)).
pub(super) fn is_stderr() -> bool {
    let said = std::env::var("JOURNAL_STREAM").unwrap_or_default();
    let Ok(own) = fstat(stderr()) else {
        return false;
    };
    is_named(&said, own.st_dev, own.st_ino)
}

fn is_named(stream: &str, device: u64, inode: u64) -> bool {
    let named = stream.split_once(':');
    let named = named.and_then(|(device, inode)| Some((device.parse().ok()?, inode.parse().ok()?)));
    named == Some((device, inode))
}

/// Text with a priority at the beginning of each line: for the journal each is an entry.
pub(super) fn prefixed(priority: Priority, text: &str) -> String {
    let number = priority as u8;
    let mut prefixed = String::with_capacity(text.len() + 4);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let _ = writeln!(prefixed, "<{number}>{line}");
    }
    prefixed
}

/// What is wrong with a command or a table, for the journal: each line as grave as the problem that
/// it belongs to.
pub(super) fn complaint(text: &str) -> String {
    let mut priority = Priority::Error;
    let ranked = text.lines().map(|line| {
        if line.starts_with("warning") {
            priority = Priority::Warning;
        } else if line.starts_with("error") {
            priority = Priority::Error;
        }
        prefixed(priority, line)
    });
    ranked.collect()
}

/// Writes an event as the journal wants it.
#[derive(Debug)]
pub(super) struct Lines(Format<Full, ()>);

impl Lines {
    pub(super) fn new() -> Self {
        let text = tracing_subscriber::fmt::format();
        Self(text.without_time().with_target(false).with_ansi(false))
    }
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut text = String::new();
        self.0
            .format_event(context, Writer::new(&mut text), event)?;
        let priority = Priority::from(event.metadata().level());
        writer.write_str(&prefixed(priority, text.trim_start()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_file_that_systemd_named_is_the_journal() {
        assert!(is_named("8:4711", 8, 4711));
        for other in ["8:4712", "9:4711", "", "8", ":", "8:4711:1"] {
            assert!(!is_named(other, 8, 4711), "{other}");
        }
    }

    #[test]
    fn every_line_has_its_priority_and_empty_ones_are_left_out() {
        let text = "error: no\n\n  --> jobs.toml:1\nwarning: hm\n  |\n";
        let expected = "<3>error: no\n<3>  --> jobs.toml:1\n<4>warning: hm\n<4>  |\n";
        assert_eq!(complaint(text), expected);
        assert_eq!(prefixed(Priority::Info, "a\nb"), "<6>a\n<6>b\n");
    }
}
