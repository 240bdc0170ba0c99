//! `$(VAR)` in commands, arguments and values, which Kubernetes fills in itself.
//!
//! What isn't defined stays as it is written, and `$$` is a `$`
//! (k8s.io/kubernetes/third_party/forked/golang/expansion). Must never: fill in what it doesn't.

use super::parts::Parts;

/// The text with its references filled in.
pub(super) fn expand(text: &str, defined: &[(String, Parts)]) -> Parts {
    let mut parts = Parts::default();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        rest[..at].chars().for_each(|c| parts.push(c));
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            parts.push('$');
            rest = after;
            continue;
        }
        let reference = rest
            .strip_prefix('(')
            .and_then(|inner| inner.split_once(')'));
        let Some((name, after)) = reference else {
            parts.push('$');
            continue;
        };
        match defined.iter().find(|(known, _)| known == name) {
            Some((_, value)) => parts.append(value),
            None => format!("$({name})").chars().for_each(|c| parts.push(c)),
        }
        rest = after;
    }
    rest.chars().for_each(|c| parts.push(c));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_filled_in_as_kubernetes_does() {
        let defined = [
            ("A".to_owned(), Parts::literal("1")),
            ("S".to_owned(), Parts::variable("SECRET")),
        ];
        for (text, script) in [
            ("a $(A)$(S)$(A)", "a 1${SECRET}1"),
            ("$(NONE) $(date +%s) $(A", "$(NONE) $(date +%s) $(A"),
            ("$$(A) $$ $$$(A) $", "$(A) $ $1 $"),
            ("$A ${A}", "$A ${A}"),
            ("", ""),
        ] {
            assert_eq!(expand(text, &defined).for_script(), script, "{text}");
        }
    }
}
