-- Created in one transaction. Several processes may come here at once: the first one creates,
-- the others find everything there.

CREATE TABLE IF NOT EXISTS products (
    id            INTEGER PRIMARY KEY,
    name          TEXT    NOT NULL,
    stock         INTEGER NOT NULL CHECK (stock >= 0),
    initial_stock INTEGER NOT NULL
);

INSERT INTO products (id, name, stock, initial_stock)
VALUES (1, 'teapot', 100000, 100000), (2, 'teacup', 100000, 100000), (3, 'saucer', 100000, 100000)
ON CONFLICT (id) DO NOTHING;

-- An order takes its stock when it is placed; closing gives it back.
CREATE TABLE IF NOT EXISTS orders (
    id         INTEGER PRIMARY KEY,
    product_id INTEGER NOT NULL REFERENCES products,
    quantity   INTEGER NOT NULL CHECK (quantity > 0),
    state      TEXT    NOT NULL CHECK (state IN ('unpaid', 'paid', 'closed')),
    ordered_at REAL    NOT NULL -- seconds since 1970
);
CREATE INDEX IF NOT EXISTS unpaid_orders ON orders (ordered_at) WHERE state = 'unpaid';

-- The highest fencing token that has written, for each job.
CREATE TABLE IF NOT EXISTS fence (
    job   TEXT    PRIMARY KEY,
    token INTEGER NOT NULL
);

-- Who closed what. Deliberately not unique by order: were an order ever closed twice, both rows
-- would be here for the audit to find.
CREATE TABLE IF NOT EXISTS closings (
    seq       INTEGER PRIMARY KEY AUTOINCREMENT, -- in the order of commits
    order_id  INTEGER NOT NULL REFERENCES orders,
    job       TEXT    NOT NULL,
    token     INTEGER NOT NULL,
    attempt   INTEGER NOT NULL,
    run_id    TEXT    NOT NULL,
    closed_at REAL    NOT NULL DEFAULT (unixepoch('subsec'))
);
CREATE INDEX IF NOT EXISTS closings_by_order ON closings (order_id);

-- Even a program that forgets to raise the fence, or to look whether it could, is refused here.
CREATE TRIGGER IF NOT EXISTS closing_needs_the_newest_token BEFORE INSERT ON closings
WHEN new.token IS NOT (SELECT token FROM fence WHERE job = new.job)
BEGIN
    SELECT raise(ABORT, 'stale fencing token');
END;
