//! Rows as they are written, see the module above.

use std::collections::HashMap;
use std::time::Duration;

use soloist::config::{Host, Strictness, parse};
use soloist::scheduler::EndedHow;
use soloist::scheduler::job::Job;
use soloist::scheduler::policy::Tags;
use soloist::scheduler::time::Timestamp;

use soloist_simulation::world::Plot;

/// What every table begins with.
const DEFAULTS: &str = "[defaults]\ncommand = [\"true\"]\nkill_grace = \"1s\"\n";

pub(crate) struct Row {
    pub(crate) file: &'static str,
    pub(crate) name: String,
    pub(crate) tables: Vec<Vec<Job>>,
    pub(crate) replicas: Vec<Place>,
    pub(crate) steps: Vec<Step>,
    pub(crate) ledger: Vec<String>,
    ends: HashMap<String, Vec<End>>,
}

/// A replica's place in the fleet.
#[derive(Clone, Default)]
pub(crate) struct Place {
    /// Its name, where the row gives one.
    pub(crate) name: Option<String>,
    pub(crate) tags: Tags,
    pub(crate) max_running: Option<u32>,
}

/// Something that happens.
#[derive(Clone)]
pub(crate) struct Step {
    /// When, after the world's beginning.
    pub(crate) at: Duration,
    pub(crate) words: Vec<String>,
}

/// How attempts of a job end.
#[derive(Clone, Copy)]
struct End {
    after: Duration,
    how: EndedHow,
    /// Up to this attempt.
    last: u32,
    /// Of this shard alone.
    shard: Option<u32>,
}

fn seconds(text: &str) -> Option<Duration> {
    Some(Duration::from_secs_f64(text.parse().ok()?))
}

fn jobs(name: &str, table: &str) -> Vec<Job> {
    let host = Host {
        env: &|_| None,
        accounts: &|_, _| Ok(()),
        now: Timestamp::from_second(1_795_212_000),
    };
    let source = format!("{DEFAULTS}{table}");
    match parse(&source, name, &host, Strictness::Start) {
        Ok(config) => config.jobs,
        Err(error) => panic!("{name}: {error:?}\n{source}"),
    }
}

impl Row {
    /// The rows of a file.
    pub(crate) fn read(file: &'static str, text: &str) -> Vec<Self> {
        let rows = text.split("## ").skip(1);
        rows.map(|text| Self::read_one(file, text)).collect()
    }

    fn read_one(file: &'static str, text: &str) -> Self {
        let (name, rest) = text.split_once('\n').expect("a name and more");
        let mut parts = rest.split("-- ");
        let first = parts.next().expect("a table");
        let mut row = Self {
            file,
            name: name.to_owned(),
            tables: vec![jobs(name, first)],
            replicas: vec![Place::default(); 3],
            steps: Vec::new(),
            ledger: Vec::new(),
            ends: HashMap::new(),
        };
        for part in parts {
            let (kind, body) = part.split_once('\n').unwrap_or((part, ""));
            let lines = body
                .lines()
                .map(str::trim_end)
                .filter(|line| !line.is_empty());
            match kind.trim() {
                "table" => row.tables.push(jobs(name, body)),
                "script" => lines.for_each(|line| row.take(line)),
                "ledger" => row.ledger = lines.map(str::to_owned).collect(),
                other => panic!("{name}: what is `-- {other}`?"),
            }
        }
        row
    }

    fn take(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words[0] == "replicas" {
            self.replicas = words[1..].iter().map(|word| Place::read(word)).collect();
        } else if let Some(at) = seconds(words[0]) {
            let words = words[1..].iter().map(|word| (*word).to_owned()).collect();
            self.steps.push(Step { at, words });
        } else {
            let end = End::read(&words[1..]);
            let end = end.unwrap_or_else(|| panic!("{}: what is `{line}`?", self.name));
            self.ends.entry(words[0].to_owned()).or_default().push(end);
        }
    }

    /// How attempts end that nobody ends.
    pub(crate) fn plot(&self) -> Plot {
        let ends = self.ends.clone();
        Box::new(move |attempt| {
            let own = ends.get(attempt.job.name.as_str()).into_iter().flatten();
            let mut own = own.filter(|end| {
                let shard = end.shard.is_none_or(|shard| shard == attempt.shard);
                shard && attempt.number <= end.last
            });
            let end = own.next();
            end.map_or((Duration::from_secs(1), EndedHow::Succeeded), |end| {
                (end.after, end.how)
            })
        })
    }
}

impl Place {
    /// `a:zone=x,max=2`
    fn read(word: &str) -> Self {
        let (name, rest) = word.split_once(':').unwrap_or((word, ""));
        let mut place = Self {
            name: Some(name.to_owned()),
            ..Self::default()
        };
        for (key, value) in rest.split(',').filter_map(|one| one.split_once('=')) {
            match key {
                "max" => place.max_running = value.parse().ok(),
                _ => {
                    place.tags.insert(key.to_owned(), value.to_owned());
                }
            }
        }
        place
    }
}

impl End {
    /// `25 failed #2 /0`
    fn read(words: &[&str]) -> Option<Self> {
        let mut end = Self {
            after: seconds(words.first()?)?,
            how: EndedHow::Succeeded,
            last: u32::MAX,
            shard: None,
        };
        for word in &words[1..] {
            match (*word, word.split_at(1)) {
                ("failed", _) => end.how = EndedHow::Failed,
                ("timed_out", _) => end.how = EndedHow::TimedOut,
                (_, ("#", number)) => end.last = number.parse().ok()?,
                (_, ("/", shard)) => end.shard = Some(shard.parse().ok()?),
                _ => return None,
            }
        }
        Some(end)
    }
}
