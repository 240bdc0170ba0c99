//! Opens the store that a URL names.
//!
//! Must never: connect. What can be wrong with a server or a file is said by
//! [`Store::ready`]; what is wrong with the URL is said here, without its secrets.

#[cfg(feature = "sqlite")]
use std::ffi::OsString;
#[cfg(feature = "sqlite")]
use std::fs::DirBuilder;
#[cfg(feature = "sqlite")]
use std::os::unix::fs::DirBuilderExt;
#[cfg(feature = "sqlite")]
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::engine::Part;
use super::memory::MemoryStore;
#[cfg(feature = "redis")]
use super::redis::RedisStore;
#[cfg(feature = "redis")]
use super::redis::quorum::QuorumStore;
#[cfg(feature = "sqlite")]
use super::sqlite::SqliteStore;
use super::{LeaseStore, Store, StoreError};
use crate::clock::{Clock, SystemClock};
use crate::scheduler::job::check_name;
#[cfg(feature = "redis")]
use crate::store_url::Several;
use crate::store_url::{self, RedisUrl, SeveralUrl, StoreOptions, redact};

/// The file of the embedded store, in a state directory.
#[cfg(feature = "sqlite")]
const FILE_NAME: &str = "soloist.db";

/// The store that `url` names; none: a file in the state directory. `namespace` keeps fleets
/// in one store apart. Nothing is connected or opened: see [`Store::ready`].
pub fn open(url: Option<&str>, namespace: &str) -> Result<Arc<dyn Store>, StoreError> {
    open_with(url, namespace, &StoreOptions::default())
}

/// The same, with what the URL leaves unsaid; a store without TLS takes no notice of that part.
pub fn open_with(
    url: Option<&str>,
    namespace: &str,
    options: &StoreOptions,
) -> Result<Arc<dyn Store>, StoreError> {
    open_at(Arc::new(SystemClock), url, namespace, options)
}

/// The same; where the store has no clock of its own, it goes by this one.
pub fn open_at(
    clock: Arc<dyn Clock>,
    url: Option<&str>,
    namespace: &str,
    options: &StoreOptions,
) -> Result<Arc<dyn Store>, StoreError> {
    Ok(
        match open_part(clock, url, namespace, options, Part::Jobs)? {
            #[cfg(feature = "sqlite")]
            Opened::File(store) => store,
            Opened::Memory(store) => store,
            #[cfg(feature = "redis")]
            Opened::Redis(store) => store,
            #[cfg(feature = "redis")]
            Opened::Quorum(store) => store,
        },
    )
}

/// The store of named leases there. Nothing is connected or opened.
///
/// # Errors
/// When the URL names no store, or the namespace can be none.
pub fn open_leases(
    url: Option<&str>,
    namespace: &str,
    options: &StoreOptions,
) -> Result<Arc<dyn LeaseStore>, StoreError> {
    let clock = Arc::new(SystemClock);
    Ok(
        match open_part(clock, url, namespace, options, Part::Leases)? {
            #[cfg(feature = "sqlite")]
            Opened::File(store) => store,
            Opened::Memory(store) => store,
            #[cfg(feature = "redis")]
            Opened::Redis(store) => store,
            #[cfg(feature = "redis")]
            Opened::Quorum(store) => store,
        },
    )
}

/// A store, whatever it is for.
enum Opened {
    #[cfg(feature = "sqlite")]
    File(Arc<SqliteStore>),
    Memory(Arc<MemoryStore>),
    #[cfg(feature = "redis")]
    Redis(Arc<RedisStore>),
    #[cfg(feature = "redis")]
    Quorum(Arc<QuorumStore>),
}

