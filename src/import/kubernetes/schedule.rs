//! A schedule as Kubernetes reads it, by github.com/robfig/cron, in soloist's spelling.
//!
//! It has another idea of when a day of the month and a day of the week both count: a step
//! makes of `*` a restriction. Must never: change when a job is due without telling.

/// The lowest and the highest number of each field.
const LIMITS: [(u32, u32); 5] = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)];

/// A schedule, the zone that stands before it, and what is different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Schedule {
    pub(super) text: String,
    pub(super) zone: Option<String>,
    pub(super) differences: Vec<&'static str>,
}

/// Translates a schedule. What can't be read, soloist's own parser tells about.
pub(super) fn read(text: &str) -> Schedule {
    let text = text.trim();
    let prefix = ["CRON_TZ=", "TZ="]
        .into_iter()
        .find_map(|prefix| text.strip_prefix(prefix));
    let (zone, text) = match prefix {
        Some(rest) => {
            let (zone, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            (Some(zone.to_owned()), rest.trim())
        }
        None => (None, text),
    };
    let mut differences = Vec::new();
    if text.starts_with("@every") {
        differences.push("`@every` counts from the run before it; here it counts from the epoch, so that all replicas agree");
    }
    let words: Vec<_> = text.split_whitespace().collect();
    let text = match <[&str; 5]>::try_from(words) {
        Ok(words) => {
            let fields = words.iter().zip(LIMITS).enumerate();
            // A step counts as a restriction where the other day is one as well.
            let both = !is_star(words[2]) && !is_star(words[4]);
            let fields: Vec<_> = fields
                .map(|(index, (word, limits))| field(word, limits, both && [2, 4].contains(&index)))
                .collect();
            fields.join(" ")
        }
        Err(_) => text.to_owned(),
    };
    Schedule {
        text,
        zone,
        differences,
    }
}

/// One star among others makes all of the field one.
fn is_star(word: &str) -> bool {
    let mut items = word.split(',');
    items.any(|item| ["*", "?", "*/1", "?/1"].contains(&item))
}

fn field(word: &str, (low, high): (u32, u32), is_restriction: bool) -> String {
    let size = high - low + 1;
    // One star among others makes all of the field one.
    if word
        .split(',')
        .any(|item| ["*", "?", "*/1", "?/1"].contains(&item))
    {
        return "*".into();
    }
    let items = word.split(',').map(|item| {
        let Some((base, Ok(step))) = item.split_once('/').map(|(b, s)| (b, s.parse::<u32>()))
        else {
            return item.to_owned();
        };
        match base {
            // Without its star both days count, as a step has it there.
            "*" | "?" if is_restriction && step >= size => low.to_string(),
            "*" | "?" if is_restriction => format!("{low}-{high}/{step}"),
            "*" | "?" => format!("*/{}", step.min(size)),
            _ => match base.split_once('-') {
                Some((from, to)) => match (from.parse::<u32>(), to.parse::<u32>()) {
                    (Ok(a), Ok(b)) if a <= b && step > b - a => from.to_owned(),
                    _ => item.to_owned(),
                },
                None if base
                    .parse::<u32>()
                    .is_ok_and(|from| from.saturating_add(step) > high) =>
                {
                    base.to_owned()
                }
                None => item.to_owned(),
            },
        }
    });
    items.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_makes_a_restriction_of_a_star_among_days() {
        for (text, expected) in [
            ("0 0 */2 * 1", "0 0 1-31/2 * 1"),
            ("0 0 1 * */2", "0 0 1 * 0-6/2"),
            ("0 0 */2 * *", "0 0 */2 * *"),
            ("0 0 ? * */2", "0 0 * * */2"),
            ("0 0 1,* * ?", "0 0 * * *"),
            ("*/5 */6 ? */3 MON", "*/5 */6 * */3 MON"),
            ("*/90 */30 */40 */13 */9", "*/60 */24 1 */12 0"),
            ("50/15 1-5/9 5/40 * 0-6", "50 1 5 * 0-6"),
            ("@daily", "@daily"),
            ("0 0 0 1 1 *", "0 0 0 1 1 *"),
        ] {
            assert_eq!(read(text).text, expected, "{text}");
        }
    }

    #[test]
    fn a_zone_before_the_fields_is_taken_out() {
        let schedule = read("CRON_TZ=Europe/Rome 0 5 * * *");
        assert_eq!(schedule.zone.as_deref(), Some("Europe/Rome"));
        assert_eq!(schedule.text, "0 5 * * *");
        assert_eq!(read("TZ=UTC").text, "");
        assert_eq!(read("@every 1h").differences.len(), 1);
    }
}
