//! What a table means that is spread over several files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::read_at;
use crate::config::{Config, Error, Sources};
use crate::scheduler::job::Program;

mod spread;

/// A directory with files; the table is `jobs.toml`.
struct Place(TempDir);

impl Place {
    fn with(files: &[(&str, &str)]) -> Self {
        let place = Self(tempfile::tempdir().expect("a directory"));
        for (name, text) in files {
            place.write(name, text);
        }
        place
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("in the directory")).expect("made");
        fs::write(path, text).expect("written");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn try_read(&self) -> Result<Config, Error> {
        let path = self.path("jobs.toml");
        read_at(&fs::read_to_string(&path).expect("it is there"), &path)
    }

    fn read(&self) -> Config {
        self.try_read().unwrap_or_else(|error| panic!("{error}"))
    }

    /// What is wrong, each with the file and line that it is in.
    fn faults(&self) -> Vec<(String, usize, String)> {
        let Error(report, _) = self.try_read().expect_err("errors");
        let told = report.diagnostics().iter().map(|diagnostic| {
            let (path, line, _) = report.position(diagnostic).expect("a place");
            let path = Path::new(path).strip_prefix(self.0.path()).expect("here");
            let path = path.display().to_string();
            (path, line, diagnostic.message.clone())
        });
        told.collect()
    }

    /// The included files, from the directory on.
    fn included(&self) -> Vec<String> {
        self.relative(&self.read().sources.tables[1..])
    }

    fn relative(&self, paths: &[PathBuf]) -> Vec<String> {
        let relative =
            |path: &PathBuf| path.strip_prefix(self.0.path()).ok().map(Path::to_path_buf);
        let paths = paths.iter().map(|path| relative(path).expect("here"));
        paths.map(|path| path.display().to_string()).collect()
    }
}

fn names(config: &Config) -> Vec<&str> {
    config.jobs.iter().map(|job| job.name.as_str()).collect()
}

fn job(name: &str) -> String {
    format!("[jobs.{name}]\nschedule = \"@daily\"\nshell = \"x\"\n")
}

fn main(include: &str) -> String {
    format!("[scheduler]\ninclude = [{include}]\n{}", job("main"))
}

#[test]
fn files_come_in_the_order_of_their_paths_and_leftovers_of_editors_do_not() {
    let place = Place::with(&[("jobs.toml", &main("'jobs.d/*.toml'"))]);
    for name in ["b.toml", "a.toml", "B.toml", "10.toml", "9.toml"] {
        let job = format!("f{}", name.trim_end_matches(".toml"));
        place.write(&format!("jobs.d/{name}"), &self::job(&job));
    }
    for name in [
        ".hidden.toml",
        "a.toml~",
        ".a.toml.swp",
        "#a.toml#",
        ".#a.toml",
        "a.toml.dpkg-old",
        "README",
        "..data/a.toml",
        "deeper/c.toml",
    ] {
        place.write(&format!("jobs.d/{name}"), "not TOML");
    }
    assert_eq!(
        names(&place.read()),
        ["main", "f10", "f9", "fB", "fa", "fb"]
    );
}

/// As Kubernetes mounts one: what is swapped is `..data`.
#[test]
fn each_file_of_a_mounted_config_map_is_read_once() {
    let place = Place::with(&[
        ("jobs.toml", &main("'jobs.d/*'")),
        ("jobs.d/..2026_11_22/a.toml", &job("a")),
    ]);
    for (from, to) in [("..2026_11_22", "..data"), ("..data/a.toml", "a.toml")] {
        symlink(from, place.path("jobs.d").join(to)).expect("linked");
    }
    assert_eq!(place.included(), ["jobs.d/a.toml"]);
}

