//! What went wrong before the first answer came, told with its cure.
//!
//! Must never: call a server good whose certificate isn't.

use std::io::{self, ErrorKind};

use rustls::{AlertDescription, CertificateError, InvalidMessage};

use crate::store::redis::fault::Fault;

/// What an error of a fresh connection means. A wrong certificate is a refusal, as it doesn't
/// mend itself; anything else may pass.
pub(crate) fn told(place: &str, error: &io::Error) -> Fault {
    match error.get_ref().and_then(|inner| inner.downcast_ref()) {
        Some(error) => {
            let (cause, cure) = of_tls(error);
            Fault::refused(place, format!("{cause} ({error})"), cure).disconnecting()
        }
        None => Fault::unreachable(place, of_connection(error)),
    }
}

fn of_connection(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::UnexpectedEof
        | ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe => format!(
            "it closed the connection without a word ({error}): `redis://` is for ports without TLS, `rediss://` for those with; a server that has too many clients (maxclients) does the same, and its own log may say more"
        ),
        _ => error.to_string(),
    }
}

fn of_tls(error: &rustls::Error) -> (&'static str, &'static str) {
    use CertificateError as Certificate;
    match error {
        rustls::Error::InvalidCertificate(
            Certificate::UnknownIssuer | Certificate::BadSignature,
        ) => (
            "its certificate is not signed by a CA that is trusted here",
            "name the CA that signed it by `tls_ca` in [scheduler], or add that to the certificates of the system",
        ),
        rustls::Error::InvalidCertificate(
            Certificate::Expired | Certificate::ExpiredContext { .. },
        ) => (
            "its certificate has expired",
            "renew it there, or set the clock of this host",
        ),
        rustls::Error::InvalidCertificate(
            Certificate::NotValidYet | Certificate::NotValidYetContext { .. },
        ) => (
            "its certificate is not valid yet",
            "set the clock of this host, or of the one that made it",
        ),
        rustls::Error::InvalidCertificate(
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. },
        ) => (
            "its certificate is for another name",
            "write into the store's URL a name that the certificate has among its alternative names, or say which one it has by `tls_server_name` in [scheduler]",
        ),
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => (
            "what answers there does not speak TLS",
            "write `redis://` for a port without TLS, or name the port for TLS",
        ),
        rustls::Error::AlertReceived(
            AlertDescription::CertificateRequired | AlertDescription::HandshakeFailure,
        ) => (
            "it asks for a certificate of the client",
            "name one, and its key, by `tls_cert` and `tls_key` in [scheduler]",
        ),
        rustls::Error::AlertReceived(
            AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateRevoked
            | AlertDescription::DecryptError
            | AlertDescription::AccessDenied,
        ) => (
            "it refuses the client's certificate",
            "let `tls_cert` in [scheduler] be one that is valid now, and signed by the CA that the server names in `tls-ca-cert-file`",
        ),
        _ => (
            "no TLS connection came about",
            "see what the server offers with `openssl s_client`: it has to be TLS 1.2 or 1.3, with a certificate of its own that is no CA's",
        ),
    }
}
