//! Readers of events: live, plain and JSON.
