//! The calls of a client to its store, a task each.
//!
//! Must never: end without an answer.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::{mpsc, oneshot};

use super::holds::Kind;
use crate::clock::Clock;
use crate::scheduler::lease::{
    Answered, Caller, HeldName, LeaseAnswer, LeaseName, LeaseRequest, NameState,
};
use crate::scheduler::time::BootTime;
use crate::store::{LeaseStore, StoreError};

/// How long it may take to look at all names: several calls, where there are many.
const SURVEY_TIMEOUT: Duration = Duration::from_secs(10);

/// An answer of the store, with what was asked.
pub(super) struct Heard {
    pub(super) kind: Kind,
    pub(super) requests: Vec<LeaseRequest>,
    pub(super) sent: BootTime,
    pub(super) result: Result<Answered<Vec<LeaseAnswer>>, StoreError>,
}

/// Who asks the store, and where the answers go.
pub(super) struct Calls {
    asker: Asker,
    heard: mpsc::UnboundedSender<Heard>,
    surveyed: mpsc::UnboundedSender<Option<Vec<NameState>>>,
}

impl Calls {
    pub(super) fn new(
        store: Arc<dyn LeaseStore>,
        clock: Arc<dyn Clock>,
        heard: mpsc::UnboundedSender<Heard>,
        surveyed: mpsc::UnboundedSender<Option<Vec<NameState>>>,
    ) -> Self {
        Self {
            asker: Asker { store, clock },
            heard,
            surveyed,
        }
    }

    /// Asks, all in one call. Where the store refuses that, one of them may be why, as of a name whose
    /// record is of a newer version: then it is asked by halves, so that the others have their answer.
    pub(super) fn ask(
        &self,
        kind: Kind,
        caller: Caller,
        requests: Vec<LeaseRequest>,
        timeout: Duration,
    ) {
        let (asker, heard) = (self.asker.clone(), self.heard.clone());
        tokio::spawn(async move {
            let mut parts = vec![requests];
            let mut answers = Vec::new();
            while let Some(mut requests) = parts.pop() {
                let sent = asker.clock.boot();
                let result = asker.ask(&caller, &requests, timeout).await;
                let is_away = matches!(result, Err(StoreError::Unreachable { .. }));
                if result.is_err() && !is_away && requests.len() > 1 {
                    let rest = requests.split_off(requests.len() / 2);
                    parts.extend([rest, requests]);
                    continue;
                }
                answers.push(Heard {
                    kind,
                    requests,
                    sent,
                    result,
                });
            }
            for answer in answers {
                // The receiver lives as long as the task; after it nobody wants to know.
                let _ = heard.send(answer);
            }
        });
    }

    /// Looks at all names.
    pub(super) fn survey(&self) {
        let (asker, surveyed) = (self.asker.clone(), self.surveyed.clone());
        tokio::spawn(async move {
            // The receiver lives as long as the task; after it nobody wants to know.
            let _ = surveyed.send(asker.names().await.ok());
        });
    }

    /// The same, for somebody who wants to know.
    pub(super) fn names(&self, answer: oneshot::Sender<Result<Vec<NameState>, StoreError>>) {
        let asker = self.asker.clone();
        tokio::spawn(async move {
            // Whoever asked may have gone.
            let _ = answer.send(asker.names().await);
        });
    }

    /// Has names forgotten, and holders that are dead.
    pub(super) fn tidy(&self, caller: Caller, names: Vec<LeaseName>, dead: Vec<HeldName>) {
        let store = Arc::clone(&self.asker.store);
        tokio::spawn(async move {
            if let Err(error) = store.tidy(&caller, &names, &dead).await {
                tracing::debug!(%error, "what nobody has or wants is looked for again");
            }
        });
    }
}

#[derive(Clone)]
struct Asker {
    store: Arc<dyn LeaseStore>,
    clock: Arc<dyn Clock>,
}

impl Asker {
    async fn ask(
        &self,
        caller: &Caller,
        requests: &[LeaseRequest],
        timeout: Duration,
    ) -> Result<Answered<Vec<LeaseAnswer>>, StoreError> {
        self.within(timeout, self.store.ask(caller, requests)).await
    }

    async fn names(&self) -> Result<Vec<NameState>, StoreError> {
        let names = self.within(SURVEY_TIMEOUT, self.store.names()).await?;
        Ok(names.answer)
    }

