//! Lines of the ledger, and what attempts printed, that one server lacks of another one.
//!
//! A line goes over under the id that it has: what is there already is refused, whoever else
//! brings it at the same time. So is one that comes after a newer one, as ids rise: there the
//! clock was set back, or a line was written of a step that came to nothing. It stays where it is
//! on others, and readers put the lines of all together.
//!
//! Must never: keep a server from counting for a line that it can't take.

use redis::{Pipeline, Value};

use super::super::super::RedisStore;
use super::super::super::fault::Fault;
use super::super::super::reply::{bytes, items, text};
use crate::scheduler::job::JobName;

/// What is asked for in one go, so that no answer is long.
struct Portion {
    streams: usize,
    /// Of each of them.
    entries: usize,
}

const LINES: Portion = Portion {
    streams: 200,
    entries: 50,
};
/// An output has up to 64 KiB, where its job's `output_limit` says no more.
const OUTPUTS: Portion = Portion {
    streams: 50,
    entries: 4,
};

/// How much is sent in one go: a call has to be over within its time-out.
const ENTRIES_SENT: usize = 1000;
const BYTES_SENT: usize = 1 << 20;

/// Has `target` hold what `source` holds of these jobs' lines and outputs. Answers how many it
/// took.
pub(super) async fn bring(
    source: &RedisStore,
    target: &RedisStore,
    jobs: impl Iterator<Item = &[u8]>,
) -> Result<usize, Fault> {
    let jobs = jobs.filter_map(|job| JobName::new(std::str::from_utf8(job).ok()?).ok());
    let jobs: Vec<JobName> = jobs.collect();
    let histories = jobs.iter().map(|job| source.keys.history(job));
    let outputs = jobs.iter().map(|job| source.keys.output(job));
    let lines = bring_streams(source, target, &Vec::from_iter(histories), &LINES).await?;
    let outputs = bring_streams(source, target, &Vec::from_iter(outputs), &OUTPUTS).await?;
    Ok(lines + outputs)
}

async fn bring_streams(
    source: &RedisStore,
    target: &RedisStore,
    streams: &[String],
    portion: &Portion,
) -> Result<usize, Fault> {
    let mut taken = 0;
    for streams in streams.chunks(portion.streams) {
        let newest = newest(target, streams).await?;
        let mut lacking: Vec<(&str, String)> =
            streams.iter().map(String::as_str).zip(newest).collect();
        while !lacking.is_empty() {
            let answers = after(source, &lacking, portion.entries).await?;
            taken += send(target, &lacking, &answers).await?;
            lacking = further(&lacking, &answers, portion.entries);
        }
    }
    Ok(taken)
}

/// The id of the newest entry of each; the one below all ids, where there is none.
async fn newest(target: &RedisStore, streams: &[String]) -> Result<Vec<String>, Fault> {
    let mut commands = redis::pipe();
    for stream in streams {
        let command = commands.cmd("XREVRANGE").arg(stream).arg("+").arg("-");
        command.arg("COUNT").arg(1);
    }
    let answers = target.reader.read(commands).await?;
    let id = |answer| {
        let entry = items(answer).and_then(<[Value]>::first);
        entry.and_then(id_of).unwrap_or("0-0").to_owned()
    };
    Ok(answers.iter().map(id).collect())
}

/// What comes after an id in each.
async fn after(
    source: &RedisStore,
    lacking: &[(&str, String)],
    entries: usize,
) -> Result<Vec<Value>, Fault> {
    let mut commands = redis::pipe();
    for (stream, id) in lacking {
        let command = commands.cmd("XRANGE").arg(stream);
        command.arg(format!("({id}")).arg("+");
        command.arg("COUNT").arg(entries);
    }
    source.reader.read(commands).await
}

/// The streams of which there is more to come, each with the id after which it does.
fn further<'s>(
    lacking: &[(&'s str, String)],
    answers: &[Value],
    entries: usize,
) -> Vec<(&'s str, String)> {
    let more = lacking
        .iter()
        .zip(answers)
        .filter_map(|((stream, _), answer)| {
            let told = items(answer).filter(|told| told.len() >= entries)?;
            Some((*stream, id_of(told.last()?)?.to_owned()))
        });
    more.collect()
}

async fn send(
    target: &RedisStore,
    lacking: &[(&str, String)],
    answers: &[Value],
) -> Result<usize, Fault> {
    let (mut taken, mut commands, mut size) = (0, redis::pipe(), 0);
    for ((stream, _), answer) in lacking.iter().zip(answers) {
        for entry in items(answer).unwrap_or_default() {
            size += add(&mut commands, stream, entry);
            if size >= BYTES_SENT || commands.len() >= ENTRIES_SENT {
                taken += run(target, std::mem::replace(&mut commands, redis::pipe())).await?;
                size = 0;
            }
        }
    }
    if !commands.is_empty() {
        taken += run(target, commands).await?;
    }
    Ok(taken)
}

/// Adds the command that writes an entry; answers how long that is.
fn add(commands: &mut Pipeline, stream: &str, entry: &Value) -> usize {
    let Some([id, fields]) = items(entry) else {
        return 0;
    };
    let Some((id, fields)) = text(id).zip(items(fields)) else {
        return 0;
    };
    let command = commands.cmd("XADD").arg(stream).arg(id);
    let mut size = 0;
    for field in fields {
        let field = bytes(field).unwrap_or_default();
        size += field.len();
        command.arg(field);
    }
    size
}

/// Writes entries; answers how many were taken.
async fn run(target: &RedisStore, commands: Pipeline) -> Result<usize, Fault> {
    let answers = target.asking.try_out(commands).await?;
    let refused = |answer: &&Value| matches!(answer, Value::ServerError(_));
    // What is well formed is refused as `ERR` only for its id.
    let for_another_cause = answers.iter().find(|answer| match answer {
        Value::ServerError(error) => error.code() != "ERR",
        _ => false,
    });
    if let Some(Value::ServerError(error)) = for_another_cause {
        let (store, error) = (&target.place, error.to_string());
        tracing::warn!(store, %error, "failed to write history that others have");
    }
    Ok(answers.len() - answers.iter().filter(refused).count())
}

fn id_of(entry: &Value) -> Option<&str> {
    text(items(entry)?.first()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_entry_is_not_brought_over() {
        let word = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let array = Value::Array;
        for (entry, size) in [
            (
                array(vec![word("1-1"), array(vec![word("a"), word("bc")])]),
                3,
            ),
            (array(vec![]), 0),
            (array(vec![word("1-1")]), 0),
            (array(vec![Value::Nil, array(vec![])]), 0),
            (Value::Nil, 0),
        ] {
            let mut commands = redis::pipe();
            assert_eq!(add(&mut commands, "stream", &entry), size, "{entry:?}");
            assert_eq!(commands.len(), usize::from(size > 0));
        }
    }
}
