//! Who is told how jobs go: real replicas on a real store, and receivers that fail.

mod fleets;
mod mails;
mod pings;
mod receiver;
mod scene;
mod smtp;
mod webhooks;
