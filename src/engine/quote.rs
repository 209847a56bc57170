//! Many words for a POSIX shell.

use crate::transport::shell::quote;

/// Each string as one word, separated by spaces.
pub(super) fn quote_all<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    texts.into_iter().map(quote).collect::<Vec<_>>().join(" ")
}
