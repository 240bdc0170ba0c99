//! Flags that have nothing in them.
//!
//! Must never: say anything of a variable, which may well be set to nothing.

use clap::ArgMatches;
use clap::parser::ValueSource;

use super::STORE;

/// A flag that says where to go, and has nothing in it, as one of a variable that is not set. It is not
/// taken for one that is not there: the place would be another one than the script means.
pub(super) fn flag(matches: &ArgMatches) -> Option<&'static str> {
    let own = matches.subcommand().map(|(_, own)| own);
    // There it asks for a comparison.
    let checks = matches.subcommand_name() == Some("check");
    let all = || std::iter::once(matches).chain(own);
    let is_empty = |matches: &ArgMatches, flag: &str| {
        let said = matches.value_source(flag) == Some(ValueSource::CommandLine);
        said && matches
            .get_raw(flag)
            .is_some_and(|mut words| words.all(|word| word.is_empty()))
    };
    ["config", STORE, "namespace"]
        .into_iter()
        .filter(|flag| !(checks && *flag == STORE))
        .find(|flag| all().any(|matches| is_empty(matches, flag)))
}