fn open_part(
    clock: Arc<dyn Clock>,
    url: Option<&str>,
    namespace: &str,
    options: &StoreOptions,
    part: Part,
) -> Result<Opened, StoreError> {
    let Some(url) = url else {
        return open_default(clock, namespace, part);
    };
    check_url(url).map_err(|(cause, cure)| bad_url(url, &cause, &cure))?;
    check_namespace(namespace, &redact(url))?;
    match url.split_once(':') {
        Some(("sqlite", path)) => open_sqlite(clock, url, path, namespace, part),
        Some(("memory", _)) => Ok(Opened::Memory(Arc::new(MemoryStore::new(clock)))),
        _ => open_redis(url, namespace, options, part),
    }
}

#[cfg(feature = "sqlite")]
fn open_default(clock: Arc<dyn Clock>, namespace: &str, part: Part) -> Result<Opened, StoreError> {
    let path = default_path(|name| std::env::var_os(name))?;
    check_namespace(namespace, "sqlite:")?;
    create_directory(&path)?;
    open_file(clock, &path, namespace, part)
}

#[cfg(not(feature = "sqlite"))]
fn open_default(_: Arc<dyn Clock>, _: &str, _: Part) -> Result<Opened, StoreError> {
    Err(absent("sqlite:"))
}

#[cfg(feature = "sqlite")]
fn open_sqlite(
    clock: Arc<dyn Clock>,
    url: &str,
    path: &str,
    namespace: &str,
    part: Part,
) -> Result<Opened, StoreError> {
    open_file(clock, &sqlite_path(url, path)?, namespace, part)
}

#[cfg(feature = "sqlite")]
fn open_file(
    clock: Arc<dyn Clock>,
    path: &Path,
    namespace: &str,
    part: Part,
) -> Result<Opened, StoreError> {
    let namespace = match part {
        Part::Jobs => namespace.to_owned(),
        // No namespace has a colon.
        Part::Leases => format!("{namespace}:leases"),
    };
    let store = SqliteStore::open(path, &namespace, clock)?;
    Ok(Opened::File(Arc::new(store)))
}

#[cfg(not(feature = "sqlite"))]
fn open_sqlite(
    _: Arc<dyn Clock>,
    url: &str,
    _: &str,
    _: &str,
    _: Part,
) -> Result<Opened, StoreError> {
    Err(absent(url))
}

#[cfg(feature = "redis")]
fn open_redis(
    url: &str,
    namespace: &str,
    options: &StoreOptions,
    part: Part,
) -> Result<Opened, StoreError> {
    if SeveralUrl::parse(url).is_ok_and(|url| url.kind == Several::Quorum) {
        let store = QuorumStore::open_part(url, namespace, options, part)?;
        return Ok(Opened::Quorum(Arc::new(store)));
    }
    let store = RedisStore::open_part(url, namespace, options, part)?;
    Ok(Opened::Redis(Arc::new(store)))
}

#[cfg(not(feature = "redis"))]
fn open_redis(url: &str, _: &str, _: &StoreOptions, _: Part) -> Result<Opened, StoreError> {
    Err(absent(url))
}

/// What is refused to whoever built this without the store.
#[cfg(not(all(feature = "redis", feature = "sqlite")))]
fn absent(url: &str) -> StoreError {
    match check_url(url) {
        Err((cause, cure)) => bad_url(url, &cause, &cure),
        Ok(()) => unreachable!("a store that is not there passes no check"),
    }
}

fn check_namespace(namespace: &str, place: &str) -> Result<(), StoreError> {
    check_name(namespace).map_err(|error| StoreError::Refused {
        place: place.to_owned(),
        cause: format!("the namespace `{namespace}` can't be used: {error}"),
        cure: "choose another namespace".to_owned(),
    })
}

