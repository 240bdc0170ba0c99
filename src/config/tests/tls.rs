//! What a TLS connection to the store takes.

use std::path::Path;

use super::{read, read_at};
use crate::config::Config;
use crate::store_url::TlsFiles;

fn table(scheduler: &str) -> String {
    format!("[scheduler]\n{scheduler}\n[jobs.x]\nschedule = \"@daily\"\nshell = \"x\"\n")
}

fn good(scheduler: &str) -> Config {
    let source = table(scheduler);
    let config = read_at(&source, Path::new("/etc/soloist/jobs.toml"));
    config.unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(scheduler: &str) -> String {
    read(&table(scheduler)).expect_err(scheduler).to_string()
}

#[test]
fn files_are_looked_for_beside_the_table() {
    let config = good(
        "store = \"rediss://h\"\ntls_ca = \"ca.pem\"\ntls_cert = \"/run/c.pem\"\n\
         tls_key = \"${NAMESPACE}/c.key\"\ntls_server_name = \"redis.example\"",
    );
    let expected = TlsFiles {
        ca: Some("/etc/soloist/ca.pem".into()),
        cert: Some("/run/c.pem".into()),
        key: Some("/etc/soloist/shop/c.key".into()),
        server_name: Some("redis.example".into()),
    };
    assert_eq!(config.scheduler.tls, expected);
    assert!(good("store = \"rediss://h\"").scheduler.tls.is_empty());
    // The store may be named on the command line.
    assert!(good("tls_ca = \"ca.pem\"").scheduler.tls.ca.is_some());
}

#[test]
fn what_can_have_no_effect_is_refused() {
    for (lines, message) in [
        (
            "store = \"redis://h\"\ntls_ca = \"ca.pem\"",
            "`tls_ca` has no effect",
        ),
        (
            "tls_server_name = \"h\"\nstore = \"memory:\"",
            "`tls_server_name` has no effect",
        ),
        (
            "tls_cert = \"c.pem\"",
            "`tls_cert` stands without `tls_key`",
        ),
        ("tls_key = \"c.key\"", "`tls_key` stands without `tls_cert`"),
        ("tls_ca = \"\"", "`tls_ca` is empty"),
        ("tls_ca = true", "tls_ca"),
        ("tls_cipher = \"x\"", "the keys for TLS are"),
    ] {
        let error = refusal(lines);
        assert!(error.contains(message), "{lines}: {error}");
    }
}

#[test]
fn there_is_no_key_that_switches_verification_off() {
    for line in [
        "tls_insecure = true",
        "tls_verify = false",
        "tls_insecure_skip_verify = true",
    ] {
        let error = refusal(line);
        assert!(error.contains("is always verified"), "{error}");
        assert!(error.contains("`tls_ca`"), "{error}");
    }
    let error = refusal("store = \"rediss://h/#insecure\"");
    assert!(error.contains("can't be switched off"), "{error}");
    assert!(error.contains("`tls_ca`"), "{error}");
}
