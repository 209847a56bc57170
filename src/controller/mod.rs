//! Controllers that run in `metalform serve`.
