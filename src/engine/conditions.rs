//! Conditions as calls of shell functions, for observations and for waits.

use crate::engine::quote::quote_all;
use crate::resource::contract::condition::Condition;

/// The shell functions of [`call`].
pub(super) const FUNCTIONS: &str = include_str!("conditions.sh");

/// The call that checks a condition once. It fails with 1 where the condition does not hold and with 2 where the host
/// cannot check it, and sets the variable `seen` to one line about it.
pub(super) fn call(condition: &Condition) -> String {
    match condition {
        Condition::Port { host, port } => {
            format!("accepts {}", quote_all([host.as_str(), &port.to_string()]))
        }
        Condition::Http { url, status, ca } => {
            let ca = ca.as_deref().unwrap_or_default();
            format!("answers {}", quote_all([url.as_str(), &status.to_string(), ca]))
        }
        Condition::File { path } => format!("exists {}", quote_all([path.as_str()])),
    }
}
