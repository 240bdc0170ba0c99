//! The file with the API's tokens: `ROLE NAME TOKEN` a line, or `ROLE NAME sha256:HEX` where the
//! file itself is not to hold what lets people in.
//!
//! Tokens are compared by their digests, in constant time, and with all of them: how long it takes
//! tells nothing of how much was right, or of whose.
//!
//! Must never: hold a token, or show what stands in the file.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use subtle::{ConditionallySelectable as _, ConstantTimeEq as _};
use tokio::sync::watch;
use tracing::{error, info};

use crate::clock::Clock;
use crate::config::Config;
use crate::health::{Health, Refusal};
use crate::scheduler::job::check_name;

/// The shortest token: 32 characters of base64 are 192 bits.
const TOKEN_LENGTH: std::ops::RangeInclusive<usize> = 32..=512;

/// More tokens than this are no list of people and programs.
const TOKENS_LIMIT: usize = 1000;

/// And no file of them is larger.
const FILE_LIMIT: u64 = 1 << 20;

/// Anybody on the host.
const OTHERS: u32 = 0o007;

const ROLES: &str = "a line is `read NAME TOKEN` or `operator NAME TOKEN`";

type Digest = [u8; SHA256_OUTPUT_LEN];

/// What a token lets do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Look at everything.
    Read,
    /// And change it.
    Operator,
}

/// Whose token it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) name: String,
    pub(super) role: Role,
    digest: Digest,
}

/// Tokens, by their digests.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Tokens(Vec<Holder>);

/// Why a file with tokens can't be used.
#[derive(Debug, thiserror::Error)]
#[error("the tokens in `{}` can't be used: {cause}; {cure}", path.display())]
pub(crate) struct TokenFileError {
    path: PathBuf,
    cause: String,
    cure: String,
    /// It is not there for whoever tried to read it; for another, or elsewhere, it may be.
    is_out_of_reach: bool,
}

impl TokenFileError {
    /// What is wrong, and what to do about it.
    pub(crate) fn told(&self) -> (String, &str) {
        let Self {
            path, cause, cure, ..
        } = self;
        let message = format!("the tokens in `{}` can't be used: {cause}", path.display());
        (message, cure)
    }

    /// Whether the file could not be read at all, which may be otherwise for the daemon.
    pub(crate) fn is_out_of_reach(&self) -> bool {
        self.is_out_of_reach
    }
}

impl Tokens {
    /// Reads a file.
    pub(super) fn read(path: &Path) -> Result<Self, TokenFileError> {
        let refused = |cause: String, cure: &str| TokenFileError {
            path: path.to_owned(),
            cause,
            cure: cure.to_owned(),
            is_out_of_reach: false,
        };
        let failed = |cause: std::io::Error| TokenFileError {
            is_out_of_reach: true,
            ..refused(
                cause.to_string(),
                "the file must be there and readable for soloist",
            )
        };
        let regular = |file: &std::fs::Metadata| match file.is_file() {
            true => Ok(()),
            false => Err(refused("it is no regular file".to_owned(), "name a file")),
        };
        // Before it is opened: that would wait at a pipe.
        regular(&std::fs::metadata(path).map_err(failed)?)?;
        let file = File::open(path).map_err(failed)?;
        let found = file.metadata().map_err(failed)?;
        regular(&found)?;
        if found.mode() & OTHERS != 0 {
            let mode = found.mode() & 0o777;
            let cure = "have owner and group alone read it: `chmod 640`, in Kubernetes `defaultMode: 0440` of the volume";
            return Err(refused(
                format!("anybody on the host may use the file (mode {mode:04o})"),
                cure,
            ));
        }
        let mut text = String::new();
        file.take(FILE_LIMIT + 1)
            .read_to_string(&mut text)
            .map_err(|cause| match cause.kind() {
                ErrorKind::InvalidData => refused("it is not UTF-8".to_owned(), ROLES),
                _ => failed(cause),
            })?;
        if text.len() as u64 > FILE_LIMIT {
            return Err(refused("it is larger than 1 MiB".to_owned(), ROLES));
        }
        Self::parse(&text).map_err(|(line, cause)| refused(format!("line {line}: {cause}"), ROLES))
    }

