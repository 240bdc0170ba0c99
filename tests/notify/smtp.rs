//! A mail server that takes mails down: STARTTLS or TLS from the start, and a password.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tempfile::TempDir;

/// What was said in a conversation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conversation {
    /// Before TLS.
    pub(crate) in_the_clear: Vec<String>,
    /// After that.
    pub(crate) by_tls: Vec<String>,
    /// The mail.
    pub(crate) mail: String,
}

/// When TLS begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tls {
    FromTheStart,
    WhenAsked,
}

/// See the module.
pub(crate) struct MailServer {
    address: SocketAddr,
    dir: TempDir,
    mails: Receiver<Conversation>,
}

impl MailServer {
    /// One that refuses the first mails for a while.
    pub(crate) fn start(tls: Tls, refused: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let key = rcgen::KeyPair::generate().expect("a key");
        let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
        let certificate = params.self_signed(&key).expect("a certificate");
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("ca.pem"), certificate.pem()).expect("a file");
        let ring = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let config = ServerConfig::builder_with_provider(ring)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .expect("a configuration");
        let (config, refused) = (Arc::new(config), Arc::new(Mutex::new(refused)));
        let (sender, mails) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, refused) = (Arc::clone(&config), Arc::clone(&refused));
                let sender = sender.clone();
                std::thread::spawn(move || {
                    let talk = Talk {
                        told: Conversation::default(),
                        refused,
                    };
                    let told = talk.run(stream, config, tls).ok().flatten();
                    let _ = told.map(|told| sender.send(told));
                });
            }
        });
        Self {
            address,
            dir,
            mails,
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// The certificate of whoever is to be trusted.
    pub(crate) fn certificate(&self) -> PathBuf {
        self.dir.path().join("ca.pem")
    }

    /// The next mail.
    pub(crate) fn mail(&self) -> Conversation {
        let mail = self.mails.recv_timeout(Duration::from_secs(60));
        mail.expect("a mail")
    }

    /// There is no other.
    pub(crate) fn is_done(&self) -> bool {
        self.mails.try_recv().is_err()
    }
}

struct Talk {
    told: Conversation,
    /// How many mails are still to be refused.
    refused: Arc<Mutex<usize>>,
}

/// How a part of a conversation ended.
enum Next {
    StartTls,
    Over,
}

impl Talk {
    /// A mail, if one came of it.
    fn run(
        mut self,
        stream: TcpStream,
        config: Arc<ServerConfig>,
        tls: Tls,
    ) -> std::io::Result<Option<Conversation>> {
        let secure = |stream| {
            let connection = ServerConnection::new(config).expect("a connection");
            StreamOwned::new(connection, stream)
        };
        match tls {
            Tls::FromTheStart => self.part(&mut secure(stream), true, true)?,
            Tls::WhenAsked => {
                let mut stream = stream;
                match self.part(&mut stream, false, true)? {
                    Next::StartTls => self.part(&mut secure(stream), true, false)?,
                    Next::Over => Next::Over,
                }
            }
        };
        Ok((!self.told.mail.is_empty()).then_some(self.told))
    }

    fn part<S: Read + Write>(
        &mut self,
        stream: &mut S,
        by_tls: bool,
        greet: bool,
    ) -> std::io::Result<Next> {
        let mut stream = BufReader::with_capacity(1, stream);
        if greet {
            say(&mut stream, "220 mail.example ESMTP")?;
        }
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line)? == 0 {
                return Ok(Next::Over);
            }
            let line = line.trim_end().to_owned();
            match by_tls {
                true => self.told.by_tls.push(line.clone()),
                false => self.told.in_the_clear.push(line.clone()),
            }
            let verb = line.split(' ').next().unwrap_or_default().to_uppercase();
            match &*verb {
                "EHLO" if by_tls => say(&mut stream, "250-mail.example\r\n250 AUTH PLAIN LOGIN")?,
                "EHLO" => say(&mut stream, "250-mail.example\r\n250 STARTTLS")?,
                "STARTTLS" => {
                    say(&mut stream, "220 go ahead")?;
                    return Ok(Next::StartTls);
                }
                "AUTH" => say(&mut stream, "235 welcome")?,
                "MAIL" => {
                    let mut refused = self.refused.lock().expect("a number");
                    let is_refused = *refused > 0;
                    *refused = refused.saturating_sub(1);
                    drop(refused);
                    let answer = ["250 ok", "451 later"][usize::from(is_refused)];
                    say(&mut stream, answer)?;
                }
                "RCPT" if line.contains("<gone@") => say(&mut stream, "550 no such mailbox")?,
                "DATA" => {
                    say(&mut stream, "354 go ahead")?;
                    self.told.mail = mail(&mut stream)?;
                    say(&mut stream, "250 taken")?;
                }
                "QUIT" => {
                    say(&mut stream, "221 bye")?;
                    return Ok(Next::Over);
                }
                _ => say(&mut stream, "250 ok")?,
            }
        }
    }
}

fn say<S: Read + Write>(stream: &mut BufReader<&mut S>, line: &str) -> std::io::Result<()> {
    let stream = stream.get_mut();
    stream.write_all(format!("{line}\r\n").as_bytes())?;
    stream.flush()
}

fn mail(stream: &mut impl BufRead) -> std::io::Result<String> {
    let mut mail = String::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 || line == ".\r\n" {
            return Ok(mail);
        }
        mail.push_str(&line);
    }
}