#[test]
fn patterns_know_the_wildcards_of_a_shell() {
    let files = [
        "a1.toml",
        "a2.toml",
        "b1.toml",
        "x[1].toml",
        "dir/a1.toml",
        "dir2/c.toml",
    ];
    for (include, expected) in [
        ("'d/a?.toml'", &["d/a1.toml", "d/a2.toml"][..]),
        ("'d/[ab]1.toml'", &["d/a1.toml", "d/b1.toml"]),
        ("'d/[!a]1.toml'", &["d/b1.toml"]),
        ("'d/x[[]1].toml'", &["d/x[1].toml"]),
        ("'d/*/*.toml'", &["d/dir/a1.toml", "d/dir2/c.toml"]),
        ("'d/b1.toml', 'd/a1.toml'", &["d/a1.toml", "d/b1.toml"]),
        (
            "'d/a1.toml', 'd/a*', './d/a2.toml'",
            &["d/a1.toml", "d/a2.toml"],
        ),
        ("'d/none/*.toml', 'none/*.toml'", &[]),
        ("'${NONE:-d}/a1.toml'", &["d/a1.toml"]),
        // The main file is not one of the others.
        ("'*.toml', 'd/../*.toml'", &[]),
        ("", &[]),
    ] {
        let place = Place::with(&[("jobs.toml", &main(include))]);
        for (index, name) in files.iter().enumerate() {
            place.write(&format!("d/{name}"), &job(&format!("j{index}")));
        }
        assert_eq!(place.included(), expected, "{include}");
    }
}

#[test]
fn a_pattern_in_a_directory_that_is_not_there_is_warned_of_and_no_other() {
    for (include, told) in [
        ("'none/*.toml'", "in `none`: there is no such directory"),
        ("'d/none/*/x.toml'", "in `d/none`: there is no such"),
        ("'./none/../d/?.toml'", "in `./none/../d`: there is no such"),
        ("'/none/at/all/[a-c]'", "in `/none/at/all`: there is no"),
        ("'d/a.toml/*'", "in `d/a.toml`: it is no directory"),
        ("'dangling/*'", "in `dangling`: there is no such"),
        (
            "'${PASSWORD}/*.toml'",
            "in the directory that is named here",
        ),
        ("'d/*.toml', 'empty/*.toml', 'empty/*/*'", ""),
        ("'*.none', '*/none/*.toml', '*.d/*.toml', '?/x'", ""),
        ("'link/*', '/*.none', 'd//*.none', 'd/a.toml'", ""),
    ] {
        let place = Place::with(&[("jobs.toml", &main(include)), ("d/a.toml", &job("a"))]);
        fs::create_dir(place.path("empty")).expect("made");
        symlink("nowhere", place.path("dangling")).expect("linked");
        symlink("empty", place.path("link")).expect("linked");
        let warnings = place.read().warnings;
        let shown: Vec<_> = warnings.diagnostics().iter().collect();
        match told {
            "" => assert!(shown.is_empty(), "{include}: {warnings}"),
            told => {
                assert_eq!(shown.len(), 1, "{include}: {warnings}");
                assert!(shown[0].message.contains(told), "{include}: {warnings}");
                assert!(shown[0].span.is_some() && shown[0].hint.is_some());
                let text = warnings.to_string();
                assert!(!text.contains(super::PASSWORD), "{text}");
            }
        }
    }
}

#[test]
fn a_wildcard_in_the_name_of_the_tables_own_directory_is_none() {
    let place = Place::with(&[
        ("[a]*/jobs.toml", &main("'*.d/*.toml'")),
        ("[a]*/x.d/one.toml", &job("one")),
        ("a/x.d/two.toml", &job("two")),
    ]);
    let path = place.path("[a]*/jobs.toml");
    let config = read_at(&main("'*.d/*.toml'"), &path).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(names(&config), ["main", "one"]);
    let directories = place.relative(&config.sources.directories);
    assert_eq!(directories, ["[a]*", "[a]*/x.d"]);
}

#[test]
fn an_absolute_pattern_begins_at_the_root() {
    let elsewhere = Place::with(&[("a.toml", &job("a")), ("b.toml", &job("b"))]);
    let pattern = elsewhere.path("?.toml").display().to_string();
    let place = Place::with(&[("jobs.toml", &main(&format!("'{pattern}'")))]);
    assert_eq!(names(&place.read()), ["main", "a", "b"]);
}

