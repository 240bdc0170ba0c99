//! TLS, with certificates of a CA that lasts as long as the test.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    date_time_ymd,
};
use soloist::store::redis::RedisStore;
use soloist::store::{Store, StoreError};
use soloist::store_url::TlsFiles;
use tempfile::TempDir;
use test_support::redis::{RedisOptions, RedisServer, fresh_namespace};

use crate::world::{
    answered, caller, claim, impatient, just_due, observe, persist, refusal_of, renewal, until, win,
};

/// Certificates, and the directory where they are.
pub(crate) struct Certificates(TempDir);

/// Somebody who signs.
pub(crate) struct Authority(Issuer<'static, KeyPair>);

impl Certificates {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, pem: &str) {
        std::fs::write(self.path(name), pem).expect("a file");
    }

    /// A CA, its certificate in a file.
    pub(crate) fn authority(&self, name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::<String>::new()).expect("a name");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        self.write(
            &format!("{name}.pem"),
            &params.self_signed(&key).expect("a certificate").pem(),
        );
        Authority(Issuer::new(params, key))
    }

    /// A certificate for this host in a file, its key in another.
    pub(crate) fn sign(
        &self,
        by: &Authority,
        name: &str,
        shape: impl FnOnce(&mut CertificateParams),
    ) {
        let names = ["localhost", "127.0.0.1"].map(str::to_owned);
        let mut params = CertificateParams::new(names).expect("names");
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        shape(&mut params);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &by.0).expect("a certificate");
        self.write(&format!("{name}.pem"), &certificate.pem());
        self.write(&format!("{name}.key"), &key.serialize_pem());
    }

    /// A server that shows `name` and asks for certificates of `ca` as `clients` says.
    fn server(&self, name: &str, ca: &str, clients: &str) -> RedisServer {
        self.options(name, ca, clients).start()
    }

    pub(crate) fn options(&self, name: &str, ca: &str, clients: &str) -> RedisOptions {
        let path = |file: String| self.path(&file).display().to_string();
        RedisServer::options()
            .tls()
            .argument("--tls-cert-file", &path(format!("{name}.pem")))
            .argument("--tls-key-file", &path(format!("{name}.key")))
            .argument("--tls-ca-cert-file", &path(format!("{ca}.pem")))
            .argument("--tls-auth-clients", clients)
    }

    pub(crate) fn trusting(&self, ca: &str) -> TlsFiles {
        TlsFiles {
            ca: Some(self.path(&format!("{ca}.pem"))),
            ..TlsFiles::default()
        }
    }

    fn showing(&self, ca: &str, name: &str) -> TlsFiles {
        TlsFiles {
            cert: Some(self.path(&format!("{name}.pem"))),
            key: Some(self.path(&format!("{name}.key"))),
            ..self.trusting(ca)
        }
    }
}

fn store(server: &RedisServer, files: &TlsFiles) -> RedisStore {
    let url = format!("rediss://localhost:{}", server.tls_port());
    RedisStore::open_with(&url, &fresh_namespace(), &files.clone().into())
        .expect("files that can be read")
}

pub(crate) async fn works(store: &RedisStore) {
    persist(|| store.ready()).await;
    observe(store, &impatient()).await;
    let (caller, claim) = (caller("one"), claim("job", just_due(store).await));
    let grant = win(store, &caller, &claim).await;
    let renewals = [renewal(&claim, &grant)];
    persist(|| store.renew(&caller, &renewals)).await;
}

/// Refused, each time, with cause and cure.
async fn refused(store: &RedisStore, cause: &str, cure: &str) {
    for _ in 0..2 {
        let error = answered(|| store.ready()).await.expect_err(cause);
        assert!(matches!(error, StoreError::Refused { .. }), "{error}");
        let said = error.to_string();
        assert!(said.contains(cause) && said.contains(cure), "{said}");
    }
}

#[tokio::test]
async fn a_server_of_a_given_ca_is_trusted() {
    let certificates = Certificates::new();
    let ca = certificates.authority("ca");
    certificates.sign(&ca, "server", |_| {});
    let server = certificates.server("server", "ca", "no");
    let store = store(&server, &certificates.trusting("ca"));
    works(&store).await;
    let place = format!("rediss://localhost:{}/0", server.tls_port());
    assert_eq!(store.place(), place);
    assert!(
        server
            .command(&["CLIENT", "LIST"])
            .contains(&format!("laddr=127.0.0.1:{}", server.tls_port()))
    );
}

