//! URLs as people write them, and as they should not.

use super::*;

fn parsed(url: &str) -> RedisUrl {
    RedisUrl::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"))
}

fn login(url: &str) -> (Option<String>, Option<String>) {
    let url = parsed(url);
    (url.user, url.password)
}

#[test]
fn a_url_says_where_the_server_is() {
    for (url, place) in [
        ("redis://localhost", "redis://localhost:6379/0"),
        (
            "redis://me:secret@10.0.0.1:6380/3",
            "redis://10.0.0.1:6380/3",
        ),
        ("Redis://h:6379/", "redis://h:6379/0"),
        ("redis://[::1]:7000", "redis://[::1]:7000/0"),
        ("redis://[::1]", "redis://[::1]:6379/0"),
        ("redis://h?db=2", "redis://h:6379/2"),
        ("rediss://h:1/15", "rediss://h:1/15"),
        ("unix:///run/redis.sock", "unix:///run/redis.sock"),
        (
            "redis+unix:///run/my%20redis.sock?db=2",
            "unix:///run/my redis.sock?db=2",
        ),
        ("redis+unix:/run/redis.sock", "unix:///run/redis.sock"),
        ("unix://u:p@/run/redis.sock", "unix:///run/redis.sock"),
    ] {
        assert_eq!(parsed(url).to_string(), place, "{url}");
    }
    assert!(parsed("rediss://h").tls && !parsed("redis://h").tls);
}

#[test]
fn user_and_password_are_taken_as_they_are_written_or_percent_encoded() {
    let some = |text: &str| Some(text.to_owned());
    for (url, user, password) in [
        ("redis://h", None, None),
        ("redis://:@h", None, None),
        ("redis://:pw@h", None, some("pw")),
        ("redis://bob:pw@h", some("bob"), some("pw")),
        ("redis://b%6Fb:p%40%3a%2F@h/1", some("bob"), some("p@:/")),
        ("redis://u:p@w/x?y#z@h", some("u"), some("p@w/x?y#z")),
        ("redis://u:100%@h", some("u"), some("100%")),
        ("redis://u:geh%C3%ABim@h", some("u"), some("gehëim")),
        ("unix://u:p@/run/r", some("u"), some("p")),
        (
            "redis+unix:///run/r?user=u&pass=p%26w",
            some("u"),
            some("p&w"),
        ),
        ("unix:///run/r?password=p", None, some("p")),
    ] {
        assert_eq!(login(url), (user, password), "{url}");
    }
}

#[test]
fn what_can_not_be_meant_is_refused_without_showing_any_of_it() {
    for (url, message) in [
        ("redis:h", "has no `//`"),
        ("redis://secret@h", "a user without a password"),
        ("redis://:secret@", "no host"),
        ("redis://:secret@se cret", "no host's name"),
        ("redis://secret:99999", "the port"),
        ("redis://127.0.0.1:7392:1", "two ports"),
        ("redis://::1", "an IPv6 address without"),
        ("redis://h/secret", "is no number"),
        ("redis://h/-1", "is no number"),
        ("redis://h/99999999999", "is no number"),
        ("redis://h/1?db=2", "two databases"),
        ("redis://h?secret=1", "a parameter"),
        ("redis://h#secret", "after a `#`"),
        ("redis://:%ff@h", "no UTF-8"),
        ("unix:secret", "no path"),
        ("unix://secret", "no path"),
        ("unix://secret/run/r", "a host beside its socket"),
        ("unix:///run/r?host=secret", "a parameter"),
    ] {
        let error = RedisUrl::parse(url).expect_err(url);
        assert!(error.to_string().contains(message), "{url}: {error}");
        assert!(!format!("{error}{}", error.hint()).contains("cret"));
    }
}

#[test]
fn verification_is_not_switched_off_by_any_words() {
    for url in [
        "rediss://h/#insecure",
        "rediss://h#insecure",
        "rediss://h?insecure=true",
        "rediss://h?ssl_cert_reqs=none",
        "rediss://h?tls_verify=0",
        "rediss://h?ssl_check_hostname=false",
        "rediss://h?trustServerCertificate=true",
        "redis://h#insecure",
    ] {
        let error = RedisUrl::parse(url).expect_err(url);
        let said = error.to_string();
        assert!(said.contains("can't be switched off"), "{url}: {said}");
        assert!(error.hint().contains("tls_ca"), "{}", error.hint());
    }
}

#[test]
fn what_is_shown_of_a_url_holds_no_secret() {
    for url in ["redis://me:secret@h/3", "unix:///run/r?pass=secret"] {
        let url = parsed(url);
        assert!(!format!("{url} {url:?}").contains("secret"));
    }
}
