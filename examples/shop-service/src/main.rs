//! A shop's web service, to be started in as many instances as one likes, with two jobs of a
//! `JobScheduler`: one that each instance does for itself, and one that one of them does for all.
//!
//! ```text
//!  JobScheduler ─┬─ refresh-shelves: in each instance       GET /stock
//!                └─ close-expired-orders: a singleton  ──▶  the database, by its fencing token
//!                        │
//!                        └─ leases and the ledger: Redis    GET /jobs, POST /jobs/{job}/trigger …
//! ```
//!
//! Must never: do in each instance what is for one, or end while a job may still be handed over.

mod closing;
mod front;
mod options;
mod routes;

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;
use soloist::{Builder, Event, Events, Scheduler, Singletons};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio_cron_scheduler::{Job, JobScheduler};

use crate::closing::{Rules, close_expired_orders};
use crate::front::Front;
use crate::options::Options;

/// How long clients have to take answers once all else has ended.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

type Failed = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    match serve(Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("shop-service: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(options: Options) -> Result<(), Failed> {
    // Kubernetes and systemd send it. From here on it ends nothing by itself.
    let mut term = signal(SignalKind::terminate())?;
    let front = Front::open(&options.database).await?;
    let listener = TcpListener::bind(&options.listen).await?;
    let address = listener.local_addr()?;
    let mut timer = JobScheduler::new().await?;

    // Each instance has shelves of its own: a plain job, which all of them run.
    let each = front.clone();
    let job = Job::new_async("* * * * * *", move |_, _| Box::pin(refresh(each.clone())))?;
    timer.add(job).await?;

    // There is one stock: a singleton, of which each occurrence runs in one instance.
    let builder = scheduler(&options, address.port());
    let (health, jobs_are) = watch::channel("starting".to_owned());
    tokio::spawn(watch_over(builder.events(), health));
    let mut singletons = Singletons::new(builder);
    let (shop, rules) = (front.clone(), Rules::of(&options));
    let close = move |ctx| close_expired_orders(ctx, shop.clone(), rules.clone());
    let job = singletons.singleton("close-expired-orders", &options.schedule, close)?;
    timer.add(job).await?;

    timer.start().await?;
    let scheduler = singletons.start().await?;
    let app = routes::of(routes::Service {
        front,
        jobs: scheduler.handle(),
        health: jobs_are,
    });
    let (stop, mut stopped) = watch::channel(());
    let stopped = async move { stopped.changed().await.unwrap_or_default() };
    let server = axum::serve(listener, app).with_graceful_shutdown(stopped);
    let server = tokio::spawn(server.into_future());
    println!("serving on http://{address}");

    tokio::select! {
        _ = term.recv() => {}
        interrupted = tokio::signal::ctrl_c() => interrupted?,
    }
    drop(stop); // Requests that are under way are answered, no others are taken.
    timer.shutdown().await?; // First: no more looks.
    scheduler.shutdown().await?; // What runs ends, or is handed over to another instance.
    match tokio::time::timeout(LAST_ANSWERS, server).await {
        Ok(ended) => ended??,
        Err(_) => tracing::warn!("the last answers were not taken in time"),
    }
    Ok(())
}

async fn refresh(front: Front) {
    if let Err(error) = front.refresh().await {
        tracing::warn!("the shelves are as they were: {}", error.with_causes());
    }
}

/// Where leases and the ledger are, and who this is.
fn scheduler(options: &Options, port: u16) -> Builder {
    let name = options.replica.clone();
    Scheduler::builder()
        .store(&options.store)
        .namespace(&options.namespace)
        .replica(name.unwrap_or_else(|| format!("shop-{port}")))
        .lease_ttl(options.lease_ttl)
        .shutdown_grace(options.shutdown_grace)
}

/// Keeps `/healthz` told.
async fn watch_over(mut events: Events, health: watch::Sender<String>) {
    while let Some(event) = events.next().await {
        let now = match event {
            Event::Ready { .. } | Event::StoreBack { .. } => "ready".to_owned(),
            Event::StoreAway { cause, .. } => format!("away: {cause}"),
            Event::Draining { .. } => "draining".to_owned(),
            _ => continue,
        };
        health.send_replace(now);
    }
}
