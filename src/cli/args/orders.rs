//! What `trigger`, `pause`, `resume` and `kill` take.
//!
//! Must never: say what it means; that is done by `orders`.

use std::time::Duration;

use crate::config::parse_duration;

/// The longest text for `--by`, in characters: it stands in the ledger and in tables.
const BY_LIMIT: usize = 100;

#[derive(clap::Args, Debug)]
pub(crate) struct TriggerArgs {
    /// The job.
    #[arg(value_name = "JOB")]
    pub(crate) job: String,
    #[command(flatten)]
    pub(crate) waiting: WaitingArgs,
    #[command(flatten)]
    pub(crate) asking: AskingArgs,
}

#[derive(clap::Args, Debug)]
pub(crate) struct KillArgs {
    /// The job.
    #[arg(value_name = "JOB")]
    pub(crate) job: String,
    #[command(flatten)]
    pub(crate) waiting: WaitingArgs,
    #[command(flatten)]
    pub(crate) asking: AskingArgs,
}

#[derive(clap::Args, Debug)]
pub(crate) struct PauseArgs {
    /// One job or several.
    #[arg(value_name = "JOB", required = true)]
    pub(crate) jobs: Vec<String>,
    #[command(flatten)]
    pub(crate) asking: AskingArgs,
}

#[derive(clap::Args, Debug)]
pub(crate) struct WaitingArgs {
    /// Wait until it is over, and say what happens. Ctrl-C stops the waiting, not the job.
    #[arg(long)]
    pub(crate) wait: bool,
    /// How long to wait at most, such as 10m [default: as long as it takes].
    #[arg(long, value_name = "T", requires = "wait", value_parser = read_timeout)]
    pub(crate) timeout: Option<Duration>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct AskingArgs {
    /// Who asks, for the ledger [default: USER@HOST].
    #[arg(long, value_name = "TEXT", value_parser = read_by)]
    pub(crate) by: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

fn read_timeout(text: &str) -> Result<Duration, String> {
    let read = parse_duration(text);
    read.map_err(|error| format!("it {}: {}", error.message, error.hint))
}

/// Whatever can be seen, on one line.
fn read_by(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("it is empty: name who asks, or leave it out".to_owned());
    }
    if text.chars().count() > BY_LIMIT {
        return Err(format!("it has more than {BY_LIMIT} characters"));
    }
    match text.chars().find(|c| !is_printable(*c)) {
        Some(c) => Err(format!("U+{:04X} can't be printed", u32::from(c))),
        None => Ok(text.to_owned()),
    }
}

/// No control character, and nothing that reorders or hides what stands around it.
pub(crate) fn is_printable(c: char) -> bool {
    let hidden = matches!(
        c,
        '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}'
    );
    !c.is_control() && !hidden
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_is_a_line_of_what_can_be_seen() {
        assert_eq!(read_by(" Zoë, on call ").as_deref(), Ok("Zoë, on call"));
        assert_eq!(read_by(&"ä".repeat(100)).as_deref(), Ok(&*"ä".repeat(100)));
        for (text, said) in [
            ("", "empty"),
            ("  ", "empty"),
            ("a\nb", "U+000A"),
            ("\u{1b}[31mroot", "U+001B"),
            ("eve\u{202e}ecila", "U+202E"),
            (&"x".repeat(101), "more than 100"),
        ] {
            let refused = read_by(text).unwrap_err();
            assert!(refused.contains(said), "{text:?}: {refused}");
        }
    }
}
