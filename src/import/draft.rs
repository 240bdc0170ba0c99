//! A job as it is to be written: keys and values, before anybody knows whether they are right.
//!
//! Must never: decide what a key means; that is `config`'s.

/// One thing that a text holds.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// A job.
    Job(Box<Draft>),
    /// What can't be carried over.
    Refused(Refused),
}

/// What can't be carried over, and why.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    /// Where it stands: `line 7`.
    pub(super) place: String,
    pub(super) reason: String,
    /// As it stands, for a comment.
    pub(super) source: Vec<String>,
}

/// A job to be written.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    /// Where it stands: `line 7`.
    pub(super) place: String,
    /// As it stands, for a comment should it be refused.
    pub(super) source: Vec<String>,
    /// The name that it would like to have.
    pub(super) name: String,
    /// In the order of writing; `env` stands apart.
    pub(super) keys: Vec<(&'static str, Value)>,
    /// As the table spells them: with references, and with what only looks like one escaped.
    pub(super) env: Vec<(String, String)>,
    /// What is different in this job.
    pub(super) differences: Vec<String>,
}

/// A value of jobs.toml.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    Texts(Vec<String>),
    Integer(u64),
    Boolean(bool),
    Table(Vec<(&'static str, Value)>),
}

impl Draft {
    pub(super) fn new(place: String, name: String, source: Vec<String>) -> Self {
        Self {
            place,
            source,
            name,
            keys: Vec::new(),
            env: Vec::new(),
            differences: Vec::new(),
        }
    }

    pub(super) fn set(&mut self, key: &'static str, value: Value) {
        self.keys.push((key, value));
    }

    pub(super) fn set_text(&mut self, key: &'static str, value: impl Into<String>) {
        self.set(key, Value::Text(value.into()));
    }

    /// Takes a key out again; whether it was there.
    pub(super) fn remove(&mut self, key: &str) -> bool {
        let before = self.keys.len();
        self.keys.retain(|(name, _)| *name != key);
        self.keys.len() < before
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|(name, _)| *name == key)
    }

    /// Tells of a difference, once.
    pub(super) fn differs(&mut self, how: impl Into<String>) {
        let how = how.into();
        if !self.differences.contains(&how) {
            self.differences.push(how);
        }
    }

    /// Sets a variable to a text that is no reference, whatever it looks like.
    pub(super) fn set_env(&mut self, name: &str, value: &str) {
        let value = escape_references(value);
        match self.env.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = value,
            None => self.env.push((name.into(), value)),
        }
    }

    pub(super) fn refused(self, reason: impl Into<String>) -> Refused {
        Refused {
            place: self.place,
            reason: reason.into(),
            source: self.source,
        }
    }
}

/// A text for `env` that is filled in to itself: `$${` is a literal `${` there.
pub(super) fn escape_references(text: &str) -> String {
    text.replace("${", "$${")
}
