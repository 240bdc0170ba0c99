//! What jobs print: at any speed, of any bytes, or not at all; and readable when the replica that
//! ran them is gone.

use std::time::{Duration, Instant};

use serde_json::Value;
use test_support::fleet::{Fleet, Replica};
use test_support::machine::{alone, together};

use crate::figures::{Since, millis};
use crate::scene::{field_ns, fleet, fresh_name, guardian_of, shell_job, wait_for_outcome};

/// Of each stream, half at its head and half at its tail.
const LIMIT: usize = 64 * 1024;
const OUTPUT_LIMIT: &str = "output_limit = \"64KiB\"";

/// What `soloist logs` prints of an attempt, on stdout and stderr.
fn logs(fleet: &Fleet, end: &Value) -> (Vec<u8>, Vec<u8>) {
    let (job, at) = (&end["job"], &end["scheduled_at"]);
    let (job, at) = (
        job.as_str().expect("a name"),
        at.as_str().expect("an instant"),
    );
    let attempt = end["attempt"].to_string();
    let arguments = ["logs", job, "--at", at, "--attempt", &attempt];
    let output = fleet.look(&arguments);
    assert!(output.status.success(), "{output:?}");
    (output.stdout, output.stderr)
}

/// How many bytes a listing says were left out.
fn cut(printed: &[u8]) -> Option<usize> {
    let text = String::from_utf8_lossy(printed);
    let (before, _) = text.split_once(" bytes are not kept")?;
    before.rsplit(' ').next()?.parse().ok()
}

fn succeeded(fleet: &Fleet, job: &str) -> Value {
    let end = wait_for_outcome(fleet, job, |_| true);
    assert_eq!(end["outcome"], "succeeded", "{end:#}");
    end
}

/// The most that the daemon and its guardian have in memory until a job is in the ledger.
fn most_resident_kib(replica: &Replica, fleet: &Fleet, job: &str) -> (u64, Value) {
    let processes = [replica.process(), guardian_of(replica)];
    std::thread::scope(|scope| {
        let ended = scope.spawn(|| succeeded(fleet, job));
        let mut most = 0;
        while !ended.is_finished() {
            let resident = processes.iter().map(|process| process.resident_kib()).sum();
            most = most.max(resident);
            std::thread::sleep(Duration::from_millis(5));
        }
        (most, ended.join().expect("an end"))
    })
}

#[test]
fn a_flood_is_taken_at_speed_in_flat_memory_and_counted() {
    let _machine = alone();
    for (name, command) in [
        // One line that never ends, and lines without end.
        ("zeros", "[FAMILY, \"pour\", \"2000\"]"),
        (
            "lines",
            "[\"timeout\", \"2\", \"yes\", \"a line of a job that talks\"]",
        ),
    ] {
        let quiet = [shell_job("quiet", "echo", OUTPUT_LIMIT)];
        let fleet = fleet("", &quiet);
        let table = std::fs::read_to_string(fleet.config()).expect("a table");
        fleet.set_table(&format!(
            "{table}[jobs.flood]\nschedule = \"*/4 * * * * *\"\ncommand = {command}\n\
             success_codes = [0, 124]\n{OUTPUT_LIMIT}\n"
        ));
        let mut replica = fleet.start(&fresh_name());
        succeeded(&fleet, "quiet");
        let processes = [replica.process(), guardian_of(&replica)];
        let before: u64 = processes.iter().map(|process| process.resident_kib()).sum();
        let since = Since::now();
        let (most, end) = most_resident_kib(&replica, &fleet, "flood");
        let still_ns = since.still_ns();
        replica.drain();
        let (printed, _) = logs(&fleet, &end);
        let cut = cut(&printed).unwrap_or_else(|| panic!("nothing is said to be cut: {end:#}"));
        let took_ns = field_ns(&end, "ended_at") - field_ns(&end, "started_at");
        let took_ns = (took_ns - still_ns).max(1);
        let total = cut + LIMIT;
        let rate = total as f64 / (took_ns as f64 / 1e9) / 1e6;
        eprintln!(
            "flood of {name}: {:.0} MB in {}, {rate:.0} MB/s; resident {before} KiB before, at most {most} KiB",
            total as f64 / 1e6,
            millis(took_ns)
        );
        assert!(most < before + 24 * 1024, "memory grows with output");
        assert!(took_ns < 4_000_000_000, "held up: {took_ns}");
        assert!(rate > 10.0, "held up: {rate} MB/s");
    }
}

