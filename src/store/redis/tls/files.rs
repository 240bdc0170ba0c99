//! The files of a TLS connection, read.
//!
//! Must never: show what is in a key.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use rustls::{ClientConfig, RootCertStore};

use crate::store_url::TlsFiles;

/// What is trusted and shown. The error is a cause with its cure.
pub(super) fn config(files: &TlsFiles) -> Result<ClientConfig, String> {
    let roots = match &files.ca {
        Some(path) => roots_of(path)?,
        None => roots_of_the_system()?,
    };
    // Named, as a program may have several and then none is the default.
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(ring)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots);
    let (cert, key) = match (&files.cert, &files.key) {
        (None, None) => return Ok(builder.with_no_client_auth()),
        (Some(cert), Some(key)) => (cert, key),
        (Some(_), None) => return Err("`tls_cert` needs `tls_key` beside it".to_owned()),
        (None, Some(_)) => return Err("`tls_key` needs `tls_cert` beside it".to_owned()),
    };
    let chain = certificates("tls_cert", cert)?;
    let key_path = key;
    let key = PrivateKeyDer::from_pem_file(key_path)
        .map_err(|error| unread("tls_key", key_path, "private key", &error))?;
    builder.with_client_auth_cert(chain, key).map_err(|error| {
        format!(
            "`tls_cert` {} and `tls_key` {} don't belong together: {error}",
            cert.display(),
            key_path.display()
        )
    })
}

fn roots_of(path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("tls_ca", path)? {
        roots
            .add(certificate)
            .map_err(|error| format!("`tls_ca` {} holds no CA: {error}", path.display()))?;
    }
    Ok(roots)
}

fn roots_of_the_system() -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // What one of them has that nobody can read is no reason not to trust the others.
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let mut why = String::new();
        for error in &found.errors {
            // Writing to a string can't fail.
            let _ = write!(why, " ({error})");
        }
        return Err(format!(
            "no certificate to trust was found on this host{why}: install ca-certificates, or name the CA that signed the server's certificate by `tls_ca` in [scheduler]"
        ));
    }
    Ok(roots)
}

fn certificates(key: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let told = |error: pem::Error| unread(key, path, "certificate", &error);
    let certificates = CertificateDer::pem_file_iter(path).map_err(told)?;
    let certificates: Result<Vec<_>, _> = certificates.collect();
    match certificates.map_err(told)? {
        none if none.is_empty() => Err(unread(key, path, "certificate", &pem::Error::NoItemsFound)),
        some => Ok(some),
    }
}

fn unread(key: &str, path: &Path, what: &str, error: &pem::Error) -> String {
    let path = path.display();
    match error {
        pem::Error::Io(error) => format!(
            "`{key}` {path} can't be read ({error}): name a file that soloist's user may read"
        ),
        pem::Error::NoItemsFound => {
            format!("`{key}` {path} holds no {what}: name a file in PEM form, with BEGIN and END")
        }
        error => format!("`{key}` {path} is no {what} in PEM form ({error})"),
    }
}
