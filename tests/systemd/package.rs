//! The Debian package: made as a release is, of the program that was built for tests, and installed,
//! upgraded, removed and purged in a clean root.
//!
//! That root is this machine's, seen through an overlay: what the package changes lies in the
//! overlay's upper directory, and nothing else does. So it can be said what is left.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

const TABLE: &str = "/etc/soloist/jobs.toml";

/// All files of the package, with their modes; below the directories of documentation, which gain
/// and lose files, only that there are some.
const FILES: [(&str, u32); 10] = [
    ("usr/bin/soloist", 0o755),
    ("etc/soloist/jobs.toml", 0o644),
    ("usr/lib/systemd/system/soloist.service", 0o644),
    ("usr/share/man/man1/soloist.1.gz", 0o644),
    ("usr/share/man/man5/jobs.toml.5.gz", 0o644),
    ("usr/share/bash-completion/completions/soloist", 0o644),
    ("usr/share/zsh/vendor-completions/_soloist", 0o644),
    ("usr/share/fish/vendor_completions.d/soloist.fish", 0o644),
    ("usr/share/doc/soloist/copyright", 0o644),
    ("usr/share/doc/soloist/examples/soloist-root.service", 0o644),
];

/// Where the package manager keeps its books.
const BOOKS: [&str; 3] = ["var/lib/dpkg", "var/log", "var/cache"];

fn run(command: &mut Command) -> Output {
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        said(&output.stdout),
        said(&output.stderr)
    );
    output
}

/// Makes the package, once for all tests.
fn package() -> &'static Path {
    static PACKAGE: OnceLock<PathBuf> = OnceLock::new();
    PACKAGE.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join("soloist.deb");
        let mut script = Command::new(root.join("scripts/package"));
        script.args([
            "dev",
            "--fast",
            "--compress-type",
            "gz",
            "--strip",
            "--output",
        ]);
        run(script.arg(&made));
        made
    })
}

/// A root of its own, in a mount namespace that lives as long as one script does.
struct Root(tempfile::TempDir);

impl Root {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    /// Runs a script of commands in a root in which nothing of the package was ever installed, and
    /// where no service manager runs. Images of containers tell dpkg to leave out documentation,
    /// and an index of all manual pages takes longer than all else: neither is wanted here.
    fn run(&self, script: &str) -> String {
        let place = self.0.path().display();
        let package = package().display();
        let outer = format!(
            "set -eu
            mount -t tmpfs none {place}
            mkdir {place}/upper {place}/work {place}/root
            mount -t overlay overlay -o lowerdir=/,upperdir={place}/upper,workdir={place}/work {place}/root
            mount -t proc proc {place}/root/proc
            mount -t tmpfs none {place}/root/run
            mount -t tmpfs none {place}/root/tmp
            mount --bind /dev {place}/root/dev
            cp {package} {place}/root/tmp/soloist.deb
            rm -rf {place}/root/etc/dpkg/dpkg.cfg.d {place}/root/var/lib/man-db/auto-update
            mkdir {place}/root/run/upper
            mount --bind {place}/upper {place}/root/run/upper
            export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C DEBIAN_FRONTEND=noninteractive
            exec chroot {place}/root sh -eu -c '{script}'"
        );
        let mut command = as_root();
        let output =
            run(command.args(["unshare", "--mount", "--pid", "--fork", "sh", "-c", &outer]));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// What it takes to mount and to install. Where neither works, nothing is shown of the package.
fn as_root() -> Command {
    if rustix::process::geteuid().is_root() {
        return Command::new("env");
    }
    let mut sudo = Command::new("sudo");
    sudo.arg("--non-interactive");
    sudo
}

/// What differs from the machine as it is, but for the books of the package manager.
const CHANGED: &str = "(cd /run/upper && find . -mindepth 1 ! -type d) | sed s,^./,, | sort";

fn changed(listing: &str) -> BTreeSet<&str> {
    let is_kept = |path: &&str| BOOKS.iter().any(|books| path.starts_with(books));
    listing.lines().filter(|path| !is_kept(path)).collect()
}

#[test]
fn it_is_installed_with_all_that_belongs_to_it_and_its_table_is_right() {
    let root = Root::new();
    let said = root.run(&format!(
        "dpkg --install /tmp/soloist.deb >&2
        dpkg --verify soloist
        systemctl is-enabled soloist
        soloist --config {TABLE} check >&2
        man --where soloist jobs.toml >&2 || true
        cd / && for file in $(dpkg --listfiles soloist); do
            [ -d $file ] || stat --format \"%a %U %G %n\" $file
        done"
    ));
    // dpkg --verify says what is not as it was packed.
    let mut lines = said.lines();
    assert_eq!(lines.next(), Some("enabled"), "{said}");
    let files: Vec<&str> = lines.collect();
    for (file, mode) in FILES {
        let expected = format!("{mode:o} root root /{file}");
        assert!(files.contains(&expected.as_str()), "{expected}: {said}");
    }
    for file in files {
        assert!(file.contains(" root root /"), "{file}");
    }
}

#[test]
fn a_table_that_was_changed_survives_an_upgrade_and_a_removal() {
    let root = Root::new();
    let said = root.run(&format!(
        "dpkg --install /tmp/soloist.deb >&2
        echo \"# mine\" >> {TABLE}
        cd /tmp && dpkg-deb --raw-extract soloist.deb newer
        sed -i s/^Version:.*/Version:9.9-1/ newer/DEBIAN/control
        echo \"# of the package\" >> newer{TABLE}
        rm -f newer/DEBIAN/md5sums
        dpkg-deb -Zgzip -z1 --build newer newer.deb >&2
        dpkg --force-confdef --force-confold --install newer.deb >&2
        dpkg-query --show --showformat \"\\${{Version}}\\n\" soloist
        tail -n 1 {TABLE}
        dpkg --remove soloist >&2
        tail -n 1 {TABLE}"
    ));
    assert_eq!(said, "9.9-1\n# mine\n# mine\n");
}

#[test]
fn a_removal_leaves_configuration_and_ledger_and_a_purge_leaves_nothing() {
    let root = Root::new();
    let said = root.run(&format!(
        "dpkg --install /tmp/soloist.deb >&2
        mkdir -p /var/lib/private/soloist && touch /var/lib/private/soloist/soloist.db
        ln -s private/soloist /var/lib/soloist
        dpkg --remove soloist >&2
        {CHANGED}
        echo purged
        dpkg --purge soloist >&2
        {CHANGED}"
    ));
    let (removed, purged) = said.split_once("purged\n").expect("both");
    let removed = changed(removed);
    for kept in [
        "etc/soloist/jobs.toml",
        "var/lib/private/soloist/soloist.db",
    ] {
        assert!(removed.contains(kept), "{removed:#?}");
    }
    assert!(!removed.contains("usr/bin/soloist"), "{removed:#?}");
    let left = changed(purged);
    let left: Vec<_> = left
        .iter()
        .filter(|path| path.contains("soloist"))
        .collect();
    assert!(left.is_empty(), "{left:#?}");
}

#[test]
fn the_package_breaks_no_rule_of_debian() {
    let said = lintian();
    println!("{said}");
    let errors: Vec<_> = said.lines().filter(|line| line.starts_with("E:")).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

/// What lintian has to say. It looks at file modes of what it unpacks, and at nothing else of ours.
fn lintian() -> String {
    let mut lintian = Command::new("lintian");
    lintian.args(["--no-cfg", "--allow-root", "--fail-on", "none"]);
    let output = lintian.arg(package()).output();
    let output = output.expect("this test needs lintian: scripts/install-test-tools installs it");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