/// Whether a URL names a store that this program can open; if not, why, and what to do. Without
/// any secret.
pub fn check_url(url: &str) -> Result<(), (String, String)> {
    store_url::check(url).map_err(|error| (error.to_string(), error.hint()))?;
    let without = |feature: &str| {
        let cure = format!("switch the feature `{feature}` of the crate `soloist` on");
        Err(("this program was built without it".to_owned(), cure))
    };
    match url.split_once(':') {
        Some(("sqlite", _)) if !cfg!(feature = "sqlite") => without("sqlite"),
        Some(("sqlite", path)) => file_path(path)
            .map(|_| ())
            .map_err(|(cause, cure)| (cause.to_owned(), cure.to_owned())),
        Some(("memory", "")) => Ok(()),
        Some(("memory", _)) => Err((
            "`memory:` takes nothing after it".to_owned(),
            "leave that out".to_owned(),
        )),
        _ if !RedisUrl::is_one(url) && !SeveralUrl::is_one(url) => {
            let cause = "it is none as it is written";
            let cure =
                "a store is `sqlite:PATH`, `memory:` or `redis://HOST:PORT`, and nothing else";
            Err((cause.to_owned(), cure.to_owned()))
        }
        _ if !cfg!(feature = "redis") => without("redis"),
        Some((scheme, _))
            if !cfg!(feature = "tls") && scheme.to_ascii_lowercase().starts_with("rediss") =>
        {
            without("tls")
        }
        _ => Ok(()),
    }
}

fn bad_url(url: &str, cause: &str, cure: &str) -> StoreError {
    StoreError::BadUrl {
        url: redact(url),
        cause: format!("{cause}; {cure}"),
    }
}

/// The path in `sqlite:PATH`; `sqlite:///PATH` is what other tools call an absolute one. If it can be
/// none, why, and what to do.
fn file_path(path: &str) -> Result<&str, (&'static str, &'static str)> {
    let path = match path.strip_prefix("//") {
        Some(rest) if rest.starts_with('/') => rest,
        Some(_) => {
            return Err((
                "`//` is followed by a host, and a file has none",
                "write `sqlite:PATH`",
            ));
        }
        None => path,
    };
    Err(match path {
        "" => ("it names no file", "write `sqlite:PATH`"),
        ":memory:" => (
            "no file is meant",
            "the store of one process that keeps nothing is `memory:`",
        ),
        path if path.contains('?') => ("a file takes no options after `?`", "leave them out"),
        path if path.contains('\0') => ("a path holds no NUL", "leave it out"),
        path if path.starts_with('~') => ("`~` means nothing here", "write the path in full"),
        path => return Ok(path),
    })
}

#[cfg(feature = "sqlite")]
/// The path of a file that a URL names.
pub(super) fn sqlite_path(url: &str, path: &str) -> Result<PathBuf, StoreError> {
    match file_path(path) {
        Ok(path) => Ok(PathBuf::from(path)),
        Err((cause, cure)) => Err(bad_url(url, cause, cure)),
    }
}