#[tokio::test]
async fn a_server_that_signed_its_certificate_itself_is_trusted_by_that() {
    let certificates = Certificates::new();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    certificates.write("server.pem", &params.self_signed(&key).unwrap().pem());
    certificates.write("server.key", &key.serialize_pem());
    let server = certificates.server("server", "server", "no");
    works(&store(&server, &certificates.trusting("server"))).await;
}

#[tokio::test]
async fn a_server_whose_certificate_does_not_verify_is_refused() {
    let certificates = Certificates::new();
    let ca = certificates.authority("ca");
    certificates.authority("other");
    certificates.sign(&ca, "server", |_| {});
    certificates.sign(&ca, "expired", |params| {
        params.not_after = date_time_ymd(2020, 1, 1)
    });
    certificates.sign(&ca, "early", |params| {
        params.not_before = date_time_ymd(3020, 1, 1)
    });
    certificates.sign(&ca, "elsewhere", |params| {
        *params = CertificateParams::new(vec!["redis.example".to_owned()]).unwrap();
    });
    for (shown, trusted, cause, cure) in [
        (
            "server",
            "other",
            "not signed by a CA that is trusted",
            "`tls_ca`",
        ),
        ("expired", "ca", "has expired", "renew it"),
        ("early", "ca", "is not valid yet", "set the clock"),
        (
            "elsewhere",
            "ca",
            "is for another name",
            "`tls_server_name`",
        ),
    ] {
        let server = certificates.server(shown, "ca", "no");
        let store = store(&server, &certificates.trusting(trusted));
        refused(&store, cause, cure).await;
        if shown == "elsewhere" {
            let named = TlsFiles {
                server_name: Some("redis.example".to_owned()),
                ..certificates.trusting("ca")
            };
            works(&self::store(&server, &named)).await;
        }
    }
}

#[tokio::test]
async fn a_server_that_asks_for_certificates_of_clients_gets_one() {
    let certificates = Certificates::new();
    let (ca, other) = (
        certificates.authority("ca"),
        certificates.authority("other"),
    );
    certificates.sign(&ca, "server", |_| {});
    certificates.sign(&ca, "client", |_| {});
    certificates.sign(&ca, "old", |params| {
        params.not_after = date_time_ymd(2020, 1, 1)
    });
    certificates.sign(&other, "stranger", |_| {});
    let server = certificates.server("server", "ca", "yes");
    works(&store(&server, &certificates.showing("ca", "client"))).await;
    let without = store(&server, &certificates.trusting("ca"));
    refused(
        &without,
        "asks for a certificate of the client",
        "`tls_cert`",
    )
    .await;
    for shown in ["stranger", "old"] {
        let store = store(&server, &certificates.showing("ca", shown));
        refused(&store, "refuses the client's certificate", "`tls_cert`").await;
    }
}

#[tokio::test]
async fn ports_with_and_without_tls_are_told_apart() {
    let certificates = Certificates::new();
    let ca = certificates.authority("ca");
    certificates.sign(&ca, "server", |_| {});
    let server = certificates.server("server", "ca", "no");
    let url = format!("rediss://localhost:{}", server.port());
    let plain = RedisStore::open_with(&url, "x", &certificates.trusting("ca").into()).unwrap();
    // To such a server, the beginning of a handshake is the beginning of a command.
    let error = plain.ready().await.unwrap_err().to_string();
    assert!(
        error.contains("the TLS handshake") && error.contains("`redis://`"),
        "{error}"
    );
    let url = format!("redis://localhost:{}", server.tls_port());
    let error = RedisStore::open(&url, "x")
        .unwrap()
        .ready()
        .await
        .unwrap_err();
    assert!(error.to_string().contains("`rediss://`"), "{error}");
}

#[tokio::test]
async fn files_that_are_renewed_count_from_the_next_connection_on() {
    let certificates = Certificates::new();
    let (ca, _other) = (certificates.authority("ca"), certificates.authority("used"));
    certificates.sign(&ca, "server", |_| {});
    let server = certificates.server("server", "ca", "no");
    let store = store(&server, &certificates.trusting("used"));
    refused(&store, "not signed by", "`tls_ca`").await;
    std::fs::rename(certificates.path("ca.pem"), certificates.path("used.pem")).unwrap();
    until("a connection", async || store.ready().await.ok()).await;
    std::fs::remove_file(certificates.path("used.pem")).unwrap();
    server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
    let said = refusal_of(|| store.ready()).await.to_string();
    assert!(
        said.contains("`tls_ca`") && said.contains("can't be read"),
        "{said}"
    );
}