#[test]
fn jobs_and_calendars_are_known_in_all_files() {
    let place = Place::with(&[
        (
            "jobs.toml",
            "[scheduler]\ninclude = ['*/*.toml']\n[jobs.last]\nafter = ['first']\nshell = 'x'\n[calendars.ours]\ndates = ['2026-12-25']\n",
        ),
        (
            "a/jobs.toml",
            "[jobs.first]\nschedule = '@daily'\nexcept = ['ours', 'theirs']\nshell = 'x'\n",
        ),
        (
            "b/jobs.toml",
            "[calendars.theirs]\nical = 'x.ics'\n[jobs.middle]\nafter = 'last'\nshell = 'x'\n",
        ),
        (
            "b/x.ics",
            "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;VALUE=DATE:20261224\nEND:VEVENT\nEND:VCALENDAR\n",
        ),
    ]);
    let config = place.read();
    assert_eq!(names(&config), ["last", "first", "middle"]);
    let days = config.jobs[1].schedule.days().expect("calendars");
    assert_eq!(days.to_string(), "except ours, theirs");
    let sources = &config.sources;
    assert_eq!(place.relative(&sources.calendars), ["b/x.ics"]);
    assert_eq!(place.relative(&sources.directories), ["", "a", "b"]);
}

#[test]
fn defaults_hold_for_their_own_file_over_those_of_the_main_one() {
    let place = Place::with(&[
        (
            "jobs.toml",
            "[scheduler]\ninclude = ['*.toml']\n[defaults]\nschedule = '@daily'\nshell = 'main'\nuser = 'shop'\nenv = { A = 'main', B = 'main' }\n[jobs.main]\n",
        ),
        (
            "a.toml",
            "[defaults]\ncommand = ['a']\nenv = { B = 'a', C = 'a' }\n[jobs.a]\n[jobs.own]\nshell = 'own'\nenv.C = 'own'\n",
        ),
        ("b.toml", "[jobs.b]\n"),
        ("c.toml", "[defaults]\nafter = 'b'\n[jobs.c]\n"),
    ]);
    let config = place.read();
    let said: Vec<_> = config
        .jobs
        .iter()
        .map(|job| {
            let program = match &job.command.program {
                Program::Command(argv) => argv.join(" "),
                Program::Shell(script) => format!("sh {script}"),
                Program::Http(_) => "http".into(),
                Program::Function => unreachable!("no table has one"),
            };
            let env: Vec<_> = job.command.env.values().map(String::as_str).collect();
            let user = job.command.user.as_deref().unwrap_or_default();
            format!(
                "{}: {program}; {user}; {}; {}",
                job.name,
                env.join(" "),
                job.after.len()
            )
        })
        .collect();
    assert_eq!(
        said,
        [
            "main: sh main; shop; main main; 0",
            "a: a; shop; main a a; 0",
            "own: sh own; shop; main a own; 0",
            "b: sh main; shop; main main; 0",
            "c: sh main; shop; main main; 1",
        ]
    );
}

