-- Created in one transaction. Several processes may come here at once: the first one creates,
-- the others find everything there.

-- What is not on sale. One kind of teapot is all that this shop has.
CREATE TABLE IF NOT EXISTS warehouse (
    one   INTEGER PRIMARY KEY CHECK (one = 1),
    stock INTEGER NOT NULL CHECK (stock >= 0)
);
INSERT INTO warehouse (one, stock) VALUES (1, 10000) ON CONFLICT (one) DO NOTHING;

-- `opening` is what a sale stays if whoever opened it was killed before it was in Redis, or before
-- that was written here.
CREATE TABLE IF NOT EXISTS sales (
    name   TEXT    PRIMARY KEY,
    state  TEXT    NOT NULL CHECK (state IN ('opening', 'open', 'closed')),
    loaded INTEGER NOT NULL CHECK (loaded > 0),
    unsold INTEGER, -- once it is closed
    token  INTEGER NOT NULL -- the highest fencing token that was shown
);

-- An order that is drained twice stands here once. Deliberately not unique by user: were a user
-- ever sold two, both would be here for `report` to find.
CREATE TABLE IF NOT EXISTS orders (
    sale TEXT NOT NULL,
    id   TEXT NOT NULL,
    user TEXT NOT NULL,
    PRIMARY KEY (sale, id)
);
