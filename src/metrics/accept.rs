//! Which of the formats of a page somebody would rather have, by `Accept` (RFC 9110, 12.5.1).
//!
//! Must never: refuse. Who takes neither gets the format that everybody reads.

use super::Format;

/// What a range of media types has to do with a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Match {
    /// `*/*`
    Anything,
    /// `text/*`
    Kind,
    /// `text/plain`
    Type,
    /// `text/plain;version=0.0.4`
    Version,
}

impl Format {
    /// What a client reads best, by its `Accept` header: of several the one that it values most,
    /// and among equals OpenMetrics for those who name it. Prometheus asks for OpenMetrics, and
    /// values it most unless it is told otherwise.
    pub fn accepted(accept: Option<&str>) -> Self {
        let ranges: Vec<Range<'_>> = accept.unwrap_or_default().split(',').map(range).collect();
        let [newer, older] =
            [Format::OpenMetrics, Format::Text].map(|format| quality(&ranges, format));
        match newer {
            Some((_, named)) if newer > older || (newer == older && named) => Format::OpenMetrics,
            _ => Format::Text,
        }
    }

    const fn named(self) -> [&'static str; 3] {
        match self {
            Format::OpenMetrics => ["application", "openmetrics-text", "1.0.0"],
            Format::Text => ["text", "plain", "0.0.4"],
        }
    }
}

/// A range of media types, and what it is worth in thousandths.
struct Range<'a> {
    kind: &'a str,
    subtype: &'a str,
    version: Option<&'a str>,
    worth: u16,
}

fn range(text: &str) -> Range<'_> {
    let mut parts = text.split(';').map(str::trim);
    let media = parts.next().unwrap_or_default();
    let (kind, subtype) = media.split_once('/').unwrap_or_default();
    let mut range = Range {
        kind,
        subtype,
        version: None,
        worth: 1000,
    };
    for (name, value) in parts.filter_map(|part| part.split_once('=')) {
        let value = value.trim().trim_matches('"');
        match name.trim() {
            name if name.eq_ignore_ascii_case("q") => range.worth = thousandths(value),
            name if name.eq_ignore_ascii_case("version") => range.version = Some(value),
            // Of a character set, an escaping: both formats are ASCII but for what HELP says.
            _ => {}
        }
    }
    range
}

/// `0.25` as 250; what is no such number is worth nothing.
fn thousandths(text: &str) -> u16 {
    let worth = text.parse().unwrap_or(0.0_f64).clamp(0.0, 1.0);
    (worth * 1000.0).round() as u16
}

/// What a format is worth by the range that names it most closely, and whether that names it at
/// all; none where it is not wanted.
fn quality(ranges: &[Range<'_>], format: Format) -> Option<(u16, bool)> {
    let matches = ranges.iter().filter_map(|range| {
        let how = range.matches(format)?;
        Some((how, range.worth))
    });
    let (how, worth) = matches.max()?;
    (worth > 0).then_some((worth, how >= Match::Type))
}

impl Range<'_> {
    fn matches(&self, format: Format) -> Option<Match> {
        let [kind, subtype, version] = format.named();
        let is_kind = self.kind.eq_ignore_ascii_case(kind);
        match (self.kind, self.subtype, self.version) {
            ("*", "*", _) => Some(Match::Anything),
            (_, "*", _) if is_kind => Some(Match::Kind),
            (_, other, asked) if is_kind && other.eq_ignore_ascii_case(subtype) => match asked {
                None => Some(Match::Type),
                Some(asked) => (asked == version).then_some(Match::Version),
            },
            _ => None,
        }
    }
}
