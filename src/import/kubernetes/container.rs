//! What a pod's container runs: its command, its arguments and its variables.
//!
//! Must never: guess at what an image runs by itself.

use serde_json::Value as Json;

use super::expand::expand;
use super::fields::Fields;
use super::parts::Parts;
use super::references::{References, identifier};
use crate::import::draft::{Draft, Value};

const POD: &str = "spec.jobTemplate.spec.template.spec";

/// How a shell is asked to run a script; the first two are what soloist's `shell` does.
const SHELLS: [&str; 2] = ["sh", "/bin/sh"];

/// The variable by which a pod of an indexed Job knows its part, and what it is here.
const INDEX: &str = "export JOB_COMPLETION_INDEX=\"$SOLOIST_SHARD_INDEX\"\n";

/// Reads the containers of the pod into a draft.
pub(super) fn read(
    fields: &Fields<'_>,
    is_indexed: bool,
    references: &mut References,
    draft: &mut Draft,
) -> Result<(), String> {
    tell_of_others(fields, draft)?;
    let at = |field: &str| format!("{POD}.containers[0].{field}");
    let _ = fields.text(&at("name"))?;
    let image = fields.text(&at("image"))?.unwrap_or("no name");
    if let Some(directory) = fields.text(&at("workingDir"))? {
        draft.set_text("working_dir", directory);
    }
    let defined = read_env(fields, &at("env"), references, draft)?;
    if !fields.list(&at("envFrom"))?.is_empty() {
        draft.differs("`envFrom` is left out: which variables it brings, the manifest doesn't say (name them in `env`)");
    }
    let mut words = fields.texts(&at("command"))?;
    let has_command = !words.is_empty();
    words.extend(fields.texts(&at("args"))?);
    let names_a_program = |word: &&str| word.starts_with('/') || ["sh", "bash"].contains(word);
    if !has_command && !words.first().is_some_and(names_a_program) {
        return Err(format!(
            "it runs what the image `{image}` runs by itself, which the manifest doesn't say (write the image's ENTRYPOINT as its `command`)"
        ));
    }
    if !has_command {
        draft.differs(format!("it has `args` alone, which are taken for all of its command; where the image `{image}` has an ENTRYPOINT, that goes before"));
    }
    let words: Vec<Parts> = words.iter().map(|word| expand(word, &defined)).collect();
    set_program(&words, is_indexed, draft);
    draft.differs(format!("it ran in the image `{image}`"));
    Ok(())
}

/// What runs beside the first container, or before it.
fn tell_of_others(fields: &Fields<'_>, draft: &mut Draft) -> Result<(), String> {
    let names = |list: &[Json]| {
        let names = list.iter().map(|container| {
            let name = container["name"].as_str().unwrap_or("without a name");
            format!("`{name}`")
        });
        names.collect::<Vec<_>>().join(", ")
    };
    let containers = fields.list(&format!("{POD}.containers"))?;
    if containers.is_empty() {
        return Err("its pod has no container".into());
    }
    if let [first, others @ ..] = containers
        && !others.is_empty()
    {
        draft.differs(format!(
            "of several containers {} alone is carried over, without {}",
            names(std::slice::from_ref(first)),
            names(others)
        ));
    }
    let before = fields.list(&format!("{POD}.initContainers"))?;
    if !before.is_empty() {
        draft.differs(format!(
            "the init containers are left out, and what they prepare: {}",
            names(before)
        ));
    }
    // The containers themselves are accounted for field by field.
    fields.forget(&format!("{POD}.containers"));
    for index in 1..containers.len() {
        fields.get(&format!("{POD}.containers[{index}]"));
    }
    Ok(())
}

