//! `[scheduler]`: what holds for a replica as a whole.
//!
//! Must never show the store's URL with its password; [`SchedulerConfig`] hides it in `{:?}`.

use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::de::DeValue;

use super::connection::Given;
use super::env::literal_parts;
use super::keys::TLS_PREFIX;
use super::listen::parse_listen;
use super::names::nearest;
use super::raw::{Entry, Section};
use super::read::{Reader, to_i64};
use super::tags::{References, read_tags};
use super::tls;
use crate::jobs::limits::{
    ACKNOWLEDGEMENTS, HISTORY_LIMIT, HISTORY_LIMITS, LARGEST_REVISION, LEASE_TTL, LEASE_TTLS,
    LONGEST_SHUTDOWN_GRACE, RUNNING_LIMITS, SHUTDOWN_GRACE,
};
use crate::scheduler::job::check_name;
use crate::scheduler::policy::Tags;
use crate::store_url::{self, StoreUrlError, TlsFiles};

/// What a value may stand in.
const QUOTES: [char; 2] = ['"', '\''];

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
    /// Where health, metrics and the API are served. Default: nowhere, as a port is a thing to
    /// look after.
    pub listen: Option<SocketAddr>,
    /// The file with the tokens that the API takes. Default: none, so that nothing can be changed
    /// by it, nor read from other hosts.
    pub api_tokens: Option<PathBuf>,
    /// Whether a change of the table's files is to be noticed. Default no: SIGHUP alone.
    pub watch: bool,
    /// A number that grows with each change of the table; none where nobody counts.
    pub revision: Option<u64>,
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        Self {
            namespace: "default".into(),
            store: None,
            lease_ttl: LEASE_TTL,
            shutdown_grace: SHUTDOWN_GRACE,
            replica: None,
            history_limit: HISTORY_LIMIT,
            tags: Tags::new(),
            max_running: None,
            tls: TlsFiles::default(),
            min_replicas_ack: 0,
            listen: None,
            api_tokens: None,
            watch: false,
            revision: None,
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
            .field("listen", &self.listen)
            .field("api_tokens", &self.api_tokens)
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
                let ttl = text.and_then(|text| reader.duration_of(entry, text, LEASE_TTLS));
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
                let count = reader.integer(entry, ACKNOWLEDGEMENTS);
                config.min_replicas_ack = count.unwrap_or(config.min_replicas_ack);
            }
            "listen" => config.listen = read_listen(reader, entry),
            "api_tokens" => config.api_tokens = read_path(reader, entry, path),
            "watch" => config.watch = reader.boolean(entry).unwrap_or_default(),
            "revision" => config.revision = read_revision(reader, entry),
            // Read before: the other files have to be found first.
            "include" => {}
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

/// Reads where the store is, how it is reached, and the namespace, but for what is known from
/// elsewhere; what is wrong is told.
pub(super) fn read_connection(
    reader: &mut Reader<'_>,
    section: &Section<'_>,
    path: &str,
    given: Given,
) -> SchedulerConfig {
    let mut config = SchedulerConfig::default();
    for entry in &section.entries {
        match entry.key.name {
            "namespace" if !given.namespace => {
                config.namespace = read_name(reader, entry).unwrap_or_default();
            }
            "store" if !given.store => config.store = read_store(reader, entry),
            "min_replicas_ack" => {
                let count = reader.integer(entry, ACKNOWLEDGEMENTS);
                config.min_replicas_ack = count.unwrap_or_default();
            }
            _ => {}
        }
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

/// An integer, or a text that is one when it has been filled in.
fn read_revision(reader: &mut Reader<'_>, entry: &Entry<'_>) -> Option<u64> {
    let (revision, filled_in) = match entry.value.get_ref() {
        DeValue::Integer(integer) => (to_i64(integer).and_then(|n| u64::try_from(n).ok()), false),
        DeValue::String(_) => {
            let text = reader.filled_text(entry)?;
            let is_digits = text.value.bytes().all(|byte| byte.is_ascii_digit());
            let number = is_digits.then(|| text.value.parse().ok());
            (number.flatten(), text.filled_in)
        }
        _ => {
            reader.wrong_type(entry);
            return None;
        }
    };
    let revision = revision.filter(|revision| *revision <= LARGEST_REVISION);
    if revision.is_none() {
        let message = format!("`revision` is a number from 0 to {LARGEST_REVISION}");
        let hint = if filled_in {
            "what is filled in here is no such number: give it the number of a build, in digits"
        } else {
            "it grows with each change of the table, such as the number of a build: `revision = 42`, or `revision = \"${BUILD_NUMBER}\"`"
        };
        reader.error(&entry.value.span(), message, hint);
    }
    revision
}

fn read_store(reader: &mut Reader<'_>, entry: &Entry<'_>) -> Option<String> {
    hide_refused(reader, entry);
    let text = reader.filled_text(entry)?;
    match check_store(&text.value) {
        Ok(()) => Some(text.value),
        Err((message, hint)) => {
            reader.error(&text.span, message, hint);
            None
        }
    }
}

/// Keeps what may be a password out of reports where the URL is none, as it is written.
fn hide_refused(reader: &mut Reader<'_>, entry: &Entry<'_>) {
    let is_refused = |url| store_url::check(url).is_err();
    if !entry.value.get_ref().as_str().is_some_and(is_refused) {
        return;
    }
    let span = entry.value.span();
    let written = reader.map.text(&span);
    let unquoted = written.trim_start_matches(QUOTES);
    let start = written.len() - unquoted.len();
    let secrets = store_url::secrets_of_refused(unquoted.trim_end_matches(QUOTES));
    // A reference is no secret, and its name is what a message about it is for.
    let hidden = literal_parts(written).into_iter().flat_map(|literal| {
        let within = move |secret: &Range<usize>| {
            let (from, to) = (secret.start + start, secret.end + start);
            literal.start.max(from)..literal.end.min(to)
        };
        secrets.iter().map(within).collect::<Vec<_>>()
    });
    let hidden = hidden.filter(|part| !part.is_empty());
    let hidden: Vec<_> = hidden
        .map(|part| span.start + part.start..span.start + part.end)
        .collect();
    reader.secrets.extend(hidden);
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

pub(super) fn read_listen(reader: &mut Reader<'_>, entry: &Entry<'_>) -> Option<SocketAddr> {
    let text = reader.filled_text(entry)?;
    parse_listen(&text.value).unwrap_or_else(|(message, hint)| {
        reader.error(&text.span, message, hint);
        None
    })
}

fn read_path(reader: &mut Reader<'_>, entry: &Entry<'_>, table: &str) -> Option<PathBuf> {
    let text = reader.full_text(entry)?;
    let text = reader.fill(text)?;
    let beside = Path::new(table).parent().unwrap_or(Path::new(""));
    Some(beside.join(text.value))
}
