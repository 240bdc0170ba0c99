//! How commands show their findings: tables for people, JSON for programs.

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use super::{Exit, complain, print};
pub(super) use crate::scheduler::time::short_duration;

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

/// The units of [`short_size`], each 1024 of the one before.
const SIZE_UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// A number of bytes in one unit and at most three digits, but for what is just short of the
/// next unit: `0 B`, `9.8 MiB`, `34 MiB`, `1023 MiB`, `1.0 GiB`.
pub(super) fn short_size(bytes: u64) -> String {
    let unit = bytes.checked_ilog2().map_or(0, |power| power as usize / 10);
    let whole = bytes >> (10 * unit);
    if unit == 0 || whole >= 10 {
        return format!("{whole} {}", SIZE_UNITS[unit]);
    }
    let tenths = (bytes >> (10 * (unit - 1))) % 1024 * 10 / 1024;
    format!("{whole}.{tenths} {}", SIZE_UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_shown_in_one_unit_and_never_as_more_than_it_is() {
        for (bytes, shown) in [
            (0, "0 B"),
            (1, "1 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (10_239, "9.9 KiB"),
            (10_240, "10 KiB"),
            (34 << 20, "34 MiB"),
            ((1 << 30) - 1, "1023 MiB"),
            (1 << 30, "1.0 GiB"),
            (u64::MAX, "15 EiB"),
        ] {
            assert_eq!(short_size(bytes), shown, "{bytes}");
        }
    }
}
