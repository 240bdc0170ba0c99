//! The variables that stand above an entry: those for its command, and those for cron itself.
//!
//! Must never: fill anything in; cron doesn't.

/// What cron reads and a command has no use for.
const OF_CRON: [&str; 9] = [
    "MAILTO",
    "MAILFROM",
    "CONTENT_TYPE",
    "CONTENT_TRANSFER_ENCODING",
    "CRON_TZ",
    "RANDOM_DELAY",
    "START_HOURS_RANGE",
    "LOGNAME",
    "USER",
];

/// The shell of cron, and of soloist's `shell`.
const SHELL: &str = "/bin/sh";

/// Variables in the order in which they were first set.
#[derive(Clone, Debug, Default)]
pub(super) struct Surroundings(Vec<(String, String)>);

impl Surroundings {
    /// For the entries from here on.
    pub(super) fn set(&mut self, name: String, value: String) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name, value)),
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let mut found = self.0.iter().filter(|(known, _)| known == name);
        found.next().map(|(_, value)| value.as_str())
    }

    /// What the command is given.
    pub(super) fn of_command(&self) -> impl Iterator<Item = (&str, &str)> {
        let given = self.0.iter();
        given
            .filter(|(name, _)| !OF_CRON.contains(&name.as_str()))
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Names that cron sets itself, so that a crontab can't.
    pub(super) fn overruled(&self) -> Option<&str> {
        let mut names = ["LOGNAME", "USER"].into_iter();
        names.find(|name| self.get(name).is_some())
    }

    /// The zone of the schedules; an empty one is the host's again.
    pub(super) fn timezone(&self) -> Option<&str> {
        let zone = self.get("CRON_TZ")?.trim_start_matches(':');
        Some(zone).filter(|zone| !zone.is_empty())
    }

    /// What commands are handed to.
    pub(super) fn shell(&self) -> &str {
        self.get("SHELL")
            .filter(|shell| !shell.is_empty())
            .unwrap_or(SHELL)
    }

    /// Whether that is what soloist's `shell` is handed to as well.
    pub(super) fn has_usual_shell(&self) -> bool {
        self.shell() == SHELL
    }
}
