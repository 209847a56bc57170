//! Empty: see `tests/schemas.rs`.
