//! Finds the program of a job before it is executed, as execvp(3) would, but in the *job's*
//! `PATH` and working directory, and with an error that says what was looked for and where.
//!
//! The answers can go stale before the exec: they make for good messages and a certain
//! file, and the kernel's own refusal is still heeded.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::facts::{SpawnError, SpawnErrorKind};

/// Checks that a job can run in `dir`.
pub(super) fn check_working_dir(program: &str, dir: &Path) -> Result<(), SpawnError> {
    let refuse = |why: String| {
        let message = format!("working_dir `{}` {why}", dir.display());
        Err(SpawnError::new(
            SpawnErrorKind::WorkingDir,
            program,
            message,
        ))
    };
    match fs::metadata(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            refuse("does not exist on this host: create it, or change the job".into())
        }
        Err(error) => refuse(format!("can't be reached: {error}")),
        Ok(found) if !found.is_dir() => refuse("is not a directory".into()),
        Ok(_) => match access(dir, Access::EXEC_OK) {
            Ok(()) => Ok(()),
            Err(error) => refuse(format!("can't be entered by this user: {error}")),
        },
    }
}

/// The file to execute for `program`. With a `/` in it, it is a path, and a relative one is
/// taken from the working directory of the job. Without, it is looked for in `path`.
pub(super) fn find(
    program: &str,
    path: &OsStr,
    working_dir: Option<&Path>,
) -> Result<PathBuf, SpawnError> {
    let from_working_dir = |file: &Path| match working_dir {
        Some(dir) => dir.join(file),
        None => file.to_owned(),
    };
    if program.contains('/') {
        let file = from_working_dir(Path::new(program));
        return check_executable(program, &file).map(|()| file);
    }
    let mut refused = None;
    for dir in std::env::split_paths(path) {
        // An empty entry is the working directory (execvp(3)); `./` keeps it a path.
        let dir = if dir.as_os_str().is_empty() {
            PathBuf::from(".")
        } else {
            dir
        };
        let file = from_working_dir(&dir.join(program));
        match check_executable(program, &file) {
            Ok(()) => return Ok(file),
            Err(error) if error.kind == SpawnErrorKind::NotExecutable => {
                refused.get_or_insert(error);
            }
            Err(_) => {}
        }
    }
    Err(refused.unwrap_or_else(|| not_in_path(program, path)))
}

fn not_in_path(program: &str, path: &OsStr) -> SpawnError {
    let path = path.display();
    let hint = if program.contains(char::is_whitespace) {
        "`command` takes the arguments apart, `shell` takes a whole line"
    } else {
        "install it, name it by its full path, or set PATH in the job's `env`"
    };
    let why = format!("no such program in PATH ({path}): {hint}");
    SpawnError::new(SpawnErrorKind::ProgramNotFound, program, why)
}

fn check_executable(program: &str, file: &Path) -> Result<(), SpawnError> {
    let shown = file.display();
    let refuse =
        |kind, why: String| Err(SpawnError::new(kind, program, format!("`{shown}` {why}")));
    match fs::metadata(file) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            refuse(
                SpawnErrorKind::ProgramNotFound,
                "does not exist on this host: install it, or change the path".into(),
            )
        }
        Err(error) => refuse(
            SpawnErrorKind::NotExecutable,
            format!("can't be reached by this user: {error}"),
        ),
        Ok(found) if found.is_dir() => refuse(
            SpawnErrorKind::NotExecutable,
            "is a directory: name the program in it".into(),
        ),
        Ok(_) => match access(file, Access::EXEC_OK) {
            Ok(()) => Ok(()),
            Err(error) => refuse(
                SpawnErrorKind::NotExecutable,
                format!(
                    "can't be executed by this user ({error}): try `chmod +x`, or check that its file system is not mounted noexec"
                ),
            ),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A directory with `good` (executable), `plain` (not) and `dir/`.
    fn some_files() -> tempfile::TempDir {
        let files = tempfile::tempdir().unwrap();
        for (name, mode) in [("good", 0o755), ("plain", 0o644)] {
            fs::write(files.path().join(name), "#!/bin/sh\n").unwrap();
            fs::set_permissions(files.path().join(name), PermissionsExt::from_mode(mode)).unwrap();
        }
        fs::create_dir(files.path().join("dir")).unwrap();
        files
    }

    fn kind(result: Result<PathBuf, SpawnError>) -> SpawnErrorKind {
        result.unwrap_err().kind
    }

    #[test]
    fn a_bare_name_is_looked_for_in_path() {
        let files = some_files();
        let path = std::env::join_paths([Path::new("/nonexistent"), files.path()]).unwrap();
        assert_eq!(
            find("good", &path, None).unwrap(),
            files.path().join("good")
        );
        assert_eq!(
            kind(find("bad", &path, None)),
            SpawnErrorKind::ProgramNotFound
        );
        assert_eq!(
            kind(find("dir", &path, None)),
            SpawnErrorKind::NotExecutable
        );
        assert_eq!(
            kind(find("plain", &path, None)),
            SpawnErrorKind::NotExecutable
        );
        assert_eq!(kind(find("", &path, None)), SpawnErrorKind::NotExecutable);
    }

    #[test]
    fn the_search_goes_on_past_what_can_not_be_executed() {
        let (first, second) = (some_files(), some_files());
        fs::rename(second.path().join("good"), second.path().join("plain")).unwrap();
        let path = std::env::join_paths([first.path(), second.path()]).unwrap();
        assert_eq!(
            find("plain", &path, None).unwrap(),
            second.path().join("plain")
        );
    }

    #[test]
    fn relative_paths_start_at_the_working_directory() {
        let files = some_files();
        let dir = Some(files.path());
        assert!(
            find("./good", OsStr::new(""), dir)
                .unwrap()
                .ends_with("good")
        );
        assert!(
            find("good", OsStr::new("/nonexistent:"), dir)
                .unwrap()
                .ends_with("good")
        );
        assert_eq!(
            kind(find("./good", OsStr::new(""), None)),
            SpawnErrorKind::ProgramNotFound
        );
    }

    #[test]
    fn a_whole_line_as_a_program_is_told_of_shell() {
        let error = find("echo hello", OsStr::new("/bin"), None).unwrap_err();
        assert!(error.why.contains("`shell`"), "{error}");
    }

    #[test]
    fn a_bad_working_directory_is_told_from_a_missing_program() {
        let files = some_files();
        assert!(check_working_dir("good", files.path()).is_ok());
        for bad in ["nonexistent", "good", "good/below"] {
            let error = check_working_dir("good", &files.path().join(bad)).unwrap_err();
            assert_eq!(error.kind, SpawnErrorKind::WorkingDir);
            assert!(error.why.contains(bad), "{error}");
        }
    }
}
