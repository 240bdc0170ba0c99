//! tokio-cron-scheduler, as its documentation has it, with a channel as large as the table.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio_cron_scheduler::{Job, JobScheduler};

use crate::Scenario;
use crate::sample::{Sample, cpu_time};

/// The channel that it has by default. Jobs that fall due beyond it are dropped, so that it gets
/// one as large as the table.
const MIN_CHANNEL: usize = 200;

pub(crate) async fn measure(scenario: Scenario) -> Sample {
    let fired: Arc<Mutex<Vec<SystemTime>>> = Arc::default();
    let scheduler = JobScheduler::new_with_channel_size(scenario.jobs.max(MIN_CHANNEL))
        .await
        .expect("a scheduler");
    for _ in 0..scenario.jobs {
        let fired = Arc::clone(&fired);
        let job = Job::new_async(scenario.schedule, move |_, _| {
            let fired = Arc::clone(&fired);
            Box::pin(async move {
                let now = SystemTime::now();
                fired.lock().expect("not poisoned").push(now);
            })
        });
        scheduler
            .add(job.expect("a schedule"))
            .await
            .expect("added");
    }
    scheduler.start().await.expect("started");
    let (from, until) = crate::own::window(scenario).await;
    let (cpu, began) = (cpu_time(), Instant::now());
    tokio::time::sleep(until.duration_since(from).unwrap_or_default()).await;
    let (cpu, wall) = (cpu_time() - cpu, began.elapsed());
    // What fired late belongs to the window as well.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let due = crate::own::due_within(scenario, from, until);
    let late = lateness(&fired.lock().expect("not poisoned"), scenario, from, until);
    Sample::of(late, due, cpu, wall)
}

/// The callback is not told which instant it is for; the last one before it is assumed, which
/// flatters whoever is later than a period.
fn lateness(
    fired: &[SystemTime],
    scenario: Scenario,
    from: SystemTime,
    until: SystemTime,
) -> Vec<Duration> {
    let period = crate::own::period(scenario);
    let instants = fired.iter().filter_map(|at| {
        let since_epoch = at.duration_since(UNIX_EPOCH).ok()?;
        let late = Duration::from_nanos((since_epoch.as_nanos() % period.as_nanos()) as u64);
        let due = *at - late;
        (due >= from && due < until).then_some(late)
    });
    instants.collect()
}