#[test]
fn faults_of_all_files_are_told_at_once_each_in_its_place() {
    let place = Place::with(&[
        (
            "jobs.toml",
            "[scheduler]\ninclude = ['*.d/*.toml']\nnamespace = 'a b'\n[jobs.one]\nschedule = '@daily'\nshell = 'x'\n",
        ),
        (
            "a.d/a.toml",
            "\n[jobs.a]\nschedule = '61 * * * *'\nshell = 'x'\nsuccess_codes = [0, 256]\n",
        ),
        ("a.d/b.toml", "[jobs.b]\nshell = 'x\n[jobs.c]\nshell = 'y'"),
        (
            "a.d/c.toml",
            "[jobs.e]\nafter = 'nobody'\nshell = 'x'\n[jobs.c]\n[jobs.d]\nshell = 'x'\n",
        ),
        ("a.d/d.toml", "[scheduler]\nnamespace = 'c d'\n[jobs.one]\n"),
        (
            "a.d/e.toml",
            "[scheduler]\nlisten = 'off'\ninclude = ['x']\n",
        ),
    ]);
    let fault = |path: &str, line, message: &str| (path.to_owned(), line, message.to_owned());
    assert_eq!(
        place.faults(),
        [
            fault(
                "jobs.toml",
                3,
                "`a b` is no namespace: ` ` can't stand here: a name is made of letters, digits, `.`, `_` and `-`, and starts with a letter or digit"
            ),
            fault(
                "a.d/a.toml",
                3,
                "`61` is not a minute: minutes go from 0 to 59"
            ),
            fault("a.d/a.toml", 5, "an exit code is a number from 0 to 255",),
            fault(
                "a.d/b.toml",
                2,
                "this is not TOML: invalid literal string, expected `'`"
            ),
            // In b.toml schedules may be missing for the line that can't be read, here not; whom
            // `e` waits for may have stood there.
            fault("a.d/c.toml", 4, "the job `c` is there twice, in two files"),
            fault("a.d/c.toml", 5, "the job `d` has no schedule"),
            fault("a.d/d.toml", 1, "`[scheduler]` stands in an included file"),
            fault(
                "a.d/d.toml",
                3,
                "the job `one` is there twice, in two files"
            ),
            fault("a.d/e.toml", 3, "`include` stands in an included file"),
        ]
    );
}

#[test]
fn a_line_of_a_log_names_the_file_at_fault() {
    let place = Place::with(&[
        ("jobs.toml", &main("'*.toml'")),
        (
            "a.toml",
            "\n[jobs.a]\nschedule = '61 * * * *'\nshell = 'x'\n",
        ),
    ]);
    let Error(report, _) = place.try_read().expect_err("no such minute");
    let beginning = format!("{}:3:13: `61`", place.path("a.toml").display());
    assert!(
        report.summary().starts_with(&beginning),
        "{}",
        report.summary()
    );
    place.write("jobs.toml", "");
    let Error(report, _) = place.try_read().expect_err("no jobs");
    let beginning = format!("{}: `", place.path("jobs.toml").display());
    assert!(
        report.summary().starts_with(&beginning),
        "{}",
        report.summary()
    );
}

#[test]
fn a_name_that_may_be_in_an_unread_file_is_not_told_as_unknown() {
    let main = "[scheduler]\ninclude = ['none.toml']\n[jobs.x]\nafter = 'y'\nshell = 'x'\n[jobs.w]\nschedule = '@daily'\nexcept = 'z'\nshell = 'x'\n";
    let place = Place::with(&[("jobs.toml", main)]);
    let path = place.path("none.toml").display().to_string();
    let missing = format!("failed to read `{path}`: there is no such file");
    assert_eq!(place.faults(), [("jobs.toml".to_owned(), 2, missing)]);
    place.write("none.toml", "# Nothing yet.\n");
    let messages: Vec<_> = place.faults().into_iter().map(|fault| fault.2).collect();
    assert_eq!(
        messages,
        ["no job is called `y`", "there is no calendar `z`"]
    );
}

