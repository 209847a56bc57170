//! Nothing: see `tests/schemas.rs`.