    /// What comes of a call: also where that panics, or never ends. A client that waited for it would
    /// renew nothing any more.
    async fn within<T>(
        &self,
        timeout: Duration,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let cause = match tokio::time::timeout(timeout, AssertUnwindSafe(call).catch_unwind()).await
        {
            Ok(Ok(result)) => return result,
            Ok(Err(_)) => "the call panicked".to_owned(),
            Err(_) => format!("no answer within {timeout:?}"),
        };
        Err(StoreError::Unreachable {
            place: self.store.place(),
            cause,
        })
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use tokio::sync::broadcast;
    use uuid::Uuid;

    use super::*;
    use crate::clock::SystemClock;
    use crate::scheduler::lease::{FencingToken, Hold, Mode, Replica};
    use crate::scheduler::time::Timestamp;
    use crate::store::StoreEvent;

    /// It can't read what is kept under one name, and panics at another.
    struct Damaged;

    #[async_trait]
    impl LeaseStore for Damaged {
        fn place(&self) -> String {
            "there".to_owned()
        }

        async fn ready(&self) -> Result<(), StoreError> {
            Ok(())
        }

        async fn ask(
            &self,
            _: &Caller,
            requests: &[LeaseRequest],
        ) -> Result<Answered<Vec<LeaseAnswer>>, StoreError> {
            let has = |name: &str| {
                let mut names = requests.iter().flat_map(|one| one.hold().names.iter());
                names.any(|one| one.as_str() == name)
            };
            assert!(!has("panics"), "a fault of the store");
            if has("damaged") {
                return Err(StoreError::Unreadable {
                    place: self.place(),
                    cause: "it is damaged".to_owned(),
                    cure: "delete it".to_owned(),
                });
            }
            let answers = vec![LeaseAnswer::Released; requests.len()];
            Ok(Answered::new(Timestamp::default(), answers))
        }

        async fn tidy(
            &self,
            _: &Caller,
            _: &[LeaseName],
            _: &[HeldName],
        ) -> Result<Answered<()>, StoreError> {
            Ok(Answered::new(Timestamp::default(), ()))
        }

        async fn names(&self) -> Result<Answered<Vec<NameState>>, StoreError> {
            Ok(Answered::new(Timestamp::default(), Vec::new()))
        }

        fn events(&self) -> broadcast::Receiver<StoreEvent> {
            broadcast::Sender::new(1).subscribe()
        }
    }

    /// What each of these names is answered, asked for in one call.
    async fn answers(names: &[&str]) -> Vec<(String, bool)> {
        let (heard, mut answers) = mpsc::unbounded_channel();
        let (surveyed, _) = mpsc::unbounded_channel();
        let calls = Calls::new(Arc::new(Damaged), Arc::new(SystemClock), heard, surveyed);
        let caller = Caller {
            replica: Replica {
                id: Uuid::nil(),
                name: String::new(),
            },
            quarantine: Duration::ZERO,
            token_floor: FencingToken::default(),
            send_by: None,
            held_back: Duration::ZERO,
        };
        let request = |name: &&str| LeaseRequest::Release {
            hold: Hold {
                id: Uuid::new_v4(),
                owner: Uuid::nil(),
                names: [LeaseName::new(name).unwrap()].into(),
                mode: Mode::Exclusive,
                ttl: Duration::from_secs(1),
            },
        };
        let requests = names.iter().map(request).collect();
        calls.ask(Kind::Keeping, caller, requests, Duration::from_secs(20));
        drop(calls);
        let mut told = Vec::new();
        while let Some(heard) = answers.recv().await {
            for request in &heard.requests {
                let name = request.hold().names[0].to_string();
                told.push((name, heard.result.is_ok()));
            }
        }
        told
    }

    fn told(of: &[(&str, bool)]) -> Vec<(String, bool)> {
        let owned = of.iter().map(|(name, is_ok)| ((*name).to_owned(), *is_ok));
        owned.collect()
    }

    #[tokio::test]
    async fn what_can_not_be_read_keeps_no_answer_from_what_was_asked_with_it() {
        let asked = answers(&["a", "b", "damaged", "c", "d"]).await;
        let all = [
            ("a", true),
            ("b", true),
            ("damaged", false),
            ("c", true),
            ("d", true),
        ];
        assert_eq!(asked, told(&all));
    }

    #[tokio::test]
    async fn a_call_that_panics_is_answered() {
        assert_eq!(answers(&["panics"]).await, told(&[("panics", false)]));
    }
}
