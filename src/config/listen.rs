//! `listen`: where health, metrics and the API are served.
//!
//! Must never: look a name up, which would make of one table another on each host.

use std::net::SocketAddr;
use std::path::Path;

use super::file::read_regular;
use super::raw::{self, Role};
use super::read::Reader;
use super::scheduler::read_listen;
use super::{Host, Strictness, syntax};

/// Where a replica with the table at `path` listens, read without its jobs and the files that it
/// includes: none where the table can't be read, is no TOML, or doesn't say.
pub(crate) fn listen_of(path: &Path) -> Option<Option<SocketAddr>> {
    let source = read_regular(path)?;
    listen_in(&source, &Host::here(&|_, _| Ok(())))
}

fn listen_in(source: &str, host: &Host<'_>) -> Option<Option<SocketAddr>> {
    let mut reader = Reader::new(host, Strictness::Look);
    let file = reader.map.add("jobs.toml".into(), source.into());
    let table = syntax::parse(&file, &mut reader.problems, &mut reader.secrets);
    // What is wrong elsewhere is no matter here.
    let document = raw::sort(&table, Role::Main, &mut Default::default());
    let listen = read_listen(&mut reader, document.scheduler.get("listen")?);
    (!reader.problems.has_errors()).then_some(listen)
}

/// Reads an address; none for `off`. If it is none, message and hint.
pub(crate) fn parse_listen(text: &str) -> Result<Option<SocketAddr>, (String, String)> {
    if text == "off" {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        let hint = match text.rsplit_once(':') {
            Some(("", port)) if is_port(port) => {
                format!("write `127.0.0.1:{port}` for this host alone, or `0.0.0.0:{port}`")
            }
            Some(("localhost", port)) if is_port(port) => format!("write `127.0.0.1:{port}`"),
            _ if is_port(text) => format!("write `127.0.0.1:{text}` for this host alone"),
            _ if text.parse::<std::net::IpAddr>().is_ok() => {
                "the port is missing: for example `127.0.0.1:7373`, or `[::1]:7373`".to_owned()
            }
            _ => "write an IP address and a port, `127.0.0.1:7373` or `[::1]:7373`, or `off`"
                .to_owned(),
        };
        (format!("`{text}` is no address to listen on"), hint)
    })
}

fn is_port(text: &str) -> bool {
    text.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_an_ip_and_a_port_or_off() {
        assert_eq!(parse_listen("off"), Ok(None));
        for text in ["127.0.0.1:7373", "[::1]:0", "0.0.0.0:80"] {
            assert_eq!(parse_listen(text), Ok(Some(text.parse().unwrap())));
        }
    }

    #[test]
    fn a_table_says_where_its_replica_listens_whatever_is_wrong_with_its_jobs() {
        let address = Some("127.0.0.1:7400".parse().unwrap());
        for (table, listen) in [
            ("listen = \"127.0.0.1:7400\"\n", Some(address)),
            ("listen = \"off\"\n", Some(None)),
            ("listen = \"127.0.0.1:${PORT}\"\n", Some(address)),
            (
                "listen = \"127.0.0.1:7400\"\n[jobs.a]\nx = 5\n",
                Some(address),
            ),
            ("", None),
            ("listen = 7400\n", None),
            ("listen = \"7400\"\n", None),
            ("listen = \"127.0.0.1:${NOWHERE}\"\n", None),
            ("listen = \"127.0.0.1:7400\"\n[jobs.a\n", None),
        ] {
            let table = format!("[scheduler]\n{table}");
            let host = Host {
                env: &|name| (name == "PORT").then(|| "7400".to_owned()),
                ..Host::here(&|_, _| Ok(()))
            };
            assert_eq!(listen_in(&table, &host), listen, "{table}");
        }
    }

    #[test]
    fn what_was_probably_meant_is_told() {
        for (text, hint) in [
            (":7373", "`127.0.0.1:7373` for this host"),
            ("7373", "`127.0.0.1:7373`"),
            ("localhost:7373", "`127.0.0.1:7373`"),
            ("::1", "the port is missing"),
            ("127.0.0.1", "the port is missing"),
            ("on", "or `off`"),
            ("", "or `off`"),
            ("127.0.0.1:77777", "an IP address and a port"),
        ] {
            let (message, told) = parse_listen(text).unwrap_err();
            assert!(told.contains(hint), "{text}: {told}");
            assert!(message.contains("is no address"), "{message}");
        }
    }
}
