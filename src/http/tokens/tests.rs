//! What a file with tokens may hold, who may read it, and whose a token is.

use std::os::unix::fs::PermissionsExt as _;

use super::*;

const READER: &str = "reader-0123456789abcdef0123456789abcdef";
const OPERATOR: &str = "operator-0123456789abcdef0123456789abcdef";

/// The digest of [`OPERATOR`], as sha256sum(1) has it.
fn operator_by_digest() -> String {
    let hex: Vec<String> = digest_of(OPERATOR)
        .iter()
        .map(|byte| format!("{byte:02X}"))
        .collect();
    format!("operator deploy sha256:{}", hex.concat())
}

#[test]
fn a_token_is_found_by_itself_alone_whether_the_file_has_it_or_its_digest() {
    let text = format!(
        "# who may ask\n\nread grafana {READER}\n  {}  # not a comment\n",
        operator_by_digest()
    );
    assert!(matches!(
        Tokens::parse(&text),
        Err((4, "it has not three words"))
    ));
    let text = format!(
        "# who may ask\n\nread grafana {READER}\n  {}\n",
        operator_by_digest()
    );
    let tokens = Tokens::parse(&text).unwrap();
    let found = |token: &str| tokens.find(token).map(|one| (one.name.as_str(), one.role));
    assert_eq!(found(READER), Some(("grafana", Role::Read)));
    assert_eq!(found(OPERATOR), Some(("deploy", Role::Operator)));
    for wrong in [
        "",
        "x",
        &READER[1..],
        &format!("{READER} "),
        &operator_by_digest()[16..],
    ] {
        assert_eq!(found(wrong), None, "{wrong}");
    }
    assert_eq!(Tokens::default().find(READER), None);
}

#[test]
fn what_is_wrong_is_told_by_line_and_never_shown() {
    let short = "S3CRET-0123456789";
    for (text, line, cause) in [
        (format!("read a {short}"), 1, "32 to 512 characters"),
        (format!("\nadmin a {READER}"), 2, "no role"),
        (format!("read {READER}"), 1, "three words"),
        (format!("read ä {READER}"), 1, "no name"),
        (format!("read a {READER}ö"), 1, "ASCII"),
        ("read a sha256:12".to_owned(), 1, "64 hexadecimal"),
        (
            format!("read a sha256:{}", "é".repeat(32)),
            1,
            "64 hexadecimal",
        ),
        (
            format!("read a {READER}\nread a {OPERATOR}"),
            2,
            "this name",
        ),
        (format!("read a {READER}\nread b {READER}"), 2, "this token"),
    ] {
        let (at, told) = Tokens::parse(&text).map(|_| ()).unwrap_err();
        assert_eq!(at, line, "{text}");
        assert!(told.contains(cause), "{text}: {told}");
        assert!(!told.contains(READER) && !told.contains(short), "{told}");
    }
}

#[test]
fn a_file_that_anybody_may_read_or_that_is_none_is_refused_with_its_cure() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokens");
    std::fs::write(&path, format!("read grafana {READER}\n")).unwrap();
    let mode = |mode| {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        Tokens::read(&path).map(|tokens| tokens.find(READER).is_some())
    };
    for private in [0o600, 0o640, 0o440] {
        assert!(mode(private).unwrap(), "{private:o}");
    }
    for open in [0o644, 0o604, 0o602, 0o601] {
        let told = mode(open).unwrap_err().to_string();
        assert!(
            told.contains("chmod 640") && told.contains("/tokens"),
            "{told}"
        );
        assert!(!told.contains(READER), "{told}");
    }
    for none in [
        dir.path(),
        &dir.path().join("missing"),
        Path::new("/dev/null"),
    ] {
        let told = Tokens::read(none).map(|_| ()).unwrap_err().to_string();
        assert!(told.contains("can't be used"), "{told}");
    }
}
