//! Who asks, as the ledger keeps it: `alice@db1`, or `alice@db1 (sudo)`.
//!
//! It is what the invoking process says of itself, for people who look back. Must never be taken
//! for proof: whoever may write to the store may write any name.

use nix::unistd::{Uid, User};

use crate::cli::args::is_printable;

/// The longest name that is taken from the environment, as useradd(8) has it.
const NAME_LIMIT: usize = 32;

/// The invoking user, at this host.
pub(super) fn name() -> String {
    let uid = Uid::current();
    let known = User::from_uid(uid).ok().flatten();
    let own = known.map_or_else(|| format!("uid {uid}"), |user| user.name);
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    let before_sudo = std::env::var("SUDO_USER").ok();
    asker(&own, uid.is_root(), before_sudo.as_deref(), &host)
}

/// Root's environment alone is asked who called sudo: anybody can set a variable, and only root
/// could pretend to be anybody anyway.
fn asker(own: &str, is_root: bool, before_sudo: Option<&str>, host: &str) -> String {
    let plausible = |name: &&str| {
        let length = name.chars().count();
        (1..=NAME_LIMIT).contains(&length) && name.chars().all(is_printable) && *name != own
    };
    match before_sudo.filter(|_| is_root).filter(plausible) {
        Some(person) => format!("{person}@{host} (sudo)"),
        None => format!("{own}@{host}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_is_the_user_and_under_sudo_the_person_behind_it() {
        for (own, is_root, before_sudo, asks) in [
            ("alice", false, None, "alice@db1"),
            ("root", true, None, "root@db1"),
            ("root", true, Some("alice"), "alice@db1 (sudo)"),
            ("root", true, Some("root"), "root@db1"),
            ("root", true, Some(""), "root@db1"),
            ("root", true, Some("a\nb"), "root@db1"),
            ("bob", false, Some("alice"), "bob@db1"),
        ] {
            assert_eq!(asker(own, is_root, before_sudo, "db1"), asks);
        }
    }

    #[test]
    fn this_process_is_somebody_somewhere() {
        let name = name();
        let (user, host) = name.split_once('@').unwrap();
        assert!(!user.is_empty() && !host.is_empty(), "{name}");
    }
}
