//! Who a job really becomes. What changes ids does so in a process of its own: this test binary
//! once more, with accounts of the test's own bound over the host's, which then executes a shell
//! as the job would be.

use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::thread::{CapabilitiesSecureBits, set_capabilities_secure_bits};
use tempfile::TempDir;

use super::*;

/// A JSON list of identities that [`becomes_what_it_is_told`] is to assume one after another.
const IDENTITIES: &str = "SOLOIST_TEST_IDENTITIES";

/// Set, it keeps the kernel from taking capabilities with the user id.
const KEEP_CAPABILITIES: &str = "SOLOIST_TEST_KEEP_CAPABILITIES";

/// What a job could tell of itself.
const SCRIPT: &str = "echo; echo uid $(id -u) gid $(id -g) groups $(id -G)
sed -n 's/^\\([UG]id\\|Cap[IPEA][a-z]*\\):/\\1/p' /proc/self/status
echo home $HOME user $USER logname $LOGNAME shell $SHELL umask $(umask)";

/// Accounts that no host has.
const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash
shop:x:61001:61001::/srv/shop:/bin/sh
till:x:61002:61002::/srv/till:/usr/sbin/nologin
bare:x:61003:61003:::
";
const GROUP: &str = "root:x:0:
shop:x:61001:
till:x:61002:
stock:x:61010:shop,till
audit:x:61011:shop
";

/// Not a test: the process that those below start.
#[test]
#[ignore = "started by other tests"]
fn becomes_what_it_is_told() {
    let Ok(identities) = std::env::var(IDENTITIES) else {
        return;
    };
    let identities: Vec<Identity> = serde_json::from_str(&identities).unwrap();
    set_umask(0o027);
    if std::env::var_os(KEEP_CAPABILITIES).is_some() {
        set_capabilities_secure_bits(CapabilitiesSecureBits::NO_SETUID_FIXUP).unwrap();
    }
    let mut assumed = Assumed::default();
    for identity in &identities {
        match identity.assume() {
            Ok(became) => assumed = became,
            Err(refusal) => {
                println!("refused: {refusal}");
                return;
            }
        }
    }
    let mut job = Command::new("/bin/sh");
    job.args(["-c", SCRIPT])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .envs(assumed.variables());
    panic!("{}", job.exec());
}

/// Not a test: as above, with a way back left open.
#[test]
#[ignore = "started by another test"]
fn keeps_a_way_back() {
    let Ok(_) = std::env::var(IDENTITIES) else {
        return;
    };
    let target = identity("shop", "").look_up().unwrap();
    let former = (getuid(), getgid());
    set_thread_groups(target.groups.as_deref().unwrap()).unwrap();
    let (uid, gid) = (target.uid.unwrap(), target.gid.unwrap());
    set_thread_res_gid(gid, gid, gid).unwrap();
    set_thread_res_uid(uid, uid, Uid::ROOT).unwrap();
    println!(
        "refused: {}",
        target.is_put_on_for_good(former).unwrap_err()
    );
}

fn identity(user: &str, group: &str) -> Identity {
    let name = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Identity {
        user: name(user),
        group: name(group),
    }
}

/// Whether this process may do what these tests are about; says so when it may not.
fn is_root(test: &str) -> bool {
    let bound = Command::new("unshare")
        .args(["--mount", "mount", "--bind", "/", "/"])
        .output();
    let root = geteuid().is_root() && may_change_ids();
    let able = root && bound.is_ok_and(|output| output.status.success());
    if !able {
        eprintln!(
            "!!! NOT SHOWN: {test}: this takes root and the right to mount (unshare --mount)"
        );
    }
    able
}

