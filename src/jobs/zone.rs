//! Time zones by name.
//!
//! Only ever from the database that is built in: the host's own differs from machine to machine,
//! and then replicas would disagree about when a job is due.

use std::sync::LazyLock;

use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::ValueError;
use super::names::nearest;

static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// Names by which people mean the zone of the host.
const HOST_ZONES: [&str; 4] = ["local", "localtime", "system", "host"];

/// Finds an IANA time zone, letter case aside. The error's message follows the name.
pub(crate) fn find_zone(name: &str) -> Result<TimeZone, ValueError> {
    let lower = name.to_ascii_lowercase();
    if HOST_ZONES.contains(&lower.as_str()) {
        return Err(ValueError {
            message: "is the zone of a host, and hosts differ".into(),
            hint: "name an IANA zone, such as `Asia/Shanghai` or `UTC`".into(),
        });
    }
    // jiff knows this one as "we don't know", which behaves like UTC.
    if lower != "etc/unknown"
        && let Ok(zone) = DATABASE.get(name)
    {
        return Ok(zone);
    }
    Err(ValueError {
        message: "is no IANA time zone".into(),
        hint: unknown_hint(name),
    })
}

fn unknown_hint(name: &str) -> String {
    let offset = name.trim_start_matches("UTC").trim_start_matches("GMT");
    if offset.starts_with(['+', '-']) {
        return "name a place, such as `Asia/Shanghai`, which knows about daylight saving; a fixed offset is spelled the other way round: `Etc/GMT-8` is 8 hours ahead of UTC".into();
    }
    let names: Vec<String> = DATABASE.available().map(|name| name.to_string()).collect();
    let place = name.replace(' ', "_");
    let by_place = names.iter().find(|candidate| {
        let last = candidate.rsplit('/').next().unwrap_or(candidate);
        !place.is_empty() && last.eq_ignore_ascii_case(&place)
    });
    match by_place
        .map(String::as_str)
        .or_else(|| nearest(&place, names.iter().map(String::as_str)))
    {
        Some(near) => format!("did you mean `{near}`?"),
        None => "zones are named after places, such as `Asia/Shanghai`; `UTC` is one too".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_found_by_name_whatever_the_case() {
        for name in [
            "UTC",
            "Asia/Shanghai",
            "asia/shanghai",
            "America/New_York",
            "Etc/GMT-8",
        ] {
            assert!(find_zone(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn an_unknown_zone_is_refused_with_the_nearest_name() {
        for (name, hint) in [
            ("Asia/Shangai", "did you mean `Asia/Shanghai`?"),
            ("Shanghai", "did you mean `Asia/Shanghai`?"),
            ("America/New York", "did you mean `America/New_York`?"),
            ("Moon/Tycho_Crater_Base", "zones are named after places"),
            ("+08:00", "name a place"),
            ("UTC+8", "name a place"),
            ("local", "name an IANA zone"),
            ("System", "name an IANA zone"),
            ("Etc/Unknown", ""),
            ("", "zones are named after places"),
        ] {
            let error = find_zone(name).expect_err(name);
            assert!(error.hint.starts_with(hint), "{name}: {}", error.hint);
        }
    }
}
