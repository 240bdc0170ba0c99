//! The older text format (version 0.0.4), from OpenMetrics: curl, promtool and older scrapers read
//! no other.
//!
//! Must never: change a sample; only what describes samples differs between the two.

/// Translates a whole page.
pub(super) fn from_openmetrics(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    let mut help: Option<(&str, &str)> = None;
    for line in page.lines() {
        if let Some(described) = line.strip_prefix("# HELP ") {
            help = described.split_once(' ');
            continue;
        }
        if let Some(typed) = line.strip_prefix("# TYPE ") {
            let (name, kind) = typed.split_once(' ').unwrap_or((typed, "unknown"));
            let (suffix, kind) = match kind {
                // Its samples are called so, and the family has to be.
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                other => ("", other),
            };
            if let Some((_, help)) = help.take().filter(|(of, _)| *of == name) {
                text.extend(["# HELP ", name, suffix, " ", help, "\n"]);
            }
            text.extend(["# TYPE ", name, suffix, " ", kind, "\n"]);
            continue;
        }
        if !line.starts_with('#') {
            text.extend([line, "\n"]);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_describes_a_counter_is_called_as_its_samples_are() {
        let page = "# HELP a_b Ends.\n# TYPE a_b counter\na_b_total{x=\"# TYPE\"} 1\n\
                    # HELP a_seconds Time.\n# TYPE a_seconds gauge\n# UNIT a_seconds seconds\n\
                    a_seconds 1.5\n# HELP v What.\n# TYPE v info\nv_info{of=\"1\"} 1\n# EOF\n";
        let text = "# HELP a_b_total Ends.\n# TYPE a_b_total counter\na_b_total{x=\"# TYPE\"} 1\n\
                    # HELP a_seconds Time.\n# TYPE a_seconds gauge\na_seconds 1.5\n\
                    # HELP v_info What.\n# TYPE v_info gauge\nv_info{of=\"1\"} 1\n";
        assert_eq!(from_openmetrics(page), text);
    }
}
