//! What becomes of leases while the program that holds them computes where it should wait.
//!
//! Must never: measure how fast: it is enough that nobody else has what is held.

use std::os::unix::process::CommandExt as _;
use std::time::Duration;

use soloist::leases::AcquireError;
use test_support::machine::{while_it_runs, while_it_runs_async};
use test_support::redis::{RedisServer, fresh_namespace};

use crate::{LONG, client, has, is_kept, is_kept_alone};

const TTL: Duration = Duration::from_millis(2500);

/// Longer than a lease that nobody renews is waited for.
const BLOCKED: Duration = Duration::from_millis(6500);

/// Another program, as it were: it wants `name` for as long as a lease lasts that nobody renews.
fn somebody_else(url: String, namespace: String, name: &'static str) -> impl FnOnce() -> bool {
    move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let other = client(&url, &namespace).await;
            let asked = other.lease(name).ttl(TTL).acquire_within(BLOCKED).await;
            match asked {
                Ok(_) => true,
                Err(AcquireError::TimedOut(_)) => false,
                Err(error) => panic!("neither granted nor busy: {error}"),
            }
        })
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_program_that_blocks_its_only_thread_keeps_what_it_holds() {
    while_it_runs_async(block_the_only_thread).await;
}

async fn block_the_only_thread() -> Result<(), String> {
    let server = RedisServer::start();
    let namespace = fresh_namespace();
    let client = client(&server.url(), &namespace).await;
    let lease = has(client.lease("a").ttl(TTL)).await;
    let other = std::thread::spawn(somebody_else(server.url(), namespace, "a"));
    // Nothing on this runtime has a turn meanwhile.
    let got_it = other.join().expect("no panic");
    is_kept_alone(&lease, got_it)?;
    Ok(())
}

/// tokio moves no task that was woken last from a thread which is busy.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_given_back_before_a_long_computation_is_free_at_once() {
    while_it_runs_async(compute_after_a_drop).await;
}

async fn compute_after_a_drop() -> Result<(), String> {
    let server = RedisServer::start();
    let namespace = fresh_namespace();
    let one = client(&server.url(), &namespace).await;
    let kept = has(one.lease("kept").ttl(TTL)).await;
    let given_back = has(one.lease("given-back").ttl(TTL)).await;
    let blocked = tokio::spawn(async move {
        drop(given_back);
        std::thread::sleep(BLOCKED);
    });
    let other = client(&server.url(), &namespace).await;
    has(other.lease("given-back").ttl(TTL))
        .await
        .release()
        .await;
    assert!(
        !blocked.is_finished(),
        "it was free at last, and not at once"
    );
    blocked.await.expect("no panic");
    is_kept(&kept)?;
    Ok(())
}

#[test]
fn a_runtime_that_is_gone_takes_no_lease_along() {
    while_it_runs(end_the_runtime);
}

fn end_the_runtime() -> Result<(), String> {
    let server = RedisServer::start();
    let namespace = fresh_namespace();
    let runtime = || {
        let runtime = tokio::runtime::Builder::new_current_thread();
        { runtime }.enable_all().build().expect("a runtime")
    };
    let opened_on = runtime();
    let lease = opened_on.block_on(async {
        let client = client(&server.url(), &namespace).await;
        has(client.lease("a").ttl(TTL)).await
    });
    drop(opened_on);
    let got_it = somebody_else(server.url(), namespace.clone(), "a")();
    is_kept_alone(&lease, got_it)?;
    runtime().block_on(lease.release());
    assert!(
        somebody_else(server.url(), namespace, "a")(),
        "it was given back"
    );
    Ok(())
}

/// Names who is to be the process that forks.
const FORKS: &str = "SOLOIST_TEST_FORKS";

/// Run by the test below alone, in a process of its own: of a fork's child nothing runs but what forked.
#[test]
#[expect(unsafe_code, reason = "fork(2) has no safe form")]
fn member_that_forks() {
    if std::env::var_os(FORKS).is_none() {
        return;
    }
    let acquired = || {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().expect("a runtime");
        runtime.block_on(async { has(client("memory:", "n").await.lease("a")).await })
    };
    let kept = acquired();
    // SAFETY: the child does nothing that depends on a thread which it has not.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop(acquired());
        // SAFETY: nothing of this process is to be ended in the child.
        unsafe { libc::_exit(7) };
    }
    kept.check().expect("the parent goes on as it was");
    let mut status = 0;
    // SAFETY: it is a child of this process, and the status one of its own.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(libc::WEXITSTATUS(status), 7);
}

