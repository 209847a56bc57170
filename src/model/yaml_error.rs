//! Messages of YAML errors. The parser's describe what it was scanning; these describe what to change.

use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Error, MessageFormatter, UserMessageFormatter};

use super::near::Near;

/// Part of a message of the parser, and the message to show instead.
const MESSAGES: [(&str, &str); 22] = [
    (
        "mapping values are not allowed",
        "unexpected second \": \": quote the value, or indent the key like its siblings",
    ),
    ("did not find expected '-' indicator", "the indentation matches neither the items above nor their key"),
    ("did not find expected key", "the indentation matches no key above"),
    ("simple key expected ':'", "expected \": \" after this key"),
    ("tabs disallowed", "unexpected tab: indent with spaces"),
    ("found a tab", "unexpected tab in the next line: indent with spaces"),
    ("invalid indentation in multiline quoted", "a quoted string that starts above this line is not closed"),
    ("invalid indentation in quoted", "a quoted string that starts above this line is not closed"),
    ("while scanning a quoted scalar, found unexpected", "a quoted string is not closed"),
    (
        "invalid trailing content after",
        "unexpected text after a closing quote; within single quotes, double each single quote",
    ),
    ("unclosed bracket", "this bracket is not closed"),
    ("unexpected EOF while parsing", "a bracket is not closed, or an item is missing between two commas"),
    (
        "found unknown escape character",
        "unknown escape sequence in double quotes: write \\\\, or use single quotes",
    ),
    ("comments must be separated", "\"#\" must follow a space: add one, or quote the value"),
    ("while scanning an anchor or alias", "a string cannot start with \"*\" or \"&\": quote it"),
    ("limits breached: Depth", "nested too deeply"),
    ("limits breached", "the expanded document is too large: do anchors repeat anchors?"),
    ("reference to unknown value", "unknown anchor; quote a string that starts with \"*\""),
    ("Recursive reference", "the anchor contains itself"),
    ("recursion limit", "nested too deeply"),
    ("only single YAML document", "unexpected second document"),
    ("a second document", "unexpected second document"),
];

/// The message: one line, lowercase, without a period.
pub fn explain(error: &Error) -> String {
    match error.without_snippet() {
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("duplicate key {key:?}")
        }
        Error::MultipleDocuments { .. } => "unexpected second document".to_owned(),
        Error::MergeKeyNotAllowed { .. } => "<< is not supported: write the fields out".to_owned(),
        Error::UnsupportedTag { .. } => "tags (!name) are not supported: write the value itself".to_owned(),
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => "nested too deeply".to_owned(),
        Error::Budget { .. } => "the expanded document is too large: do anchors repeat anchors?".to_owned(),
        Error::SerdeUnknownField { field, expected, .. } => {
            let near = Near::to(field, expected.iter().copied());
            match near == Near::default() {
                true => format!("unknown field {field:?}; known fields: {}", expected.join(", ")),
                false => format!("unknown field {field:?}{near}"),
            }
        }
        Error::SerdeMissingField { field, .. } => format!("missing field {field:?}"),
        Error::Unexpected { expected: "mapping start", .. } => "expected a mapping".to_owned(),
        Error::Unexpected { expected: "string scalar", .. } => "expected a string".to_owned(),
        Error::Unexpected { expected: "sequence start", .. } => "expected a list".to_owned(),
        Error::InvalidScalar { ty: "u8" | "u16" | "u32" | "u64", .. } => "expected an integer".to_owned(),
        other => in_words(&UserMessageFormatter.format_message(other)),
    }
}

fn in_words(message: &str) -> String {
    if let Some((_, ours)) = MESSAGES.iter().find(|(theirs, _)| message.contains(theirs)) {
        return (*ours).to_owned();
    }
    if message.contains("invalid boolean") {
        return "expected true or false".to_owned();
    }
    if let Some((_, expected)) =
        message.split_once("invalid type: ").and_then(|(_, rest)| rest.split_once(", expected "))
    {
        return format!("expected {expected}");
    }
    if let Some(rest) = message.split_once("unexpected character: `").map(|(_, rest)| rest) {
        let character = rest.strip_suffix('\'').unwrap_or(rest);
        return match character {
            "@" | "`" | "%" => format!("a string cannot start with {character:?}: quote it"),
            // Shown as an escape by the parser, or a character that needs one.
            other => {
                format!("unexpected character {}", other.escape_default().to_string().replace("\\\\", "\\"))
            }
        };
    }
    // The parser may quote several lines.
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}
