//! The fields of a manifest, with account kept of those that were read.
//!
//! Must never: forget a field that nobody asked for.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::Value;

/// What a cluster adds, and nobody wrote.
const OF_THE_CLUSTER: [&str; 9] = [
    "status",
    "metadata.creationTimestamp",
    "metadata.uid",
    "metadata.resourceVersion",
    "metadata.generation",
    "metadata.managedFields",
    "metadata.selfLink",
    "metadata.ownerReferences",
    "metadata.annotations.kubectl.kubernetes.io/last-applied-configuration",
];

/// Where the Job and its Pod begin.
const LEVELS: [(&str, &str); 3] = [
    ("the Pod", "spec.jobTemplate.spec.template."),
    ("the Job", "spec.jobTemplate."),
    ("the CronJob", ""),
];

/// A manifest.
pub(super) struct Fields<'v> {
    root: &'v Value,
    read: RefCell<BTreeSet<String>>,
}

impl<'v> Fields<'v> {
    pub(super) fn new(root: &'v Value) -> Self {
        Self {
            root,
            read: RefCell::default(),
        }
    }

    /// The value at a path such as `spec.containers[0].image`; none where it is null.
    pub(super) fn get(&self, path: &str) -> Option<&'v Value> {
        self.read.borrow_mut().insert(path.into());
        let mut value = self.root;
        for step in path.split('.') {
            let (name, index) = match step.split_once('[') {
                Some((name, index)) => (name, index.strip_suffix(']')),
                None => (step, None),
            };
            value = value.get(name)?;
            if let Some(index) = index {
                value = value.get(index.parse::<usize>().ok()?)?;
            }
        }
        Some(value).filter(|value| !value.is_null())
    }

    /// A text that is looked at, and not carried over.
    pub(super) fn peek(&self, path: &str) -> Option<&'v str> {
        let pointer = format!("/{}", path.replace('.', "/"));
        self.root.pointer(&pointer).and_then(Value::as_str)
    }

    /// Counts a field as one that nobody asked for yet: its parts are to be asked for.
    pub(super) fn forget(&self, path: &str) {
        self.read.borrow_mut().remove(path);
    }

    pub(super) fn text(&self, path: &str) -> Result<Option<&'v str>, String> {
        let value = self.get(path);
        let text = value.map(|value| value.as_str().ok_or_else(|| wrong(path, "a string")));
        text.transpose()
    }

    pub(super) fn texts(&self, path: &str) -> Result<Vec<&'v str>, String> {
        let Some(value) = self.get(path) else {
            return Ok(Vec::new());
        };
        let list = value
            .as_array()
            .ok_or_else(|| wrong(path, "a list of strings"))?;
        let texts = list.iter().map(|item| item.as_str());
        let texts: Option<Vec<_>> = texts.collect();
        texts.ok_or_else(|| wrong(path, "a list of strings"))
    }

    pub(super) fn number(&self, path: &str) -> Result<Option<u64>, String> {
        let value = self.get(path);
        let number = value.map(|value| value.as_u64().ok_or_else(|| wrong(path, "a whole number")));
        number.transpose()
    }

    pub(super) fn flag(&self, path: &str) -> Result<bool, String> {
        let value = self.get(path);
        let flag = value.map(|value| value.as_bool().ok_or_else(|| wrong(path, "true or false")));
        flag.transpose().map(|flag| flag.unwrap_or(false))
    }

    pub(super) fn list(&self, path: &str) -> Result<&'v [Value], String> {
        match self.get(path) {
            None => Ok(&[]),
            Some(value) => {
                let list = value.as_array().ok_or_else(|| wrong(path, "a list"))?;
                Ok(list)
            }
        }
    }

    /// What nobody asked for, a line for each level.
    pub(super) fn unread(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect(self.root, "", &mut paths);
        let mut lines = Vec::new();
        for (level, prefix) in LEVELS {
            let (of_level, others): (Vec<String>, Vec<String>) =
                paths.into_iter().partition(|path| path.starts_with(prefix));
            paths = others;
            let names: Vec<_> = of_level
                .iter()
                .map(|path| {
                    let path = &path[prefix.len()..];
                    path.strip_prefix("spec.").unwrap_or(path)
                })
                .collect();
            if !names.is_empty() {
                lines.push(format!("left out of {level}: {}", names.join(", ")));
            }
        }
        lines.reverse();
        lines
    }

    fn collect(&self, value: &Value, path: &str, paths: &mut Vec<String>) {
        if is_empty(value) || OF_THE_CLUSTER.contains(&path) || self.read.borrow().contains(path) {
            return;
        }
        let is_part_read = path.is_empty() || {
            let read = self.read.borrow();
            let below = |known: &String| {
                let rest = known.strip_prefix(path);
                rest.is_some_and(|rest| rest.starts_with(['.', '[']))
            };
            read.iter().any(below)
                || OF_THE_CLUSTER
                    .iter()
                    .any(|known| below(&(*known).to_owned()))
        };
        match value {
            Value::Object(fields) if is_part_read => {
                for (name, value) in fields {
                    let dot = if path.is_empty() { "" } else { "." };
                    self.collect(value, &format!("{path}{dot}{name}"), paths);
                }
            }
            Value::Array(items) if is_part_read => {
                for (index, value) in items.iter().enumerate() {
                    self.collect(value, &format!("{path}[{index}]"), paths);
                }
            }
            _ => paths.push(path.to_owned()),
        }
    }
}

/// Whether nothing is said by it.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.values().all(is_empty),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

fn wrong(path: &str, takes: &str) -> String {
    format!("`{path}` takes {takes}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_nobody_asked_for_is_named_once_and_at_the_highest_level() {
        let manifest = json!({
            "kind": "CronJob",
            "metadata": {"name": "x", "labels": {"a": "b"}, "uid": "1", "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": "{}", "team": "shop"}},
            "spec": {
                "schedule": "x",
                "jobTemplate": {
                    "metadata": {"creationTimestamp": null},
                    "spec": {"ttlSecondsAfterFinished": 1, "template": {"spec": {
                        "containers": [{"image": "a", "resources": {}}, {"name": "b"}],
                        "volumes": [{"name": "c", "emptyDir": {}}],
                    }}},
                },
            },
            "status": {"lastScheduleTime": "y"},
        });
        let fields = Fields::new(&manifest);
        for path in ["kind", "metadata.name", "spec.schedule", "spec.suspend"] {
            fields.get(path);
        }
        let image = fields.text("spec.jobTemplate.spec.template.spec.containers[0].image");
        assert_eq!(image, Ok(Some("a")));
        assert_eq!(
            fields.unread(),
            [
                "left out of the CronJob: metadata.annotations.team, metadata.labels",
                "left out of the Job: ttlSecondsAfterFinished",
                "left out of the Pod: containers[1], volumes",
            ]
        );
    }

    #[test]
    fn a_value_of_another_type_is_an_error() {
        let manifest = json!({"a": 1, "b": ["x", 1], "c": null});
        let fields = Fields::new(&manifest);
        assert_eq!(fields.text("a"), Err("`a` takes a string".into()));
        assert_eq!(fields.texts("b"), Err("`b` takes a list of strings".into()));
        assert_eq!(fields.flag("a"), Err("`a` takes true or false".into()));
        assert_eq!(
            fields.number("b[0]"),
            Err("`b[0]` takes a whole number".into())
        );
        assert_eq!(fields.text("c"), Ok(None));
        assert_eq!(fields.texts("d.e[7].f"), Ok(vec![]));
    }
}
