//! Placeholder. Must never: stay.
