//! Which variable of the daemon's environment stands for what a cluster would look up.
//!
//! Must never: let one variable stand for two Secrets.

use std::collections::BTreeMap;

/// The names that were given, with what each stands for.
#[derive(Debug, Default)]
pub(super) struct References(BTreeMap<String, String>);

impl References {
    /// A name for `${…}`: that of the variable, and after the job where that stands for
    /// something else already.
    pub(super) fn name(&mut self, variable: &str, job: &str, source: &str) -> String {
        let plain = identifier(variable);
        let of_job = identifier(&format!("{}_{variable}", job.to_uppercase()));
        let numbered = (2_u64..).map(|number| format!("{of_job}_{number}"));
        let mut names = [plain.clone(), of_job.clone()].into_iter().chain(numbered);
        let free = names.find(|name| self.0.get(name).is_none_or(|known| known == source));
        let name = free.unwrap_or(plain);
        self.0.insert(name.clone(), source.into());
        name
    }
}

/// A name that a shell and `${…}` take.
pub(super) fn identifier(name: &str) -> String {
    let part = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let identifier: String = name.chars().map(part).collect();
    match identifier.chars().next() {
        Some(first) if !first.is_ascii_digit() => identifier,
        _ => format!("_{identifier}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_for_one_thing() {
        let mut references = References::default();
        for (variable, job, source, name) in [
            ("PASSWORD", "backup", "Secret a/x", "PASSWORD"),
            ("PASSWORD", "report", "Secret a/x", "PASSWORD"),
            ("PASSWORD", "re-index", "Secret b/x", "RE_INDEX_PASSWORD"),
            ("PASSWORD", "re.index", "Secret c/x", "RE_INDEX_PASSWORD_2"),
            ("api-token", "backup", "Secret a/t", "api_token"),
            ("api_token", "backup", "Secret a/u", "BACKUP_api_token"),
            ("1st", "backup", "Secret a/v", "_1st"),
        ] {
            assert_eq!(references.name(variable, job, source), name, "{source}");
        }
    }
}
