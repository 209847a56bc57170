//! Usage errors of clap, in the form of every other error.

use clap::error::ErrorKind;

use super::failure::{Exit, Failure};

/// The failure; `None` for help and the version, which clap prints itself.
pub fn failure(error: &clap::Error) -> Option<Failure> {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return None;
    }
    let text = error.render().to_string();
    let mut paragraphs = text.split("\n\n");
    let message = paragraphs.next().unwrap_or_default().trim_start_matches("error: ");
    let mut failure =
        Failure::new(Exit::Configuration, message.split_whitespace().collect::<Vec<_>>().join(" "));
    for line in paragraphs.flat_map(str::lines) {
        if let Some(tip) = line.trim().strip_prefix("tip: ") {
            failure = failure.hint(tip);
        } else if line.starts_with("Usage: ") {
            failure = failure.hint(line.replacen("Usage", "usage", 1));
        }
    }
    Some(failure)
}