#[test]
fn head_and_tail_of_any_bytes_are_kept_when_their_replica_is_gone() {
    let _machine = together();
    let fleet = fleet("", &[]);
    let bytes: Vec<u8> = (0..1_000_000_u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    let file = fleet.dir().join("bytes");
    std::fs::write(&file, &bytes).expect("a file");
    let script = format!("cat {0}; cat {0} >&2", file.display());
    let table = std::fs::read_to_string(fleet.config()).expect("a table");
    fleet.set_table(&format!(
        "{table}{}",
        shell_job("binary", &script, OUTPUT_LIMIT)
    ));
    let mut replica = fleet.start(&fresh_name());
    let end = succeeded(&fleet, "binary");
    replica
        .process()
        .signal(test_support::process::Signal::KILL);
    replica.wait(Duration::from_secs(5));
    let (stdout, stderr) = logs(&fleet, &end);
    assert_eq!(cut(&stdout), Some(bytes.len() - LIMIT));
    let (head, tail) = (&bytes[..LIMIT / 2], &bytes[bytes.len() - LIMIT / 2..]);
    assert!(stdout.starts_with(head), "the head of stdout");
    assert!(stdout.ends_with(tail), "the tail of stdout");
    // A line about the attempt stands before it.
    assert!(stderr.ends_with(tail), "the tail of stderr");
    assert!(
        stderr.windows(head.len()).any(|window| window == head),
        "the head of stderr"
    );
}

#[test]
fn a_job_that_closes_its_output_or_has_none_goes_on() {
    let _machine = together();
    let fleet = fleet("", &[]);
    let done = fleet.dir().join("done");
    let closes = format!("exec >&- 2>&-; sleep 0.5; echo > {}", done.display());
    let jobs = [
        shell_job("closes", &closes, ""),
        shell_job("silent", "sleep 0.2", ""),
        shell_job("one-only", "exec 2>&-; echo out; sleep 0.3; echo more", ""),
        shell_job("unended", "printf 'no end of line'", ""),
    ];
    let table = std::fs::read_to_string(fleet.config()).expect("a table");
    fleet.set_table(&(table + &jobs.concat()));
    let mut replica = fleet.start(&fresh_name());
    for (job, expected) in [
        ("closes", ""),
        ("silent", ""),
        ("one-only", "out\nmore\n"),
        ("unended", "no end of line"),
    ] {
        let end = succeeded(&fleet, job);
        assert_eq!(
            String::from_utf8_lossy(&logs(&fleet, &end).0),
            expected,
            "{job}"
        );
    }
    assert!(done.exists(), "it went on after it had closed its output");
    replica.drain();
}

/// Whoever keeps the pipe open holds up no end: the attempt is over when its processes are.
#[test]
fn lines_of_a_job_are_in_the_log_with_job_and_stream_while_it_runs() {
    let _machine = together();
    let jobs = [shell_job(
        "talks",
        "echo to-stdout; echo to-stderr >&2; sleep 30",
        "",
    )];
    let fleet = fleet("shutdown_grace = \"0s\"", &jobs);
    let mut replica = fleet.start(&fresh_name());
    let began = Instant::now();
    for (text, stream) in [("to-stdout", "stdout"), ("to-stderr", "stderr")] {
        replica.wait_for_line(&[text, "job=talks", stream]);
    }
    assert!(began.elapsed() < Duration::from_secs(15), "before it ended");
    replica.drain();
}
