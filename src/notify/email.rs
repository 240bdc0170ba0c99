//! Mails, by lettre: one try each.
//!
//! Must never: put what a job printed, or why it failed, into a header; or say a password, or a
//! word of a mail, before TLS where that is asked for.

use std::time::{Duration, UNIX_EPOCH};

use lettre::address::Envelope;
use lettre::message::Message as Mail;
use lettre::message::header::{ContentType, Header, HeaderName, HeaderValue};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::transport::smtp::response::Severity;
use lettre::{SmtpTransport, Transport};
use tracing::warn;

use super::message::{Message, Teller};
use super::trouble::Trouble;
use crate::config::{Email, Security, SmtpServer};
use crate::scheduler::time::{Timestamp, short_duration};

/// How long a server may take for each step of a conversation.
const STEP_LIMIT: Duration = Duration::from_secs(10);

/// So that no vacation notice comes back (RFC 3834).
#[derive(Clone)]
struct AutoSubmitted;

impl Header for AutoSubmitted {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("Auto-Submitted")
    }
    fn parse(_: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Self)
    }
    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), "auto-generated".to_owned())
    }
}

/// Sends a message.
pub(super) fn send(
    email: &Email,
    message: &Message,
    teller: &Teller,
    now: Timestamp,
) -> Result<(), Trouble> {
    let mail = mail(email, message, teller, now)
        .map_err(|why| Trouble::lasting(format!("no mail can be made of it: {why}")))?;
    let server = &email.server;
    let place = format!("the mail server {}:{}", server.host, server.port);
    let transport = transport(server)
        .map_err(|why| Trouble::passing(format!("{place} can't be asked by TLS: {why}")))?;
    let Err(error) = transport.send(&mail) else {
        return Ok(());
    };
    if is_of_one(&error) && email.to.len() > 1 {
        let reached = each_alone(email, &mail, &transport, &place);
        if reached > 0 {
            return Ok(());
        }
    }
    let refused = error
        .status()
        .is_some_and(|code| code.severity == Severity::PermanentNegativeCompletion);
    let cause = format!("{place} did not take the mail: {error}");
    Err(match refused {
        true => Trouble::lasting(format!("{cause}: check `smtp`, `from` and `to`")),
        false => Trouble::passing(cause),
    })
}

/// What may be refused for one recipient alone, and then is for all: a mailbox that is not there,
/// is full, or is elsewhere (RFC 5321, 4.2.2). Not a password.
fn is_of_one(error: &lettre::transport::smtp::Error) -> bool {
    let code = error.status().map(u16::from);
    code.is_some_and(|code| (550..=554).contains(&code))
}

/// Sends a mail that was refused to each of its recipients alone; answers how many took it.
fn each_alone(email: &Email, mail: &Mail, transport: &SmtpTransport, place: &str) -> usize {
    let text = mail.formatted();
    let mut refused = Vec::new();
    for to in &email.to {
        let from = email.from.email.clone();
        let envelope = Envelope::new(Some(from), vec![to.email.clone()]);
        let sent = envelope.map(|envelope| transport.send_raw(&envelope, &text));
        match sent {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => refused.push((&to.email, error.to_string())),
            Err(error) => refused.push((&to.email, error.to_string())),
        }
    }
    let reached = email.to.len() - refused.len();
    if reached > 0 {
        for (to, why) in refused {
            warn!("{place} took a mail, but not for {to}: {why}: check `to`");
        }
    }
    reached
}

fn transport(server: &SmtpServer) -> Result<SmtpTransport, lettre::transport::smtp::Error> {
    let tls = || TlsParameters::builder(server.host.clone()).build_rustls();
    let security = match server.security {
        Security::Tls => Tls::Wrapper(tls()?),
        Security::StartTls => Tls::Required(tls()?),
        Security::None => Tls::None,
    };
    let host = rustix::system::uname();
    let hello = host.nodename().to_string_lossy().into_owned();
    let mut builder = SmtpTransport::builder_dangerous(&server.host)
        .port(server.port)
        .hello_name(ClientId::Domain(hello))
        .timeout(Some(STEP_LIMIT))
        .tls(security);
    if let Some((user, password)) = &server.user {
        builder = builder.credentials(Credentials::new(user.clone(), password.clone()));
    }
    Ok(builder.build())
}