#[test]
fn a_table_says_what_it_depends_on_also_when_it_is_broken() {
    let place = Place::with(&[("jobs.d/a.toml", &job("a")), ("jobs.d/b.toml", &job("b"))]);
    let secret = place.path("secret");
    fs::write(&secret, "s3cr3t").expect("written");
    let main = format!(
        "[scheduler]\ninclude = ['jobs.d/*.toml', 'none.d/*']\n[jobs.x]\nschedule = '@daily'\nexcept = 'c'\nshell = 'x'\nenv = {{ A = '${{file:{0}}}', B = '${{file:{0}}}' }}\n[calendars.c]\nical = 'c.ics'\n",
        secret.display()
    );
    place.write("jobs.toml", &main);
    let expected = Sources {
        tables: ["jobs.toml", "jobs.d/a.toml", "jobs.d/b.toml"]
            .map(|name| place.path(name))
            .into(),
        directories: ["jobs.d", "none.d"].map(|name| place.path(name)).into(),
        calendars: vec![place.path("c.ics")],
        secrets: vec![secret.clone()],
    };
    let Error(report, sources) = place.try_read().expect_err("no c.ics");
    // And a warning, that there is no none.d.
    assert_eq!(report.diagnostics().len(), 2, "{report}");
    assert_eq!(*sources, expected);
    place.write(
        "c.ics",
        "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;VALUE=DATE:20261224\nEND:VEVENT\nEND:VCALENDAR\n",
    );
    let config = place.read();
    assert_eq!(config.sources, expected);
    assert_eq!(config.sources.paths().len(), 7);
    // A file that can't be read now may be there later.
    fs::remove_file(&secret).expect("removed");
    let Error(_, sources) = place.try_read().expect_err("no secret");
    assert_eq!(*sources, expected);
}

#[test]
fn secrets_of_included_files_are_not_shown_either() {
    let place = Place::with(&[
        ("jobs.toml", &main("'*.toml'")),
        (
            "a.toml",
            "[jobs.a]\nenv = { A = \"s3cr3t\", B = 5 }\nhttp = { url = \"https://s3cr3t@h:port/?k=s3cr3t\" }\n[scheduler]\nstore = \"redis://:s3cr3t@h\"\n",
        ),
        ("b.toml", "[jobs.b.env]\nA = \"s3cr3t\n"),
        ("c.toml", "[jobs.c]\nenv.A = 's3cr3t'\nenv.A = 's3cr3t'\n"),
    ]);
    let error = place.try_read().expect_err("all of them are wrong");
    for shown in [error.to_string(), format!("{error:?}")] {
        assert!(!shown.contains("s3cr3t"), "{shown}");
    }
    assert!(error.to_string().contains("A = \"***"), "{error}");
}

#[test]
fn what_is_filled_in_in_a_pattern_is_not_shown() {
    let place = Place::with(&[]);
    for pattern in ["${PASSWORD}", "${PASSWORD}[/*", "${PASSWORD}/**"] {
        place.write("jobs.toml", &main(&format!("'{pattern}'")));
        let error = place.try_read().expect_err(pattern);
        assert!(!error.to_string().contains(super::PASSWORD), "{error}");
    }
}

#[test]
fn a_revision_is_an_integer_or_a_text_that_becomes_one() {
    let revision = |written: &str| {
        let source = format!(
            "[scheduler]\nwatch = true\nrevision = {written}\n{}",
            job("x")
        );
        let config = super::read(&source)?;
        assert!(config.scheduler.watch);
        Ok::<_, Error>(config.scheduler.revision)
    };
    for (written, expected) in [
        ("0", 0),
        ("9007199254740991", (1 << 53) - 1),
        ("\"42\"", 42),
        ("\"${BUILD}\"", 1234),
        ("\"${NONE:-7}\"", 7),
    ] {
        let read = revision(written).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(read, Some(expected), "{written}");
    }
    for (written, message) in [
        ("9007199254740992", "is a number from 0 to 9007199254740991"),
        ("-1", "is a number from 0 to 9007199254740991"),
        ("\"+1\"", "is a number from 0 to 9007199254740991"),
        ("\"\"", "is a number from 0 to 9007199254740991"),
        ("\"v1\"", "is a number from 0 to 9007199254740991"),
        (
            "\"${PASSWORD}\"",
            "what is filled in here is no such number",
        ),
        ("\"${NONE}\"", "the environment has no variable `NONE`"),
        ("1.5", "`revision` takes an integer, not a float"),
    ] {
        let error = revision(written).expect_err(written).to_string();
        assert!(error.contains(message), "{written}: {error}");
        assert!(!error.contains(super::PASSWORD), "{error}");
    }
}
