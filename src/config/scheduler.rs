//! `[scheduler]`: what holds for a replica as a whole.
//!
//! Must never show the store's URL with its password; [`SchedulerConfig`] hides it in `{:?}`.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::diagnostics::Diagnostic;
use super::job::{HISTORY_LIMITS, LEASE_TTL_LIMITS};
use super::keys::TLS_PREFIX;
use super::names::nearest;
use super::raw::{Entry, Section};
use super::read::{Reader, Text};
use super::tags::{References, read_tags};
use super::tls;
use crate::scheduler::job::check_name;
use crate::scheduler::policy::Tags;
use crate::store_url::{self, StoreUrlError, TlsFiles};

/// The longest `shutdown_grace`: a replica that drains takes no work.
const LONGEST_SHUTDOWN_GRACE: Duration = Duration::from_secs(86_400);

/// How many attempts a replica may run at once.
const RUNNING_LIMITS: RangeInclusive<u32> = 1..=100_000;

/// Of how many replicas of the store's server an acknowledgement can be asked for.
const ACKNOWLEDGEMENT_LIMITS: RangeInclusive<u32> = 0..=20;

/// `[scheduler]`, with every default filled in.
#[derive(Clone, PartialEq, Eq)]
pub struct SchedulerConfig {
    /// Prefix of every key in the store. Default `default`.
    pub namespace: String,
    /// The store's URL, which may hold a password; none for the embedded default.
    pub store: Option<String>,
    /// How long a grant lasts, for jobs that don't say. Default 15 s: a crash is noticed soon,
    /// and a renewal may be 7 s late.
    pub lease_ttl: Duration,
    /// What running attempts get after SIGTERM. Default 30 s, as Kubernetes gives a pod.
    pub shutdown_grace: Duration,
    /// The replica's name for people; none for the host's name.
    pub replica: Option<String>,
    /// How many attempts are kept of a job that doesn't say. Default 1000.
    pub history_limit: u32,
    /// What jobs can ask for by `run_on`. Default: none.
    pub tags: Tags,
    /// How many attempts may run here at once; none for no limit.
    pub max_running: Option<u32>,
    /// What a TLS connection to the store takes beside its URL. Default: the system's CAs.
    pub tls: TlsFiles,
    /// How many replicas of the store's server must have a grant before it counts. Default 0.
    pub min_replicas_ack: u32,
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        Self {
            namespace: "default".into(),
            store: None,
            lease_ttl: Duration::from_secs(15),
            shutdown_grace: Duration::from_secs(30),
            replica: None,
            history_limit: 1000,
            tags: Tags::new(),
            max_running: None,
            tls: TlsFiles::default(),
            min_replicas_ack: 0,
        }
    }
}

impl fmt::Debug for SchedulerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SchedulerConfig")
            .field("namespace", &self.namespace)
            .field("store", &self.store.as_deref().map(store_url::redact))
            .field("lease_ttl", &self.lease_ttl)
            .field("shutdown_grace", &self.shutdown_grace)
            .field("replica", &self.replica)
            .field("history_limit", &self.history_limit)
            .field("tags", &self.tags)
            .field("max_running", &self.max_running)
            .field("tls", &self.tls)
            .finish()
    }
}

/// Reads `[scheduler]`; what is wrong is told, and its default taken. Files are looked for beside
/// the table at `path`.
pub(super) fn read(reader: &mut Reader<'_>, section: &Section<'_>, path: &str) -> SchedulerConfig {
    let mut config = SchedulerConfig::default();
    for entry in &section.entries {
        match entry.key.name {
            "namespace" => {
                if let Some(name) = read_name(reader, entry) {
                    config.namespace = name;
                }
            }
            "replica" => config.replica = read_name(reader, entry),
            "store" => config.store = read_store(reader, entry),
            "lease_ttl" => {
                let text = reader.filled_text(entry);
                let ttl = text.and_then(|text| reader.duration_of(entry, text, LEASE_TTL_LIMITS));
                config.lease_ttl = ttl.unwrap_or(config.lease_ttl);
            }
            "shutdown_grace" => {
                let text = reader.filled_text(entry);
                let limits = Duration::ZERO..=LONGEST_SHUTDOWN_GRACE;
                let grace = text.and_then(|text| reader.duration_of(entry, text, limits));
                config.shutdown_grace = grace.unwrap_or(config.shutdown_grace);
            }
            "history_limit" => {
                let limit = reader.integer(entry, HISTORY_LIMITS);
                config.history_limit = limit.unwrap_or(config.history_limit);
            }
            "tags" => {
                let tags = read_tags(reader, entry, References::FilledIn);
                config.tags = tags.unwrap_or_default();
            }
            "max_running" => config.max_running = reader.integer(entry, RUNNING_LIMITS),
            "min_replicas_ack" => {
                let count = reader.integer(entry, ACKNOWLEDGEMENT_LIMITS);
                config.min_replicas_ack = count.unwrap_or(config.min_replicas_ack);
            }
            "listen" => read_listen(reader, entry),
            name if name.starts_with(TLS_PREFIX) => {}
            name => unreachable!("`{name}` is in SCHEDULER_KEYS as supported"),
        }
    }
    if let (Some(entry), Some(store)) = (section.get("min_replicas_ack"), &config.store)
        && !store_url::may_have_replicas(store)
    {
        let message = "`min_replicas_ack` has no effect: the store has no replicas".to_owned();
        reader.error(
            &entry.key_span,
            message,
            "leave it out, or name a Redis in `store`",
        );
    }
    config.tls = tls::read(reader, section, config.store.as_deref(), path);
    config
}

fn read_name(reader: &mut Reader<'_>, entry: &Entry<'_>) -> Option<String> {
    let text = reader.filled_text(entry)?;
    if let Err(error) = check_name(&text.value) {
        let message = format!("{} is no {}: {error}", text.quoted(), entry.key.name);
        reader.error(
            &text.span,
            message,
            format!("for example `{}`", entry.key.example),
        );
        return None;
    }
    Some(text.value)
}

fn read_store(reader: &mut Reader<'_>, entry: &Entry<'_>) -> Option<String> {
    let text = reader.filled_text(entry)?;
    match check_store(&text.value) {
        Ok(()) => Some(text.value),
        Err((message, hint)) => {
            reader.error(&text.span, message, hint);
            None
        }
    }
}

/// Whether a text names a store that can be opened; if not, message and hint, without any secret.
pub(crate) fn check_store(url: &str) -> Result<(), (String, String)> {
    store_url::check(url).map_err(|error| {
        let near = match &error {
            StoreUrlError::Unknown(scheme) => nearest(scheme, store_url::schemes()),
            _ => None,
        };
        let hint = match near {
            Some(near) => format!("did you mean `{near}`? {}", error.hint()),
            None => error.hint(),
        };
        (error.to_string(), hint)
    })
}

/// Nothing listens yet, so that an address would be a promise broken.
fn read_listen(reader: &mut Reader<'_>, entry: &Entry<'_>) {
    let text: Option<Text> = reader.filled_text(entry);
    if let Some(text) = text
        && text.value != "off"
    {
        reader.problems.push(
            Diagnostic::error(text.span, "`listen` with an address is not supported yet")
                .hint("today nothing listens: write `listen = \"off\"` or leave it out, and ask `soloist status`"),
        );
    }
}
