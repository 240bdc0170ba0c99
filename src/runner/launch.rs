//! What a keeper is told to launch for an attempt.

use std::path::PathBuf;

use super::Shared;
use super::http_call::http_call;
use crate::guardian::cgroup_name;
use crate::guardian::identity::Identity;
use crate::guardian::wire::{Deadline, Launch, Surroundings, Work};
use crate::scheduler::Attempt;
use crate::scheduler::job::Program;

/// The shell of `shell` jobs: the system's, never the user's `$SHELL`.
const SHELL: &str = "/bin/sh";

pub(super) fn launch(attempt: &Attempt, shared: &Shared, deadline: Deadline) -> Launch {
    let job = &attempt.job;
    Launch {
        work: work(attempt, shared.environment.replica()),
        surroundings: Surroundings {
            environment: shared.environment.of(attempt).into_iter().collect(),
            working_dir: job.command.working_dir.clone(),
            identity: Identity {
                user: job.command.user.clone(),
                group: job.command.group.clone(),
            },
            umask: job.command.umask,
            open_files: shared.open_files,
        },
        timeout: job.timeout,
        kill_grace: job.kill_grace,
        deadline,
        cgroup: cgroup(attempt, shared),
    }
}

/// Where an attempt gets its cgroup, if anywhere, and its name.
pub(super) fn cgroup(attempt: &Attempt, shared: &Shared) -> Option<(PathBuf, String)> {
    let base = shared.cgroups.clone()?;
    let name = cgroup_name(&attempt.run_id.to_string());
    Some((base, name))
}

fn work(attempt: &Attempt, replica: &str) -> Work {
    match &attempt.job.command.program {
        Program::Http(request) => Work::Call(http_call(attempt, replica, request)),
        Program::Shell(script) => Work::Execute {
            program: SHELL.to_owned(),
            arguments: vec!["-c".to_owned(), script.clone()],
        },
        Program::Command(argv) => {
            let mut argv = argv.iter().cloned();
            Work::Execute {
                program: argv.next().unwrap_or_default(),
                arguments: argv.collect(),
            }
        }
        Program::Function => unreachable!("functions run where the library is embedded"),
    }
}

/// What an attempt is called where it can't be started.
pub(super) fn program_name(program: &Program) -> &str {
    match program {
        Program::Shell(_) => SHELL,
        Program::Command(argv) => argv.first().map_or("", String::as_str),
        Program::Http(_) => "http",
        Program::Function => "function",
    }
}
