//! From drafts to a table that is known to be right.
//!
//! Each job is read back by `config`, alone and at last with all others; one that it refuses is
//! not carried over, for the reason that it gives. Must never: write what was not read back.

use super::draft::{Draft, Item};
use super::name::Taken;
use super::report::{Refusal, Report};
use super::{Format, Found, Imported, Request, write};
use crate::config::{self, Host, Severity, Strictness};
use crate::scheduler::time::Timestamp;

/// Puts the table together.
pub(super) fn assemble(request: &Request<'_>, format: Format, found: Found) -> Imported {
    let mut taken = Taken::default();
    let items = found.items.into_iter();
    let items: Vec<Item> = items
        .map(|item| match item {
            Item::Job(draft) => settle(*draft, request, &mut taken),
            refused => refused,
        })
        .collect();
    let common = common_differences(&items);
    let mut everywhere = found.everywhere;
    everywhere.extend(common.iter().cloned());
    let mut report = Report {
        label: request.label.into(),
        format: match format {
            Format::Crontab => "crontab",
            Format::Kubernetes => "Kubernetes",
        },
        carried: 0,
        refused: Vec::new(),
        by_job: Vec::new(),
        everywhere,
    };
    for item in &items {
        match item {
            Item::Job(draft) => {
                report.carried += 1;
                let mut own = draft.differences.clone();
                own.retain(|difference| !common.contains(difference));
                if !own.is_empty() {
                    let title = format!("{} ({})", draft.name, draft.place);
                    report.by_job.push((title, own));
                }
            }
            Item::Refused(refused) => report.refused.push(Refusal {
                place: refused.place.clone(),
                reason: refused.reason.clone(),
            }),
        }
    }
    let table = (report.carried > 0).then(|| render(request, &report, &items));
    if let Some(table) = &table {
        let refusal = refusal_of(table, request.now);
        assert_eq!(
            refusal, None,
            "jobs that are right alone are right together"
        );
    }
    Imported { table, report }
}

/// Gives a draft its name, and reads it back.
fn settle(mut draft: Draft, request: &Request<'_>, taken: &mut Taken) -> Item {
    draft.name = taken.free(&draft.name);
    let refusal = |draft: &Draft| {
        let defaults = write::defaults(request.timezone, &[]);
        let table = format!("{defaults}\n{}", write::job(draft, &draft.env));
        refusal_of(&table, request.now)
    };
    let Some(mut reason) = refusal(&draft) else {
        taken.take(draft.name.clone());
        return Item::Job(Box::new(draft));
    };
    // It is the one key that a schedule can rule out.
    if draft.remove("random_delay") {
        match refusal(&draft) {
            None => {
                draft.differs(format!("its random delay is left out: {reason}"));
                taken.take(draft.name.clone());
                return Item::Job(Box::new(draft));
            }
            Some(other) => reason = other,
        }
    }
    Item::Refused(draft.refused(reason))
}

/// Why `config` refuses a table; none where it doesn't. Variables that it refers to count as set.
fn refusal_of(table: &str, now: Timestamp) -> Option<String> {
    let host = Host {
        env: &|_| Some("x".into()),
        accounts: &|_, _| Ok(()),
        now,
    };
    let error = config::parse(table, "jobs.toml", &host, Strictness::Edit).err()?;
    let problems = error.0.diagnostics().iter();
    let problem = problems
        .filter(|problem| problem.severity == Severity::Error)
        .map(|problem| match &problem.hint {
            Some(hint) => format!("{} ({hint})", problem.message),
            None => problem.message.clone(),
        })
        .next();
    Some(problem.unwrap_or_else(|| "it is not what a table can hold".into()))
}

fn render(request: &Request<'_>, report: &Report, items: &[Item]) -> String {
    let mut text = write::comment(&format!(
        "Carried over by `soloist import` from {} ({}).",
        request.label, report.format
    ));
    text.push_str(&write::comment(
        "What means something else here than there, its report says.",
    ));
    let common = common_env(items);
    text.push_str(&write::defaults(request.timezone, &common));
    for item in items {
        text.push('\n');
        text.push_str(&match item {
            Item::Job(draft) if common.is_empty() => write::job(draft, &draft.env),
            Item::Job(draft) => write::job(draft, &[]),
            Item::Refused(refused) => write::refused(refused),
        });
    }
    text
}

/// The variables of `[defaults]`: where all of several jobs have the same.
fn common_env(items: &[Item]) -> Vec<(String, String)> {
    let mut drafts = items.iter().filter_map(|item| match item {
        Item::Job(draft) => Some(&draft.env),
        Item::Refused(_) => None,
    });
    let (Some(first), Some(second)) = (drafts.next(), drafts.next()) else {
        return Vec::new();
    };
    if first == second && drafts.all(|env| env == first) {
        first.clone()
    } else {
        Vec::new()
    }
}

/// What is different in all of several jobs, which is said once.
fn common_differences(items: &[Item]) -> Vec<String> {
    let mut all = items.iter().filter_map(|item| match item {
        Item::Job(draft) => Some(&draft.differences),
        Item::Refused(_) => None,
    });
    let Some(first) = all.next() else {
        return Vec::new();
    };
    let others: Vec<_> = all.collect();
    let is_common = |difference: &&String| others.iter().all(|own| own.contains(difference));
    let common = first.iter().filter(|_| !others.is_empty());
    common.filter(is_common).cloned().collect()
}
