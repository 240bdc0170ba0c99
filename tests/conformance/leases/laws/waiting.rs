//! Who goes first, who loses its place, and who hears of it.

use std::time::Duration;

use soloist::scheduler::lease::{Hold, LeaseAnswer, LeaseRequest, Mode, Wait};
use soloist::store::StoreEvent;
use uuid::Uuid;

use crate::leases::ground::Ground;
use crate::leases::scene::{KEPT, Scene, TTL, has_waited, hears, hold, shared};

pub(crate) async fn who_came_first_goes_first_and_nobody_passes_who_waits<G: Ground>(
    scene: Scene<G>,
) {
    let (first, second, third) = (hold(1, &["a"]), hold(2, &["a"]), hold(3, &["a"]));
    assert!(scene.is_granted(&first).await);
    assert_eq!(scene.busy(&second).await.ahead, 0);
    assert_eq!(scene.busy(&third).await.ahead, 1);
    scene.releases(&first).await;
    assert!(!scene.is_granted(&third).await, "the second came before");
    let passing = scene.tries(&hold(4, &["a"])).await;
    assert!(matches!(passing, LeaseAnswer::Busy(_)), "{passing:?}");
    assert!(scene.is_granted(&second).await);
    scene.releases(&second).await;
    assert!(scene.is_granted(&third).await);
    scene.releases(&third).await;
    let left = scene.names().await;
    assert_eq!(left, [], "who has and wants nothing leaves nothing");
}

pub(crate) async fn who_is_not_heard_of_loses_its_place_and_who_is_keeps_it<G: Ground>(
    scene: Scene<G>,
) {
    let (holder, gone, there) = (hold(1, &["a"]), hold(2, &["a"]), hold(3, &["a"]));
    assert!(scene.is_granted(&holder).await);
    let before = scene.now().await;
    assert_eq!(scene.busy(&gone).await.ahead, 0);
    let after = scene.now().await;
    scene.pass(KEPT / 2);
    let busy = scene.busy(&there).await;
    assert_eq!(busy.ahead, 1);
    let until = busy.ahead_until.expect("somebody is ahead");
    assert!(before + KEPT <= until && until <= after + KEPT, "{until}");
    scene.pass(KEPT / 2 + Duration::from_millis(1));
    assert_eq!(scene.busy(&there).await.ahead, 0);
    assert_eq!(scene.busy(&gone).await.ahead, 1, "it comes anew");
    scene.releases(&holder).await;
    assert!(scene.is_granted(&there).await);
}

pub(crate) async fn after_a_far_step_back_of_the_clock_no_place_lasts_for_the_time_of_the_step<
    G: Ground,
>(
    scene: Scene<G>,
) {
    let (holder, gone, last) = (hold(1, &["a"]), hold(2, &["a"]), hold(3, &["a"]));
    assert!(scene.is_granted(&holder).await);
    assert_eq!(scene.busy(&gone).await.ahead, 0);
    assert_eq!(scene.busy(&last).await.ahead, 1);
    scene.ground.step_ms(-3_600_000);
    scene.releases(&holder).await;
    scene.pass(TTL);
    assert!(
        scene.is_granted(&last).await,
        "who is ahead was not heard of"
    );
}

pub(crate) async fn who_lost_its_place_has_it_back_by_how_long_it_has_waited<G: Ground>(
    scene: Scene<G>,
) {
    let [first, second, third, fourth] = [1, 2, 3, 4].map(|id| hold(id, &["a", "b"]));
    assert!(scene.is_granted(&first).await);
    scene.busy(&second).await;
    scene.pass(Duration::from_secs(1));
    scene.busy(&third).await;
    // The store was away for so long that all places are gone.
    scene.pass(Duration::from_secs(20));
    assert_eq!(scene.busy(&fourth).await.ahead, 0);
    let ahead = async |hold: &Hold, so_far| {
        let asked = has_waited(hold, Duration::from_secs(so_far), Vec::new());
        match scene.ask(asked).await {
            LeaseAnswer::Busy(busy) => busy.ahead,
            other => panic!("{other:?}"),
        }
    };
    // Clocks of real servers run on in between; they have waited for a long time.
    assert_eq!(ahead(&third, 200).await, 0);
    assert_eq!(ahead(&second, 300).await, 0);
    assert_eq!(ahead(&third, 200).await, 1);
    assert_eq!(scene.busy(&fourth).await.ahead, 2);
    for name in scene.names().await {
        assert_eq!(name.waiting.len(), 3, "{name:?}");
    }
    scene.releases(&first).await;
    for hold in [&third, &fourth] {
        assert!(!scene.is_granted(hold).await, "{hold:?} passed somebody");
    }
    assert!(scene.is_granted(&second).await);
}

