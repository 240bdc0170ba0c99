//! Names for jobs that have none, made of what they run.
//!
//! The same text gives the same names, as the name is a job's identity. Must never: give a name
//! that a table refuses, or one name twice.

use std::collections::{HashMap, HashSet};

/// Scripts that are called as many are, and folders that say nothing.
const SCRIPTS: [&str; 8] = [
    "cron", "index", "main", "run", "start", "job", "jobs", "update",
];
const FOLDERS: [&str; 14] = [
    "bin", "cli", "cron", "scripts", "script", "src", "admin", "html", "public", "current", "www",
    "update", "lib", "app",
];

/// Options that no value follows.
const HARMLESS: [&str; 6] = ["-q", "-v", "-s", "-f", "--quiet", "--verbose"];

/// A name longer than this is cut: it is typed, and stands in columns.
const LENGTH: usize = 40;

/// Commands that say nothing about what a line is for: tests, places, pauses.
const GUARDS: [&str; 20] = [
    "[", "[[", "test", "cd", "command", "type", "which", "true", "false", ":", "sleep", "umask",
    "export", "set", "unset", "source", ".", "ulimit", "exit", "wait",
];

/// Words of a shell that a command may follow.
const KEYWORDS: [&str; 11] = [
    "if", "then", "else", "elif", "fi", "do", "done", "while", "{", "}", "!",
];

/// Programs that run another one, each with its options that take a value.
const WRAPPERS: [(&str, &[&str]); 16] = [
    ("nice", &["-n"]),
    ("ionice", &["-c", "-n"]),
    ("sudo", &["-u", "-g"]),
    ("doas", &["-u"]),
    ("env", &["-u"]),
    ("timeout", &["-k", "-s"]),
    ("flock", &["-w", "-E"]),
    ("stdbuf", &["-i", "-o", "-e"]),
    ("chpst", &["-u"]),
    ("systemd-cat", &["-t", "-p"]),
    ("chronic", &[]),
    ("exec", &["-a"]),
    ("nohup", &[]),
    ("setsid", &[]),
    ("time", &["-f", "-o"]),
    ("run-one", &[]),
];

/// Programs that say less than the script that they run.
const INTERPRETERS: [&str; 12] = [
    "sh", "bash", "dash", "zsh", "ksh", "perl", "ruby", "node", "php", "python", "java", "Rscript",
];

/// Endings that say in what a script is written.
const ENDINGS: [&str; 12] = [
    ".sh", ".bash", ".py", ".pl", ".rb", ".php", ".js", ".cgi", ".jar", ".cron", ".exe", ".R",
];

/// What a line is probably called by those who wrote it.
pub(super) fn of_command(command: &str) -> String {
    let mut first = None;
    for simple in simple_commands(command) {
        let words = words_of(&simple);
        let Some(program) = words.first() else {
            continue;
        };
        let name = of_words(&words);
        if !GUARDS.contains(&program.as_str()) && !is_random_pause(&simple) {
            return slug(&name);
        }
        first.get_or_insert(name);
    }
    slug(&first.unwrap_or_default())
}

/// A pause of random length, written in another language for want of one in the shell.
fn is_random_pause(simple: &str) -> bool {
    simple.contains("sleep")
        && ["rand(", "random.", "RANDOM"]
            .iter()
            .any(|how| simple.contains(how))
}

/// The parts of a line between operators; quotes are respected, what is filled in is left out,
/// and all else is roughly right.
fn simple_commands(command: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quote = None;
    let mut depth = 0;
    let mut before = ' ';
    for c in command.chars() {
        let opens = c == '(' && (before == '$' || depth > 0);
        before = c;
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '\'' || c == '"' => quote = Some(c),
            None if opens => depth += 1,
            None if c == ')' && depth > 0 => {
                depth -= 1;
                continue;
            }
            None if depth == 0 && ";|&\n()`".contains(c) => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut().filter(|_| depth == 0) {
            part.push(c);
        }
    }
    parts
}

