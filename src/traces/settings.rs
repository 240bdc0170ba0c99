//! Where spans go, by OpenTelemetry's own variables: `OTEL_EXPORTER_OTLP_*`, `OTEL_SERVICE_NAME`,
//! `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_TRACES_EXPORTER`, `OTEL_SDK_DISABLED`.
//!
//! Must never: show a header's value, which is a password most likely.

use std::fmt;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use url::Url;

/// How long a request may take unless said otherwise, as the specification has it.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Where spans go, and how.
#[derive(Clone)]
pub struct Settings {
    pub(super) endpoint: Url,
    pub(super) headers: Vec<(String, String)>,
    pub(super) timeout: Duration,
    pub(super) service: String,
    pub(super) resource: Vec<(String, String)>,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("endpoint", &self.endpoint.host_str())
            .finish_non_exhaustive()
    }
}

/// Why no spans can be sent.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// A variable says what can't be done.
    #[error("{variable} {what}")]
    Variable {
        /// Its name.
        variable: &'static str,
        /// What is wrong with it, without its value.
        what: &'static str,
    },
    /// There is no way to send them.
    #[error("failed to begin to send traces: {0}")]
    Nothing(String),
}

impl Settings {
    /// What the variables say; none where they name no place to send to.
    ///
    /// # Errors
    /// When one of them makes no sense.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, Unusable> {
        let get = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let of_traces = |rest: &str| {
            let own = get(&format!("OTEL_EXPORTER_OTLP_TRACES_{rest}"));
            own.or_else(|| get(&format!("OTEL_EXPORTER_OTLP_{rest}")))
        };
        let is =
            |name: &str, value: &str| get(name).is_some_and(|one| one.eq_ignore_ascii_case(value));
        if is("OTEL_SDK_DISABLED", "true") || is("OTEL_TRACES_EXPORTER", "none") {
            return Ok(None);
        }
        let Some(endpoint) = endpoint(get)? else {
            return Ok(None);
        };
        if of_traces("PROTOCOL").is_some_and(|protocol| protocol != "http/protobuf") {
            return Err(wrong(
                "OTEL_EXPORTER_OTLP_PROTOCOL",
                "can only be http/protobuf here",
            ));
        }
        let what = "is a number of milliseconds";
        let timeout = of_traces("TIMEOUT").map(|text| text.trim().parse());
        let timeout = timeout
            .transpose()
            .map_err(|_| wrong("OTEL_EXPORTER_OTLP_TIMEOUT", what))?;
        let pairs = |name: &'static str, text: Option<String>| {
            let read = text.as_deref().map_or(Some(Vec::new()), pairs);
            read.ok_or_else(|| wrong(name, "is a list of name=value, with commas between"))
        };
        Ok(Some(Self {
            endpoint,
            headers: pairs("OTEL_EXPORTER_OTLP_HEADERS", of_traces("HEADERS"))?,
            timeout: timeout.map_or(TIMEOUT, Duration::from_millis),
            service: get("OTEL_SERVICE_NAME").unwrap_or_else(|| "soloist".to_owned()),
            resource: pairs("OTEL_RESOURCE_ATTRIBUTES", get("OTEL_RESOURCE_ATTRIBUTES"))?,
        }))
    }
}

fn endpoint(get: impl Fn(&str) -> Option<String>) -> Result<Option<Url>, Unusable> {
    const OF_TRACES: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
    const OF_ALL: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
    let (name, text) = match (get(OF_TRACES), get(OF_ALL)) {
        (Some(whole), _) => (OF_TRACES, whole),
        (None, Some(base)) => (OF_ALL, format!("{}/v1/traces", base.trim_end_matches('/'))),
        (None, None) => return Ok(None),
    };
    let url = Url::parse(text.trim()).ok();
    let url = url.filter(|url| ["http", "https"].contains(&url.scheme()) && url.has_host());
    let what = "is a URL, such as http://collector:4318";
    url.map(Some).ok_or_else(|| wrong(name, what))
}

const fn wrong(variable: &'static str, what: &'static str) -> Unusable {
    Unusable::Variable { variable, what }
}

/// `name=value,name=value`, values percent-encoded, as W3C Baggage has it.
fn pairs(text: &str) -> Option<Vec<(String, String)>> {
    let pairs = text
        .split(',')
        .map(str::trim)
        .filter(|pair| !pair.is_empty());
    let read = pairs.map(|pair| {
        let (name, value) = pair.split_once('=')?;
        let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
        Some((name.trim().to_owned(), value.into_owned()))
    });
    read.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<Settings>, Unusable> {
        Settings::read(|name| {
            let found = variables.iter().find(|(one, _)| *one == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn a_place_to_send_to_is_named_by_the_variables_of_opentelemetry() {
        assert!(read(&[]).unwrap().is_none());
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/");
        let all = [
            base,
            (
                "OTEL_EXPORTER_OTLP_HEADERS",
                "authorization=Bearer%20abc, x=1",
            ),
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "1500"),
        ];
        let settings = read(&all).unwrap().unwrap();
        assert_eq!(
            settings.endpoint.as_str(),
            "http://collector:4318/v1/traces"
        );
        assert_eq!(
            settings.headers[0],
            ("authorization".into(), "Bearer abc".into())
        );
        assert_eq!(settings.timeout, Duration::from_millis(1500));
        assert!(!format!("{settings:?}").contains("abc"));
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://other/here");
        let settings = read(&[base, own]).unwrap().unwrap();
        assert_eq!(settings.endpoint.as_str(), "https://other/here");
        for off in [
            ("OTEL_SDK_DISABLED", "true"),
            ("OTEL_TRACES_EXPORTER", "none"),
        ] {
            assert!(read(&[base, off]).unwrap().is_none());
        }
    }

    #[test]
    fn a_variable_that_makes_no_sense_is_told_without_its_value() {
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "collector"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "hunter2"),
        ] {
            let told = read(&[base, (name, value)]).unwrap_err().to_string();
            assert!(
                told.starts_with(name) && !told.contains("hunter2"),
                "{told}"
            );
        }
    }
}
