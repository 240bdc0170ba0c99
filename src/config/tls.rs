//! The keys of `[scheduler]` for TLS to the store.
//!
//! Must never: read the files, which may lie on the replicas alone, where a table is checked
//! elsewhere; or offer a way not to verify.

use std::path::{Path, PathBuf};

use super::raw::{Entry, Section};
use super::read::{Reader, Text};
use crate::store_url::{RedisUrl, SeveralUrl, TlsFiles};

/// Reads them. `store` is the URL beside them, if there is one and it is right; files are looked
/// for beside the table at `path`.
pub(super) fn read(
    reader: &mut Reader<'_>,
    section: &Section<'_>,
    store: Option<&str>,
    path: &str,
) -> TlsFiles {
    let beside = Path::new(path).parent().unwrap_or(Path::new(""));
    let mut file = |name: &str| -> Option<PathBuf> {
        let text = read_text(reader, section.get(name)?)?;
        Some(beside.join(text.value))
    };
    let mut files = TlsFiles {
        ca: file("tls_ca"),
        cert: file("tls_cert"),
        key: file("tls_key"),
        server_name: None,
    };
    if let Some(entry) = section.get("tls_server_name") {
        files.server_name = read_text(reader, entry).map(|text| text.value);
    }
    for (name, other) in [("tls_cert", "tls_key"), ("tls_key", "tls_cert")] {
        if let (Some(entry), None) = (section.get(name), section.get(other)) {
            let message = format!("`{name}` stands without `{other}`");
            let hint = "a certificate of the client takes both: `tls_cert` and the private key to it, `tls_key`";
            reader.error(&entry.key_span, message, hint);
        }
    }
    refuse_without_tls(reader, section, store);
    files
}

/// A store that is named on the command line alone may be any.
fn refuse_without_tls(reader: &mut Reader<'_>, section: &Section<'_>, store: Option<&str>) {
    let Some(store) = store else { return };
    let one = RedisUrl::parse(store).is_ok_and(|url| RedisUrl::is_one(store) && url.tls);
    let several = SeveralUrl::is_one(store) && SeveralUrl::parse(store).is_ok_and(|url| url.tls);
    if one || several {
        return;
    }
    for name in ["tls_ca", "tls_cert", "tls_key", "tls_server_name"] {
        if let Some(entry) = section.get(name) {
            let message = format!("`{name}` has no effect: the store is reached without TLS");
            let hint = "write `rediss://` in `store`, or leave it out";
            reader.error(&entry.key_span, message, hint);
        }
    }
}

fn read_text(reader: &mut Reader<'_>, entry: &Entry<'_>) -> Option<Text> {
    let text = reader.full_text(entry)?;
    let text = reader.fill(text)?;
    if text.value.is_empty() {
        let message = format!("`{}` is empty", entry.key.name);
        let hint = format!("for example `{}`", entry.key.example);
        reader.error(&text.span, message, hint);
        return None;
    }
    Some(text)
}
