//! Wall clocks that a test sets: for a whole process, by a library that is loaded into it.

use std::collections::hash_map::DefaultHasher;
use std::fs::File;
use std::hash::{Hash as _, Hasher as _};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

const SOURCE: &str = include_str!("clock_shim.c");

/// The shift of a process's wall clock in milliseconds, read when it starts.
pub const SHIFT_VARIABLE: &str = "SOLOIST_TEST_WALL_SHIFT_MS";

/// A file with a shift that may change while the process runs.
const SHIFT_FILE: &str = "SOLOIST_TEST_WALL_SHIFT_FILE";

/// A file with what a clock reads that stands still in between.
const CLOCK_FILE: &str = "SOLOIST_TEST_WALL_CLOCK_FILE";

/// The library that shifts CLOCK_REALTIME, built by `cc` when it is first asked for: set
/// `LD_PRELOAD` to it and [`SHIFT_VARIABLE`] to the shift.
///
/// # Panics
///
/// When there is no C compiler.
pub fn clock_shim() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(build).clone()
}

/// Beside the test's own program, where `cargo clean` finds it. Test programs may build it at
/// once, so it is put in place whole.
fn build() -> PathBuf {
    let program = std::env::current_exe().expect("a test program");
    let dir = program.parent().expect("a directory");
    let mut hasher = DefaultHasher::new();
    SOURCE.hash(&mut hasher);
    let library = dir.join(format!("clock_shim-{:x}.so", hasher.finish()));
    if library.exists() {
        return library;
    }
    let unfinished = dir.join(format!("clock_shim-{}.so", std::process::id()));
    let source = unfinished.with_extension("c");
    std::fs::write(&source, SOURCE).expect("a writable directory");
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"])
        .args([&unfinished, &source])
        .output()
        .expect(
            "this test needs a C compiler as `cc` and found none: \
             run scripts/install-test-tools, which installs it",
        );
    let complaint = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{complaint}");
    std::fs::rename(&unfinished, &library).expect("a writable directory");
    let _ = std::fs::remove_file(source);
    library
}

/// A number that a test sets and a process has mapped.
#[derive(Debug)]
struct Setting {
    path: PathBuf,
    file: File,
}

impl Setting {
    fn new(millis: i64) -> Self {
        static CREATED: AtomicU32 = AtomicU32::new(0);
        let number = CREATED.fetch_add(1, Ordering::Relaxed);
        let name = format!("clock-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let file = File::create(&path).expect("a writable directory");
        let setting = Self { path, file };
        setting.set(millis);
        setting
    }

    /// In place and never truncated: the process has the file mapped.
    fn set(&self, millis: i64) {
        let bytes = millis.to_ne_bytes();
        self.file.write_all_at(&bytes, 0).expect("eight bytes");
    }

    fn environment(&self, variable: &str) -> Vec<(String, String)> {
        let text = |path: PathBuf| path.into_os_string().into_string().expect("a UTF-8 path");
        vec![
            ("LD_PRELOAD".to_owned(), text(clock_shim())),
            (variable.to_owned(), text(self.path.clone())),
        ]
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A wall clock that a test makes step while the process that has it runs.
#[derive(Debug)]
pub struct SteppingClock(Setting);

impl SteppingClock {
    /// A clock that is right.
    ///
    /// # Panics
    ///
    /// When its file can't be written.
    #[must_use]
    pub fn new() -> Self {
        Self(Setting::new(0))
    }

    /// How far ahead of the host's clock it is from now on, in milliseconds; may be negative.
    ///
    /// # Panics
    ///
    /// When its file can't be written.
    pub fn set(&self, shift_ms: i64) {
        self.0.set(shift_ms);
    }

    /// What a process is given to have this clock.
    #[must_use]
    pub fn environment(&self) -> Vec<(String, String)> {
        self.0.environment(SHIFT_FILE)
    }
}

impl Default for SteppingClock {
    fn default() -> Self {
        Self::new()
    }
}

/// A wall clock that stands still wherever a test sets it, while the process that has it runs.
#[derive(Debug)]
pub struct StandingClock(Setting);

impl StandingClock {
    /// A clock that reads this, in milliseconds since the Unix epoch.
    ///
    /// # Panics
    ///
    /// When its file can't be written.
    #[must_use]
    pub fn new(reads_ms: i64) -> Self {
        Self(Setting::new(reads_ms))
    }

    /// Sets it.
    ///
    /// # Panics
    ///
    /// When its file can't be written.
    pub fn set(&self, reads_ms: i64) {
        self.0.set(reads_ms);
    }

    /// What a process is given to have this clock.
    #[must_use]
    pub fn environment(&self) -> Vec<(String, String)> {
        self.0.environment(CLOCK_FILE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{SystemTime, UNIX_EPOCH};

    const HOUR_MS: i64 = 3_600_000;

    fn date(environment: Vec<(String, String)>) -> i64 {
        let output = Command::new("date")
            .arg("+%s%3N")
            .envs(environment)
            .output()
            .unwrap();
        String::from_utf8(output.stdout)
            .unwrap()
            .trim()
            .parse()
            .unwrap()
    }

    /// How far the clock of a process with that environment is ahead, to the minute.
    fn ahead_minutes(environment: Vec<(String, String)>) -> i64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        (date(environment) - i64::try_from(now.as_millis()).unwrap() + 30_000).div_euclid(60_000)
    }

    fn shifted_by(shift_ms: i64) -> Vec<(String, String)> {
        let library = clock_shim().into_os_string().into_string().unwrap();
        vec![
            ("LD_PRELOAD".to_owned(), library),
            (SHIFT_VARIABLE.to_owned(), shift_ms.to_string()),
        ]
    }

    #[test]
    fn a_process_is_shifted_by_what_it_is_told_either_way() {
        assert_eq!(ahead_minutes(Vec::new()), 0);
        assert_eq!(ahead_minutes(shifted_by(0)), 0);
        assert_eq!(ahead_minutes(shifted_by(HOUR_MS + 999)), 60);
        assert_eq!(ahead_minutes(shifted_by(-HOUR_MS - 999)), -60);
    }

    #[test]
    fn milliseconds_are_carried_over_without_leaving_the_second() {
        for shift in [-1, 1, -999, 999, -1500, 1500] {
            let before = date(Vec::new());
            let between = date(shifted_by(shift)) - shift;
            let after = date(Vec::new());
            assert!((before..=after).contains(&between), "{shift}");
        }
    }

    #[test]
    fn a_clock_steps_while_its_process_runs() {
        let clock = SteppingClock::new();
        assert_eq!(ahead_minutes(clock.environment()), 0);
        clock.set(-HOUR_MS);
        assert_eq!(ahead_minutes(clock.environment()), -60);
    }

    #[test]
    fn a_clock_stands_still_where_it_is_set() {
        let clock = StandingClock::new(1_234_567_890);
        assert_eq!(date(clock.environment()), 1_234_567_890);
        clock.set(987_654_321_001);
        assert_eq!(date(clock.environment()), 987_654_321_001);
    }
}
