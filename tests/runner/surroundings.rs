//! What a job finds around it: its environment, descriptors, group and directory.

use std::fs::File;
use std::path::PathBuf;

use super::*;

/// What `env` prints, sorted.
async fn environment_of(runner: Runner, job: Job) -> Vec<String> {
    let (told, ending) = oneshot::channel();
    let on_end = |ending| told.send(ending).expect("the test still listens");
    runner.start(attempt(job), OutputMode::Capture, on_end);
    let ending = within_limit(ending).await.expect("its end is told");
    let mut variables: Vec<_> = stdout_of(&ending).lines().map(str::to_owned).collect();
    variables.sort();
    variables
}

fn runner_passing(variables: &[(&str, &str)]) -> Runner {
    let variables = variables
        .iter()
        .map(|(name, value)| (name.into(), value.into()));
    runner_with("web-1", variables)
}

const CONTRACT: [&str; 8] = [
    "SOLOIST_ATTEMPT=3",
    "SOLOIST_FENCING_TOKEN=1795212000000001",
    "SOLOIST_JOB=close-expired-orders",
    "SOLOIST_REPLICA=web-1",
    "SOLOIST_RUN_ID=00000000-0000-0000-0000-000000000007",
    "SOLOIST_SCHEDULED_AT=2026-11-20T22:00:00Z",
    "SOLOIST_SHARD_INDEX=0",
    "SOLOIST_SHARD_TOTAL=1",
];

#[tokio::test]
async fn the_environment_is_what_is_passed_on_and_the_contracts_and_nothing_else() {
    let bench = Bench::new();
    let passed_on = [
        ("HOME", "/home/u"),
        ("LANG", "C.UTF-8"),
        ("LC_TIME", "de_DE"),
        ("LOGNAME", "u"),
        ("PATH", "/usr/bin:/bin"),
        ("SHELL", "/bin/fish"),
        ("TMPDIR", "/var/tmp"),
        ("TZ", "Asia/Shanghai"),
        ("USER", "u"),
        ("SSL_CERT_FILE", "/etc/ssl/own.pem"),
        ("https_proxy", "http://proxy:3128"),
        ("NO_PROXY", "localhost"),
    ];
    let kept_back = [
        ("DATABASE_URL", "postgres://u:secret@db/shop"),
        ("REDIS_PASSWORD", "secret"),
        ("PATH_INFO", "/"),
        ("LCX", "1"),
        ("LD_LIBRARY_PATH", "/opt/lib"),
        ("XDG_RUNTIME_DIR", "/run/user/0"),
        ("SOLOIST_STORE", "redis://:secret@host"),
        ("SOLOIST_JOB", "forged"),
        ("LD_PRELOAD", "/lib/x.so"),
        ("NOTIFY_SOCKET", "/run/systemd/notify"),
        ("JOURNAL_STREAM", "8:1"),
        ("PWD", "/"),
    ];
    let runner = runner_passing(&[passed_on.as_slice(), &kept_back].concat());
    let mut expected: Vec<_> = passed_on
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    expected.extend(CONTRACT.map(str::to_owned));
    expected.sort();
    assert_eq!(
        environment_of(runner, bench.command(&["env"])).await,
        expected
    );
}

#[tokio::test]
async fn a_jobs_own_variables_win_over_what_is_passed_on_and_not_over_the_contract() {
    let bench = Bench::new();
    let mut job = bench.command(&["env"]);
    for (name, value) in [
        ("TZ", "UTC"),
        ("MODE", "a b=c"),
        ("SOLOIST_FENCING_TOKEN", "1"),
    ] {
        job.command.env.insert(name.to_owned(), value.to_owned());
    }
    let runner = runner_passing(&[("TZ", "Asia/Shanghai"), ("PATH", "/usr/bin:/bin")]);
    let mut expected = vec!["MODE=a b=c".to_owned(), "PATH=/usr/bin:/bin".to_owned()];
    expected.extend(CONTRACT.map(str::to_owned));
    expected.push("TZ=UTC".to_owned());
    assert_eq!(environment_of(runner, job).await, expected);
}

