//! What runs outside the daemon, in single-threaded processes: the job's surroundings, and who
//! ends it when the daemon can't.

pub(crate) mod identity;
