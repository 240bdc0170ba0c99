//! What a state of the model consists of: the time, the store's ledger, the replicas with what is on
//! its way between them and the store, and what the laws remember.
//!
//! Time goes in ticks, a third of a lease each. Deadlines at the store are finer, as a renewal on a
//! clock that stands still is a millisecond later than the one before.
//!
//! Must never: hold something that no rule and no law reads; each field is paid for in states.

/// The most replicas of a scenario.
pub const REPLICAS: usize = 3;

/// The most occurrences of a scenario.
pub const OCCURRENCES: usize = 2;

/// Parts of a tick in which deadlines are told apart.
pub const PARTS: u8 = 8;

/// The first tick: zero says that something is long ago.
pub const START: u8 = 1;

/// How far the store's clock is ahead of boot time, so that it can step back.
pub const AHEAD: u8 = 5;

/// All there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    /// Boot time of all hosts, in ticks. Their drift is in the margins.
    pub now: u8,
    /// The store's clock is ahead of boot time by that much.
    pub offset: u8,
    /// The server that is the master.
    pub ledger: Ledger,
    /// A former master that some replicas still ask, and until when they may.
    pub former: Option<Former>,
    /// What a server that loses data, or is elected, goes on with.
    pub copy: Ledger,
    /// Those that run the table.
    pub replicas: [Replica; REPLICAS],
    /// What may still go wrong.
    pub budget: Budget,
    /// What the laws remember.
    pub memory: Memory,
}

/// A master that lives on beside the one that was elected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Former {
    /// What it holds.
    pub ledger: Ledger,
    /// By then every replica has left it, by boot time.
    pub until: u8,
}

/// What the store holds of the one job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ledger {
    /// It was written by the process that answers now.
    pub noticed: bool,
    /// The highest token of the group.
    pub token: u8,
    /// The highest token of the job's record.
    pub record_token: u8,
    /// The time of the last grant: after a small step back, time stands still there.
    pub clock: u8,
    /// Nothing is granted before.
    pub grace_until: u8,
    /// When a loss was noticed last.
    pub born: u8,
    /// The process that answers was elected while another one was there.
    pub elected: bool,
    /// It has a record of the job.
    pub known: bool,
    /// So many occurrences are settled.
    pub settled: u8,
    /// What was due by then and is not settled may have run.
    pub lost_until: u8,
    /// The occurrence that was granted last.
    pub current: Option<Current>,
    /// Since when the job is paused, zero when it isn't.
    pub paused_since: u8,
    /// Occurrences that fell due in a pause which is over, a bit each.
    pub suspended: u8,
    /// Which occurrences have a fate, a bit each.
    pub fated: u8,
}

/// The occurrence that was granted last, and who has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Current {
    /// Which one.
    pub occurrence: u8,
    /// How it stands.
    pub standing: Standing,
    /// Which replica.
    pub holder: u8,
    /// By which of that replica's requests.
    pub run: u8,
    /// Under which token.
    pub token: u8,
    /// Which attempt.
    pub attempt: u8,
    /// In parts of a tick of the store's clock.
    pub deadline: u8,
    /// Since when it is to be tried again.
    pub since: u8,
}

/// How an occurrence stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// Somebody has the lease.
    #[default]
    Running,
    /// Handed over: whoever claims it gets it.
    Again,
    /// It has its fate.
    Ended,
}

/// One replica, with its guardian.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Replica {
    /// Whether there is one.
    pub life: Life,
    /// What it is at.
    pub doing: Doing,
    /// What it claims, or holds.
    pub occurrence: u8,
    /// How many requests it has named; the last one names what it claims, or holds.
    pub run: u8,
    /// What it watched of the lease that it takes over.
    pub watched: Option<Sighting>,
    /// Its token.
    pub token: u8,
    /// Its attempt.
    pub attempt: u8,
    /// When its guardian sends KILL, by boot time.
    pub kill_at: u8,
    /// The deadline that it heard of last.
    pub deadline: u8,
    /// How its attempt ended.
    pub outcome: Outcome,
    /// The call that is under way.
    pub call: Call,
    /// An earlier request of its that is still on its way, or a second copy of one.
    pub stray: Option<Request>,
    /// Occurrences that are none of its business any more, a bit each.
    pub done: u8,
    /// The lease that it watches.
    pub seen: Option<Seen>,
    /// The highest token that it knows.
    pub floor: u8,
    /// Since when its connection is well, plus one; zero after a failure.
    pub healthy: u8,
    /// What it knows of the store's clock.
    pub clock: StoreClock,
    /// Until when it asks for nothing new, by boot time: a grace window that it has seen.
    pub held_back: u8,
    /// It has noticed that the store's clock stepped forward, and has not looked since.
    pub jumped: bool,
    /// The birth of the ledger that it looked at last.
    pub born: u8,
    /// It still asks the former master.
    pub behind: bool,
}

