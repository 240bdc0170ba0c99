//! What runs outside of the daemon, in processes of its own.

#[cfg_attr(
    not(test),
    expect(dead_code, reason = "until the process that makes requests is there")
)]
pub(crate) mod http;