fn mail(
    email: &Email,
    message: &Message,
    teller: &Teller,
    now: Timestamp,
) -> Result<Mail, lettre::error::Error> {
    let since_epoch = Duration::from_millis(now.as_millis().max(0).unsigned_abs());
    let id = format!("<{}@{}>", message.id(), email.from.email.domain());
    let builder = Mail::builder()
        .from(email.from.clone())
        .date(UNIX_EPOCH + since_epoch)
        .message_id(Some(id))
        .subject(format!("[{}] {}", teller.namespace, message.title()))
        .header(AutoSubmitted)
        .header(ContentType::TEXT_PLAIN);
    let builder = email
        .to
        .iter()
        .cloned()
        .fold(builder, |mail, to| mail.to(to));
    builder.body(body(message, teller))
}

fn body(message: &Message, teller: &Teller) -> String {
    let mut lines = vec![message.text(), String::new()];
    let mut field = |name: &str, value: Option<String>| {
        lines.extend(value.map(|value| format!("{name:<14}{value}")));
    };
    field("job", Some(message.job.to_string()));
    field("namespace", Some(teller.namespace.clone()));
    field("due at", Some(message.scheduled_at.to_string()));
    field("ended at", message.ended_at.map(|at| at.to_string()));
    field("ran for", message.ran_for.map(short_duration));
    field("outcome", message.outcome.map(|one| one.to_string()));
    field(
        "exit code",
        message.detail.exit_code.map(|code| code.to_string()),
    );
    field("signal", message.detail.signal.map(|one| one.to_string()));
    let attempted = message.attempt > 0;
    field("attempt", attempted.then(|| message.attempt.to_string()));
    field("replica", Some(message.replica.clone()));
    field("told by", Some(teller.replica.clone()));
    for (name, text) in [("stdout", &message.stdout), ("stderr", &message.stderr)] {
        if let Some(text) = text {
            lines.extend([String::new(), format!("--- the end of {name} ---")]);
            lines.push(plain(text));
        }
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Without what a terminal would obey.
fn plain(text: &str) -> String {
    let is_kept = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    text.chars().filter(is_kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formatted(reason: &str, printed: &str) -> String {
        let message = Message::sample(reason, printed);
        let email = Email {
            to: vec!["Operations <ops@shop.example>".parse().unwrap()],
            from: "soloist@shop.example".parse().unwrap(),
            server: SmtpServer {
                host: "h".into(),
                port: 25,
                security: Security::None,
                user: None,
            },
        };
        let teller = Teller {
            namespace: "shop".into(),
            replica: "r2".into(),
        };
        let mail = mail(&email, &message, &teller, Timestamp::from_second(0)).unwrap();
        String::from_utf8(mail.formatted()).unwrap()
    }

    #[test]
    fn a_mail_says_what_failed_and_its_id_is_that_of_the_news() {
        let mail = formatted("because", "hello\u{1b}[31m");
        for part in [
            "Subject: [shop] report failed with exit code 3\r\n",
            "Message-ID: <00000000-0000-0000-0000-000000000000-failure@shop.example>\r\n",
            "To: Operations <ops@shop.example>\r\n",
            "Auto-Submitted: auto-generated\r\n",
            "because",
            "hello[31m",
        ] {
            assert!(mail.contains(part), "{part}: {mail}");
        }
    }

    #[test]
    fn what_a_job_says_gets_into_no_header() {
        let evil = "x\r\nBcc: thief@evil.example\r\n\r\nhi\r\n.\r\nMAIL FROM:<x>";
        let mail = formatted(evil, evil);
        let (headers, _) = mail.split_once("\r\n\r\n").unwrap();
        assert!(!headers.contains("evil"), "{headers}");
    }
}
