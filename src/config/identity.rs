//! Who a job runs as, and what the files that it makes are closed to: `user`, `group`, `umask`.
//!
//! Names are those of the host that an attempt runs on, which may not be this one: what this
//! host has to say of them is a warning, never an error.

use toml::de::DeValue;

use super::Strictness;
use super::diagnostics::Diagnostic;
use super::job::Keys;
use super::raw::Entry;
use super::read::{Reader, Text, to_i64};

/// Says what keeps a job of this user and group from running on this host: what is wrong, and
/// what to do about it.
pub type Accounts<'a> = &'a dyn Fn(Option<&str>, Option<&str>) -> Result<(), (String, String)>;

/// The largest id; the one above it stands for "no change" in setuid(2) and its like.
pub(super) const LARGEST_ID: u32 = u32::MAX - 1;

/// All that a umask can take away.
const LARGEST_UMASK: u32 = 0o777;

/// What a umask takes from the owner of a file.
const OF_OWNER: u32 = 0o700;

pub(super) struct Identity {
    pub(super) user: Option<String>,
    pub(super) group: Option<String>,
    pub(super) umask: Option<u32>,
}

pub(super) fn read_identity(reader: &mut Reader<'_>, keys: &Keys<'_>) -> Identity {
    let (user, group) = (keys.get("user"), keys.get("group"));
    let identity = Identity {
        user: user.and_then(|entry| read_name(reader, entry)),
        group: group.and_then(|entry| read_name(reader, entry)),
        umask: keys
            .get("umask")
            .and_then(|entry| read_umask(reader, entry)),
    };
    // Half of what was asked for is nothing to ask this host about.
    let is_run = reader.strictness != Strictness::Look;
    let all_read =
        user.is_some() == identity.user.is_some() && group.is_some() == identity.group.is_some();
    if is_run && all_read {
        warn_of_this_host(reader, &identity, user, group);
    }
    identity
}

fn warn_of_this_host(
    reader: &mut Reader<'_>,
    identity: &Identity,
    user: Option<&Entry<'_>>,
    group: Option<&Entry<'_>>,
) {
    let Some(first) = user.or(group) else {
        return;
    };
    let answer = (reader.accounts)(identity.user.as_deref(), identity.group.as_deref());
    let Err((message, hint)) = answer else {
        return;
    };
    let mut warning = Diagnostic::warning(first.value.span(), message).hint(format!(
        "{hint}; as it is, attempts of this job fail to start here"
    ));
    if let (Some(_), Some(group)) = (user, group) {
        warning = warning.related(group.value.span(), "with this group");
    }
    reader.problems.push(warning);
}

/// A name, or an id as integer or text; ids come out in digits.
fn read_name(reader: &mut Reader<'_>, entry: &Entry<'_>) -> Option<String> {
    let what = entry.key.name;
    let id = match entry.value.get_ref() {
        DeValue::Integer(integer) => to_i64(integer).and_then(|id| u32::try_from(id).ok()),
        DeValue::String(_) => {
            let text = reader.full_text(entry)?;
            if !text.value.bytes().all(|byte| byte.is_ascii_digit()) {
                return check_name(reader, what, text);
            }
            text.value.parse().ok()
        }
        _ => {
            reader.wrong_type(entry);
            return None;
        }
    };
    let id = id.filter(|id| *id <= LARGEST_ID);
    if id.is_none() {
        let message = format!("as an id, `{what}` is a number from 0 to {LARGEST_ID}");
        let hint = format!("for example `{what} = 1000`, or a name");
        reader.error(&entry.value.span(), message, hint);
    }
    id.map(|id| id.to_string())
}

/// Refuses what no host has as a name; what else is one, each host decides.
fn check_name(reader: &mut Reader<'_>, what: &str, text: Text) -> Option<String> {
    let name = &text.value;
    if let Some((user, group)) = name.split_once(':') {
        let hint = format!("write them apart: `user = \"{user}\"` and `group = \"{group}\"`");
        let message = format!("{} has a `:` in it, which no name has", text.quoted());
        reader.error(&text.span, message, hint);
        return None;
    }
    let hint = if name.contains("${") {
        "`${…}` is filled in in [scheduler] and `env` alone: write the name"
    } else {
        "write the name as `getent passwd` or `getent group` shows it, or the id"
    };
    let stray = |c: char| c.is_control() || c == '/';
    if name.trim() != name || name.starts_with('-') || name.contains("${") || name.contains(stray) {
        let message = format!("`{}` can't name a {what}", name.escape_debug());
        reader.error(&text.span, message, hint);
        return None;
    }
    Some(text.value)
}

fn read_umask(reader: &mut Reader<'_>, entry: &Entry<'_>) -> Option<u32> {
    // An integer would be guessed at: 27 is written for 0027 by some, and is 0033.
    let text = reader.full_text(entry)?;
    let is_octal = text.value.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
    let mask = u32::from_str_radix(&text.value, 8)
        .ok()
        .filter(|mask| is_octal && *mask <= LARGEST_UMASK);
    let Some(mask) = mask else {
        let message = format!("{} is no umask", text.quoted());
        let hint = "it is octal, from \"0000\" to \"0777\", and says what is taken away: `umask = \"0027\"` closes new files to others, and to writing by the group";
        reader.error(&text.span, message, hint);
        return None;
    };
    if mask & OF_OWNER != 0 {
        let message = format!("the umask {mask:04o} takes rights from the job's own user");
        let meant = umask_of(mask);
        let hint = format!(
            "a umask says what is taken away; for files of mode {mask:04o} write `umask = \"{meant:04o}\"`"
        );
        reader
            .problems
            .push(Diagnostic::warning(text.span, message).hint(hint));
    }
    Some(mask)
}

/// What leaves a mode to files that are made with 0666 or 0777, for all but their owner.
fn umask_of(mode: u32) -> u32 {
    let taken = |class: u32| if class == 0 { 0o7 } else { !class & 0o6 };
    taken(mode >> 3 & 0o7) << 3 | taken(mode & 0o7)
}
