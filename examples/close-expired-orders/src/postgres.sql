-- Created in one transaction, by one process: see create_schema.

CREATE TABLE products (
    id            bigint PRIMARY KEY,
    name          text   NOT NULL,
    stock         bigint NOT NULL CHECK (stock >= 0),
    initial_stock bigint NOT NULL
);

INSERT INTO products (id, name, stock, initial_stock)
VALUES (1, 'teapot', 100000, 100000), (2, 'teacup', 100000, 100000), (3, 'saucer', 100000, 100000);

-- An order takes its stock when it is placed; closing gives it back.
CREATE TABLE orders (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    product_id bigint NOT NULL REFERENCES products,
    quantity   bigint NOT NULL CHECK (quantity > 0),
    state      text   NOT NULL CHECK (state IN ('unpaid', 'paid', 'closed')),
    ordered_at timestamptz NOT NULL
);
CREATE INDEX unpaid_orders ON orders (ordered_at) WHERE state = 'unpaid';

-- The highest fencing token that has written, for each job.
CREATE TABLE fence (
    job   text   PRIMARY KEY,
    token bigint NOT NULL
);

-- Who closed what. Deliberately not unique by order: were an order ever closed twice, both rows
-- would be here for the audit to find. `seq` is drawn while the fence row is locked: within one
-- job it rises in the order of commits.
CREATE TABLE closings (
    seq       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_id  bigint NOT NULL REFERENCES orders,
    job       text   NOT NULL,
    token     bigint NOT NULL,
    attempt   bigint NOT NULL,
    run_id    text   NOT NULL,
    closed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX closings_by_order ON closings (order_id);

-- Even a program that forgets to raise the fence, or to look whether it could, is refused here.
CREATE FUNCTION refuse_stale_token() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF new.token IS DISTINCT FROM (SELECT token FROM fence WHERE job = new.job) THEN
        RAISE EXCEPTION 'stale fencing token %', new.token;
    END IF;
    RETURN new;
END
$$;
CREATE TRIGGER closing_needs_the_newest_token BEFORE INSERT ON closings
FOR EACH ROW EXECUTE FUNCTION refuse_stale_token();