/// The words from the program on: keywords, assignments and wrappers are left out.
fn words_of(simple: &str) -> Vec<String> {
    let unquoted = |word: &str| word.trim_matches(['"', '\'']).to_owned();
    let mut words = simple.split_whitespace().map(unquoted).peekable();
    while let Some(word) = words.peek() {
        let name = base(word).to_owned();
        let wrapper = WRAPPERS.iter().find(|(wrapper, _)| *wrapper == name);
        if let Some((_, with_value)) = wrapper {
            words.next();
            while let Some(option) = words.next_if(|word| word.starts_with('-')) {
                if with_value.contains(&option.as_str()) {
                    words.next();
                }
            }
            // A file to lock, a time to wait.
            if ["flock", "timeout"].contains(&name.as_str()) {
                words.next();
            }
        } else if KEYWORDS.contains(&name.as_str()) || is_assignment(word) {
            words.next();
        } else {
            break;
        }
    }
    words.collect()
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn base(word: &str) -> &str {
    word.trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or(word)
}

/// A file without what tells its language.
fn stem(word: &str) -> &str {
    let name = base(word);
    let ending = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending));
    ending.filter(|stem| !stem.is_empty()).unwrap_or(name)
}

/// Program and what it is told to do, where that is a plain word or two.
fn of_words(words: &[String]) -> String {
    let Some(program) = words.first() else {
        return String::new();
    };
    let mut name = stem(program).to_owned();
    let end = words.iter().position(|word| word.contains(['>', '<']));
    let mut rest = &words[1..end.unwrap_or(words.len()).max(1)];
    let versionless = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if INTERPRETERS.contains(&versionless) {
        let is_script = |word: &String| word.contains('/') || stem(word) != base(word);
        let is_word = |word: &String| !word.starts_with('-');
        let script = rest
            .iter()
            .position(is_script)
            .or(rest.iter().position(is_word));
        let Some(script) = script else {
            return name;
        };
        name = of_script(&rest[script]);
        rest = &rest[script + 1..];
    }
    if let Some(url) = rest.iter().find(|word| word.contains("://")) {
        return format!("{name}-{}", of_url(url));
    }
    if name == "run-parts" {
        let folder = rest.iter().find(|word| !word.starts_with('-'));
        return folder.map_or(name.clone(), |folder| format!("{name}-{}", base(folder)));
    }
    // A word behind an option may be its value, and a secret.
    let has_no_value = |word: &&String| HARMLESS.contains(&word.as_str()) || word.contains('=');
    let said = rest.iter().filter(|word| !has_no_value(word));
    for word in said.take_while(|word| is_plain(word)).take(2) {
        name = format!("{name}-{word}");
    }
    name
}

/// A script that is called as many are is known by its folder.
fn of_script(path: &str) -> String {
    let name = stem(path);
    let folders = path.rsplit('/').skip(1);
    let mut telling = folders.filter(|folder| !folder.is_empty() && !FOLDERS.contains(folder));
    match telling.next().filter(|_| SCRIPTS.contains(&name)) {
        Some(folder) => format!("{folder}-{name}"),
        None => name.to_owned(),
    }
}

/// A word such as `renew` or `schedule:run`; no path, number, file or variable.
fn is_plain(word: &str) -> bool {
    word.len() <= 24
        && word.starts_with(|c: char| c.is_ascii_lowercase())
        && word
            .chars()
            .all(|c| c.is_ascii_alphabetic() || "-_:".contains(c))
}

/// The host, and what is asked of it where that is a plain word: a path may have a secret in it.
fn of_url(url: &str) -> String {
    let address = url.split("://").nth(1).unwrap_or(url);
    let address = address.split(['?', '#']).next().unwrap_or(address);
    let (host, path) = address.split_once('/').unwrap_or((address, ""));
    let host = host.rsplit('@').next().unwrap_or(host);
    let host = host.split(':').next().unwrap_or(host);
    match stem(path) {
        asked if is_plain(asked) && asked.len() <= 12 => format!("{host}-{asked}"),
        _ => host.to_owned(),
    }
}

