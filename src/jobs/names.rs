//! The name that was probably meant.
//!
//! Must never: take another word for a slip of the pen.

/// The candidate nearest to a text, if one is near enough to be a slip of the pen.
pub(crate) fn nearest<'c>(
    text: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    let text = text.to_lowercase();
    let limit = (text.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| {
            let distance = strsim::damerau_levenshtein(&text, &candidate.to_lowercase());
            (distance, candidate)
        })
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_slip_of_the_pen_is_taken_for_a_name() {
        let names = ["schedule", "shell", "env"];
        assert_eq!(nearest("shedule", names), Some("schedule"));
        assert_eq!(nearest("Schedule", names), Some("schedule"));
        assert_eq!(nearest("evn", names), Some("env"));
        assert_eq!(nearest("notify", names), None);
        assert_eq!(nearest("", names), None);
    }
}
