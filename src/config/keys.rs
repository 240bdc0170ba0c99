//! The keys of jobs.toml, and what each takes. Nothing is in here that nothing acts on: such a key
//! is refused, never ignored.

/// A key of a table.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    /// What its value is, as in "takes a duration".
    pub(super) takes: &'static str,
    /// A line that is right.
    pub(super) example: &'static str,
}

const fn key(name: &'static str, takes: &'static str, example: &'static str) -> Key {
    Key {
        name,
        takes,
        example,
    }
}

/// The tables that a file may have, each with the way it is written.
pub(super) const TABLES: [&str; 5] = ["scheduler", "defaults", "jobs", "calendars", "notify"];

/// What `tags` and `run_on` take.
const TAKES_TAGS: &str = "a table or a list of tags";

/// Keys of `[scheduler]`.
pub(super) static SCHEDULER_KEYS: &[Key] = &[
    key("namespace", "a string", "namespace = \"shop\""),
    key("store", "a string", "store = \"redis://127.0.0.1:6379\""),
    key("lease_ttl", "a duration", "lease_ttl = \"15s\""),
    key("shutdown_grace", "a duration", "shutdown_grace = \"30s\""),
    key("replica", "a string", "replica = \"web-1\""),
    key("history_limit", "an integer", "history_limit = 1000"),
    key("listen", "a string", "listen = \"127.0.0.1:7373\""),
    key(
        "api_tokens",
        "a path",
        "api_tokens = \"/etc/soloist/tokens\"",
    ),
    key("tags", TAKES_TAGS, "tags = { zone = \"eu\" }"),
    key("max_running", "an integer", "max_running = 20"),
    key(
        "include",
        "a list of patterns",
        "include = [\"jobs.d/*.toml\"]",
    ),
    key("watch", "true or false", "watch = true"),
    key("revision", "an integer", "revision = 42"),
    key("min_replicas_ack", "an integer", "min_replicas_ack = 1"),
    key("tls_ca", "a path", "tls_ca = \"/etc/soloist/ca.pem\""),
    key(
        "tls_cert",
        "a path",
        "tls_cert = \"/etc/soloist/client.pem\"",
    ),
    key("tls_key", "a path", "tls_key = \"/etc/soloist/client.key\""),
    key(
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
    key("schedule", "a string", "schedule = \"0 22 * * *\""),
    key("timezone", "a string", "timezone = \"Asia/Shanghai\""),
    key("random_delay", "a duration", "random_delay = \"30s\""),
    key("dst_gap", "a string", "dst_gap = \"run_after\""),
    key("dst_fold", "a string", "dst_fold = \"first\""),
    key("except", "a list of calendars", "except = [\"holidays\"]"),
    key("only", "a list of calendars", "only = [\"workdays\"]"),
    key(
        "after",
        "the name of a job, or a list of names",
        "after = [\"close-expired-orders\"]",
    ),
    key("enabled", "true or false", "enabled = false"),
    // What.
    key(
        "command",
        "a list of strings",
        "command = [\"close-expired-orders\", \"--older-than\", \"30m\"]",
    ),
    key(
        "shell",
        "a string",
        "shell = \"backup | gzip > /backup/db.gz\"",
    ),
    key(
        "http",
        "a table",
        "http = { url = \"https://shop.example/close-expired-orders\", method = \"POST\" }",
    ),
    key("env", "a table of strings", "env = { PORT = \"8080\" }"),
    key("working_dir", "a string", "working_dir = \"/srv/shop\""),
    key("user", "a name or an id", "user = \"www-data\""),
    key("group", "a name or an id", "group = \"www-data\""),
    key("umask", "an octal string", "umask = \"0027\""),
    key(
        "success_codes",
        "a list of integers",
        "success_codes = [0, 3]",
    ),
    key("output_limit", "a size", "output_limit = \"64KiB\""),
    key(
        "description",
        "a string",
        "description = \"closes orders that nobody paid\"",
    ),
    // How long.
    key("timeout", "a duration", "timeout = \"50s\""),
    key("kill_grace", "a duration", "kill_grace = \"5s\""),
    key("lease_ttl", "a duration", "lease_ttl = \"15s\""),
    key("warn_after", "a duration", "warn_after = \"10m\""),
    // Late.
    key("catch_up", "a string", "catch_up = \"latest\""),
    key("catch_up_limit", "an integer", "catch_up_limit = 100"),
    key(
        "starting_deadline",
        "a duration",
        "starting_deadline = \"1m\"",
    ),
    // Busy.
    key(
        "concurrency_policy",
        "a string",
        "concurrency_policy = \"forbid\"",
    ),
    key("queue_limit", "an integer", "queue_limit = 10"),
    // Failed.
    key("retry", "a table", "retry = { max = 3 }"),
    key("on_crash", "a string", "on_crash = \"rerun\""),
    key("max_attempts", "an integer", "max_attempts = 10"),
    // Where.
    key("shards", "an integer", "shards = 4"),
    key("run_on", TAKES_TAGS, "run_on = { zone = \"eu\" }"),
    // Kept.
    key("history_limit", "an integer", "history_limit = 1000"),
    key("history_age", "a duration", "history_age = \"30d\""),
    key(
        "notify",
        "names of [notify.NAME], or a table",
        "notify = [\"ops\"]",
    ),
];

/// Keys of `[calendars.NAME]`.
pub(super) static CALENDAR_KEYS: &[Key] = &[
    key(
        "dates",
        "a list of dates",
        "dates = [\"2026-12-25\", \"2026-12-24..2027-01-01\", \"05-01\"]",
    ),
    key(
        "weekdays",
        "a list of days of the week",
        "weekdays = [\"MON-FRI\"]",
    ),
    key("ical", "a string", "ical = \"holidays.ics\""),
    key(
        "description",
        "a string",
        "description = \"days on which the shop is closed\"",
    ),
];

/// Keys of `[notify.NAME]`.
pub(super) static NOTIFY_KEYS: &[Key] = &[
    key(
        "webhook",
        "an address, or a table",
        "webhook = \"https://chat.example/hooks/x\"",
    ),
    key(
        "email",
        "a table",
        "email = { to = [\"ops@shop.example\"], from = \"soloist@shop.example\", smtp = \"smtps://mail.example\" }",
    ),
];

/// The keys of a job that say what it runs: a job has one of them, and one in a job takes the
/// place of whichever is in `[defaults]`.
pub(super) const PROGRAM_KEYS: [&str; 3] = ["command", "shell", "http"];

/// Finds a key by name.
pub(super) fn find(keys: &'static [Key], name: &str) -> Option<&'static Key> {
    keys.iter().find(|key| key.name == name)
}