/// A text as a name, or nothing.
pub(super) fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || "._".contains(c) {
            slug.push(c.to_ascii_lowercase());
        } else if !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    let cut = &slug[..slug.len().min(LENGTH)];
    cut.trim_end_matches(|c: char| !c.is_ascii_alphanumeric())
        .to_owned()
}

/// The names that jobs have so far.
#[derive(Debug, Default)]
pub(super) struct Taken {
    names: HashSet<String>,
    /// The number that is tried next behind a name, so that a thousand jobs of one name cost no
    /// more than a thousand tries.
    next: HashMap<String, u64>,
}

impl Taken {
    /// The name, or one with a number behind it where it is taken.
    pub(super) fn free(&mut self, wanted: &str) -> String {
        let base = if wanted.is_empty() { "job" } else { wanted };
        if !self.names.contains(base) {
            return base.to_owned();
        }
        let next = self.next.entry(base.to_owned()).or_insert(2);
        loop {
            let name = format!("{base}-{next}");
            if !self.names.contains(&name) {
                return name;
            }
            *next += 1;
        }
    }

    /// A job has it from now on.
    pub(super) fn take(&mut self, name: String) {
        self.names.insert(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_named_after_what_it_runs() {
        for (command, name) in [
            ("/usr/local/bin/backup.sh --full > /dev/null 2>&1", "backup"),
            (
                "cd / && run-parts --report /etc/cron.hourly",
                "run-parts-cron.hourly",
            ),
            (
                "test -x /usr/sbin/anacron || { cd / && run-parts /etc/cron.daily; }",
                "run-parts-cron.daily",
            ),
            (
                "[ -x /usr/lib/php/sessionclean ] && if [ ! -d /run/systemd/system ]; then /usr/lib/php/sessionclean; fi",
                "sessionclean",
            ),
            (
                "command -v debian-sa1 > /dev/null && debian-sa1 1 1",
                "debian-sa1",
            ),
            (
                "test -x /usr/bin/certbot && perl -e 'sleep int(rand(43200))' && certbot -q renew",
                "certbot-renew",
            ),
            ("php -f /var/www/nextcloud/cron.php", "nextcloud-cron"),
            (
                "php --define a.b=1 /srv/moodle/admin/cli/cron.php",
                "moodle-cron",
            ),
            (
                "if [ $(date +%d) -le 7 ] && (true); then /sbin/scrub; fi",
                "scrub",
            ),
            (
                "cd /srv/app && php artisan schedule:run >> /dev/null 2>&1",
                "artisan-schedule-run",
            ),
            ("/usr/bin/python3 -m mailer.send x", "mailer.send-x"),
            ("nice -n 19 ionice -c 3 /opt/x/reindex", "reindex"),
            ("flock -n /tmp/x.lock timeout 50 /opt/sync", "sync"),
            ("PATH=/x LANG=C updatedb", "updatedb"),
            (
                "wget -q -O - https://u:secret@shop.example/cron.php?key=secret",
                "wget-shop.example-cron",
            ),
            (
                "sudo -u git -H bundle exec rake gitlab:backup:create",
                "bundle-exec-rake",
            ),
            ("sleep 30; /x/poll", "poll"),
            ("cd /tmp", "cd"),
            ("'/opt/my job' x", "my-job-x"),
            ("", ""),
            ("\u{e9}\u{e9}", ""),
        ] {
            assert_eq!(of_command(command), name, "{command}");
        }
    }

    #[test]
    fn a_name_is_given_once() {
        let mut taken = Taken::default();
        let names: Vec<_> = ["a", "", "a", "a-2", "a", ""]
            .map(|wanted| {
                let name = taken.free(wanted);
                taken.take(name.clone());
                name
            })
            .into();
        assert_eq!(names, ["a", "job", "a-2", "a-2-2", "a-3", "job-2"]);
    }
}