#[test]
fn a_child_that_was_forked_has_a_thread_of_its_own() {
    let program = std::env::current_exe().expect("this one");
    let mut member = std::process::Command::new(program)
        .args(["--exact", "blocked::member_that_forks"])
        .env(FORKS, "1")
        .process_group(0)
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("it can be run");
    let begun = std::time::Instant::now();
    let ended = loop {
        match member.try_wait().expect("it is a child") {
            None if begun.elapsed() < LONG => std::thread::sleep(Duration::from_millis(20)),
            ended => break ended,
        }
    };
    if ended.is_none() {
        let group = rustix::process::Pid::from_child(&member);
        let kill = rustix::process::Signal::KILL;
        rustix::process::kill_process_group(group, kill).expect("it is there");
        member.wait().expect("it is dead");
    }
    assert!(ended.expect("the child hangs").success());
}

/// Names the server, the namespace and the directory of who is to stand still.
const STANDS_STILL: &str = "SOLOIST_TEST_STANDS_STILL";

/// Run by the test below alone, in a process of its own, which is stopped.
#[test]
fn member_that_stands_still() {
    let Ok(told) = std::env::var(STANDS_STILL) else {
        return;
    };
    let [url, namespace, dir] = { told.split(' ').collect::<Vec<_>>() }[..] else {
        panic!("three words: {told}");
    };
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().expect("a runtime");
    let lease =
        runtime.block_on(async { has(client(url, namespace).await.lease("a").ttl(TTL)).await });
    std::fs::write(format!("{dir}/has"), "").expect("a file");
    let mut looked = std::time::Instant::now();
    // What is asked first after the gap is asked before anybody could tell it.
    let is_held = loop {
        let (gap, is_held) = (looked.elapsed(), lease.check().is_ok());
        if gap > TTL && std::path::Path::new(dir).join("stopped").exists() {
            break is_held;
        }
        assert!(is_held, "it is renewed");
        looked = std::time::Instant::now();
        std::thread::sleep(Duration::from_millis(1));
    };
    assert!(!is_held, "another one has it by now");
    let lost = async { tokio::time::timeout(LONG, lease.lost()).await };
    runtime.block_on(lost).expect("it hears of it");
    assert!(lease.check().is_err(), "it is not held again");
}

#[tokio::test]
async fn who_stood_still_is_told_that_it_is_lost_as_soon_as_it_asks() {
    let server = RedisServer::start();
    let (namespace, dir) = (fresh_namespace(), tempfile::tempdir().expect("a directory"));
    let told = format!("{} {namespace} {}", server.url(), dir.path().display());
    let program = std::env::current_exe().expect("this one");
    let mut member = std::process::Command::new(program)
        .args(["--exact", "blocked::member_that_stands_still"])
        .env(STANDS_STILL, told)
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("it can be run");
    while !dir.path().join("has").exists() {
        assert_eq!(member.try_wait().expect("a child"), None, "it ended early");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let pid = rustix::process::Pid::from_child(&member);
    let signal = |signal| rustix::process::kill_process(pid, signal).expect("it is there");
    signal(rustix::process::Signal::STOP);
    let other = client(&server.url(), &namespace).await;
    let taken_over = has(other.lease("a").ttl(TTL)).await;
    std::fs::write(dir.path().join("stopped"), "").expect("a file");
    signal(rustix::process::Signal::CONT);
    let ended = tokio::task::spawn_blocking(move || member.wait()).await;
    assert!(ended.expect("no panic").expect("a child").success());
    taken_over.check().expect("it was left alone");
}

#[tokio::test]
async fn a_client_that_was_closed_says_so() {
    let server = RedisServer::start();
    let one = client(&server.url(), &fresh_namespace()).await;
    let lease = has(one.lease("a").ttl(TTL)).await;
    let (other, third) = (one.clone(), one.clone());
    let both = async { tokio::join!(one.clone().close(), third.close()) };
    tokio::time::timeout(LONG, both).await.expect("it ends");
    lease.check().expect_err("it was given back");
    let names = other.names().await.expect_err("nobody is asked any more");
    assert!(names.to_string().contains("was shut down"), "{names}");
    let asked = one.lease("a").acquire().await;
    assert!(matches!(asked, Err(AcquireError::Closed)), "{asked:?}");
}
