//! One cron table on many machines: each occurrence of a job runs on one replica alone.

pub mod scheduler;
