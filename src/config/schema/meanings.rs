//! What each key of jobs.toml means and what holds without it: for those who write a table, in
//! the schema and in the manual page.
//!
//! Must never: promise more of a key than the documentation does, or name one that is refused.

/// What a key means.
#[derive(Debug)]
pub(crate) struct Meaning {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
    /// As it would be written in the table; none where nothing stands for leaving it out.
    pub(crate) default: Option<&'static str>,
}

const fn means(name: &'static str, text: &'static str) -> Meaning {
    let default = None;
    Meaning {
        name,
        text,
        default,
    }
}

impl Meaning {
    const fn by_default(mut self, written: &'static str) -> Self {
        self.default = Some(written);
        self
    }
}

/// Of `[scheduler]`.
pub(super) static SCHEDULER: &[Meaning] = &[
    means(
        "namespace",
        "Prefix of every key in the store: two fleets in one Redis never meet.",
    )
    .by_default("\"default\""),
    means(
        "store",
        "URL of the store of leases and ledger: redis://, rediss://, redis+sentinel://, redis+cluster://, redis+quorum://, sqlite:PATH or memory:. Without it an embedded SQLite file.",
    ),
    means(
        "lease_ttl",
        "How long a lease lasts, for jobs that don't say: how late a crash is noticed at most, 1s to 1h.",
    )
    .by_default("\"15s\""),
    means(
        "shutdown_grace",
        "What running attempts get after SIGTERM to end by themselves.",
    )
    .by_default("\"30s\""),
    means(
        "replica",
        "This replica's name, for people. Without it the host's name.",
    ),
    means(
        "history_limit",
        "How many attempts the ledger keeps of a job that doesn't say.",
    )
    .by_default("1000"),
    means(
        "listen",
        "Where health, metrics and API are served; \"off\" for nowhere.",
    ),
    means(
        "api_tokens",
        "The file with the tokens that the API takes: a line `read NAME TOKEN`, or `operator NAME TOKEN`, each.",
    ),
    means(
        "tags",
        "What `run_on` of a job can ask for: { zone = \"eu\" }, or [\"zone=eu\"].",
    ),
    means(
        "max_running",
        "How many attempts this replica may run at once. Without it there is no limit.",
    ),
    means(
        "include",
        "Further files of the table, by patterns: [\"jobs.d/*.toml\"].",
    ),
    means(
        "watch",
        "Whether changes of the table's files are noticed; without it SIGHUP alone reads them again.",
    )
    .by_default("false"),
    means(
        "revision",
        "A number that grows with each change of the table, such as that of a build; also as a text that is filled in, \"${BUILD_NUMBER}\".",
    ),
    means(
        "min_replicas_ack",
        "Redis: how many replicas of the server must have a grant before it counts.",
    )
    .by_default("0"),
    means(
        "tls_ca",
        "PEM file with the CA of a store by rediss://. Without it the system's CAs.",
    ),
    means(
        "tls_cert",
        "PEM file with the client's certificate; goes with `tls_key`.",
    ),
    means(
        "tls_key",
        "PEM file with the private key to `tls_cert`.",
    ),
    means(
        "tls_server_name",
        "The name in the server's certificate, where it isn't the URL's.",
    ),
];