#[cfg(feature = "sqlite")]
/// `$STATE_DIRECTORY` (systemd.exec(5); the first of them), else the user's state directory
/// (XDG Base Directory Specification).
pub(super) fn default_path(
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<PathBuf, StoreError> {
    let directory = |name: &str| {
        variable(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    if let Some(list) = variable("STATE_DIRECTORY")
        && let Some(first) = std::env::split_paths(&list).next()
        && first.is_absolute()
    {
        return Ok(first.join(FILE_NAME));
    }
    if let Some(state) = directory("XDG_STATE_HOME") {
        return Ok(state.join("soloist").join(FILE_NAME));
    }
    if let Some(home) = directory("HOME") {
        return Ok(home.join(".local/state/soloist").join(FILE_NAME));
    }
    Err(StoreError::Refused {
        place: "sqlite:".to_owned(),
        cause: "there is no default path: none of STATE_DIRECTORY, XDG_STATE_HOME and HOME is set"
            .to_owned(),
        cure: "name one, such as `store = \"sqlite:/var/lib/soloist/soloist.db\"`".to_owned(),
    })
}

#[cfg(feature = "sqlite")]
/// Makes the directory of the default path, for its owner alone, as the XDG specification has
/// it. Directories that somebody named are theirs to make: a wrong path is not a new store.
pub(super) fn create_directory(path: &Path) -> Result<(), StoreError> {
    let Some(directory) = path.parent() else {
        return Ok(());
    };
    let made = DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory);
    made.map_err(|error| StoreError::Refused {
        place: format!("sqlite:{}", path.display()),
        cause: format!(
            "the directory {} can't be made: {error}",
            directory.display()
        ),
        cure: "make it, or name another path with `store = \"sqlite:PATH\"`".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(url: &str) -> String {
        match open(Some(url), "shop") {
            Ok(store) => panic!("{url} opened {}", store.place()),
            Err(error) => error.to_string(),
        }
    }

    fn default_in(variables: &[(&str, &str)]) -> Option<String> {
        let path = default_path(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        });
        path.ok().map(|path| path.display().to_string())
    }

    #[test]
    fn the_default_file_lies_in_the_first_state_directory_there_is() {
        let home = ("HOME", "/home/ann");
        let xdg = ("XDG_STATE_HOME", "/state");
        let systemd = ("STATE_DIRECTORY", "/var/lib/a:/var/lib/b");
        let cases: [(&[_], Option<&str>); 6] = [
            (&[home, xdg, systemd], Some("/var/lib/a/soloist.db")),
            (&[home, xdg], Some("/state/soloist/soloist.db")),
            (&[home], Some("/home/ann/.local/state/soloist/soloist.db")),
            // Relative paths are to be ignored (XDG Base Directory Specification).
            (
                &[home, ("XDG_STATE_HOME", "state")],
                Some("/home/ann/.local/state/soloist/soloist.db"),
            ),
            (
                &[("STATE_DIRECTORY", ""), xdg],
                Some("/state/soloist/soloist.db"),
            ),
            (&[], None),
        ];
        for (variables, path) in cases {
            assert_eq!(default_in(variables).as_deref(), path, "{variables:?}");
        }
    }

    #[test]
    fn a_path_after_sqlite_is_taken_as_it_is_written() {
        for (url, path) in [
            ("sqlite:/var/lib/x.db", "/var/lib/x.db"),
            ("sqlite:///var/lib/x.db", "/var/lib/x.db"),
            ("sqlite:a b%20c.db", "a b%20c.db"),
        ] {
            let rest = &url["sqlite:".len()..];
            assert_eq!(sqlite_path(url, rest).ok(), Some(PathBuf::from(path)));
        }
    }

    #[test]
    fn what_is_no_store_is_refused_with_a_hint_and_without_its_secrets() {
        for (url, hint) in [
            ("sqlite:", "names no file"),
            ("sqlite::memory:", "`memory:`"),
            ("sqlite://host/x.db", "a file has none"),
            ("sqlite:x.db?mode=ro", "no options"),
            ("sqlite:~/x.db", "in full"),
            ("memory:x", "nothing after it"),
            (
                "postgres://ann:hunter2@db/x?password=hunter2",
                "not supported yet",
            ),
            ("rediss://:hunter2@h#insecure", "can't be switched off"),
            ("/var/lib/x.db", "`sqlite:PATH`"),
            ("ann:hunter2@h:6379", "`redis://USER:PASSWORD@HOST:PORT"),
            ("redis://hunter2@h", "`redis://:PASSWORD@HOST`"),
            ("", "`sqlite:PATH`"),
        ] {
            let said = refusal(url);
            assert!(said.contains(hint), "{url}: {said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
    }

    #[test]
    fn a_mistyped_url_is_refused_with_what_may_be_shown_of_it() {
        for (url, shown) in store_url::REFUSED {
            let Err(error) = open(Some(url), "shop") else {
                panic!("{url} is a store");
            };
            let told = format!("{error} {error:?}");
            assert!(told.contains(shown), "{url}: {told}");
            assert!(!told.contains("s3cret"), "{url}: {told}");
        }
    }

    #[test]
    fn a_namespace_that_can_not_be_part_of_a_key_is_refused() {
        for namespace in ["", "a:b", "../x", "a b"] {
            let Err(error) = open(Some("memory:"), namespace) else {
                panic!("{namespace:?} was taken");
            };
            assert!(error.to_string().contains("namespace"), "{error}");
        }
    }
}
