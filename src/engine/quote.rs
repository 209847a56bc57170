//! Words for a POSIX shell.

/// The text as one word that the shell takes literally, whatever it contains (POSIX 2.2.2, single quotes).
/// A NUL cannot stand in any argument of a Unix program, so a shell drops it.
pub(super) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Each as one word, separated by spaces.
pub(super) fn quote_all<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    texts.into_iter().map(quote).collect::<Vec<_>>().join(" ")
}