/// Of a job, and of `[defaults]`.
pub(super) static JOB: &[Meaning] = &[
    means(
        "schedule",
        "When it is due: 5 fields, or 6 with seconds first, or 7 with a year; @daily, @every 5m, @at 2027-01-01T00:00:00Z, @manual. H spreads jobs by name.",
    ),
    means(
        "timezone",
        "The zone that the schedule is read in, by its IANA name; never the host's.",
    )
    .by_default("\"UTC\""),
    means(
        "random_delay",
        "Up to how long after its instant an occurrence starts, below a day; the same on every replica for one occurrence.",
    )
    .by_default("\"0s\""),
    means(
        "dst_gap",
        "What becomes of a local time that is skipped: due after the gap, or not at all.",
    )
    .by_default("\"run_after\""),
    means(
        "dst_fold",
        "Which of a local time that comes twice: first, last, or both.",
    )
    .by_default("\"first\""),
    means(
        "except",
        "Calendars on whose days it is not due; wins over `only`.",
    )
    .by_default("[]"),
    means("only", "Calendars on whose days alone it is due.").by_default("[]"),
    means(
        "after",
        "In the place of `schedule`: the jobs whose success brings its occurrences about.",
    ),
    means(
        "enabled",
        "A job that is not enabled is shown and is never due.",
    )
    .by_default("true"),
    means(
        "command",
        "What it runs: the program and its arguments, without a shell. One of `command`, `shell` and `http`.",
    ),
    means("shell", "What it runs: a script for /bin/sh -c."),
    means("http", "What it runs: an HTTP request."),
    means(
        "env",
        "Variables of the job, over the few that every job has; ${VAR}, ${VAR:-default} and ${file:/run/secrets/x} are filled in.",
    ),
    means(
        "working_dir",
        "The directory that it runs in. Without it the daemon's.",
    ),
    means(
        "user",
        "Whom it runs as, by name or id. Without it the daemon's user; takes a daemon that runs as root.",
    ),
    means(
        "group",
        "Its group, by name or id. Without it the user's own.",
    ),
    means(
        "umask",
        "What is taken from the modes of files that it makes, an octal string such as \"0027\". Without it the daemon's.",
    ),
    means("success_codes", "Exit codes that are no failure.").by_default("[0]"),
    means(
        "output_limit",
        "How much of stdout, and of stderr, is kept of an attempt; at most 1MiB.",
    )
    .by_default("\"8KiB\""),
    means("description", "For people."),
    means(
        "timeout",
        "How long an attempt may run before TERM. Without it there is no limit.",
    ),
    means(
        "warn_after",
        "An attempt that runs for longer is told of, in the log and as notify says.",
    ),
    means(
        "kill_grace",
        "From TERM to KILL, at most 1h; cut to fit when a lease is being lost.",
    )
    .by_default("\"5s\""),
    means(
        "lease_ttl",
        "How long its lease lasts: how late a crash is noticed at most, 1s to 1h. Without it that of [scheduler].",
    ),
    means(
        "catch_up",
        "What becomes of occurrences that nobody could claim in time: the newest runs, all of them run in order, or none.",
    )
    .by_default("\"latest\""),
    means(
        "catch_up_limit",
        "With catch_up = \"all\": at most so many, the newest.",
    )
    .by_default("100"),
    means(
        "starting_deadline",
        "How late an occurrence may start; later, it is recorded as missed. Without it 1m, with catch_up = \"all\" 24h.",
    ),
    means(
        "concurrency_policy",
        "What becomes of an occurrence that finds the job busy, on whatever replica: it is skipped, waits for its turn, or takes the place of the one that runs.",
    )
    .by_default("\"forbid\""),
    means(
        "queue_limit",
        "With concurrency_policy = \"queue\": at most so many wait.",
    )
    .by_default("10"),
    means(
        "retry",
        "How often a failed occurrence is tried again, and after how long.",
    ),
    means(
        "on_crash",
        "What becomes of an occurrence whose replica vanished: run again (at least once), or closed as lost (at most once).",
    )
    .by_default("\"rerun\""),
    means(
        "max_attempts",
        "Attempts of an occurrence over all causes and replicas, the first included.",
    )
    .by_default("10"),
    means(
        "shards",
        "In how many parts each occurrence runs, each under a lease of its own on whatever replica.",
    )
    .by_default("1"),
    means(
        "run_on",
        "The tags that a replica must have to run it: { zone = \"eu\" }, or [\"zone=eu\"].",
    ),
    means(
        "history_limit",
        "How many of its attempts the ledger keeps. Without it that of [scheduler].",
    ),
    means("history_age", "How old they may get.").by_default("\"30d\""),
    means(
        "notify",
        "Who is told how it goes: names of [notify.NAME], or a table.",
    ),
];

/// Of `[notify.NAME]`.
pub(super) static NOTIFY: &[Meaning] = &[
    means(
        "webhook",
        "The address that news are posted to as JSON, or a table. A target is this or `email`.",
    ),
    means("email", "Who gets a mail, and over which server."),
];

/// Of `[calendars.NAME]`.
pub(super) static CALENDAR: &[Meaning] = &[
    means(
        "dates",
        "Dates \"2026-12-25\", ranges \"2026-12-24..2027-01-01\"; without the year those of every year, \"12-25\".",
    ),
    means("weekdays", "Days of the week: \"SAT\", \"MON-FRI\"."),
    means(
        "ical",
        "An iCalendar file, of which each event's days count; a relative path begins at the directory of jobs.toml.",
    ),
    means("description", "For people."),
];

/// Of `retry`.
pub(super) static RETRY: &[Meaning] = &[
    means("max", "After how many failures another attempt follows.").by_default("0"),
    means("backoff", "The wait before the first of them, 1ms to 7d.").by_default("\"1s\""),
    means("factor", "What each further wait is multiplied by.").by_default("2"),
    means("max_backoff", "The longest wait, 1ms to 7d.").by_default("\"5m\""),
];

/// Of `http`.
pub(super) static HTTP: &[Meaning] = &[
    means("url", "Whom it asks, by http:// or https://."),
    means(
        "method",
        "In capitals. Without it GET, with a body POST.",
    ),
    means("headers", "Headers beside those that soloist sends."),
    means("body", "Sent as it stands."),
    means(
        "expect_status",
        "Which answers are successes: a status, a class \"2xx\", a range \"200-204\", or a list of these.",
    )
    .by_default("\"2xx\""),
];

/// Of `notify` of a job.
pub(super) static TELLING: &[Meaning] = &[
    means("to", "Names of [notify.NAME]. Without it nobody is told."),
    means("on", "Of what they are told.")
        .by_default("[\"failure\", \"recovery\", \"missed\", \"slow\"]"),
    means(
        "repeat",
        "After how long they are told again of a job that goes on to fail, at least 1s.",
    )
    .by_default("\"1h\""),
    means(
        "ping",
        "The address of a dead-man's switch that hears of each start and end, in the style of healthchecks services.",
    ),
    means(
        "ping_output",
        "Whether what an attempt printed last goes with its end.",
    )
    .by_default("false"),
];

/// Of `webhook` of a target.
pub(super) static WEBHOOK: &[Meaning] = &[
    means("url", "Where news are posted to, by http:// or https://."),
    means(
        "secret",
        "What requests are signed with (Standard Webhooks): `whsec_` and Base64, or a text, of 16 bytes or more. Without it they are not.",
    ),
    means("headers", "Headers beside those that soloist sends."),
];

/// Of `email` of a target.
pub(super) static EMAIL: &[Meaning] = &[
    means("to", "Who gets them: up to 50 addresses."),
    means("from", "Whom they are from."),
    means(
        "smtp",
        "The URL of the server that takes them: smtps://, or smtp:// with STARTTLS, with user and password.",
    ),
];
