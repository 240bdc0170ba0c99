//! How commands show their findings: tables for people, JSON for programs.

use std::time::Duration;

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use super::{Exit, complain, print};

/// Prints rows under a head.
pub(super) fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Exit {
    print(columns(head, rows))
}

/// Rows under a head, in columns as wide as they need to be.
pub(super) fn columns(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(head)
        .add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.trim_fmt() + "\n"
}

/// Prints a value as JSON.
pub(super) fn json(value: &impl Serialize) -> Exit {
    match serde_json::to_string_pretty(value) {
        Ok(text) => print(text + "\n"),
        Err(error) => complain(
            Exit::Failed,
            &format!("failed to write JSON: {error}"),
            None,
        ),
    }
}

/// A duration in at most two units: `850ms`, `12.3s`, `4m 5s`, `3h 20m`, `2d 1h`.
pub(super) fn short_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{}ms", duration.as_millis()),
        1..60 => format!("{:.1}s", duration.as_secs_f64()),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3600..86400 => format!("{}h {}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d {}h", seconds / 86400, seconds % 86400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_shown_in_at_most_two_units() {
        for (millis, shown) in [
            (0, "0ms"),
            (999, "999ms"),
            (1_000, "1.0s"),
            (59_949, "59.9s"),
            (245_000, "4m 5s"),
            (12_000_000, "3h 20m"),
            (176_400_000, "2d 1h"),
        ] {
            assert_eq!(short_duration(Duration::from_millis(millis)), shown);
        }
    }
}
