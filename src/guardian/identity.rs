//! Who a job runs as: `user` and `group` of the table, looked up on this host and put on.
//!
//! ```text
//!  names ──look_up──▶ ids, groups, account ──change──▶ groups, gid, uid, capabilities
//!                                                            │ is_put_on_for_good
//!                                                            ▼
//!                                                    nobody else any more
//! ```
//!
//! [`Identity::assume`] is for a forked child that is about to execute the job: it changes the
//! calling *thread*, which in a single-threaded process is all of it. What comes after it is done
//! with the rights of the job's user, and the kernel has forgotten a PR_SET_PDEATHSIG by then.
//!
//! Must never: run a job as somebody else than was asked for, or leave it a way back.

use std::ffi::{CString, OsString};
use std::path::PathBuf;

use nix::errno::Errno;
use nix::unistd;
use rustix::fs::Mode;
use rustix::process::{getegid, geteuid, getgid, getgroups, getuid, umask};
use rustix::thread::{
    CapabilitySet, CapabilitySets, Gid, Uid, capabilities, clear_ambient_capability_set,
    set_capabilities, set_thread_gid, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
    set_thread_uid,
};
use serde::{Deserialize, Serialize};

/// The shell of an account that names none (passwd(5)), or one that only turns people away:
/// programs that start `$SHELL` are not to fail in a job.
const SHELL: &str = "/bin/sh";

/// The home of an account that names none, or of an id without an account.
const HOME: &str = "/";

/// What takes rights from files that are made from now on, in this process and what it starts.
pub(crate) fn set_umask(mask: u32) {
    umask(Mode::from_raw_mode(mask));
}

/// `user` and `group` of a job: names, or ids in digits. Without both, a job runs as whoever
/// soloist runs as.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Identity {
    /// Alone, it brings the groups that it is in on this host.
    pub(crate) user: Option<String>,
    /// Instead of the user's own first group.
    pub(crate) group: Option<String>,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Assumed {
    /// Whose environment the job is to have; none where no `user` was asked for.
    pub(crate) account: Option<Account>,
}

/// What a login would know of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    /// The name, or the id in digits where it has none.
    pub(crate) name: String,
    pub(crate) home: PathBuf,
    pub(crate) shell: PathBuf,
}

/// Why a job can't run as who it should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause}: {cure}")]
pub(crate) struct Refusal {
    pub(crate) cause: String,
    pub(crate) cure: String,
}

fn refusal(cause: impl Into<String>, cure: impl Into<String>) -> Refusal {
    Refusal {
        cause: cause.into(),
        cure: cure.into(),
    }
}

impl Assumed {
    /// What a job is told of its user, as cron and systemd do.
    pub(crate) fn variables(&self) -> Vec<(&'static str, OsString)> {
        let Some(account) = &self.account else {
            return Vec::new();
        };
        vec![
            ("HOME", account.home.clone().into()),
            ("USER", account.name.clone().into()),
            ("LOGNAME", account.name.clone().into()),
            ("SHELL", account.shell.clone().into()),
        ]
    }
}

impl Identity {
    /// Becomes it, for good. After a refusal the process may be anything in between: it must end.
    pub(crate) fn assume(&self) -> Result<Assumed, String> {
        let target = self.look_up().map_err(|refusal| refusal.to_string())?;
        self.put_on(&target)
            .map_err(|refusal| refusal.to_string())?;
        Ok(Assumed {
            account: target.account,
        })
    }

