//! Laws of TLS: whom a request trusts, and how a refusal is told.

use std::fs;
use std::io::Write;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedKey, DnType, IsCa, date_time_ymd,
    generate_simple_self_signed,
};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::process::perform_in;
use super::server::{Server, asked};
use super::{OK, SECRET, call, refusal};

/// A server with a certificate, which it signed itself, of this shape.
struct Secure {
    server: Server<Option<String>>,
    /// PEM.
    certificate: String,
}

impl Secure {
    fn start(shape: impl FnOnce(&mut CertificateParams)) -> Self {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
        params.distinguished_name.push(DnType::CommonName, "shop");
        shape(&mut params);
        let key = rcgen::KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        let pem = certificate.pem();
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let ring = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(ring)
            .with_safe_default_protocol_versions()
            .and_then(|config| {
                let chain = vec![certificate.der().clone()];
                config.with_no_client_auth().with_single_cert(chain, key)
            });
        let config = Arc::new(config.expect("a configuration"));
        let server = Server::start(move |mut socket| {
            let mut tls = ServerConnection::new(config).expect("a connection");
            tls.complete_io(&mut socket).ok()?;
            let mut stream = StreamOwned::new(tls, socket);
            let asked = asked(&mut stream);
            stream.write_all(OK.as_bytes()).expect("a client");
            stream.conn.send_close_notify();
            stream.flush().expect("a client");
            Some(asked)
        });
        Self {
            server,
            certificate: pem,
        }
    }

    fn url(&self) -> String {
        let port = self.server.address.port();
        format!("https://u:{SECRET}@localhost:{port}/{SECRET}?{SECRET}")
    }

    /// What becomes of a request whose environment names a file with the certificate.
    fn trusted(&self) -> Result<(), String> {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("certificates.pem");
        fs::write(&file, &self.certificate).expect("written");
        perform_in(&call("GET", self.url()), |command| {
            command
                .env("SSL_CERT_FILE", &file)
                .env_remove("SSL_CERT_DIR");
        })
    }
}

#[test]
fn a_certificate_that_the_environment_names_is_trusted() {
    let secure = Secure::start(|_| {});
    assert_eq!(secure.trusted(), Ok(()));
    let asked = secure.server.served().expect("a handshake");
    assert!(
        asked.starts_with(&format!("GET /{SECRET}?{SECRET} HTTP/1.1\r\n")),
        "{asked}"
    );
}

#[test]
fn a_certificate_that_nobody_signed_is_refused_with_a_cure() {
    let secure = Secure::start(|_| {});
    // Of somebody else, as this host may have none of its own.
    let CertifiedKey { cert, .. } =
        generate_simple_self_signed(vec!["other".to_owned()]).expect("a certificate");
    let other = Secure {
        certificate: cert.pem(),
        ..secure
    };
    let why = other.trusted().expect_err("a stranger");
    let beginning = format!(
        "GET https://localhost:{} failed: its certificate is not signed by a CA that is trusted here (",
        other.server.address.port()
    );
    assert!(why.starts_with(&beginning), "{why}");
    assert!(
        why.contains("SSL_CERT_FILE") && !why.contains(SECRET),
        "{why}"
    );
    assert_eq!(
        other.server.served(),
        None,
        "nothing is asked of a stranger"
    );
}

#[test]
fn a_trusted_certificate_must_be_of_this_name_and_of_this_time() {
    let refusal = |shape: fn(&mut CertificateParams)| {
        let secure = Secure::start(shape);
        let why = secure.trusted().expect_err("a refusal");
        assert_eq!(secure.server.served(), None);
        why
    };
    let name = refusal(|params| {
        *params = CertificateParams::new(vec!["shop.example".to_owned()]).expect("a name");
    });
    assert!(
        name.contains("its certificate is for another name"),
        "{name}"
    );
    let past = refusal(|params| params.not_after = date_time_ymd(2020, 1, 1));
    assert!(past.contains("its certificate has expired"), "{past}");
    let future = refusal(|params| params.not_before = date_time_ymd(3020, 1, 1));
    assert!(
        future.contains("its certificate is not valid yet"),
        "{future}"
    );
}

#[test]
fn a_certificate_made_to_sign_others_is_refused_as_a_servers_own() {
    let secure = Secure::start(|params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained));
    let why = secure.trusted().expect_err("an issuer's");
    assert!(
        why.contains("a certificate of its own that is no issuer's"),
        "{why}"
    );
}

#[test]
fn a_host_without_certificates_to_trust_is_told_what_to_install() {
    let dir = tempfile::tempdir().expect("a directory");
    let why = perform_in(&call("GET", "https://localhost:1/"), |command| {
        command
            .env("SSL_CERT_FILE", dir.path().join("none.pem"))
            .env_remove("SSL_CERT_DIR");
    });
    let why = why.expect_err("nobody to trust");
    assert!(
        why.starts_with("no certificate to trust was found on this host ("),
        "{why}"
    );
    assert!(why.contains("install ca-certificates"), "{why}");
}

#[test]
fn a_server_without_tls_is_told_from_one_with_a_bad_certificate() {
    let server = Server::start(|mut stream| {
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .expect("a client");
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("certificates.pem");
    let CertifiedKey { cert, .. } =
        generate_simple_self_signed(vec!["other".to_owned()]).expect("a certificate");
    fs::write(&file, cert.pem()).expect("written");
    let url = format!("https://{}/{SECRET}", server.address);
    let why = perform_in(&call("GET", url), |command| {
        command.env("SSL_CERT_FILE", &file);
    });
    let why = why.expect_err("no TLS");
    assert!(
        why.contains("what answers there does not speak TLS"),
        "{why}"
    );
    assert!(why.contains("write `http://`"), "{why}");
}

#[test]
fn a_tls_port_that_is_asked_without_tls_says_what_to_write() {
    let secure = Secure::start(|_| {});
    let why = refusal(&call("GET", secure.url().replace("https", "http")));
    assert!(
        why.contains("https://") || why.contains("does not speak HTTP"),
        "{why}"
    );
}
