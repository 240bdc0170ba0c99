//! Opens the store that a URL names.
