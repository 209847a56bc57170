//! Conditions as calls of shell functions, for observations and for waits.

use crate::model::shell_word::quote_all;
use crate::resource::contract::host_condition::HostCondition;

/// The shell functions of [`call`].
pub(super) const FUNCTIONS: &str = include_str!("conditions.sh");

/// The call that checks a condition once. It fails with 1 where the condition does not hold and with 2 where the host
/// cannot check it, and sets the variable `seen` to one line about it.
pub(super) fn call(condition: &HostCondition) -> String {
    match condition {
        HostCondition::Port { host, port } => {
            format!("accepts {}", quote_all([host.as_str(), &port.to_string()]))
        }
        HostCondition::Http { url, status, ca } => {
            let ca = ca.as_deref().unwrap_or_default();
            format!("answers {}", quote_all([url.as_str(), &status.to_string(), ca]))
        }
        HostCondition::File { path } => format!("exists {}", quote_all([path.as_str()])),
    }
}
