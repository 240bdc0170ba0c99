//! Small programs in C for tests to run: compiled once per test process, by `cc`.

use std::path::PathBuf;
use std::process::Command;

/// Compiles a program.
pub(crate) fn compile(name: &str, source: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("soloist-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a temporary directory");
    let (text, program) = (dir.join(format!("{name}.c")), dir.join(name));
    std::fs::write(&text, source).expect("the source");
    let status = Command::new("cc")
        .args(["-O2", "-Wall", "-o"])
        .args([&program, &text])
        .status()
        .expect("this test needs a C compiler, `cc`: scripts/install-test-tools installs it");
    assert!(status.success(), "cc failed to compile {name}");
    program
}
