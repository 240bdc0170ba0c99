//! What is kept of the past, and for how long.

use std::time::Duration;

use soloist::scheduler::lease::{
    AttemptDetail, Captured, Claim, ClaimAnswer, LATE_AFTER, Late, MeasuredOf, Outcome, Output,
    PeakMemory, Release, Scope, Usage,
};
use soloist::store::OUTPUTS_KEPT;

use crate::bench::{Bench, Peer, STEP, anew, job, later, release, run_id};
use crate::fixtures::Fixture;

/// Runs `claim` and the `count - 1` occurrences after it, and gives their claims, oldest first.
async fn run_many(peer: &Peer, claim: &Claim, count: u32) -> Vec<Claim> {
    let mut claims = Vec::new();
    for step in 0..count {
        let claim = later(claim, step);
        peer.run(&claim, Outcome::Succeeded).await;
        claims.push(claim);
    }
    claims
}

pub(crate) async fn history_is_told_newest_first_and_by_job<F: Fixture>(bench: &Bench<F>) {
    let (a, b) = (bench.replica("a").await, bench.replica("b").await);
    let claim = a.first_claim("report").await;
    let grant = a.win(&claim).await;
    let mut told = release(&claim, &grant, Outcome::Failed);
    told.detail = AttemptDetail {
        exit_code: Some(3),

        reason: Some("a \"reason\", with | and \n and ü".to_owned()),
        ..AttemptDetail::default()
    };
    a.release(&told).await;
    let claims = run_many(&b, &later(&claim, 1), 4).await;
    b.run(&b.first_claim("other").await, Outcome::Succeeded)
        .await;
    let lines = b.history(Some(&job("report"))).await;
    let runs: Vec<_> = lines.iter().map(|line| line.run_id).collect();
    let expected: Vec<_> = claims
        .iter()
        .rev()
        .chain([&claim])
        .map(|claim| claim.run_id)
        .collect();
    assert_eq!(runs, expected);
    let oldest = &lines[4];
    assert_eq!(
        (oldest.job.as_str(), oldest.replica.as_str()),
        ("report", "a")
    );
    assert_eq!((oldest.outcome, oldest.attempt), (Outcome::Failed, 1));
    assert_eq!((oldest.token, &oldest.detail), (grant.token, &told.detail));
    assert_eq!(oldest.scheduled_at, claim.occurrence.scheduled_at);
    assert!(oldest.started_at <= oldest.ended_at, "{oldest:?}");
    assert_eq!(
        oldest.started_at + claim.ttl,
        grant.deadline,
        "when it was granted"
    );
    let all = b.history(None).await;
    assert_eq!(all.len(), 6);
    assert!(
        all.is_sorted_by(|a, b| a.ended_at >= b.ended_at),
        "newest first: {all:?}"
    );
    let few = b
        .store
        .history(Some(&job("report")), 2)
        .await
        .expect("the store answers");
    assert_eq!(few, lines[..2]);
    assert_eq!(
        b.store.history(None, 3).await.expect("the store answers"),
        all[..3]
    );
    assert_eq!(b.history(Some(&job("unknown"))).await, []);
}

pub(crate) async fn what_an_attempt_used_comes_back_as_it_was_written<F: Fixture>(
    bench: &Bench<F>,
) {
    let (a, b) = (bench.replica("a").await, bench.replica("b").await);
    let measured = |bytes, of| Some(PeakMemory { bytes, of });
    let usages = [
        // The largest that each part can be, and the smallest.
        Some(Usage {
            cpu: Some(Duration::from_micros(u64::MAX)),
            peak_memory: measured(u64::MAX, MeasuredOf::AllProcesses),
        }),
        Some(Usage {
            cpu: Some(Duration::ZERO),
            peak_memory: measured(0, MeasuredOf::LargestProcess),
        }),
        Some(Usage {
            cpu: Some(Duration::from_micros(1)),
            peak_memory: None,
        }),
        Some(Usage {
            cpu: None,
            peak_memory: measured(1, MeasuredOf::LargestProcess),
        }),
        Some(Usage::default()),
        None,
    ];
    let first = a.first_claim("report").await;
    for (step, usage) in (0..).zip(usages) {
        let claim = later(&first, step);
        let grant = a.win(&claim).await;
        let mut told = release(&claim, &grant, Outcome::Succeeded);
        told.detail.usage = usage;
        a.release(&told).await;
    }
    let lines = b.history(Some(&job("report"))).await;
    let read: Vec<_> = lines.iter().rev().map(|line| line.detail.usage).collect();
    assert_eq!(read, usages);
}

