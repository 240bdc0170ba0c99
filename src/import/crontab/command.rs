//! A command as cron hands it to its shell: what `%` does to it.
//!
//! The first `%` ends the command; what follows is its input, in which `%` is a newline. A
//! backslash takes the meaning from a `%`, and stays before anything else (`do_command.c` of
//! Vixie cron, which goes about it differently in the two parts, and so does this).

/// The name that marks the end of the input, unless a line of it is just that.
const END: &str = "EOF";

/// A command and its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) text: String,
    /// Ends with a newline, unless it is empty.
    pub(super) input: Option<String>,
}

/// Reads the end of an entry.
pub(super) fn read(text: &str) -> Command {
    let mut command = String::new();
    let mut rest = text.chars();
    let mut escaped = false;
    while let Some(c) = rest.next() {
        if escaped {
            if c == '%' {
                command.pop();
            }
            command.push(c);
            escaped = false;
        } else if c == '%' {
            return Command {
                text: command,
                input: Some(input(rest.as_str())),
            };
        } else {
            escaped = c == '\\';
            command.push(c);
        }
    }
    Command {
        text: command,
        input: None,
    }
}

fn input(text: &str) -> String {
    let mut input = String::new();
    let mut escaped = false;
    for c in text.chars() {
        let c = match (escaped, c) {
            (true, '%') => '%',
            (true, other) => {
                input.push('\\');
                other
            }
            (false, '%') => '\n',
            (false, other) => other,
        };
        escaped = c == '\\';
        if !escaped {
            input.push(c);
        }
    }
    if escaped {
        input.push('\\');
    }
    if !input.is_empty() && !input.ends_with('\n') {
        input.push('\n');
    }
    input
}

impl Command {
    /// A script that gives the command its input; for shells of the family of sh.
    pub(super) fn script(&self) -> String {
        let Some(input) = self.input.as_ref().filter(|input| !input.is_empty()) else {
            return self.text.clone();
        };
        let mut end = END.to_owned();
        while input.lines().any(|line| line == end) {
            end.push('_');
        }
        // On lines of their own the braces hold whatever the command ends with.
        format!("{{\n{}\n}} <<'{end}'\n{input}{end}\n", self.text)
    }

    /// Whether it asks for something to go on in the background.
    pub(super) fn leaves_something_behind(&self) -> bool {
        let text = self.text.trim_end();
        text.ends_with('&') && !text.ends_with("&&")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percent_sign_ends_the_command_unless_it_is_escaped() {
        for (text, command, input) in [
            ("x", "x", None),
            (r"date +\%Y-\%m", "date +%Y-%m", None),
            (
                "mail ops%Hi,%%it works%",
                "mail ops",
                Some("Hi,\n\nit works\n"),
            ),
            ("x%", "x", Some("")),
            ("x%a", "x", Some("a\n")),
            (r"x%50\% \a", "x", Some("50% \\a\n")),
            (r"x%a\", "x", Some("a\\\n")),
            (r"x\\%y", r"x\\", Some("y\n")),
            (r"x\", r"x\", None),
        ] {
            let expected = Command {
                text: command.into(),
                input: input.map(str::to_owned),
            };
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn the_input_goes_to_the_whole_command() {
        let output = |text: &str| {
            let script = read(text).script();
            let output = std::process::Command::new("sh")
                .args(["-c", &script])
                .output();
            String::from_utf8(output.expect("a shell").stdout).expect("UTF-8")
        };
        assert_eq!(output("cat%$HOME%EOF%`x`"), "$HOME\nEOF\n`x`\n");
        assert_eq!(output("read a; read b; echo $b # why%1%2"), "2\n");
        assert_eq!(output("cat | tr a b%aa"), "bb\n");
        assert_eq!(output(r"echo 5\% \\"), "5% \\\n");
    }
}
