//! CronJobs of Kubernetes: manifests in YAML or JSON, one or many, alone or in lists.
//!
//! A field that isn't carried over is named in the report: [`fields::Fields`] keeps account of
//! what was read. Must never: ask a cluster, or show what a manifest says of a variable.

mod container;
mod expand;
mod fields;
mod job;
mod parts;
mod references;
mod schedule;

use serde_json::Value;

use super::draft::{Draft, Item};
use super::{Found, ImportError, Request, name};
use references::References;

/// Lists of lists beyond this depth are nobody's manifests.
const DEPTH: usize = 8;

const IMAGES: &str = "a pod runs an image; soloist runs a program of the replica's host: it has to be there, with the files, rights and names of hosts that the pod had";
const ZONE: &str = "without `timeZone` Kubernetes reads a schedule in the zone of its controller, mostly UTC; here it is read in UTC: name another by `--timezone`";
const CONTROLLER_ZONE: &str = "without `timeZone` Kubernetes reads a schedule in the zone of its controller; here it is read in that of `--timezone`";
const LATE: &str = "without `startingDeadlineSeconds` Kubernetes starts the newest missed run however late; here within `starting_deadline`, 1m";
const GRACE: &str =
    "without `terminationGracePeriodSeconds` 30 s pass from TERM to KILL; here `kill_grace`, 5s";
const OUTPUT: &str = "`kubectl logs` has all output; here the first and last part of it is kept: `output_limit`, 8KiB";

/// Reads manifests.
pub(super) fn read(request: &Request<'_>) -> Result<Found, ImportError> {
    let documents = documents(request)?;
    let mut reader = Reader {
        request,
        items: Vec::new(),
        others: Vec::new(),
        references: References::default(),
        all_have_zone: true,
        all_have_deadline: true,
        all_have_grace: true,
    };
    for document in &documents {
        reader.take(document, 0);
    }
    if reader.items.is_empty() {
        let found = match reader.others.as_slice() {
            [] => String::new(),
            others => format!(", but {}", others.join(", ")),
        };
        return Err(ImportError {
            message: format!("`{}` has no CronJob{found}", request.label),
            hint: "write it out by `kubectl get cronjobs -o yaml`, or render a chart by `helm template`".into(),
        });
    }
    let mut told = vec![IMAGES];
    if !reader.all_have_zone {
        told.push(if request.timezone.is_some() {
            CONTROLLER_ZONE
        } else {
            ZONE
        });
    }
    if !reader.all_have_deadline {
        told.push(LATE);
    }
    if !reader.all_have_grace {
        told.push(GRACE);
    }
    told.push(OUTPUT);
    let mut everywhere: Vec<String> = told.into_iter().map(str::to_owned).collect();
    if !reader.others.is_empty() {
        let others = reader.others.join(", ");
        everywhere.push(format!("what is no CronJob is left out: {others}"));
    }
    tell_apart(&mut reader.items);
    Ok(Found {
        items: reader.items,
        everywhere,
    })
}

/// Gives CronJobs of one name in several namespaces names that say which.
fn tell_apart(items: &mut [Item]) {
    let drafts = items.iter_mut().filter_map(|item| match item {
        Item::Job(draft) => Some(draft),
        Item::Refused(_) => None,
    });
    let mut drafts: Vec<&mut Box<Draft>> = drafts.collect();
    let names: Vec<_> = drafts.iter().map(|draft| draft.name.clone()).collect();
    for draft in &mut drafts {
        let same = names.iter().filter(|name| **name == draft.name).count();
        if same > 1 && draft.place.contains('/') {
            draft.name = name::slug(draft.place.trim_start_matches("CronJob "));
        }
    }
}

/// All documents of a text.
fn documents(request: &Request<'_>) -> Result<Vec<Value>, ImportError> {
    // A snippet of the text could show a secret.
    let options = serde_saphyr::options! { with_snippet: false };
    serde_saphyr::from_multiple_with_options(request.text, options).map_err(|error| {
        let place = error.location().map_or(String::new(), |at| {
            format!(", line {}, column {}", at.line(), at.column())
        });
        let hint = if request.text.contains("{{") {
            "it has `{{` in it: render a chart first, by `helm template`"
        } else {
            "`kubectl apply --dry-run=client -f FILE` says more about it"
        };
        ImportError {
            message: format!(
                "`{}`{place}: it is not YAML that can be read",
                request.label
            ),
            hint: hint.into(),
        }
    })
}

struct Reader<'r> {
    request: &'r Request<'r>,
    items: Vec<Item>,
    /// What is no CronJob.
    others: Vec<String>,
    references: References,
    all_have_zone: bool,
    all_have_deadline: bool,
    all_have_grace: bool,
}

impl Reader<'_> {
    fn take(&mut self, document: &Value, depth: usize) {
        if let Some(list) = document.as_array() {
            return self.take_all(list, depth);
        }
        let kind = document["kind"].as_str().unwrap_or_default();
        match (kind, document["items"].as_array()) {
            ("List" | "CronJobList", Some(items)) => {
                for item in items {
                    // kubectl leaves the kind out of the items of such a list.
                    match (kind, item["kind"].is_null(), item.as_object()) {
                        ("CronJobList", true, Some(fields)) => {
                            let mut fields = fields.clone();
                            fields.insert("kind".into(), "CronJob".into());
                            fields
                                .entry("apiVersion")
                                .or_insert_with(|| document["apiVersion"].clone());
                            self.take(&Value::Object(fields), depth + 1);
                        }
                        _ if depth < DEPTH => self.take(item, depth + 1),
                        _ => self.others.push("a list in too many lists".into()),
                    }
                }
            }
            ("CronJob", _) => self.take_cron_job(document),
            _ => {
                let name = document["metadata"]["name"]
                    .as_str()
                    .unwrap_or("without a name");
                let kind = if kind.is_empty() { "a document" } else { kind };
                self.others.push(format!("{kind} {name}"));
            }
        }
    }

    fn take_all(&mut self, list: &[Value], depth: usize) {
        for document in list {
            if depth < DEPTH {
                self.take(document, depth + 1);
            }
        }
    }

    fn take_cron_job(&mut self, document: &Value) {
        self.items.push(
            match job::draft(document, self.request, &mut self.references) {
                Ok(draft) => {
                    self.all_have_zone &= draft.has("timezone");
                    self.all_have_deadline &= draft.has("starting_deadline");
                    self.all_have_grace &= draft.has("kill_grace");
                    Item::Job(Box::new(draft))
                }
                Err(refused) => Item::Refused(refused),
            },
        );
    }
}