pub(crate) async fn what_never_ran_used_nothing<F: Fixture>(bench: &Bench<F>) {
    let a = bench.replica("a").await;
    let mut claim = a.first_claim("report").await;
    claim.max_attempts = 1;
    let grant = a.win(&claim).await;
    let mut told = release(&claim, &grant, Outcome::HandedOver);
    told.detail.usage = Some(Usage {
        cpu: Some(Duration::from_secs(1)),
        peak_memory: None,
    });
    a.release(&told).await;
    // There is no next attempt: this closes the occurrence with a line of the same run.
    assert_eq!(a.claim(&anew(&claim)).await, ClaimAnswer::Closed);
    let lines = a.history(Some(&job("report"))).await;
    let read: Vec<_> = lines.iter().map(|line| line.detail.usage).collect();
    assert_eq!(read, [None, told.detail.usage], "each line has its own");
}

pub(crate) async fn why_an_attempt_began_late_is_told_while_it_runs_and_by_its_line<F: Fixture>(
    bench: &Bench<F>,
) {
    let (a, b) = (bench.replica("a").await, bench.replica("b").await);
    let claim = Claim {
        late: Some(Late::Room),
        ..a.first_claim("report").await
    };
    let late_from = claim.occurrence.scheduled_at + LATE_AFTER;
    loop {
        let now = b.observe(Scope::Overdue).await.now;
        if now > late_from {
            break;
        }
        tokio::time::sleep(late_from.saturating_since(now) + STEP).await;
    }
    let grant = a.win(&claim).await;
    let snapshot = b.store.snapshot().await.expect("the store answers").answer;
    let last = snapshot.jobs[0].last().expect("it runs");
    assert_eq!(last.late, Some(Late::Room));
    a.release(&release(&claim, &grant, Outcome::Succeeded))
        .await;
    // A slow machine may need some tries to be prompt.
    loop {
        let mut prompt = anew(&claim);
        prompt.occurrence.scheduled_at = b.observe(Scope::Overdue).await.now;
        a.run(&prompt, Outcome::Succeeded).await;
        let mut lines = b.history(Some(&job("report"))).await;
        assert_eq!(lines.pop().and_then(|line| line.detail.late), last.late);
        let newest = &lines[0];
        if newest.started_at <= newest.scheduled_at + LATE_AFTER {
            assert_eq!(newest.detail.late, None, "what was prompt needs none");
            return;
        }
    }
}

pub(crate) async fn all_history_can_be_asked_for_and_none_of_it<F: Fixture>(bench: &Bench<F>) {
    let a = bench.replica("a").await;
    run_many(&a, &a.first_claim("report").await, 2).await;
    for job in [None, Some(job("report"))] {
        for (limit, lines) in [(usize::MAX, 2), (1, 1), (0, 0)] {
            let told = a.store.history(job.as_ref(), limit).await;
            assert_eq!(told.expect("the store answers").len(), lines, "{limit}");
        }
    }
}

pub(crate) async fn history_is_kept_up_to_its_limit<F: Fixture>(bench: &Bench<F>) {
    let a = bench.replica("a").await;
    let mut claim = a.first_claim("report").await;
    claim.retention.limit = 5;
    run_many(&a, &a.first_claim("other").await, 3).await;
    let claims = run_many(&a, &claim, 9).await;
    let lines = a.history(Some(&job("report"))).await;
    let runs: Vec<_> = lines.iter().map(|line| line.run_id).collect();
    let newest: Vec<_> = claims
        .iter()
        .rev()
        .take(5)
        .map(|claim| claim.run_id)
        .collect();
    assert_eq!(runs, newest);
    assert_eq!(
        a.history(Some(&job("other"))).await.len(),
        3,
        "each job has its own limit"
    );
    // What history forgot, the ledger has not: nothing runs again.
    let answer = a.claim(&crate::bench::anew(&claims[0])).await;
    assert_eq!(answer, soloist::scheduler::lease::ClaimAnswer::Finished);
}