/// What the process that ran `test` here printed, with [`PASSWD`] and [`GROUP`] in place.
fn run(test: &str, identities: &[Identity], keep_capabilities: bool) -> String {
    let dir = TempDir::new().unwrap();
    for (name, text) in [("passwd", PASSWD), ("group", GROUP)] {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let bind = "mount --bind \"$0/passwd\" /etc/passwd && mount --bind \"$0/group\" /etc/group \
                && exec \"$@\"";
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", bind])
        .arg(dir.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &format!("guardian::identity::tests::{test}")])
        .args(["--ignored", "--nocapture", "--test-threads=1"])
        .env(IDENTITIES, serde_json::to_string(identities).unwrap())
        .envs(keep_capabilities.then_some((KEEP_CAPABILITIES, "1")))
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8(output.stdout).unwrap()
}

fn become_all(identities: &[Identity]) -> String {
    run("becomes_what_it_is_told", identities, false)
}

/// The words of each line that begins with one of these, without that.
fn told<'t>(printed: &'t str, what: &str) -> Vec<&'t str> {
    let line = printed
        .lines()
        .find_map(|line| line.strip_prefix(what))
        .unwrap_or_else(|| panic!("no `{what}` in: {printed}"));
    line.split_whitespace().collect()
}

#[test]
fn a_job_with_a_user_has_its_ids_and_groups_and_nothing_of_root() {
    if !is_root("a_job_with_a_user_has_its_ids_and_groups_and_nothing_of_root") {
        return;
    }
    for user in ["shop", "61001"] {
        let printed = become_all(&[identity(user, "")]);
        let ids = "61001 gid 61001 groups 61001 61010 61011";
        assert_eq!(told(&printed, "uid ").join(" "), ids, "{printed}");
        assert_eq!(told(&printed, "Uid"), ["61001"; 4], "{printed}");
        assert_eq!(told(&printed, "Gid"), ["61001"; 4], "{printed}");
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert_eq!(told(&printed, set), ["0000000000000000"], "{printed}");
        }
        let account = "/srv/shop user shop logname shop shell /bin/sh umask 0027";
        assert_eq!(told(&printed, "home ").join(" "), account, "{printed}");
    }
}

#[test]
fn a_group_takes_the_place_of_the_users_own() {
    if !is_root("a_group_takes_the_place_of_the_users_own") {
        return;
    }
    let printed = become_all(&[identity("shop", "audit")]);
    let ids = "61001 gid 61011 groups 61011 61010";
    assert_eq!(told(&printed, "uid ").join(" "), ids, "{printed}");
    assert_eq!(told(&printed, "Gid"), ["61011"; 4], "{printed}");
}

#[test]
fn a_group_alone_leaves_the_user_as_it_is() {
    if !is_root("a_group_alone_leaves_the_user_as_it_is") {
        return;
    }
    let printed = become_all(&[identity("", "stock")]);
    assert_eq!(told(&printed, "Uid"), ["0"; 4], "{printed}");
    assert_eq!(told(&printed, "Gid"), ["61010"; 4], "{printed}");
    let none = "user logname shell umask 0027";
    assert_eq!(told(&printed, "home ").join(" "), none, "{printed}");
}

#[test]
fn without_user_and_group_nothing_changes() {
    if !is_root("without_user_and_group_nothing_changes") {
        return;
    }
    let printed = become_all(&[identity("", "")]);
    assert_eq!(told(&printed, "Uid"), ["0"; 4], "{printed}");
    assert_eq!(told(&printed, "Gid"), ["0"; 4], "{printed}");
    let effective = u64::from_str_radix(told(&printed, "CapEff")[0], 16).unwrap();
    assert_ne!(effective, 0, "{printed}");
}

#[test]
fn an_id_without_an_account_needs_a_group_and_is_in_no_other() {
    if !is_root("an_id_without_an_account_needs_a_group_and_is_in_no_other") {
        return;
    }
    let printed = become_all(&[identity("61999", "")]);
    assert!(printed.contains("refused: the user id 61999 has no account"));
    assert!(printed.contains("name the job's `group` as well"));
    let printed = become_all(&[identity("61999", "61998")]);
    let ids = "61999 gid 61998 groups 61998";
    assert_eq!(told(&printed, "uid ").join(" "), ids, "{printed}");
    let account = "/ user 61999 logname 61999 shell /bin/sh umask 0027";
    assert_eq!(told(&printed, "home ").join(" "), account, "{printed}");
}

