//! Runs the binary in a directory of its own, with nothing of the caller's environment.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::schema::faults_of;

/// A directory to run the binary in.
pub(crate) struct Place(TempDir);

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Place {
    /// With nothing in it.
    pub(crate) fn empty() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    /// With a `jobs.toml`.
    pub(crate) fn with_table(table: impl AsRef<[u8]>) -> Self {
        let place = Self::empty();
        fs::write(place.path("jobs.toml"), table).expect("written");
        place
    }

    /// A path in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The binary, ready to run here.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_soloist"));
        command
            .args(args)
            .env_clear()
            .current_dir(self.0.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs it.
    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        self.run_with(args, &[])
    }

    /// Runs it with variables.
    pub(crate) fn run_with(&self, args: &[&str], env: &[(&str, &str)]) -> Ended {
        let output = self
            .command(args)
            .envs(env.iter().copied())
            .output()
            .expect("the binary runs");
        if args.first() == Some(&"check") && output.status.success() {
            let table = fs::read_to_string(self.path("jobs.toml"));
            // It may be elsewhere, or be no text.
            let faults = table.map_or(Vec::new(), |table| faults_of(&table));
            assert_eq!(faults, [""; 0], "`check` takes what the schema refuses");
        }
        Ended {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }
}
