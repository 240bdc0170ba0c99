//! Prometheus' own tool.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs promtool; gives whether it was content, and what it said.
pub(crate) fn promtool(arguments: &[&str], input: &str) -> (bool, String) {
    let mut child = Command::new("promtool")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool (scripts/install-test-tools installs it)");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_owned();
    // A page is longer than a pipe; who reads nothing closes it.
    let feeder = std::thread::spawn(move || _ = stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("promtool to end");
    feeder.join().expect("a page to be written");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    (output.status.success(), said)
}

/// Prometheus reads the page, and has nothing to complain about.
pub(crate) fn is_clean(text: &str) {
    let (content, said) = promtool(&["check", "metrics"], text);
    assert!(content && said.trim().is_empty(), "{said}\n{text}");
}

/// Prometheus' parser of OpenMetrics, which is strict, takes the page. It wants to know when.
pub(crate) fn is_openmetrics(text: &str, dir: &Path) {
    let at = |line: &str| match line.starts_with('#') {
        true => format!("{line}\n"),
        false => format!("{line} 1795274500\n"),
    };
    let page: String = text.lines().map(at).collect();
    let file = dir.join("page");
    std::fs::write(&file, page).expect("a page");
    let (file, blocks) = (file.display().to_string(), dir.join("blocks"));
    let blocks = blocks.display().to_string();
    let arguments = ["tsdb", "create-blocks-from", "openmetrics", &file, &blocks];
    let (content, said) = promtool(&arguments, "");
    assert!(content, "{said}\n{text}");
}