#[test]
fn a_shell_that_turns_people_away_is_not_for_jobs() {
    if !is_root("a_shell_that_turns_people_away_is_not_for_jobs") {
        return;
    }
    let printed = become_all(&[identity("till", "")]);
    let account = "/srv/till user till logname till shell /bin/sh umask 0027";
    assert_eq!(told(&printed, "home ").join(" "), account, "{printed}");
    let printed = become_all(&[identity("bare", "")]);
    let account = "/ user bare logname bare shell /bin/sh umask 0027";
    assert_eq!(told(&printed, "home ").join(" "), account, "{printed}");
}

#[test]
fn who_is_not_root_may_be_itself_and_nobody_else() {
    if !is_root("who_is_not_root_may_be_itself_and_nobody_else") {
        return;
    }
    let shop = || identity("shop", "");
    let printed = become_all(&[shop(), shop(), identity("61001", "shop")]);
    assert_eq!(told(&printed, "Uid"), ["61001"; 4], "{printed}");
    for other in [
        identity("root", ""),
        identity("till", ""),
        identity("", "stock"),
        identity("shop", "root"),
        identity("0", "0"),
    ] {
        let printed = become_all(&[shop(), other.clone()]);
        let cause = format!("refused: to run as {other} (uid ");
        assert!(printed.contains(&cause), "{printed}");
        assert!(printed.contains("not as uid 61001, gid 61001"), "{printed}");
        assert!(printed.contains("start soloist as root"), "{printed}");
        assert!(!printed.contains("Uid"), "it went on: {printed}");
    }
}

#[test]
fn a_way_back_to_root_is_noticed() {
    if !is_root("a_way_back_to_root_is_noticed") {
        return;
    }
    let printed = run("keeps_a_way_back", &[], false);
    assert!(
        printed.contains("refused: this process could go back"),
        "{printed}"
    );
}

/// As they do where soloist is no root, but has been given CAP_SETUID.
#[test]
fn capabilities_that_outlive_the_change_are_dropped() {
    if !is_root("capabilities_that_outlive_the_change_are_dropped") {
        return;
    }
    let printed = run("becomes_what_it_is_told", &[identity("shop", "")], true);
    assert_eq!(told(&printed, "Uid"), ["61001"; 4], "{printed}");
    assert_eq!(told(&printed, "CapEff"), ["0000000000000000"], "{printed}");
}

#[test]
fn who_is_not_on_this_host_is_refused_with_a_cure() {
    for (wanted, cause, cure) in [
        (
            identity("no-such-user", ""),
            "there is no user `no-such-user` on this host",
            "create it, or correct the job's `user`",
        ),
        (
            identity("", "no-such-group"),
            "there is no group `no-such-group` on this host",
            "create it, or correct the job's `group`",
        ),
    ] {
        assert_eq!(wanted.check(), Err(refusal(cause, cure)));
        assert_eq!(wanted.assume(), Err(format!("{cause}: {cure}")));
    }
}

#[test]
fn whoever_runs_this_may_be_who_they_are() {
    let own = identity(
        &geteuid().as_raw().to_string(),
        &getegid().as_raw().to_string(),
    );
    assert_eq!(own.check(), Ok(()));
    assert_eq!(identity("", "").check(), Ok(()));
    let nobody = identity("61999", "61998").check();
    assert_eq!(nobody.is_ok(), may_change_ids(), "{nobody:?}");
}

#[test]
fn digits_alone_are_an_id_and_the_largest_is_none() {
    assert_eq!(id_in("1000"), Some(1000));
    assert_eq!(id_in("4294967294"), Some(u32::MAX - 1));
    for name in ["4294967295", "+5", "-1", "shop", "5a", ""] {
        assert_eq!(id_in(name), None, "{name}");
    }
}