    /// Reads a text; what is wrong is told with its line, and without what stands there.
    pub(super) fn parse(text: &str) -> Result<Self, (usize, &'static str)> {
        let mut tokens = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let holder = parse_line(line).map_err(|cause| (number, cause))?;
            if tokens
                .iter()
                .any(|other: &Holder| other.name == holder.name)
            {
                return Err((number, "this name stands in an earlier line"));
            }
            if tokens.iter().any(|other| other.digest == holder.digest) {
                return Err((number, "this token stands in an earlier line"));
            }
            if tokens.len() == TOKENS_LIMIT {
                return Err((number, "there are more than 1000 tokens"));
            }
            tokens.push(holder);
        }
        Ok(Self(tokens))
    }

    /// Whose a token is.
    pub(super) fn find(&self, token: &str) -> Option<&Holder> {
        let presented = digest_of(token);
        let mut place = u32::MAX;
        for (holder, number) in self.0.iter().zip(0..) {
            let equal = holder.digest.ct_eq(&presented);
            place.conditional_assign(&number, equal);
        }
        self.0.get(usize::try_from(place).ok()?)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn digest_of(token: &str) -> Digest {
    let mut bytes = Digest::default();
    bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    bytes
}

fn parse_line(line: &str) -> Result<Holder, &'static str> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [role, name, token] = words[..] else {
        return Err("it has not three words");
    };
    let role = match role {
        "read" => Role::Read,
        "operator" => Role::Operator,
        _ => return Err("its first word is no role"),
    };
    check_name(name)
        .map_err(|_| "its second word is no name of letters, digits, `.`, `_` and `-`")?;
    let digest = match token.strip_prefix("sha256:") {
        Some(hex) => parse_digest(hex).ok_or("after `sha256:` come 64 hexadecimal digits")?,
        None if !TOKEN_LENGTH.contains(&token.len()) => {
            return Err("a token has 32 to 512 characters, for example `openssl rand -hex 32`");
        }
        None if !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
            return Err("a token has letters, digits and signs of ASCII");
        }
        None => digest_of(token),
    };
    let name = name.to_owned();
    Ok(Holder { name, role, digest })
}

fn parse_digest(hex: &str) -> Option<Digest> {
    if hex.len() != 2 * SHA256_OUTPUT_LEN || !hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = Digest::default();
    for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// Reads the file anew whenever the table was, for as long as anybody asks for tokens. One that
/// can't be read leaves them as they are.
pub(super) struct Keeper {
    pub(super) tokens: watch::Sender<Arc<Tokens>>,
    /// Where they were read from.
    pub(super) file: Option<PathBuf>,
    pub(super) config: watch::Receiver<Arc<Config>>,
    pub(super) health: watch::Sender<Health>,
    pub(super) clock: Arc<dyn Clock>,
}

impl Keeper {
    pub(super) async fn run(mut self) {
        let mut health = self.health.subscribe();
        let mut reloads = health.borrow_and_update().table.reloads;
        loop {
            tokio::select! {
                changed = self.config.changed() => if changed.is_err() { return },
                changed = health.changed() => if changed.is_err() { return },
                () = self.tokens.closed() => return,
            }
            let named = self.config.borrow_and_update().scheduler.api_tokens.clone();
            let now = health.borrow_and_update().table.reloads;
            if now == reloads && named == self.file {
                continue;
            }
            reloads = now;
            let read = match named.clone() {
                None => Ok(Tokens::default()),
                // A file system may be slow.
                Some(path) => {
                    match tokio::task::spawn_blocking(move || Tokens::read(&path)).await {
                        Ok(read) => read,
                        Err(_) => return,
                    }
                }
            };
            self.file = named;
            self.tell(read.map(|read| take(&self.tokens, read)));
        }
    }

    /// Says in log and health what came of it.
    fn tell(&self, read: Result<(), TokenFileError>) {
        let refused = read.err().map(|cause| {
            error!("{cause}; those that were read before stay in force");
            Refusal {
                at: self.clock.wall(),
                cause: cause.to_string(),
            }
        });
        self.health.send_if_modified(|health| {
            let differs = health.tokens_refused != refused;
            health.tokens_refused = refused;
            differs
        });
    }
}

fn take(tokens: &watch::Sender<Arc<Tokens>>, read: Tokens) {
    let count = read.0.len();
    let changed = tokens.send_if_modified(|former| {
        let differs = **former != read;
        *former = Arc::new(read);
        differs
    });
    if changed {
        info!(tokens = count, "the API's tokens were read anew");
    }
}

#[cfg(test)]
mod tests;
