//! How hosts differ from what they were, for `reset-host --check`.

use super::diff::printable;
use crate::service::reset::HostComparison;

/// One line for each difference; and one for a host that has nothing of metalform's, which says so.
pub fn text(comparisons: &[HostComparison]) -> String {
    let mut text = String::new();
    for HostComparison { name, differences } in comparisons {
        for difference in differences {
            let whose = if difference.ours { "" } else { " (not of metalform)" };
            text.push_str(&format!("{name}: {}{whose}\n", printable(&difference.to_string())));
        }
        if differences.iter().all(|difference| !difference.ours) {
            text.push_str(&format!("{name}: nothing of metalform is left\n"));
        }
    }
    text
}
