//! Occurrences in several parts.

use soloist::scheduler::lease::{Claim, Outcome};

use crate::world::{World, exit, job};

fn shard(world: &mut World, number: u32) -> Claim {
    let sharded = world.table.clone().expect("a table").remove(0);
    let mut claim = world.prepare(&sharded, "22:00:00");
    claim.shard = number;
    claim
}

#[test]
fn each_shard_has_its_own_fate_and_the_whole_the_worst() {
    let mut sharded = job("sharded", "0 22 * * *");
    sharded.shards = 3;
    let mut world = World::new([sharded]);
    world.set("22:00:00");
    let claims = [0, 1].map(|number| shard(&mut world, number));
    let [first, second] = claims.map(|claim| world.start("r1", claim));
    world.set("22:00:05");
    world.succeed("r1", &first);
    world.end("r1", &second, Outcome::Failed, exit(2), None);
    assert_eq!(
        world.why("sharded", "22:00:00"),
        [
            "sharded at 2026-11-20T22:00:00Z is not over: some of its shards wait for an attempt.",
            "Shard 0 of 3 succeeded.",
            "  Attempt 1 ran on r1 from 2026-11-20T22:00:00Z to 2026-11-20T22:00:05Z (5.0s) under token 1795212000000000, and succeeded.",
            "Shard 1 of 3 failed.",
            "  Attempt 1 ran on r1 from 2026-11-20T22:00:00Z to 2026-11-20T22:00:05Z (5.0s) under token 1795212000000001, and failed: exit code 2.",
            "Shard 2 of 3 waits for its first attempt.",
            "Nobody can claim it: no replica has been heard of lately.",
        ]
    );

    let third = shard(&mut world, 2);
    let third = world.start("r2", third);
    world.set("22:00:07");
    assert_eq!(
        world.why("sharded", "22:00:00")[0],
        "sharded at 2026-11-20T22:00:00Z is running."
    );
    world.succeed("r2", &third);
    assert_eq!(
        world.why("sharded", "22:00:00"),
        [
            "sharded at 2026-11-20T22:00:00Z failed: 2 of 3 shards succeeded.",
            "Shard 0 of 3 succeeded.",
            "  Attempt 1 ran on r1 from 2026-11-20T22:00:00Z to 2026-11-20T22:00:05Z (5.0s) under token 1795212000000000, and succeeded.",
            "Shard 1 of 3 failed.",
            "  Attempt 1 ran on r1 from 2026-11-20T22:00:00Z to 2026-11-20T22:00:05Z (5.0s) under token 1795212000000001, and failed: exit code 2.",
            "Shard 2 of 3 succeeded.",
            "  Attempt 1 ran on r2 from 2026-11-20T22:00:05Z to 2026-11-20T22:00:07Z (2.0s) under token 1795212005000000, and succeeded. It began 5.0s after its instant; why it started late isn't recorded.",
        ]
    );
}
