//! `soloist import`, over a corpus of real-world tables and over any text.
//!
//! The crontabs and manifests in `corpus/` are modelled on what packages, charts and manuals
//! ship: their schedules and programs, in words of our own. Must never: need a network.

mod any_text;
mod carried;
mod corpus;
mod golden;
mod instants;
mod oracle;