#[tokio::test]
async fn a_job_with_a_user_is_told_nothing_of_the_daemons() {
    let bench = Bench::new();
    let mut job = bench.command(&["env"]);
    // Whoever runs this: nobody else could be become by everybody.
    job.command.user = Some(rustix::process::geteuid().as_raw().to_string());
    job.command.group = Some(rustix::process::getegid().as_raw().to_string());
    for (name, value) in [("HOME", "/own"), ("USER", "own"), ("LOGNAME", "own")] {
        job.command.env.insert(name.to_owned(), value.to_owned());
    }
    let runner = runner_passing(&[
        ("HOME", "/daemons"),
        ("USER", "daemons"),
        ("LOGNAME", "daemons"),
        ("SHELL", "/daemons"),
        ("TMPDIR", "/tmp"),
    ]);
    let variables = environment_of(runner, job).await;
    for own in ["HOME=/own", "USER=own", "LOGNAME=own", "TMPDIR=/tmp"] {
        assert!(variables.iter().any(|line| line == own), "{variables:?}");
    }
    assert!(
        !variables.iter().any(|line| line.contains("daemons")),
        "{variables:?}"
    );
}

#[tokio::test]
async fn a_job_without_a_path_gets_the_usual_one() {
    let bench = Bench::new();
    let variables = environment_of(runner_passing(&[]), bench.command(&["env"])).await;
    assert!(
        variables
            .iter()
            .any(|line| line.starts_with("PATH=/usr/local/sbin:"))
    );
}

#[tokio::test]
async fn the_program_is_looked_for_in_the_jobs_own_path() {
    let bench = Bench::new();
    let script = "mkdir bin && ln -s \"$(command -v env)\" bin/my-env";
    assert_eq!(
        bench.run(bench.shell(script)).await.how,
        EndedHow::Succeeded
    );
    let mut job = bench.command(&["my-env"]);
    let path = bench.path("bin").display().to_string();
    job.command.env.insert("PATH".to_owned(), path);
    assert_eq!(bench.run(job).await.how, EndedHow::Succeeded);
}

#[tokio::test]
async fn no_descriptor_of_this_process_reaches_a_job() {
    let file = File::open("/dev/null").unwrap();
    // As if left open by whoever started this process: not close-on-exec.
    let inherited = rustix::io::dup(&file).unwrap();
    let bench = Bench::new();
    let script = "ls /proc/$$/fd; readlink /proc/$$/fd/0; exit 0";
    let ending = bench.run(bench.shell(script)).await;
    assert_eq!(stdout_of(&ending), "0\n1\n2\n/dev/null\n");
    drop(inherited);
}

#[tokio::test]
async fn stdin_is_at_its_end() {
    let bench = Bench::new();
    let ending = bench
        .run(bench.shell("if read line; then echo read; else echo end; fi"))
        .await;
    assert_eq!(stdout_of(&ending), "end\n");
}

#[tokio::test]
async fn a_job_leads_a_group_of_its_own() {
    let bench = Bench::new();
    let script = "cut -d' ' -f1,5 /proc/$$/stat; exit 0";
    let ending = bench.run(bench.shell(script)).await;
    let stdout = stdout_of(&ending);
    let (pid, group) = stdout.trim_end().split_once(' ').unwrap();
    assert_eq!(pid, group);
}

#[tokio::test]
async fn sigpipe_and_term_are_neither_blocked_nor_ignored() {
    let bench = Bench::new();
    let job = bench.command(&["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]);
    let stdout = stdout_of(&bench.run(job).await);
    assert_eq!(stdout.lines().count(), 2);
    for line in stdout.lines() {
        let mask = line.split_ascii_whitespace().nth(1).unwrap();
        let mask = u64::from_str_radix(mask, 16).unwrap();
        assert_eq!(mask & (1 << 12 | 1 << 14), 0, "{line}");
    }
}

#[tokio::test]
async fn a_job_runs_in_its_working_directory() {
    let bench = Bench::new();
    let ending = bench.run(bench.shell("pwd -P")).await;
    let dir = bench.dir.path().canonicalize().unwrap();
    assert_eq!(stdout_of(&ending).trim_end(), dir.to_str().unwrap());
}

#[tokio::test]
async fn a_relative_program_is_taken_from_a_relative_working_directory_once() {
    let bench = Bench::new();
    // This package's own directory is where tests run.
    assert_eq!(
        std::env::current_dir().unwrap(),
        PathBuf::from(env!("CARGO_MANIFEST_DIR"))
    );
    // What cargo builds may be elsewhere.
    std::fs::create_dir_all("target").unwrap();
    let target = tempfile::tempdir_in("target").unwrap();
    let script = "ln -s /bin/true here";
    let mut job = bench.shell(script);
    job.command.working_dir = Some(target.path().to_owned());
    assert_eq!(bench.run(job).await.how, EndedHow::Succeeded);
    let mut job = bench.command(&["./here"]);
    let name = target.path().file_name().unwrap();
    job.command.working_dir = Some(PathBuf::from("target").join(name));
    let ending = bench.run(job).await;
    assert_eq!(ending.how, EndedHow::Succeeded, "{:?}", ending.detail);
}