pub(crate) async fn history_is_kept_up_to_its_age<F: Fixture>(bench: &Bench<F>) {
    let a = bench.replica("a").await;
    let mut claim = a.first_claim("report").await;
    run_many(&a, &claim, 3).await;
    let kept_before = a.history(None).await;
    assert_eq!(kept_before.len(), 3);
    // Until the three are older than what is then said to be kept.
    let age = Duration::from_millis(200);
    while a
        .observe(soloist::scheduler::lease::Scope::Overdue)
        .await
        .now
        <= kept_before[0].ended_at + age
    {
        tokio::time::sleep(STEP * 20).await;
    }
    assert_eq!(a.history(None).await.len(), 3, "nothing goes by itself");
    claim.retention.age = age;
    let newest = later(&claim, 10);
    a.run(&newest, Outcome::Succeeded).await;
    let lines = a.history(None).await;
    let runs: Vec<_> = lines.iter().map(|line| line.run_id).collect();
    assert_eq!(runs, [newest.run_id]);
}

fn printed(number: usize) -> Output {
    Output {
        stdout: Captured {
            head: vec![0, 255, b'\n', number as u8],
            tail: b"the end\r\n".to_vec(),
            total: 1 << 40,
        },
        stderr: Captured::default(),
    }
}

async fn run_printing(peer: &Peer, claim: &Claim, output: Output) {
    let grant = peer.win(claim).await;
    let told = Release {
        output,
        ..release(claim, &grant, Outcome::Succeeded)
    };
    peer.release(&told).await;
}

pub(crate) async fn what_an_attempt_printed_is_kept_as_it_was<F: Fixture>(bench: &Bench<F>) {
    let (a, b) = (bench.replica("a").await, bench.replica("b").await);
    let claim = a.first_claim("report").await;
    run_printing(&a, &claim, printed(1)).await;
    let silent = later(&claim, 1);
    a.run(&silent, Outcome::Succeeded).await;
    let output = async |job, run| b.store.output(&job, run).await.expect("the store answers");
    assert_eq!(output(job("report"), claim.run_id).await, Some(printed(1)));
    assert_eq!(output(job("report"), silent.run_id).await, None);
    assert_eq!(output(job("report"), run_id()).await, None);
    assert_eq!(output(job("other"), claim.run_id).await, None);
}

pub(crate) async fn of_a_jobs_outputs_the_newest_are_kept<F: Fixture>(bench: &Bench<F>) {
    let a = bench.replica("a").await;
    let first = a.first_claim("report").await;
    let other = a.first_claim("other").await;
    run_printing(&a, &other, printed(0)).await;
    let over = 3;
    let mut claims = Vec::new();
    for number in 0..OUTPUTS_KEPT + over {
        let claim = later(&first, number as u32);
        run_printing(&a, &claim, printed(number)).await;
        claims.push(claim);
    }
    assert_eq!(
        a.history(Some(&job("report"))).await.len(),
        OUTPUTS_KEPT + over
    );
    for (number, claim) in claims.iter().enumerate() {
        let output = a.store.output(&job("report"), claim.run_id).await;
        let expected = (number >= over).then(|| printed(number));
        assert_eq!(
            output.expect("the store answers"),
            expected,
            "of run {number}"
        );
    }
    let output = a.store.output(&job("other"), other.run_id).await;
    assert_eq!(
        output.expect("the store answers"),
        Some(printed(0)),
        "each job has its own"
    );
}

pub(crate) async fn an_output_outlives_a_later_line_of_its_attempt<F: Fixture>(bench: &Bench<F>) {
    let a = bench.replica("a").await;
    let mut claim = a.first_claim("report").await;
    claim.max_attempts = 1;
    let grant = a.win(&claim).await;
    let told = Release {
        output: printed(1),
        ..release(&claim, &grant, Outcome::HandedOver)
    };
    a.release(&told).await;
    // There is no next attempt: this closes the occurrence with a line of the same run.
    let closed = a.claim(&anew(&claim)).await;
    assert_eq!(closed, ClaimAnswer::Closed);
    let both = [Outcome::Lost, Outcome::HandedOver];
    assert_eq!(a.outcomes(&job("report")).await, both);
    let output = a.store.output(&job("report"), claim.run_id).await;
    assert_eq!(output.expect("the store answers"), Some(printed(1)));
}
