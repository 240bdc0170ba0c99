//! The steps that lead from an empty database to the shop as this program knows it.
//!
//! Must never: change or reorder a step that was released. What is to be different is a new step.

/// From one version of the schema to the next.
#[derive(Debug)]
pub(crate) struct Step {
    /// What it does, for people.
    pub(crate) name: &'static str,
    /// How, in SQL that runs in one transaction.
    pub(crate) sql: &'static str,
}

/// In order: the first leads from version 0 to 1. None of them may run twice: the second time
/// would fail, or, as with prices, do damage that nobody notices.
pub(crate) const STEPS: [Step; 6] = [
    Step {
        name: "create products",
        sql: "CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT NOT NULL, price REAL NOT NULL);
              INSERT INTO products (name, price) VALUES ('teapot', 25.5), ('teacup', 8), ('saucer', 4.25);",
    },
    Step {
        name: "create orders",
        sql: "CREATE TABLE orders (id INTEGER PRIMARY KEY, product_id INTEGER NOT NULL REFERENCES products);
              INSERT INTO orders (product_id) VALUES (1), (2), (2), (3);",
    },
    Step {
        name: "count prices in cents",
        sql: "UPDATE products SET price = price * 100;",
    },
    Step {
        name: "give orders a quantity",
        sql: "ALTER TABLE orders ADD COLUMN quantity INTEGER NOT NULL DEFAULT 1;",
    },
    Step {
        name: "merge the orders of a product",
        sql: "UPDATE orders SET quantity = (SELECT sum(quantity) FROM orders AS all_of_it
                                             WHERE all_of_it.product_id = orders.product_id);
              DELETE FROM orders WHERE id NOT IN (SELECT min(id) FROM orders GROUP BY product_id);",
    },
    Step {
        name: "index orders by product",
        sql: "CREATE INDEX orders_by_product ON orders (product_id);",
    },
];
