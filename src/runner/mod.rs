//! Runs attempts.
