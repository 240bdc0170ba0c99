//! What the contract tells every attempt about itself, under two names each: the environment
//! variable of a command, and the header of an HTTP request.

use super::effect::Attempt;

/// One of the eight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variable {
    /// The job's name.
    Job,
    /// The occurrence, RFC 3339 in UTC.
    ScheduledAt,
    /// 1, 2, …
    Attempt,
    /// Decimal; rises at every grant of the job.
    FencingToken,
    /// Unique to the attempt.
    RunId,
    /// The replica's name.
    Replica,
    /// From 0.
    ShardIndex,
    /// 1 where the job isn't sharded.
    ShardTotal,
}

impl Variable {
    /// All of them, in the order of the contract.
    pub const ALL: [Self; 8] = [
        Self::Job,
        Self::ScheduledAt,
        Self::Attempt,
        Self::FencingToken,
        Self::RunId,
        Self::Replica,
        Self::ShardIndex,
        Self::ShardTotal,
    ];

    /// Its name in an environment, and in `${…}`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Job => "SOLOIST_JOB",
            Self::ScheduledAt => "SOLOIST_SCHEDULED_AT",
            Self::Attempt => "SOLOIST_ATTEMPT",
            Self::FencingToken => "SOLOIST_FENCING_TOKEN",
            Self::RunId => "SOLOIST_RUN_ID",
            Self::Replica => "SOLOIST_REPLICA",
            Self::ShardIndex => "SOLOIST_SHARD_INDEX",
            Self::ShardTotal => "SOLOIST_SHARD_TOTAL",
        }
    }

    /// Its name as a header.
    pub const fn header(self) -> &'static str {
        match self {
            Self::Job => "Soloist-Job",
            Self::ScheduledAt => "Soloist-Scheduled-At",
            Self::Attempt => "Soloist-Attempt",
            Self::FencingToken => "Soloist-Fencing-Token",
            Self::RunId => "Soloist-Run-Id",
            Self::Replica => "Soloist-Replica",
            Self::ShardIndex => "Soloist-Shard-Index",
            Self::ShardTotal => "Soloist-Shard-Total",
        }
    }

    /// The one of that name in an environment.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    /// Its value for an attempt on a replica. It never has a character that a URL, a header or
    /// a JSON string would have to escape.
    pub fn of(self, attempt: &Attempt, replica: &str) -> String {
        match self {
            Self::Job => attempt.job.name.to_string(),
            Self::ScheduledAt => attempt.scheduled_at.to_string(),
            Self::Attempt => attempt.number.to_string(),
            Self::FencingToken => attempt.token.to_string(),
            Self::RunId => attempt.run_id.to_string(),
            Self::Replica => replica.to_owned(),
            Self::ShardIndex => attempt.shard.to_string(),
            Self::ShardTotal => attempt.shards.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_the_variable_in_other_letters() {
        for variable in Variable::ALL {
            let (name, header) = (variable.name(), variable.header());
            assert_eq!(header.to_uppercase().replace('-', "_"), name);
            assert_eq!(Variable::named(name), Some(variable));
        }
        assert_eq!(Variable::named("SOLOIST_STORE"), None);
    }
}
