//! The jobs.toml of a self-test.
//!
//! Must never: hold the store's URL, which may have a password; replicas are given that by their
//! environment.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use super::plan::Setup;
use crate::scheduler::time::format_duration;
use crate::store_url::StoreOptions;

/// What stands in the table beside the plan.
pub(super) struct Surroundings<'s> {
    pub(super) namespace: &'s str,
    /// This program.
    pub(super) program: &'s Path,
    /// Where jobs write down what becomes of them.
    pub(super) dir: &'s Path,
    pub(super) options: &'s StoreOptions,
}

/// The table; none where a path is no UTF-8.
pub(super) fn table(setup: &Setup, around: &Surroundings<'_>) -> Option<String> {
    let ttl = setup.lease_ttl();
    let mut text = String::from("[scheduler]\n");
    key(&mut text, "namespace", around.namespace);
    key(&mut text, "lease_ttl", &format_duration(ttl));
    // Short of what a long job takes: what a drain cuts short is handed over.
    key(&mut text, "shutdown_grace", &format_duration(ttl / 2));
    let _ = writeln!(
        text,
        "history_limit = {}",
        setup.duration.as_secs() * 4 + 1000
    );
    options(&mut text, around.options)?;
    for job in setup.jobs() {
        let _ = writeln!(text, "\n[jobs.{}]", job.name);
        let schedule = format!("*/{} * * * * *", job.every_seconds);
        key(&mut text, "schedule", &schedule);
        let lasts = job.lasts.as_millis().to_string();
        let words = [
            around.program.to_str()?,
            super::part::WORD,
            "job",
            around.dir.to_str()?,
            &lasts,
        ];
        let words: Vec<String> = words.into_iter().map(quoted).collect();
        let _ = writeln!(text, "command = [{}]", words.join(", "));
        if job.once {
            key(&mut text, "on_crash", "skip");
        } else {
            // Hurt again and again, it is to come to its end all the same.
            text += "max_attempts = 100\n";
        }
        if job.queues {
            key(&mut text, "concurrency_policy", "queue");
        }
        key(
            &mut text,
            "kill_grace",
            &format_duration(Duration::from_millis(200)),
        );
    }
    Some(text)
}

fn options(text: &mut String, options: &StoreOptions) -> Option<()> {
    let tls = &options.tls;
    for (name, path) in [
        ("tls_ca", &tls.ca),
        ("tls_cert", &tls.cert),
        ("tls_key", &tls.key),
    ] {
        if let Some(path) = path {
            // The table lies elsewhere than the one that named it.
            let path = std::path::absolute(path).ok()?;
            key(text, name, path.to_str()?);
        }
    }
    if let Some(name) = &tls.server_name {
        key(text, "tls_server_name", name);
    }
    if options.min_replicas_ack > 0 {
        let _ = writeln!(text, "min_replicas_ack = {}", options.min_replicas_ack);
    }
    Some(())
}

fn key(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "{name} = {}", quoted(value));
}

/// What JSON writes as a string TOML reads as one.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store_url::TlsFiles;

    #[test]
    fn the_table_is_one_that_replicas_take() {
        let setup = Setup {
            duration: Duration::from_secs(60),
            replicas: 5,
            seed: 1,
            has_links: true,
        };
        let options = StoreOptions {
            tls: TlsFiles {
                server_name: Some("redis.example".to_owned()),
                ..TlsFiles::default()
            },
            min_replicas_ack: 1,
        };
        let around = Surroundings {
            namespace: "soloist-verify-1",
            program: Path::new("/usr/bin/so \"lo\" ist"),
            dir: Path::new("/tmp/a b"),
            options: &options,
        };
        let text = table(&setup, &around).unwrap();
        let dir = std::env::temp_dir().join(format!("soloist-table-{}", std::process::id()));
        std::fs::write(
            &dir,
            text.replace("[scheduler]", "[scheduler]\nstore = \"rediss://h\""),
        )
        .unwrap();
        let config = crate::config::load(&dir);
        std::fs::remove_file(&dir).unwrap();
        let config = config.map_err(|error| format!("{error:?}")).unwrap();
        assert_eq!(config.jobs.len(), setup.jobs().len());
        assert_eq!(config.scheduler.lease_ttl, setup.lease_ttl());
        assert_eq!(
            config.scheduler.tls.server_name.as_deref(),
            Some("redis.example")
        );
    }
}