/// Whether there is a replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Life {
    /// The scenario has fewer.
    #[default]
    Absent,
    /// It works.
    Alive,
    /// Its host stands still, with all that is on it.
    Frozen,
    /// It crashed, and its job with it.
    Dead,
}

/// What a replica is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Doing {
    /// Nothing.
    #[default]
    Idle,
    /// It wants an occurrence and has no final answer.
    Claiming,
    /// Its job runs.
    Running,
    /// Its job is over; the release is not acknowledged.
    Ending,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// By itself.
    #[default]
    Succeeded,
    /// It was cut short, or never begun, and is to be run by another.
    HandedOver,
    /// It was cut short, and may run at most once.
    Lost,
}

/// A call of a replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// None is under way.
    #[default]
    None,
    /// The request is on its way.
    Asked(Request),
    /// The answer is.
    Answered(Reply),
}

/// What a replica asks of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Request {
    /// What it is about.
    pub verb: Verb,
    /// Of which occurrence.
    pub occurrence: u8,
    /// By which of the replica's requests.
    pub run: u8,
    /// Of a renewal or release: the token. Of a claim: that of the lease it takes over.
    pub token: u8,
    /// The attempt that is renewed or released.
    pub attempt: u8,
    /// Of a renewal: the last deadline that was heard. Of a claim: that of the lease it takes over.
    pub deadline: u8,
    /// How a released attempt ended.
    pub outcome: Outcome,
    /// When it was sent, by boot time.
    pub sent: u8,
    /// The store does nothing for a claim that comes later, by its own clock.
    pub send_by: u8,
    /// The highest token that the caller knows.
    pub floor: u8,
}

/// What a request is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// An occurrence that nobody has.
    #[default]
    Claim,
    /// One whose holder was not heard of.
    TakeOver,
    /// The lease goes on.
    Renew,
    /// The lease is given back.
    Release,
}

/// An answer on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reply {
    /// To what.
    pub verb: Verb,
    /// When that was sent.
    pub sent: u8,
    /// What the store's clock said.
    pub store_now: u8,
    /// The answer.
    pub answer: Answer,
}

/// What the store answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Answer {
    /// The lease is the caller's.
    Granted {
        /// Under this token.
        token: u8,
        /// For this attempt.
        attempt: u8,
        /// Until then, by the store's clock.
        deadline: u8,
        /// Which is so many ticks from now.
        remaining: u8,
    },
    /// Somebody has a lease.
    Held(Sighting),
    /// There is nothing to be had.
    #[default]
    Finished,
    /// It isn't due yet, or the request came too late: the same again.
    NotNow,
    /// Nothing is granted, for so many ticks.
    Grace(u8),
    /// The lease goes on until then.
    Renewed(u8),
    /// The lease is somebody else's.
    Refused,
    /// It was given back.
    Released,
}

/// What names a lease as it is at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sighting {
    /// Of which occurrence.
    pub occurrence: u8,
    /// Its token.
    pub token: u8,
    /// Its deadline.
    pub deadline: u8,
}

/// A lease that somebody watches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seen {
    /// As it is.
    pub sighting: Sighting,
    /// Since when, by boot time. Zero when that is a lease's length ago.
    pub since: u8,
}

/// What a replica knows of the store's clock: it is ahead of boot time by `low` to `high`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreClock {
    /// At least by that.
    pub low: i8,
    /// At most by that.
    pub high: i8,
    /// It has run true since then, by itself. Zero before the first answer.
    pub since: u8,
}

/// What may still go wrong, so many times each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Requests or answers that are lost, or come after their sender has given up.
    pub losses: u8,
    /// Requests that arrive twice.
    pub copies: u8,
    /// Replicas that crash.
    pub crashes: u8,
    /// Losses of data.
    pub wipes: u8,
    /// Steps of the store's clock.
    pub jumps: u8,
    /// Hosts that stand still.
    pub freezes: u8,
    /// Orders to pause the job, and as many to resume it.
    pub pauses: u8,
}

/// What the laws remember. No rule reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Memory {
    /// How often each occurrence was started, two at most.
    pub starts: [u8; OCCURRENCES],
    /// The highest attempt of each that was granted.
    pub granted: [u8; OCCURRENCES],
    /// The highest token that was granted.
    pub token: u8,
    /// Occurrences whose success the store has acknowledged, a bit each.
    pub finished: u8,
    /// Until when nothing may be granted, as data were lost, by boot time.
    pub quiet_until: u8,
    /// What was broken in the step that led here, as bits of [`super::laws::Breach`].
    pub broken: u16,
}
