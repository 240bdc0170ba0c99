//! Any text as a store's URL.
//!
//! Must never: be part of a program.

use super::{RedisUrl, Several, SeveralUrl, check, redact, star_passwords};

/// Any text is a URL or an error that says what to do; and no password is shown.
pub(crate) fn url(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let shown = redact(text);
    let starred = star_passwords(text);
    assert_eq!(starred.len(), text.len(), "places in it move");
    assert_eq!(redact(&shown), shown, "{text:?}");
    match check(text) {
        Err(error) => {
            assert!(!error.to_string().is_empty() && !error.hint().is_empty());
            nothing_of_a_user_is_shown(text, &shown);
        }
        Ok(()) => {
            let (secrets, place) = taken_apart(text);
            let mut told = vec![&shown, &place];
            // Within a text a line's end ends a URL.
            if !text.contains('\n') {
                told.push(&starred);
            }
            for secret in secrets.iter().flatten() {
                is_hidden(text, secret, &told);
            }
        }
    }
}

/// The passwords of a URL, and the place that it names.
fn taken_apart(text: &str) -> ([Option<String>; 2], String) {
    if RedisUrl::is_one(text) {
        let url = RedisUrl::parse(text).expect("it was checked");
        return ([url.password.clone(), None], format!("{url} {url:?}"));
    }
    if SeveralUrl::is_one(text) {
        let url = SeveralUrl::parse(text).expect("it was checked");
        let place = format!("{url} {url:?}");
        let of_sentinels = match url.kind {
            Several::Sentinels { password, .. } => password,
            Several::Cluster | Several::Quorum => None,
        };
        return ([url.password, of_sentinels], place);
    }
    ([None, None], String::new())
}

/// Nobody knows what is the password of a text that is no URL: of all behind its first `:` and
/// before its last `@`, no word may be seen.
fn nothing_of_a_user_is_shown(text: &str, shown: &String) {
    let before = text.rsplit_once('@').map_or("", |(before, _)| before);
    let after = before.split_once(':').map_or("", |(_, after)| after);
    for word in after.split(['/', ':', '@']) {
        is_hidden(text, word, &[shown]);
    }
}

/// A password that is written once, and is no part of anything else, is nowhere to be seen.
fn is_hidden(text: &str, secret: &str, shown: &[&String]) {
    let told_apart = secret.len() >= 4 && !"***".contains(secret);
    if !told_apart || text.matches(secret).count() != 1 {
        return;
    }
    for shown in shown {
        assert!(
            !shown.contains(secret),
            "{secret:?} of {text:?} is in {shown:?}"
        );
    }
}