#[tokio::test]
async fn files_that_are_no_certificates_are_found_before_anything_is_connected() {
    let certificates = Certificates::new();
    let ca = certificates.authority("ca");
    certificates.sign(&ca, "one", |_| {});
    certificates.sign(&ca, "two", |_| {});
    certificates.write("empty.pem", "");
    certificates.write("torn.pem", "-----BEGIN CERTIFICATE-----\nAAA");
    let showing = |cert: &str, key: &str| TlsFiles {
        cert: Some(certificates.path(cert)),
        key: Some(certificates.path(key)),
        ..certificates.trusting("ca")
    };
    for (files, cause) in [
        (certificates.trusting("none"), "`tls_ca`"),
        (certificates.trusting("empty"), "holds no certificate"),
        (certificates.trusting("torn"), "in PEM form"),
        (showing("one.pem", "none.key"), "`tls_key`"),
        (showing("one.pem", "one.pem"), "holds no private key"),
        (showing("one.pem", "two.key"), "don't belong together"),
    ] {
        let opened = RedisStore::open_with("rediss://:secret@h", "x", &files.clone().into());
        let error = opened.map(|store| store.place()).expect_err(cause);
        assert!(matches!(error, StoreError::BadUrl { .. }), "{error}");
        assert!(error.to_string().contains(cause), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}

#[tokio::test]
async fn the_server_is_told_which_name_is_meant() {
    let certificates = Certificates::new();
    certificates.authority("ca");
    for (server_name, told) in [
        (None, "localhost"),
        (Some("redis.example"), "redis.example"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut acceptor = rustls::server::Acceptor::default();
            loop {
                acceptor.read_tls(&mut client).unwrap();
                if let Some(accepted) = acceptor.accept().ok().flatten() {
                    return accepted.client_hello().server_name().map(str::to_owned);
                }
            }
        });
        let files = TlsFiles {
            server_name: server_name.map(str::to_owned),
            ..certificates.trusting("ca")
        };
        let url = format!("rediss://localhost:{port}");
        let store = RedisStore::open_with(&url, "x", &files.clone().into()).unwrap();
        assert!(store.ready().await.is_err());
        assert_eq!(heard.join().unwrap().as_deref(), Some(told));
    }
}

/// `soloist status` in a directory, with `variable` in its environment: exit code and stderr.
fn status(dir: &Path, url: &str, variable: Option<(&str, &Path)>) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_soloist"));
    command.args(["status", "--store", url]).current_dir(dir);
    command.env_remove("SSL_CERT_DIR").envs(variable);
    let output = command.output().expect("soloist starts");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), stderr)
}

#[test]
fn the_system_and_the_table_say_whom_the_command_line_trusts() {
    let certificates = Certificates::new();
    let ca = certificates.authority("ca");
    certificates.authority("other");
    certificates.sign(&ca, "server", |_| {});
    let server = certificates.server("server", "ca", "no");
    let url = format!("rediss://localhost:{}", server.tls_port());
    let dir = certificates.0.path();
    let of_system = |name: &str| status(dir, &url, Some(("SSL_CERT_FILE", &dir.join(name))));
    let (code, stderr) = of_system("ca.pem");
    assert_eq!(code, Some(0), "{stderr}");
    let (code, stderr) = of_system("other.pem");
    assert_eq!(code, Some(3));
    assert!(
        stderr.contains("not signed by a CA that is trusted"),
        "{stderr}"
    );

    let table =
        "[scheduler]\ntls_ca = \"ca.pem\"\n[jobs.x]\nschedule = \"@daily\"\nshell = \"x\"\n";
    std::fs::write(dir.join("jobs.toml"), table).unwrap();
    let (code, stderr) = of_system("other.pem");
    assert_eq!(code, Some(0), "{stderr}");
    let (code, stderr) = status(dir, &format!("{url}/#insecure"), None);
    assert_eq!(code, Some(2));
    assert!(
        stderr.contains("can't be switched off") && stderr.contains("tls_ca"),
        "{stderr}"
    );
}
