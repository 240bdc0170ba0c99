//! An entry under its surroundings, made into a draft.
//!
//! Must never: refuse an entry whose meaning can be kept.

use super::command::{self, Command};
use super::comments::Description;
use super::environment::Surroundings;
use super::fields::{self, Schedule};
use super::line::is_blank;
use super::sets_clocks;
use crate::config::{find_zone, parse_duration};
use crate::import::draft::{Draft, Refused, Value};
use crate::import::{Columns, Request, name};

/// Shells that take a here-document.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "ash", "ksh", "zsh"];

/// Where an entry stands.
pub(super) struct Scene<'s> {
    pub(super) request: &'s Request<'s>,
    pub(super) surroundings: &'s Surroundings,
    pub(super) description: Description,
    /// From 1.
    pub(super) number: usize,
    /// The whole line.
    pub(super) text: &'s str,
    /// The line above asks to be continued, which cron doesn't do.
    pub(super) follows_backslash: bool,
}

/// Makes a draft of an entry.
pub(super) fn draft(scene: &Scene<'_>, entry: &str) -> Result<Draft, Refused> {
    let source = vec![scene.text.to_owned()];
    let mut draft = Draft::new(format!("line {}", scene.number), String::new(), source);
    match fill(scene, entry, &mut draft) {
        Ok(()) => Ok(draft),
        Err(reason) if scene.follows_backslash => {
            let why = "it follows a line that ends with `\\`, and cron joins no lines";
            Err(draft.refused(format!("{reason}; {why}")))
        }
        Err(reason) => Err(draft.refused(reason)),
    }
}

fn fill(scene: &Scene<'_>, entry: &str, draft: &mut Draft) -> Result<(), String> {
    let entry = match entry.strip_prefix('-') {
        Some(rest) => {
            draft.differs(
                "`-` before it keeps cron's note of it out of syslog; here every attempt is logged",
            );
            rest
        }
        None => entry,
    };
    refuse_anacron(entry)?;
    let (schedule, rest) = when(entry)?;
    for difference in &schedule.differences {
        draft.differs(*difference);
    }
    let (user, rest) = user_of(scene, rest)?;
    let rest = without_flags(rest, draft);
    if rest.is_empty() {
        return Err("it has no command".into());
    }
    if rest.starts_with('*') {
        return Err("a sixth field stands where its command should: cron has no seconds, and refuses it (write it with six fields, the second first, as soloist has them)".into());
    }
    let command = command::read(rest);
    draft.name = match &scene.description.name {
        Some(name) => name::slug(name),
        None => name::of_command(&command.text),
    };
    let said = scene.description.text.as_ref();
    if let Some(text) = said.filter(|text| **text != draft.name) {
        draft.set_text("description", text.clone());
    }
    set_schedule(scene, schedule, draft);
    set_command(scene, &command, draft)?;
    if let Some(user) = user {
        set_user(user, draft);
    }
    set_surroundings(scene.surroundings, draft);
    warn_of_a_column(scene, rest, draft);
    if rest.trim_end().ends_with('\\') {
        draft
            .differs("it ends with `\\`, and cron joins no lines: the next one isn't a part of it");
    }
    Ok(())
}

/// A line of anacrontab(5) is days, minutes, a name and a command.
fn refuse_anacron(entry: &str) -> Result<(), String> {
    let mut words = entry.split_whitespace();
    let (first, second, third) = (words.next(), words.next(), words.next());
    let is_number =
        |word: Option<&str>| word.is_some_and(|word| word.bytes().all(|b| b.is_ascii_digit()));
    // In place of a day of the month, where at most `LW` stands.
    let letters = |word: &str| word.chars().filter(char::is_ascii_alphabetic).count();
    let is_name = third.is_some_and(|word| letters(word) > 2);
    let is_period = is_number(first) || first.is_some_and(|word| word.starts_with('@'));
    if is_period && is_number(second) && is_name && words.next().is_some() {
        return Err("it is a line of anacrontab(5), days and a delay instead of times (write a schedule such as `@daily`, and `random_delay`)".into());
    }
    Ok(())
}

/// The schedule, and the rest of the entry.
fn when(entry: &str) -> Result<(Schedule, &str), String> {
    if entry.starts_with('@') {
        let (word, rest) = next_word(entry);
        if word.eq_ignore_ascii_case("@every") {
            let (wait, rest) = next_word(rest);
            if parse_duration(wait).is_ok() {
                return Ok((fields::every(wait), rest));
            }
        }
        return Ok((fields::word(word)?, rest));
    }
    let mut words = [""; 5];
    let mut rest = entry;
    for word in &mut words {
        (*word, rest) = next_word(rest);
    }
    if words[4].is_empty() {
        return Err("it is neither a variable nor five fields and a command".into());
    }
    Ok((fields::five(words), rest))
}

/// The first word, and what follows it, without the blanks between.
fn next_word(text: &str) -> (&str, &str) {
    let end = text.find(is_blank).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    (word, rest.trim_start_matches(is_blank))
}

