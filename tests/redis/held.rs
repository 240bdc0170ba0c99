//! A lease that somebody holds while the server changes under it.

use std::time::{Duration, Instant};

use soloist::scheduler::lease::{
    Claim, ClaimAnswer, Grant, Outcome, Release, ReleaseAnswer, RenewalAnswer,
};
use soloist::store::redis::RedisStore;
use soloist::store::{Caller, Store};

use crate::world::{
    ask, caller, claim, impatient, just_due, now, observe, persist, release, renewal, win,
};

/// A lease, and who holds it.
pub(crate) struct Held {
    pub(crate) store: RedisStore,
    caller: Caller,
    claim: Claim,
    grant: Grant,
}

impl Held {
    /// Takes one in a new ledger.
    pub(crate) async fn in_store(store: RedisStore) -> Self {
        persist(|| store.ready()).await;
        observe(&store, &impatient()).await;
        let (caller, claim) = (caller("holder"), claim("job", just_due(&store).await));
        let grant = win(&store, &caller, &claim).await;
        Self {
            store,
            caller,
            claim,
            grant,
        }
    }

    /// It is renewed, once the store can be reached; answers how long that took.
    pub(crate) async fn goes_on(&self, when: &str) -> Duration {
        let (began, mine) = (Instant::now(), [renewal(&self.claim, &self.grant)]);
        let renewed = persist(|| self.store.renew(&self.caller, &mine)).await;
        let answer = &renewed.answer[0];
        let renewed = matches!(answer, RenewalAnswer::Renewed { .. });
        assert!(renewed, "{when}: {answer:?}");
        println!("{when}: renewed after {:?}", began.elapsed());
        began.elapsed()
    }

    /// A server that took another one's place may have lost what that one acknowledged: nobody
    /// gets anything yet.
    pub(crate) async fn alone_is_granted(&self) {
        let other = claim("other", now(&self.store).await);
        let answer = ask(&self.store, &caller("rival"), &other).await;
        assert!(matches!(answer, ClaimAnswer::Grace { .. }), "{answer:?}");
    }

    fn release(&self) -> Release {
        release(&self.claim, &self.grant, Outcome::Succeeded)
    }

    /// It is given back, once the store can be reached.
    pub(crate) async fn ends(&self) {
        let ended = [self.release()];
        let released = persist(|| self.store.release(&self.caller, &ended)).await;
        assert_eq!(released.answer[0], ReleaseAnswer::Released);
    }

    /// It is given back, if the store can be reached and takes that now.
    pub(crate) async fn ends_early(&self, when: &str) {
        let early = self.store.release(&self.caller, &[self.release()]).await;
        println!("{when}: {:?}", early.map(|told| told.answer));
    }
}
