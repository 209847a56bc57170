//! etcd in a container of its own, for a moment: functions of scripts.

/// What a script has before it; `image` and `work` are set when a function is called.
pub(super) const FUNCTIONS: &str = include_str!("etcd_container.sh");

#[cfg(test)]
#[path = "etcd_container_tests.rs"]
mod tests;
