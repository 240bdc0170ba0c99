//! The files that the rules look at: those that git knows or would take in.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use crate::source::Source;

/// What is made, not written: passed over at the root where git can't be asked.
const NOT_OURS: [&str; 3] = [".git", "target", "var"];

/// Inputs of fuzzers, wrong on purpose in whatever way.
const INPUTS: &str = "tests/fuzz/corpus/";

/// A text file, by its path in the repository.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    /// The last part of its name, after the dot.
    pub(crate) fn extension(&self) -> &str {
        let name = Path::new(&self.path).extension();
        name.and_then(|name| name.to_str()).unwrap_or_default()
    }
}

/// Read once for all rules.
pub(crate) static TREE: LazyLock<Tree> = LazyLock::new(Tree::read);

pub(crate) struct Tree {
    root: PathBuf,
    pub(crate) files: Vec<File>,
    /// Those of the files that are Rust.
    pub(crate) rust: Vec<Source>,
}

impl Tree {
    fn read() -> Self {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let paths = listed(&root).unwrap_or_else(|| {
            let mut paths = Vec::new();
            walk(&root, &root, &mut paths);
            paths
        });
        // What is no text (an image), leads elsewhere, or was removed and not yet committed, is
        // passed over.
        let file = |path: String| {
            if path.starts_with(INPUTS) || root.join(&path).is_symlink() {
                return None;
            }
            let text = fs::read_to_string(root.join(&path)).ok()?;
            Some(File { path, text })
        };
        let files: Vec<File> = paths.into_iter().filter_map(file).collect();
        let rust = files.iter().filter(|file| file.extension() == "rs");
        let rust = rust
            .map(|file| Source::new(&file.path, &file.text))
            .collect();
        Self { root, files, rust }
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }
}

/// What git knows, and new files that it doesn't ignore: a finding comes before the commit.
/// None where there is no git, or the tree lies in somebody else's repository.
fn listed(root: &Path) -> Option<Vec<String>> {
    let arguments = [
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ];
    let mut git = Command::new("git");
    let output = git.arg("-C").arg(root).args(arguments).output();
    let output = output.ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    let paths = text.split('\0').filter(|path| !path.is_empty());
    let paths: Vec<String> = paths.map(str::to_owned).collect();
    paths
        .iter()
        .any(|path| path == "Cargo.toml")
        .then_some(paths)
}

fn walk(root: &Path, folder: &Path, paths: &mut Vec<String>) {
    let entries = fs::read_dir(folder).expect("a readable tree");
    for entry in entries.map(|entry| entry.expect("a readable tree")) {
        let path = entry.path();
        let made = folder == root && NOT_OURS.iter().any(|name| entry.file_name() == *name);
        if made || path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            walk(root, &path, paths);
        } else if let Ok(path) = path.strip_prefix(root) {
            paths.push(path.to_string_lossy().into_owned());
        }
    }
}

#[test]
fn without_git_the_same_sources_are_found() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut walked = Vec::new();
    walk(&root, &root, &mut walked);
    let missing = TREE.files.iter().find(|file| !walked.contains(&file.path));
    assert_eq!(missing.map(|file| &file.path), None);
    assert!(
        !walked
            .iter()
            .any(|path| path.starts_with("target/") || path.starts_with(".git/"))
    );
}
