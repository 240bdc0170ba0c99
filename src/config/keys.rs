//! The keys of jobs.toml: what each takes, and whether this version acts on it.
//!
//! A key that the format has but that nothing acts on yet is refused, never ignored: a job that
//! asks for `notify` and gets none would fail in silence.

/// A key of a table.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    /// What its value is, as in "takes a duration".
    pub(super) takes: &'static str,
    /// A line that is right.
    pub(super) example: &'static str,
    pub(super) support: Support,
}

/// Whether this version acts on a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Support {
    /// It does.
    Now,
    /// A later version will. What happens until then.
    Later(&'static str),
}

const fn now(name: &'static str, takes: &'static str, example: &'static str) -> Key {
    Key {
        name,
        takes,
        example,
        support: Support::Now,
    }
}

const fn later(name: &'static str, today: &'static str) -> Key {
    Key {
        name,
        takes: "",
        example: "",
        support: Support::Later(today),
    }
}

/// The tables that a file may have, each with the way it is written.
pub(super) const TABLES: [&str; 4] = ["scheduler", "defaults", "jobs", "calendars"];

/// What `tags` and `run_on` take.
const TAKES_TAGS: &str = "a table or a list of tags";

/// Keys of `[scheduler]`.
pub(super) static SCHEDULER_KEYS: &[Key] = &[
    now("namespace", "a string", "namespace = \"shop\""),
    now("store", "a string", "store = \"redis://127.0.0.1:6379\""),
    now("lease_ttl", "a duration", "lease_ttl = \"15s\""),
    now("shutdown_grace", "a duration", "shutdown_grace = \"30s\""),
    now("replica", "a string", "replica = \"web-1\""),
    now("history_limit", "an integer", "history_limit = 1000"),
    now("listen", "a string", "listen = \"off\""),
    now("tags", TAKES_TAGS, "tags = { zone = \"eu\" }"),
    now("max_running", "an integer", "max_running = 20"),
    later("include", "today all jobs stand in one file"),
    later(
        "watch",
        "today a table is read at the start alone; restart to change it",
    ),
    later(
        "revision",
        "today replicas with different tables run side by side",
    ),
    now("min_replicas_ack", "an integer", "min_replicas_ack = 1"),
    now("tls_ca", "a path", "tls_ca = \"/etc/soloist/ca.pem\""),
    now(
        "tls_cert",
        "a path",
        "tls_cert = \"/etc/soloist/client.pem\"",
    ),
    now("tls_key", "a path", "tls_key = \"/etc/soloist/client.key\""),
    now(
        "tls_server_name",
        "a string",
        "tls_server_name = \"redis.example\"",
    ),
];

/// What begins every key about TLS, also those that there are not.
pub(super) const TLS_PREFIX: &str = "tls_";

/// Keys of a job, and of `[defaults]`.
pub(super) static JOB_KEYS: &[Key] = &[
    // When.
    now("schedule", "a string", "schedule = \"0 22 * * *\""),
    now("timezone", "a string", "timezone = \"Asia/Shanghai\""),
    now("random_delay", "a duration", "random_delay = \"30s\""),
    now("dst_gap", "a string", "dst_gap = \"run_after\""),
    now("dst_fold", "a string", "dst_fold = \"first\""),
    now("except", "a list of calendars", "except = [\"holidays\"]"),
    now("only", "a list of calendars", "only = [\"workdays\"]"),
    now(
        "after",
        "the name of a job, or a list of names",
        "after = [\"close-expired-orders\"]",
    ),
    now("enabled", "true or false", "enabled = false"),
    // What.
    now(
        "command",
        "a list of strings",
        "command = [\"close-expired-orders\", \"--older-than\", \"30m\"]",
    ),
    now(
        "shell",
        "a string",
        "shell = \"backup | gzip > /backup/db.gz\"",
    ),
    now(
        "http",
        "a table",
        "http = { url = \"https://shop.example/close-expired-orders\", method = \"POST\" }",
    ),
    now("env", "a table of strings", "env = { PORT = \"8080\" }"),
    now("working_dir", "a string", "working_dir = \"/srv/shop\""),
    now("user", "a name or an id", "user = \"www-data\""),
    now("group", "a name or an id", "group = \"www-data\""),
    now("umask", "an octal string", "umask = \"0027\""),
    now(
        "success_codes",
        "a list of integers",
        "success_codes = [0, 3]",
    ),
    now("output_limit", "a size", "output_limit = \"64KiB\""),
    now(
        "description",
        "a string",
        "description = \"closes orders that nobody paid\"",
    ),
    // How long.
    now("timeout", "a duration", "timeout = \"50s\""),
    now("kill_grace", "a duration", "kill_grace = \"5s\""),
    now("lease_ttl", "a duration", "lease_ttl = \"15s\""),
    later(
        "warn_after",
        "today only `timeout` watches how long an attempt runs",
    ),
    // Late.
    now("catch_up", "a string", "catch_up = \"latest\""),
    now("catch_up_limit", "an integer", "catch_up_limit = 100"),
    now(
        "starting_deadline",
        "a duration",
        "starting_deadline = \"1m\"",
    ),
    // Busy.
    now(
        "concurrency_policy",
        "a string",
        "concurrency_policy = \"forbid\"",
    ),
    now("queue_limit", "an integer", "queue_limit = 10"),
    // Failed.
    now("retry", "a table", "retry = { max = 3 }"),
    now("on_crash", "a string", "on_crash = \"rerun\""),
    now("max_attempts", "an integer", "max_attempts = 10"),
    // Where.
    now("shards", "an integer", "shards = 4"),
    now("run_on", TAKES_TAGS, "run_on = { zone = \"eu\" }"),
    // Kept.
    now("history_limit", "an integer", "history_limit = 1000"),
    now("history_age", "a duration", "history_age = \"30d\""),
    later("notify", "today failures are in the log and in the history"),
];

/// Keys of `[calendars.NAME]`.
pub(super) static CALENDAR_KEYS: &[Key] = &[
    now(
        "dates",
        "a list of dates",
        "dates = [\"2026-12-25\", \"2026-12-24..2027-01-01\", \"05-01\"]",
    ),
    now(
        "weekdays",
        "a list of days of the week",
        "weekdays = [\"MON-FRI\"]",
    ),
    now("ical", "a string", "ical = \"holidays.ics\""),
    now(
        "description",
        "a string",
        "description = \"days on which the shop is closed\"",
    ),
];

/// The keys of a job that say what it runs: a job has one of them, and one in a job takes the
/// place of whichever is in `[defaults]`.
pub(super) const PROGRAM_KEYS: [&str; 3] = ["command", "shell", "http"];

/// Finds a key by name.
pub(super) fn find(keys: &'static [Key], name: &str) -> Option<&'static Key> {
    keys.iter().find(|key| key.name == name)
}
