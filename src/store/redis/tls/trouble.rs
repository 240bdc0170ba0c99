//! What went wrong before the first answer came, told with its cure.
//!
//! Must never: call a server good whose certificate isn't.

use std::io::{self, ErrorKind};

use crate::store::redis::fault::Fault;
use crate::tls_trouble::{Trouble, inside};

/// What an error of a fresh connection means. A wrong certificate is a refusal, as it doesn't
/// mend itself; anything else may pass.
pub(crate) fn told(place: &str, error: &io::Error) -> Fault {
    match inside(error) {
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

/// What is wrong, and what is to be done about it in the table.
fn of_tls(error: &rustls::Error) -> (&'static str, &'static str) {
    let trouble = match Trouble::of(error) {
        // A Redis without TLS 1.3 says no more than that.
        Trouble::HandshakeRefused => Trouble::ClientCertificateWanted,
        trouble => trouble,
    };
    let cure = match trouble {
        Trouble::Untrusted => {
            "name the CA that signed it by `tls_ca` in [scheduler], or add that to the certificates of the system"
        }
        Trouble::OtherName => {
            "write into the store's URL a name that the certificate has among its alternative names, or say which one it has by `tls_server_name` in [scheduler]"
        }
        Trouble::NoTls => "write `redis://` for a port without TLS, or name the port for TLS",
        Trouble::ClientCertificateWanted => {
            "name one, and its key, by `tls_cert` and `tls_key` in [scheduler]"
        }
        Trouble::ClientCertificateRefused => {
            "let `tls_cert` in [scheduler] be one that is valid now, and signed by the CA that the server names in `tls-ca-cert-file`"
        }
        other => other.cure().unwrap_or(
            "see what the server offers with `openssl s_client`: it has to be TLS 1.2 or 1.3, with a certificate of its own that is no CA's",
        ),
    };
    (trouble.cause(), cure)
}
