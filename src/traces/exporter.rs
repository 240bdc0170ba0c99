//! Sends spans, from a thread of its own.
//!
//! Must never: keep what it can't send for longer than a few tries, or the process from ending for
//! longer than [`LAST_PATIENCE`].

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans};
use prost::Message as _;
use tracing::warn;
use ureq::Agent;

use super::settings::{Settings, Unusable};
use super::spans::{Span, attribute};
use crate::http_client;
use crate::metrics::Spans;

/// What comes within that time travels together.
const GATHERED: Duration = Duration::from_secs(1);

/// Spans of one request.
const BATCH: usize = 512;

/// The waits between tries of one request.
const WAITS: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
];

/// How long the end of the process waits for the last spans.
pub(crate) const LAST_PATIENCE: Duration = Duration::from_secs(2);

/// Whoever sends spans.
#[derive(Debug)]
pub struct Exporter {
    /// Dropped, it lets the thread hurry.
    stop: Sender<()>,
    done: Receiver<()>,
}

impl Exporter {
    /// Starts to send what comes.
    pub(super) fn start(
        settings: Settings,
        spans: Receiver<Span>,
        exported: Spans,
        dropped: Spans,
    ) -> Result<Self, Unusable> {
        let agent = http_client::agent(&settings.endpoint, Some(settings.timeout))
            .map_err(Unusable::Nothing)?;
        let (stop, stopped) = channel();
        let (at_end, done) = channel::<()>();
        let mut work = Work {
            settings,
            agent,
            stopped,
            exported,
            dropped,
            told: false,
        };
        let run = move || {
            work.run(&spans);
            // Gone, it tells that all is done.
            drop(at_end);
        };
        let thread = thread::Builder::new().name("otlp".to_owned()).spawn(run);
        thread.map_err(|error| Unusable::Nothing(error.to_string()))?;
        Ok(Self { stop, done })
    }

    /// Sends what is there, once whoever makes spans is gone. It may take a few seconds.
    pub fn finish(self) {
        drop(self.stop);
        let _ = self.done.recv_timeout(LAST_PATIENCE);
    }
}

struct Work {
    settings: Settings,
    agent: Agent,
    stopped: Receiver<()>,
    exported: Spans,
    dropped: Spans,
    /// People know that it fails.
    told: bool,
}

/// What became of a request.
enum Sent {
    Taken,
    /// It may help to try again.
    Away(String),
    Refused(String),
}

impl Work {
    fn run(&mut self, spans: &Receiver<Span>) {
        while let Ok(first) = spans.recv() {
            self.pause(GATHERED);
            let mut batch = vec![first];
            batch.extend(spans.try_iter().take(BATCH - 1));
            self.send(batch);
        }
    }

    /// Waits; false when there is no time to.
    fn pause(&self, wait: Duration) -> bool {
        let answer = self.stopped.recv_timeout(wait);
        answer == Err(RecvTimeoutError::Timeout)
    }

    fn send(&mut self, batch: Vec<Span>) {
        let number = batch.len() as u64;
        let body = self.request(batch).encode_to_vec();
        let mut waits = WAITS.into_iter();
        let cause = loop {
            match self.post(&body) {
                Sent::Taken => {
                    self.told = false;
                    self.exported.inc_by(number);
                    return;
                }
                Sent::Refused(cause) => break cause,
                Sent::Away(cause) => match waits.next() {
                    Some(wait) if self.pause(wait) => {}
                    _ => break cause,
                },
            }
        };
        self.dropped.inc_by(number);
        if !std::mem::replace(&mut self.told, true) {
            let host = self.settings.endpoint.host_str().unwrap_or_default();
            warn!("traces can't be sent to {host} and are dropped: {cause}");
        }
    }

    fn post(&self, body: &[u8]) -> Sent {
        let mut request = self.agent.post(self.settings.endpoint.as_str());
        request = request.header("content-type", "application/x-protobuf");
        for (name, value) in &self.settings.headers {
            request = request.header(name, value);
        }
        match request.send(body) {
            Ok(response) => match response.status().as_u16() {
                200..=299 => Sent::Taken,
                code @ (429 | 502 | 503 | 504) => Sent::Away(format!("it answered {code}")),
                code => Sent::Refused(format!("it answered {code}")),
            },
            Err(error) => Sent::Away(error.to_string()),
        }
    }

    fn request(&self, spans: Vec<Span>) -> ExportTraceServiceRequest {
        let name = env!("CARGO_PKG_NAME").to_owned();
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let own = [
            ("service.name", self.settings.service.clone()),
            ("service.version", version.clone()),
        ];
        let text = |key: &str, value: String| attribute(key, Value::StringValue(value));
        let own = own.into_iter().map(|(key, value)| text(key, value));
        let given = self.settings.resource.iter();
        let given = given.map(|(key, value)| text(key, value.clone()));
        let attributes: Vec<KeyValue> = given.chain(own).collect();
        let scope = InstrumentationScope {
            name,
            version,
            ..InstrumentationScope::default()
        };
        let scope_spans = vec![ScopeSpans {
            scope: Some(scope),
            spans,
            ..ScopeSpans::default()
        }];
        let resource = Resource {
            attributes,
            ..Resource::default()
        };
        ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(resource),
                scope_spans,
                ..ResourceSpans::default()
            }],
        }
    }
}
