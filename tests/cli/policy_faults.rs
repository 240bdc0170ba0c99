//! Tables with one fault each in what they say about late, busy and failed occurrences, and
//! about jobs that come after others.

use crate::faults::{Fault, fault};

/// Each `%` stands for a job's head and its schedule and command: three lines.
pub(crate) const FAULTS: &[Fault] = &[
    fault(
        "%retry = 3",
        4,
        "3",
        "`retry` takes a table, not an integer",
        "say what the number is: `retry = { max = 3 }`",
    ),
    fault(
        "%retry = { max = 3, backof = \"1s\" }",
        4,
        "backof",
        "unknown key `backof`",
        "did you mean `backoff`?",
    ),
    fault(
        "%retry = { max = 3, backoff = \"10m\" }",
        4,
        "\"10m\"",
        "`backoff` is 10m, longer than the `max_backoff` of 5m that holds by default",
        "write `max_backoff = \"10m\"` or more",
    ),
    fault(
        "%shards = 129",
        4,
        "129",
        "`shards` is a number from 1 to 128",
        "for example `shards = 4`",
    ),
    fault(
        "%queue_limit = 5",
        4,
        "queue_limit",
        "`queue_limit` has no effect without `concurrency_policy = \"queue\"`",
        "or leave `queue_limit` out",
    ),
    fault(
        "%catch_up_limit = 5",
        4,
        "catch_up_limit",
        "`catch_up_limit` has no effect without `catch_up = \"all\"`",
        "or leave `catch_up_limit` out",
    ),
    fault(
        "%catch_up = \"all\"\nconcurrency_policy = \"replace\"",
        5,
        "\"replace\"",
        "`catch_up = \"all\"` contradicts `concurrency_policy = \"replace\"`",
        "each of those that are caught up would end the one before it",
    ),
    fault(
        "[jobs.x]\nschedule = \"@every 10s\"\nshell = \"x\"\nrandom_delay = \"30s\"",
        4,
        "\"30s\"",
        "`random_delay` is 30s, and occurrences come as close as 10s",
        "an occurrence could start after the next one",
    ),
    fault(
        "[jobs.x]\nschedule = \"@manual\"\nshell = \"x\"\nrandom_delay = \"30s\"",
        4,
        "random_delay",
        "`random_delay` has no effect without a schedule",
        "leave it out",
    ),
    fault(
        "%run_on = [\"gpu\"]",
        4,
        "\"gpu\"",
        "`gpu` is no tag: it has no `=`",
        "a tag has a value: `gpu=yes`",
    ),
    fault(
        "%[scheduler]\ntags = { \"my zone\" = \"eu\" }",
        5,
        "\"my zone\"",
        "the name of a tag has ` ` in it",
        "a tag is `NAME=VALUE`",
    ),
    fault(
        "%[scheduler]\nmax_running = 0",
        5,
        "0",
        "`max_running` is a number from 1 to 100000",
        "for example `max_running = 20`",
    ),
    fault(
        "%after = \"y\"\n[jobs.y]\nschedule = \"@daily\"\nshell = \"y\"",
        4,
        "after",
        "`after` contradicts `schedule`: a job has one or the other",
        "keep one of them",
    ),
    fault(
        "%[jobs.y]\nafter = [\"z\"]\nshell = \"y\"",
        5,
        "\"z\"",
        "no job is called `z`",
        "did you mean `x`?",
    ),
    fault(
        "[jobs.x]\nafter = \"y\"\nshell = \"x\"\n[jobs.y]\nafter = [\"x\"]\nshell = \"y\"",
        5,
        "\"x\"",
        "jobs wait for each other: x → y → x",
        "take one of the names out",
    ),
];
