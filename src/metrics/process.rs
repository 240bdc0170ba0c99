//! What this process uses of its host, under the names that Prometheus' clients share. The
//! guardian, keepers and jobs are other processes, and not in it.
//!
//! Must never: fail. What can't be read is left out.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use super::encoding::Named;
use crate::scheduler::time::Timestamp;

static STARTED: Named = Named::seconds(
    "process_start_time",
    "When the process started, in seconds since the Unix epoch.",
);
static CPU: Named = Named::seconds("process_cpu", "CPU time used, in user and in system mode.");
static RESIDENT: Named = Named::bytes("process_resident_memory", "Resident memory.");
static VIRTUAL: Named = Named::bytes("process_virtual_memory", "Virtual memory.");
static THREADS: Named = Named::new("process_threads", "Threads.");
static OPEN_FDS: Named = Named::new("process_open_fds", "Open file descriptors.");
static MAX_FDS: Named = Named::new("process_max_fds", "File descriptors that may be open.");

/// This process.
#[derive(Debug)]
pub(super) struct Process {
    started: Timestamp,
}

impl Process {
    /// A process that started then.
    pub(super) const fn started(started: Timestamp) -> Self {
        Self { started }
    }
}

/// What `/proc/self/stat` tells, see proc_pid_stat(5).
#[derive(Debug, PartialEq)]
struct Stat {
    cpu_ticks: u64,
    threads: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        // The name may hold anything, spaces and brackets too; the last bracket ends it.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        // The first field after the name is the third of all.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Self {
            cpu_ticks: field(14)? + field(15)?,
            threads: field(20)?,
            virtual_bytes: field(23)?,
            resident_pages: field(24)?,
        })
    }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let encoder = &mut encoder;
        STARTED.only(encoder, self.started.as_millis() as f64 / 1e3)?;
        let stat = std::fs::read_to_string("/proc/self/stat").ok();
        if let Some(stat) = stat.as_deref().and_then(Stat::parse) {
            let ticks = rustix::param::clock_ticks_per_second() as f64;
            let page = rustix::param::page_size() as f64;
            CPU.only_count(encoder, stat.cpu_ticks as f64 / ticks)?;
            RESIDENT.only(encoder, stat.resident_pages as f64 * page)?;
            VIRTUAL.only(encoder, stat.virtual_bytes as f64)?;
            THREADS.only(encoder, stat.threads as f64)?;
        }
        if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
            // The one that reads the directory is open too.
            OPEN_FDS.only(encoder, open.count().saturating_sub(1) as f64)?;
        }
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        match limit.current {
            Some(most) => MAX_FDS.only(encoder, most as f64),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_may_have_any_name() {
        let text = "7 (a) (b c) S 1 7 7 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 9 0 123 4096 3 184 0";
        let expected = Stat {
            cpu_ticks: 200,
            threads: 9,
            virtual_bytes: 4096,
            resident_pages: 3,
        };
        assert_eq!(Stat::parse(text), Some(expected));
        assert_eq!(Stat::parse("7 (a) S"), None);
    }
}
