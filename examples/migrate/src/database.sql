-- Created in one transaction; whoever comes first does it.

-- The version of the schema, and the highest fencing token that was shown to it.
CREATE TABLE IF NOT EXISTS schema_version (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    version INTEGER NOT NULL,
    token   INTEGER NOT NULL
);
INSERT INTO schema_version (one, version, token) VALUES (1, 0, 0) ON CONFLICT (one) DO NOTHING;

-- What ran. Deliberately not unique by version: were a step ever run twice, both would stand here.
CREATE TABLE IF NOT EXISTS migrations (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT, -- in the order of commits
    version INTEGER NOT NULL,
    name    TEXT    NOT NULL,
    token   INTEGER NOT NULL,
    by_whom TEXT    NOT NULL,
    at      REAL    NOT NULL DEFAULT (unixepoch('subsec'))
);
