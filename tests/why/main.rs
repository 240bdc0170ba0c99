//! What `why` tells of occurrences of every fate, from a store that replicas really used.

mod asked;
mod calendars;
mod ended;
mod late;
mod never_started;
mod nothing;
mod open;
mod shards;
mod who;
mod world;