    /// Whether this process could become it, as far as that can be told beforehand.
    #[cfg(feature = "daemon")]
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let target = self.look_up()?;
        if may_change_ids() || target.is_present() {
            return Ok(());
        }
        Err(self.not_permitted(&target))
    }

    fn look_up(&self) -> Result<Target, Refusal> {
        let user = self.user.as_deref().map(find_user).transpose()?;
        let group = self.group.as_deref().map(find_group).transpose()?;
        let Some(user) = user else {
            return Ok(Target {
                gid: group,
                ..Target::default()
            });
        };
        let gid = group.or(user.gid).ok_or_else(|| {
            let id = user.uid.as_raw();
            refusal(
                format!("the user id {id} has no account on this host that would tell its group"),
                "name the job's `group` as well",
            )
        })?;
        Ok(Target {
            uid: Some(user.uid),
            gid: Some(gid),
            groups: Some(user.groups(gid)?),
            account: Some(user.account),
        })
    }

    fn put_on(&self, target: &Target) -> Result<(), Refusal> {
        if !may_change_ids() && target.is_present() {
            return Ok(());
        }
        let former = (getuid(), getgid());
        // In this order: each step takes the right to the one before it.
        self.change(target)
            .map_err(|error| self.explain(target, error))?;
        target.is_put_on_for_good(former)
    }

    fn change(&self, target: &Target) -> Result<(), rustix::io::Errno> {
        if let Some(groups) = &target.groups {
            set_thread_groups(groups)?;
        }
        if let Some(gid) = target.gid {
            set_thread_res_gid(gid, gid, gid)?;
        }
        if let Some(uid) = target.uid {
            set_thread_res_uid(uid, uid, uid)?;
            if !uid.is_root() {
                drop_capabilities()?;
            }
        }
        Ok(())
    }

    fn explain(&self, target: &Target, error: rustix::io::Errno) -> Refusal {
        match error {
            rustix::io::Errno::PERM => self.not_permitted(target),
            rustix::io::Errno::INVAL => refusal(
                format!("{self} has ids that this user namespace does not map"),
                "map them where the container is started, or choose another `user` and `group`",
            ),
            _ => refusal(
                format!("the kernel refuses to make this process {self}: {error}"),
                "see credentials(7)",
            ),
        }
    }

    fn not_permitted(&self, target: &Target) -> Refusal {
        let id = |wanted: Option<u32>, own: u32| wanted.unwrap_or(own);
        let (own_uid, own_gid) = (geteuid().as_raw(), getegid().as_raw());
        let uid = id(target.uid.map(Uid::as_raw), own_uid);
        let gid = id(target.gid.map(Gid::as_raw), own_gid);
        refusal(
            format!(
                "to run as {self} (uid {uid}, gid {gid}), soloist must run as root, not as uid \
                 {own_uid}, gid {own_gid} without CAP_SETUID and CAP_SETGID"
            ),
            "start soloist as root or as just that user and group, or leave `user` and `group` out",
        )
    }
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.user, &self.group) {
            (Some(user), Some(group)) => write!(f, "user `{user}`, group `{group}`"),
            (Some(user), None) => write!(f, "user `{user}`"),
            (None, Some(group)) => write!(f, "group `{group}`"),
            (None, None) => f.write_str("whoever it is"),
        }
    }
}

/// What to become; what is none stays as it is.
#[derive(Debug, Default)]
struct Target {
    uid: Option<Uid>,
    gid: Option<Gid>,
    /// The supplementary groups. They stay where only a group was asked for.
    groups: Option<Vec<Gid>>,
    account: Option<Account>,
}

impl Target {
    /// Whether this process is it already, its supplementary groups apart.
    fn is_present(&self) -> bool {
        self.uid
            .is_none_or(|uid| uid == getuid() && uid == geteuid())
            && self
                .gid
                .is_none_or(|gid| gid == getgid() && gid == getegid())
    }

    /// Asks the kernel rather than believing it: a job that could become root again is worse than
    /// one that doesn't start.
    fn is_put_on_for_good(&self, former: (Uid, Gid)) -> Result<(), Refusal> {
        let cure = "tell the makers of soloist, with the kernel's version";
        let has_groups = || match (&self.groups, getgroups()) {
            (None, _) => true,
            (Some(wanted), Ok(groups)) => sorted(wanted) == sorted(&groups),
            (Some(_), Err(_)) => false,
        };
        if !self.is_present() || !has_groups() {
            return Err(refusal(
                "the kernel took the change of user and did not make it",
                cure,
            ));
        }
        let Some(uid) = self.uid.filter(|uid| !uid.is_root()) else {
            return Ok(()); // Root may be anybody.
        };
        let others = [former.0, Uid::ROOT].into_iter();
        let uid_regained = others
            .filter(|other| *other != uid)
            .any(|other| set_thread_uid(other).is_ok());
        let gid = self.gid.unwrap_or(former.1);
        let others = [former.1, Gid::ROOT].into_iter();
        let gid_regained = others
            .filter(|other| *other != gid)
            .any(|other| set_thread_gid(other).is_ok());
        if uid_regained || gid_regained {
            return Err(refusal(
                "this process could go back to the user or group that it was before",
                cure,
            ));
        }
        Ok(())
    }
}