fn turn(id: u128) -> StoreEvent {
    StoreEvent::Turn(Uuid::from_u128(id))
}

/// Whoever is told of a turn in between is told before the mark is. Each hold waits but once: a turn that
/// was heard before is one that another server tells late.
pub(crate) async fn those_whose_turn_it_is_are_told_and_nobody_else<G: Ground>(scene: Scene<G>) {
    let mut events = scene.events();
    let (holder, one, two) = (hold(1, &["a"]), shared(2, &["a"]), shared(3, &["a"]));
    let (alone, last) = (hold(4, &["a"]), shared(5, &["a"]));
    let mut before = Vec::new();
    let mut next = async |mark: u128, events: &mut _| {
        let (had, wanted) = (hold(mark + 100, &["mark"]), hold(mark, &["mark"]));
        assert!(scene.is_granted(&had).await);
        scene.busy(&wanted).await;
        scene.releases(&had).await;
        let mut told = Vec::new();
        loop {
            let event = hears(events).await;
            if G::REPEATS_NEWS && before.contains(&event) {
                continue;
            }
            before.push(event);
            if event == turn(mark) || !G::TELLS_WHO {
                scene.releases(&wanted).await;
                return told;
            }
            told.push(event);
        }
    };
    // Of its birth as well.
    next(10, &mut events).await;
    assert!(scene.is_granted(&holder).await);
    for waiting in [&one, &two, &alone] {
        assert_eq!(scene.busy(waiting).await.held.len(), 1);
    }
    assert_eq!(next(11, &mut events).await, [], "it is nobody's turn");
    scene.releases(&holder).await;
    if !G::TELLS_WHO {
        assert_eq!(hears(&mut events).await, StoreEvent::Opening);
        return;
    }
    assert_eq!(next(12, &mut events).await, [turn(2), turn(3)]);
    assert!(scene.is_granted(&one).await && scene.is_granted(&two).await);
    scene.releases(&one).await;
    assert_eq!(
        next(13, &mut events).await,
        [],
        "another one shares it still"
    );
    scene.releases(&two).await;
    assert_eq!(next(14, &mut events).await, [turn(4)]);
    // Who gives up waiting makes way.
    assert_eq!(scene.busy(&last).await.ahead, 1);
    scene.releases(&alone).await;
    assert_eq!(next(15, &mut events).await, [turn(5)]);
}

/// That a line has an end is a rule (`store::leases`), and takes long to come to.
pub(crate) async fn a_long_line_is_kept_in_its_order<G: Ground>(scene: Scene<G>) {
    assert!(scene.is_granted(&hold(0, &["a"])).await);
    let waits = |id| LeaseRequest::Acquire {
        hold: match id % 2 {
            0 => hold(id, &["a"]),
            _ => shared(id, &["a"]),
        },
        waits: Some(Wait {
            kept: Duration::from_secs(600),
            so_far: Duration::ZERO,
        }),
        dead: Vec::new(),
    };
    let all: Vec<LeaseRequest> = (1..=200).map(waits).collect();
    for (number, some) in all.chunks(25).enumerate() {
        let answers = scene.ask_all(some).await.answer;
        for (place, answer) in (number * 25..).zip(answers) {
            match answer {
                LeaseAnswer::Busy(busy) => assert_eq!(busy.ahead, place),
                other => panic!("it is held: {other:?}"),
            }
        }
    }
    let line = scene.names().await.remove(0).waiting;
    let modes: Vec<Mode> = line.into_iter().map(|(_, mode)| mode).collect();
    let came: Vec<Mode> = all.iter().map(|one| one.hold().mode).collect();
    assert_eq!(modes, came);
    scene.releases(&hold(0, &["a"])).await;
    assert!(
        !scene.is_granted(&hold(2, &["a"])).await,
        "the first came before"
    );
    assert!(scene.is_granted(&shared(1, &["a"])).await);
}
