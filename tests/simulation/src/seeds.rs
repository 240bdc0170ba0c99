//! How many worlds a law is tried in.

/// Worlds of an ordinary run; `SEEDS` asks for more, `SEED` for one.
const WORLDS: u64 = 150;

/// The law in as many worlds as usual.
pub(crate) fn for_each_seed(law: impl Fn(u64)) {
    for_seeds(WORLDS, law);
}

/// The law in so many worlds, or as many as `SEEDS` says.
pub(crate) fn for_seeds(count: u64, law: impl Fn(u64)) {
    let read = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    if let Some(seed) = read("SEED") {
        return law(seed);
    }
    for seed in 1..=read("SEEDS").unwrap_or(count) {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| law(seed)));
        if let Err(panic) = outcome {
            eprintln!("failed with SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}
