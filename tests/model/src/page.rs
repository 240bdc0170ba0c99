//! The parts of `docs/model.md` that a program has written: the table of what is searched in a
//! minute, and the traces. What is between two marks is one of them.
//!
//! Must never: touch what people wrote around them.

use crate::report::{HEAD, Report};

/// Where a part begins and ends.
const MARKS: [(&str, &str); 2] = [
    ("<!-- table: begin -->", "<!-- table: end -->"),
    ("<!-- traces: begin -->", "<!-- traces: end -->"),
];

/// The page with its parts written anew, where it has marks for both.
pub fn rewritten(page: &str, reports: &[Report]) -> Option<String> {
    let parts = [table(reports), traces(reports)];
    let mut page = page.to_owned();
    for ((begin, end), part) in MARKS.iter().zip(parts) {
        let from = page.find(begin)? + begin.len();
        let to = from + page[from..].find(end)?;
        page.replace_range(from..to, &format!("\n{part}\n"));
    }
    Some(page)
}

/// The page without what differs from run to run: the last column of its table.
pub fn without_times(page: &str) -> String {
    let lines = page.lines().map(|line| {
        let cells = line.strip_suffix('|').filter(|_| line.starts_with("| "));
        cells
            .and_then(|cells| cells.rsplit_once('|'))
            .map_or(line, |(rest, _)| rest)
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn table(reports: &[Report]) -> String {
    let lines = reports.iter().map(Report::line);
    let lines: Vec<String> = lines.collect();
    format!("\n{HEAD}\n{}\n", lines.join("\n"))
}

fn traces(reports: &[Report]) -> String {
    let fallen = reports.iter().filter(|report| report.steps.is_some());
    let stories = fallen.map(|report| {
        let story = report.story();
        let (title, steps) = story.split_once('\n').unwrap_or((&story, ""));
        format!("\n**{title}**\n\n```text\n{}\n```", steps.trim_end())
    });
    let stories: Vec<String> = stories.collect();
    format!("{}\n", stories.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_left_out_of_the_table_alone() {
        let page = "a | b\n| x | 12 | holds | 0.5 |\n|---|---:|";
        assert_eq!(without_times(page), "a | b\n| x | 12 | holds \n|---|---:|");
    }

    #[test]
    fn a_page_without_marks_is_not_rewritten() {
        assert_eq!(rewritten("no marks", &[]), None);
    }
}