fn sorted(groups: &[Gid]) -> Vec<u32> {
    let mut ids: Vec<u32> = groups.iter().map(|gid| gid.as_raw()).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Whether this process may become another user: root, unless a container took that from it.
fn may_change_ids() -> bool {
    capabilities(None).is_ok_and(|sets| {
        sets.effective
            .contains(CapabilitySet::SETUID | CapabilitySet::SETGID)
    })
}

/// The kernel does so at a change from root, but not at one from a user with capabilities, nor
/// under SECBIT_NO_SETUID_FIXUP (capabilities(7)).
fn drop_capabilities() -> Result<(), rustix::io::Errno> {
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    set_capabilities(
        None,
        CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        },
    )
}

/// A user as this host knows it.
struct User {
    uid: Uid,
    /// Its first group; none where the id has no account.
    gid: Option<Gid>,
    account: Account,
}

impl User {
    /// The groups that it is in, `first` among them (initgroups(3)).
    fn groups(&self, first: Gid) -> Result<Vec<Gid>, Refusal> {
        if self.gid.is_none() {
            return Ok(vec![first]);
        }
        let name = &self.account.name;
        let groups = CString::new(name.as_str())
            .map_err(|_| Errno::EINVAL)
            .and_then(|name| unistd::getgrouplist(&name, unistd::Gid::from_raw(first.as_raw())))
            .map_err(|error| unanswered("the groups of user", name, error))?;
        Ok(groups
            .into_iter()
            .map(|gid| Gid::from_raw(gid.as_raw()))
            .collect())
    }
}

fn find_user(text: &str) -> Result<User, Refusal> {
    let id = id_in(text);
    let found = match id {
        Some(id) => unistd::User::from_uid(unistd::Uid::from_raw(id)),
        None => unistd::User::from_name(text),
    };
    match (unless_missing(found), id) {
        (Ok(Some(user)), _) => Ok(User {
            uid: Uid::from_raw(user.uid.as_raw()),
            gid: Some(Gid::from_raw(user.gid.as_raw())),
            account: Account {
                name: user.name,
                home: if user.dir.as_os_str().is_empty() {
                    HOME.into()
                } else {
                    user.dir
                },
                shell: shell_for_jobs(user.shell),
            },
        }),
        (Ok(None), Some(id)) => Ok(User {
            uid: Uid::from_raw(id),
            gid: None,
            account: Account {
                name: text.to_owned(),
                home: HOME.into(),
                shell: SHELL.into(),
            },
        }),
        (Ok(None), None) => Err(refusal(
            format!("there is no user `{text}` on this host"),
            "create it, or correct the job's `user`",
        )),
        (Err(error), _) => Err(unanswered("user", text, error)),
    }
}

fn find_group(text: &str) -> Result<Gid, Refusal> {
    // The kernel asks for no name of a group, and so neither do we.
    if let Some(id) = id_in(text) {
        return Ok(Gid::from_raw(id));
    }
    match unless_missing(unistd::Group::from_name(text)) {
        Ok(Some(group)) => Ok(Gid::from_raw(group.gid.as_raw())),
        Ok(None) => Err(refusal(
            format!("there is no group `{text}` on this host"),
            "create it, or correct the job's `group`",
        )),
        Err(error) => Err(unanswered("group", text, error)),
    }
}

/// What is made of digits alone is an id. The largest stands for "no change" in system calls.
fn id_in(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|id| digits && *id != u32::MAX)
}

/// What getpwnam(3) lists as "the given name was not found", beside a plain nothing.
fn unless_missing<T>(found: Result<Option<T>, Errno>) -> Result<Option<T>, Errno> {
    match found {
        Err(Errno::ENOENT | Errno::ESRCH) => Ok(None),
        found => found,
    }
}

fn unanswered(what: &str, name: &str, error: Errno) -> Refusal {
    refusal(
        format!("failed to look up {what} `{name}`: {error}"),
        "see that the services named in /etc/nsswitch.conf answer: `getent passwd`, `getent group`",
    )
}

fn shell_for_jobs(shell: PathBuf) -> PathBuf {
    let turns_away = shell
        .file_name()
        .is_none_or(|name| name == "nologin" || name == "false");
    if turns_away { SHELL.into() } else { shell }
}

#[cfg(test)]
mod tests;
