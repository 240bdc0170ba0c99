//! Why no TLS connection came about: the kinds of trouble, told in the same words whoever meets
//! them. What may be done is for those to say who know how the connection is asked for.
//!
//! Must never: call a certificate good that isn't, or name a setting.

use std::io;

use rustls::{AlertDescription, CertificateError, InvalidMessage};

/// A kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Nobody who is trusted signed the server's certificate.
    Untrusted,
    /// The certificate was good once.
    Expired,
    /// The certificate will be good.
    NotYetValid,
    /// The certificate is another host's.
    OtherName,
    /// The other side doesn't speak TLS.
    NoTls,
    /// The server wants to see a certificate.
    ClientCertificateWanted,
    /// The server ends the handshake without a reason; one without TLS 1.3 says no more where it
    /// wants to see a certificate.
    HandshakeRefused,
    /// The server takes the certificate that it saw for none.
    ClientCertificateRefused,
    /// Anything else.
    Other,
}

impl Trouble {
    /// Of which kind an error is.
    pub(crate) fn of(error: &rustls::Error) -> Self {
        use AlertDescription as Alert;
        match error {
            rustls::Error::InvalidCertificate(error) => Self::of_certificate(error),
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => Self::NoTls,
            rustls::Error::AlertReceived(alert) => match alert {
                Alert::CertificateRequired => Self::ClientCertificateWanted,
                Alert::HandshakeFailure => Self::HandshakeRefused,
                Alert::UnknownCA
                | Alert::BadCertificate
                | Alert::CertificateUnknown
                | Alert::CertificateExpired
                | Alert::CertificateRevoked
                | Alert::DecryptError
                | Alert::AccessDenied => Self::ClientCertificateRefused,
                _ => Self::Other,
            },
            _ => Self::Other,
        }
    }

    fn of_certificate(error: &CertificateError) -> Self {
        use CertificateError as Certificate;
        match error {
            Certificate::UnknownIssuer | Certificate::BadSignature => Self::Untrusted,
            Certificate::Expired | Certificate::ExpiredContext { .. } => Self::Expired,
            Certificate::NotValidYet | Certificate::NotValidYetContext { .. } => Self::NotYetValid,
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => {
                Self::OtherName
            }
            _ => Self::Other,
        }
    }

    /// What is wrong, of the other side.
    pub(crate) fn cause(self) -> &'static str {
        match self {
            Self::Untrusted => "its certificate is not signed by a CA that is trusted here",
            Self::Expired => "its certificate has expired",
            Self::NotYetValid => "its certificate is not valid yet",
            Self::OtherName => "its certificate is for another name",
            Self::NoTls => "what answers there does not speak TLS",
            Self::ClientCertificateWanted => "it asks for a certificate of the client",
            Self::ClientCertificateRefused => "it refuses the client's certificate",
            Self::HandshakeRefused | Self::Other => "no TLS connection came about",
        }
    }

    /// What may be done, where that is the same for all connections.
    pub(crate) fn cure(self) -> Option<&'static str> {
        match self {
            Self::Expired => Some("renew it there, or set the clock of this host"),
            Self::NotYetValid => Some("set the clock of this host, or of the one that made it"),
            _ => None,
        }
    }
}

/// What TLS says reaches us inside the error of a read or write.
pub(crate) fn inside(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_apart_and_what_is_not_known_is_called_nothing_else() {
        use AlertDescription as Alert;
        use CertificateError as Certificate;
        let alert = rustls::Error::AlertReceived;
        let certificate = rustls::Error::InvalidCertificate;
        for (error, kind) in [
            (certificate(Certificate::UnknownIssuer), Trouble::Untrusted),
            (certificate(Certificate::Expired), Trouble::Expired),
            (certificate(Certificate::NotValidYet), Trouble::NotYetValid),
            (
                certificate(Certificate::NotValidForName),
                Trouble::OtherName,
            ),
            (certificate(Certificate::Revoked), Trouble::Other),
            (
                alert(Alert::CertificateRequired),
                Trouble::ClientCertificateWanted,
            ),
            (alert(Alert::HandshakeFailure), Trouble::HandshakeRefused),
            (alert(Alert::UnknownCA), Trouble::ClientCertificateRefused),
            (alert(Alert::ProtocolVersion), Trouble::Other),
            (
                rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType),
                Trouble::NoTls,
            ),
        ] {
            assert_eq!(Trouble::of(&error), kind);
            let inner = io::Error::other(error.clone());
            assert_eq!(inside(&inner), Some(&error));
        }
        assert_eq!(inside(&io::Error::from(io::ErrorKind::BrokenPipe)), None);
    }
}
