//! What the manual says beyond what the command line and the table of keys say of themselves.
//!
//! Plain ASCII, so that every terminal shows it. Must never: say of a flag or a key what its own
//! declaration should say.

/// A term and what is to be said of it.
type Item = (&'static str, &'static str);

pub(super) const DESCRIPTION: &[&str] = &[
    "Every replica loads the same jobs.toml; each occurrence of a job runs on one replica: the one that gets its lease in the store, which is Redis, or on one host a SQLite file. If that replica dies, another takes the occurrence over; if the lease can't be held, the job is stopped before another replica may start it.",
    "Jobs run at least once by default, at most once with on_crash = \"skip\". Each attempt has a fencing token, SOLOIST_FENCING_TOKEN, that is higher at every grant.",
    "What holds for a command: its flag, then the SOLOIST_* variable, then jobs.toml, then the default.",
];

/// Variables that no flag stands for.
pub(super) const VARIABLES: &[Item] = &[
    (
        "SOLOIST_TAGS",
        "Tags of this replica, K=V,K=V; under --tag, over `tags` of the table.",
    ),
    (
        "STATE_DIRECTORY, XDG_STATE_HOME, HOME",
        "Where the embedded store is, if none is named: the first of them that is set.",
    ),
    (
        "SSL_CERT_FILE, SSL_CERT_DIR",
        "Certificates to trust in the place of the system's.",
    ),
    ("NO_COLOR", "Set to anything, errors have no colours."),
    (
        "SOLOIST_JOB, SOLOIST_SCHEDULED_AT, SOLOIST_ATTEMPT, SOLOIST_FENCING_TOKEN, SOLOIST_RUN_ID, SOLOIST_SHARD_INDEX, SOLOIST_SHARD_TOTAL",
        "Are set for jobs, with SOLOIST_REPLICA.",
    ),
];

pub(super) const SECTIONS: &[(&str, &[Item])] = &[
    (
        "EXIT STATUS",
        &[
            ("0", "It did what was asked."),
            ("1", "It could not."),
            ("2", "The command line or the table makes no sense."),
            ("3", "The store can't be reached."),
            (
                "other",
                "run-once and lock pass on the code of the command that they ran; lock ends by the signal that told it to stop.",
            ),
        ],
    ),
    (
        "SIGNALS",
        &[
            (
                "SIGTERM, SIGINT",
                "Drain: nothing new is claimed, running attempts get shutdown_grace, then TERM, kill_grace and KILL, and leases are given back. A second one ends it at once.",
            ),
            ("SIGQUIT", "The same, to the first process of a container."),
            (
                "SIGHUP",
                "Reads the table again; one that is broken leaves the daemon with the one that it has.",
            ),
            ("lock", "Has signals of its own, see soloist-lock(1)."),
        ],
    ),
    (
        "FILES",
        &[
            ("jobs.toml", "The table of jobs; see jobs.toml(5)."),
            (
                "$STATE_DIRECTORY/soloist.db",
                "The embedded store, if none is named; else soloist/soloist.db in the user's state directory.",
            ),
        ],
    ),
];

/// What it does, and how it is written.
pub(super) const EXAMPLES: &[Item] = &[
    (
        "Validate the table, then run it, on every machine alike.",
        "soloist check && soloist run",
    ),
    (
        "Who runs what, until when, and what is due next.",
        "soloist --store redis://redis:6379 status --watch",
    ),
    (
        "What became of an occurrence, and why.",
        "soloist why close-expired-orders 2026-11-20T22:00:00Z",
    ),
    (
        "Run a job now, on whatever replica, and wait for its end.",
        "soloist trigger close-expired-orders --wait",
    ),
    (
        "Kill, freeze and cut off a small fleet on your own store for a minute, and see what holds.",
        "soloist verify --store redis://redis:6379",
    ),
];