/// The variables, each made of those before it; what a cluster would look up is left to the
/// environment of the daemon. What comes back is for commands, where a variable is the job's own.
fn read_env(
    fields: &Fields<'_>,
    path: &str,
    references: &mut References,
    draft: &mut Draft,
) -> Result<Vec<(String, Parts)>, String> {
    let namespace = fields.peek("metadata.namespace").unwrap_or_default();
    let mut defined: Vec<(String, Parts)> = Vec::new();
    let mut looked_up = Vec::new();
    for variable in fields.list(path)? {
        let name = variable["name"]
            .as_str()
            .ok_or("a variable of its `env` has no name")?;
        let value = match (&variable["valueFrom"], &variable["value"]) {
            (Json::Null, Json::Null) => Parts::literal(""),
            (Json::Null, Json::String(text)) => expand(text, &defined),
            (Json::Null, _) => return Err(format!("the variable `{name}` takes a string")),
            (source, _) => {
                let source = source_of(source);
                let reference =
                    references.name(name, &draft.name, &format!("{namespace} {source}"));
                looked_up.push(match reference == name {
                    true => format!("`{name}` ({source})"),
                    false => format!("`{name}` ({source}) as `{reference}`"),
                });
                Parts::variable(reference)
            }
        };
        defined.retain(|(known, _)| known != name);
        defined.push((name.to_owned(), value));
    }
    if !looked_up.is_empty() {
        draft.differs(format!(
            "what Kubernetes looks up is taken from the daemon's environment, where it has to be set before it starts: {}",
            looked_up.join(", ")
        ));
    }
    let env = defined
        .iter()
        .map(|(name, value)| (name.clone(), value.for_env()));
    draft.env = env.collect();
    Ok(for_commands(defined, draft))
}

/// The variables as a command of the job can name them; one whose name no shell takes has
/// another one beside it.
fn for_commands(defined: Vec<(String, Parts)>, draft: &mut Draft) -> Vec<(String, Parts)> {
    let own = defined.into_iter().map(|(name, value)| {
        if value.known().is_some() {
            return (name, value);
        }
        let callable = identifier(&name);
        if draft.env.iter().all(|(known, _)| *known != callable) {
            draft.env.push((callable.clone(), value.for_env()));
        }
        (name, Parts::variable(callable))
    });
    own.collect()
}

/// Where a cluster would look, without what it would find.
fn source_of(source: &Json) -> String {
    let named = |kind: &str, key: &str| {
        let reference = &source[key];
        let part = |field: &str| reference[field].as_str().unwrap_or("?").to_owned();
        (!reference.is_null()).then(|| format!("{kind} {}/{}", part("name"), part("key")))
    };
    let field = source["fieldRef"]["fieldPath"].as_str();
    named("Secret", "secretKeyRef")
        .or_else(|| named("ConfigMap", "configMapKeyRef"))
        .or_else(|| field.map(|path| format!("field {path}")))
        .unwrap_or_else(|| "a field of the pod".into())
}

fn set_program(words: &[Parts], is_indexed: bool, draft: &mut Draft) {
    let known: Vec<Option<String>> = words.iter().map(Parts::known).collect();
    let script = match (known.as_slice(), words) {
        ([Some(shell), Some(flag), _], [_, _, script])
            if SHELLS.contains(&shell.as_str()) && flag == "-c" =>
        {
            if known[2].is_none() {
                draft.differs("`$(VAR)` in its script was filled in before the shell saw it; here the shell does it, as `${VAR}`");
            }
            Some(script.for_script())
        }
        _ => None,
    };
    let index = if is_indexed { INDEX } else { "" };
    if let Some(script) = script {
        draft.set_text("shell", format!("{index}{script}"));
    } else if let Some(words) = known.into_iter().collect::<Option<Vec<_>>>()
        && !is_indexed
    {
        draft.set("command", Value::Texts(words));
    } else {
        // Only a shell knows the variables by then.
        let words: Vec<_> = words.iter().map(Parts::for_shell).collect();
        draft.set_text("shell", format!("{index}exec {}", words.join(" ")));
    }
}
