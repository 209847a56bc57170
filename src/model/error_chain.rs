//! An error and its causes in one line.

use std::error::Error;
use std::iter::successors;

/// The error and its sources, outermost first, separated by `: `. A source whose message the line contains
/// already is left out, and line breaks become spaces.
pub fn error_chain(error: &dyn Error) -> String {
    with_sources(error.to_string(), error.source())
}

/// The same with another message in place of the outermost error's.
pub fn with_sources(message: String, source: Option<&(dyn Error + 'static)>) -> String {
    let mut line = message;
    let mut next = source;
    while let Some(source) = next {
        let message = source.to_string();
        if !line.contains(&message) {
            line = format!("{line}: {message}");
        }
        next = source.source();
    }
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The innermost source, or the error itself without one.
pub fn root_cause<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    successors(Some(error), |&error| error.source()).last().unwrap_or(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{message}")]
    struct Link {
        message: &'static str,
        source: Option<Box<Link>>,
    }

    fn link(message: &'static str, source: Option<Link>) -> Link {
        Link { message, source: source.map(Box::new) }
    }

    #[test]
    fn every_message_is_there_once_and_in_one_line() {
        let root = link("connection\n  refused", None);
        let repeated = link("connection\n  refused", Some(root));
        let outermost = link("kubeconfig /a", Some(repeated));
        assert_eq!(error_chain(&outermost), "kubeconfig /a: connection refused");
        assert_eq!(root_cause(&outermost).to_string(), "connection\n  refused");
    }
}
