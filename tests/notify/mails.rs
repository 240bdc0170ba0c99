//! Mails, by a real conversation with a server that has a certificate.

use crate::scene::Scene;
use crate::smtp::{Conversation, MailServer, Tls};

/// `me` and `p@ss`, as AUTH PLAIN has them.
const CREDENTIALS: &str = "AUTH PLAIN AG1lAHBAc3M=";

fn table(server: &str) -> String {
    format!(
        r#"
[notify.oncall]
email = {{ to = ["Operations <ops@shop.example>", "boss@shop.example"], from = "soloist@shop.example", smtp = "{server}" }}

[jobs.report]
schedule = "@manual"
shell = 'printf "Bcc: thief@evil.example\r\n\r\n.\r\nlast words\n"; exit 3'
notify = ["oncall"]
"#
    )
}

/// A job fails, and its mail comes.
fn mailed(tls: Tls, scheme: &str) -> Conversation {
    // The first try is refused for a while.
    let server = MailServer::start(tls, 1);
    let url = format!("{scheme}://me:p%40ss@localhost:{}", server.port());
    let scene = Scene::new(&table(&url));
    let mut replica = scene.fleet.start_with("a", |command| {
        command.env("SSL_CERT_FILE", server.certificate());
    });
    replica.wait_until_ready();
    scene.trigger("report");
    let told = server.mail();
    replica.drain();
    assert!(server.is_done());
    assert!(!replica.log().contains("p@ss"), "{}", replica.log());
    told
}

#[test]
fn a_mail_goes_by_starttls_and_nothing_is_said_before_that() {
    let told = mailed(Tls::WhenAsked, "smtp");
    assert_eq!(told.in_the_clear.len(), 2, "{told:#?}");
    assert_eq!(told.in_the_clear[1], "STARTTLS");
    assert!(
        told.by_tls.iter().any(|line| line == CREDENTIALS),
        "{told:#?}"
    );
}

#[test]
fn a_mail_goes_by_tls_from_the_start_and_says_what_failed() {
    let told = mailed(Tls::FromTheStart, "smtps");
    let said = |line: &str| told.by_tls.iter().any(|one| one == line);
    assert!(said(CREDENTIALS), "{told:#?}");
    assert!(said("MAIL FROM:<soloist@shop.example>"), "{told:#?}");
    assert!(said("RCPT TO:<ops@shop.example>"), "{told:#?}");
    assert!(said("RCPT TO:<boss@shop.example>"), "{told:#?}");
    assert!(
        !told
            .by_tls
            .iter()
            .any(|one| one.starts_with("RCPT") && one.contains("evil"))
    );
    let (headers, body) = told.mail.split_once("\r\n\r\n").expect("a mail");
    for header in [
        "Subject: [default] report failed with exit code 3",
        "From: soloist@shop.example",
        "Auto-Submitted: auto-generated",
    ] {
        assert!(headers.contains(header), "{header}: {headers}");
    }
    assert!(headers.contains("-failure@shop.example>"), "{headers}");
    assert!(!headers.contains("evil"), "{headers}");
    assert!(body.contains("last words"), "{body}");
}

#[test]
fn a_server_whose_certificate_nobody_signed_gets_no_mail() {
    let server = MailServer::start(Tls::WhenAsked, 0);
    let url = format!("smtp://me:p%40ss@localhost:{}", server.port());
    let scene = Scene::new(&table(&url));
    let [mut replica] = scene.fleet.start_ready(["a"]);
    scene.trigger("report");
    let line = replica.wait_for_line(&["could not notify [notify.oncall]", "certificate"]);
    assert!(!line.contains("p@ss"), "{line}");
    replica.kill9();
    assert!(server.is_done());
}

#[test]
fn a_mailbox_that_is_gone_keeps_no_mail_from_the_others() {
    let server = MailServer::start(Tls::WhenAsked, 0);
    let url = format!("smtp://localhost:{}?tls=none", server.port());
    let scene = Scene::new(&table(&url).replace("boss@", "gone@"));
    let [mut replica] = scene.fleet.start_ready(["a"]);
    scene.trigger("report");
    let told = server.mail();
    replica.wait_for_line(&["took a mail, but not for gone@shop.example", "550"]);
    replica.drain();
    assert!(server.is_done());
    let recipients: Vec<&String> = told
        .in_the_clear
        .iter()
        .filter(|line| line.starts_with("RCPT"))
        .collect();
    assert_eq!(recipients, ["RCPT TO:<ops@shop.example>"]);
    replica.wait_for_line(&["notifications until now", "delivered=1"]);
}
