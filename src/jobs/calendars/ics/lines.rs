//! The text of an iCalendar file as a tree of components (RFC 5545, 3.1 and 3.6).
//!
//! What was said, not what it means. It must never lose a line in silence: what is no property,
//! or ends what did not begin, is a fault.

use std::borrow::Cow;

/// How deep components are nested at most; the RFC knows two levels below the calendar.
const DEPTH_LIMIT: usize = 8;

/// What is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The line, from 1.
    pub(crate) line: usize,
    /// That line, with those folded into it.
    pub(crate) text: String,
    /// What is wrong, lower case, without a full stop.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) hint: String,
}

/// `BEGIN:NAME` to `END:NAME`.
#[derive(Debug)]
pub(super) struct Component<'t> {
    pub(super) name: String,
    pub(super) begin: Line<'t>,
    pub(super) properties: Vec<Property<'t>>,
    pub(super) children: Vec<Component<'t>>,
}

/// A line of content, unfolded.
#[derive(Clone, Debug)]
pub(super) struct Line<'t> {
    pub(super) number: usize,
    pub(super) text: Cow<'t, str>,
}

/// `NAME;PARAMETER=VALUE:VALUE`.
#[derive(Clone, Debug)]
pub(super) struct Property<'t> {
    /// In capitals.
    pub(super) name: String,
    parameters: Vec<(String, String)>,
    pub(super) value: String,
    line: Line<'t>,
}

impl Line<'_> {
    pub(super) fn fault(&self, message: impl Into<String>, hint: impl Into<String>) -> Fault {
        Fault {
            line: self.number,
            text: self.text.clone().into_owned(),
            message: message.into(),
            hint: hint.into(),
        }
    }
}

impl Component<'_> {
    /// The first property of that name.
    pub(super) fn get(&self, name: &str) -> Option<&Property<'_>> {
        self.all(name).next()
    }

    /// All properties of that name.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &Property<'_>> {
        let found = move |property: &&Property<'_>| property.name == name;
        self.properties.iter().filter(found)
    }

    /// The property of that name; a fault where there are two.
    pub(super) fn single(&self, name: &str) -> Result<Option<&Property<'_>>, Fault> {
        let mut all = self.all(name);
        let first = all.next();
        match all.next() {
            None => Ok(first),
            Some(second) => {
                let message = format!("this {} has a second {name}", self.name);
                Err(second.fault(message, "keep one of them"))
            }
        }
    }
}

impl Property<'_> {
    /// A parameter by its name, in capitals.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn fault(&self, message: impl Into<String>, hint: impl Into<String>) -> Fault {
        self.line.fault(message, hint)
    }
}

/// Reads a file into its calendars.
pub(super) fn components(bytes: &[u8]) -> Result<Vec<Component<'_>>, Fault> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut done = Vec::new();
    let mut open: Vec<Component<'_>> = Vec::new();
    let mut last = None;
    for line in unfolded(bytes) {
        let property = property(&line, open.is_empty())?;
        match (property.name.as_str(), open.last_mut()) {
            ("BEGIN", _) => {
                let name = property.value.trim().to_ascii_uppercase();
                if open.is_empty() && name != "VCALENDAR" {
                    return Err(not_a_calendar(&line));
                }
                if open.len() == DEPTH_LIMIT {
                    let hint = "export the calendar again: a VEVENT stands directly in a VCALENDAR";
                    return Err(line.fault("this is nested too deeply", hint));
                }
                open.push(Component {
                    name,
                    begin: line.clone(),
                    properties: Vec::new(),
                    children: Vec::new(),
                });
            }
            ("END", Some(inner)) if inner.name.eq_ignore_ascii_case(property.value.trim()) => {
                let ended = open.pop();
                let above = open.last_mut().map(|above| &mut above.children);
                above.unwrap_or(&mut done).extend(ended);
            }
            ("END", Some(inner)) => {
                let message = format!("this ends what is not open: `{}` is", inner.name);
                let hint = format!("a line `END:{}` is missing before it", inner.name);
                return Err(line.fault(message, hint));
            }
            (_, Some(inner)) => inner.properties.push(property),
            (_, None) => return Err(not_a_calendar(&line)),
        }
        last = Some(line);
    }
    match (open.pop(), last) {
        (Some(inner), _) => {
            let message = format!("the file ends within this {}", inner.name);
            let hint = "it was cut off, perhaps while it was being downloaded: get it again";
            Err(inner.begin.fault(message, hint))
        }
        (None, None) => Err(not_a_calendar(&Line {
            number: 1,
            text: "".into(),
        })),
        (None, Some(_)) => Ok(done),
    }
}

fn not_a_calendar(line: &Line<'_>) -> Fault {
    let hint = "a file begins with `BEGIN:VCALENDAR`; a page of a web site is not the calendar that it links to";
    line.fault("this is not iCalendar", hint)
}

/// The lines of content: one that begins with a space or a tab goes on from the one before, also
/// in the middle of a character.
fn unfolded(bytes: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let mut physical = bytes
        .split(|byte| *byte == b'\n')
        .zip(1..)
        .map(|(line, n)| {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            (line, n)
        });
    let mut ahead = physical.next();
    std::iter::from_fn(move || {
        while ahead.is_some_and(|(line, _)| line.is_empty()) {
            ahead = physical.next();
        }
        let (first, number) = ahead?;
        let mut whole = Cow::Borrowed(first);
        loop {
            ahead = physical.next();
            let rest = ahead.and_then(|(line, _)| line.split_first());
            match rest {
                Some((b' ' | b'\t', rest)) => whole.to_mut().extend_from_slice(rest),
                _ => break,
            }
        }
        // Texts for people may be in any encoding; what is read here is ASCII.
        let text = match whole {
            Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        };
        Some(Line { number, text })
    })
}

/// Splits a line at the first `:` and the `;` before it that are not in quotes.
fn property<'t>(line: &Line<'t>, outside: bool) -> Result<Property<'t>, Fault> {
    let mut parts = Vec::new();
    let mut quoted = false;
    let mut start = 0;
    let mut value = None;
    for (at, c) in line.text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            ';' | ':' if !quoted => {
                parts.push(&line.text[start..at]);
                start = at + 1;
                if c == ':' {
                    value = Some(&line.text[start..]);
                    break;
                }
            }
            _ => {}
        }
    }
    let is_name = |name: &&str| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    let mut parts = parts.into_iter();
    let (Some(name), Some(value)) = (parts.next().filter(is_name), value) else {
        if outside {
            return Err(not_a_calendar(line));
        }
        let hint =
            "a line is `NAME:value`; one that goes on from the line before begins with a space";
        return Err(line.fault("this line is no property", hint));
    };
    let parameters = parts.filter_map(|part| {
        let (name, value) = part.split_once('=')?;
        Some((name.to_ascii_uppercase(), value.trim_matches('"').into()))
    });
    Ok(Property {
        name: name.to_ascii_uppercase(),
        parameters: parameters.collect(),
        value: value.into(),
        line: line.clone(),
    })
}