fn user_of<'t>(scene: &Scene<'_>, rest: &'t str) -> Result<(Option<&'t str>, &'t str), String> {
    if scene.request.columns == Columns::User {
        return Ok((None, rest));
    }
    let (user, rest) = next_word(rest);
    if user.is_empty() || rest.is_empty() {
        return Err("it names no user, or no command after the user (a user's own crontab has no such column)".into());
    }
    Ok((Some(user), rest))
}

/// Without the flags of FreeBSD and OpenBSD, which other crons would take for the program.
fn without_flags<'t>(mut rest: &'t str, draft: &mut Draft) -> &'t str {
    loop {
        let (word, after) = next_word(rest);
        let flags = word.strip_prefix('-').unwrap_or_default();
        let is_flags = !flags.is_empty() && flags.chars().all(|flag| "nqs".contains(flag));
        if !is_flags {
            return rest;
        }
        if flags.contains('n') {
            draft.differs("`-n` mails only what failed; here output is kept of every attempt");
        }
        if flags.contains('q') {
            draft.differs(
                "`-q` keeps cron's note of it out of syslog; here every attempt is logged",
            );
        }
        // `-s`, one at a time, is what soloist does anyway.
        rest = after;
    }
}

fn set_schedule(scene: &Scene<'_>, schedule: Schedule, draft: &mut Draft) {
    draft.set_text("schedule", schedule.text);
    let own = scene.surroundings.timezone();
    if let Some(zone) = own {
        draft.set_text("timezone", zone);
        draft.differs("CRON_TZ is its `timezone`, as in cronie; crons that don't know it read the times in the host's zone");
    }
    if let Some(zone) = scene.surroundings.get("TZ")
        && own != Some(zone)
        && find_zone(zone).is_ok()
    {
        draft.differs("TZ is for its command alone, as in Vixie cron and cronie; where it moved the schedule too, write `timezone`");
    }
    let zone = own.or(scene.request.timezone).unwrap_or("UTC");
    if schedule.follows_clocks && sets_clocks(zone) {
        draft.set_text("dst_gap", "skip");
        draft.set_text("dst_fold", "both");
    }
    set_random_delay(scene.surroundings, draft);
}

fn set_random_delay(surroundings: &Surroundings, draft: &mut Draft) {
    let Some(text) = surroundings.get("RANDOM_DELAY") else {
        return;
    };
    match text.trim().parse::<u32>() {
        Ok(0) => {}
        Ok(minutes) => {
            draft.set_text("random_delay", format!("{minutes}m"));
            draft.differs("RANDOM_DELAY is drawn when cronie starts; here each occurrence has its own, the same on every replica");
        }
        Err(_) => draft.differs("RANDOM_DELAY is no number of minutes, and is left out"),
    }
}

fn set_command(scene: &Scene<'_>, command: &Command, draft: &mut Draft) -> Result<(), String> {
    let shell = scene.surroundings.shell();
    if command
        .input
        .as_ref()
        .is_some_and(|input| !input.is_empty())
    {
        let known = shell
            .rsplit('/')
            .next()
            .is_some_and(|name| SHELLS.contains(&name));
        if !known {
            return Err(format!(
                "what follows `%` is its input, and how `{shell}` is given one isn't known (write it into a file)"
            ));
        }
        draft.differs("what follows `%` is its input, written as a here-document");
    }
    let script = command.script();
    if scene.surroundings.has_usual_shell() {
        draft.set_text("shell", script);
    } else {
        let words = vec![shell.to_owned(), "-c".into(), script];
        draft.set("command", Value::Texts(words));
    }
    if command.leaves_something_behind() {
        draft.differs("it ends with `&`: what it starts in the background ends with the attempt, at once (leave out the `&`)");
    }
    Ok(())
}

/// `user`, on FreeBSD `user:group/class`.
fn set_user(user: &str, draft: &mut Draft) {
    let (user, class) = match user.split_once('/') {
        Some((user, class)) => (user, Some(class)),
        None => (user, None),
    };
    if class.is_some() {
        draft.differs("its login class is left out");
    }
    let (user, group) = match user.split_once(':') {
        Some((user, group)) => (user, Some(group)),
        None => (user, None),
    };
    draft.set_text("user", user);
    if let Some(group) = group {
        draft.set_text("group", group);
    }
}

fn set_surroundings(surroundings: &Surroundings, draft: &mut Draft) {
    if let Some(home) = surroundings.get("HOME") {
        draft.set_text("working_dir", home);
    }
    for (name, value) in surroundings.of_command() {
        draft.set_env(name, value);
    }
    if let Some(name) = surroundings.overruled() {
        draft.differs(format!("{name} is left out: cron sets it itself"));
    }
    if surroundings.get("START_HOURS_RANGE").is_some() {
        draft.differs("START_HOURS_RANGE is left out: it is for anacron, and a schedule says when");
    }
}

/// A user's column in what was not said to have one.
fn warn_of_a_column(scene: &Scene<'_>, rest: &str, draft: &mut Draft) {
    const USERS: [&str; 6] = ["root", "www-data", "nobody", "daemon", "postgres", "nginx"];
    let (first, rest) = next_word(rest);
    if scene.request.columns == Columns::User && USERS.contains(&first) && !rest.is_empty() {
        draft.differs(format!("`{first}` is taken for its program; if it is the user, as in /etc/crontab, say `--system`"));
    }
}
