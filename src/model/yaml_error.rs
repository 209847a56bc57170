//! What is wrong with YAML, in words for the people who wrote it. The parser's own are for those who know its
//! productions: they say what it was scanning, and not what to do.

use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Error, MessageFormatter, UserMessageFormatter};

use super::near::Near;

/// A part of what the parser says, and what we say instead.
const WORDS: [(&str, &str); 22] = [
    (
        "mapping values are not allowed",
        "a second \": \" stands here: quote the value, or indent the key as its neighbours are",
    ),
    (
        "did not find expected '-' indicator",
        "this line is indented neither as the items above it nor as their key",
    ),
    ("did not find expected key", "this line is indented as no key above it"),
    ("simple key expected ':'", "a \":\" and a blank must follow this key"),
    ("tabs disallowed", "a tab stands here: YAML is indented with blanks"),
    ("found a tab", "a tab stands in the next line: YAML is indented with blanks"),
    ("invalid indentation in multiline quoted", "a quote that was opened above this line is not closed"),
    ("invalid indentation in quoted", "a quote that was opened above this line is not closed"),
    ("while scanning a quoted scalar, found unexpected", "a quote is not closed"),
    (
        "invalid trailing content after",
        "text follows a closing quote; within single quotes a quote is written twice",
    ),
    ("unclosed bracket", "this bracket is not closed"),
    ("unexpected EOF while parsing", "a bracket is not closed, or nothing stands between two commas"),
    (
        "found unknown escape character",
        "this backslash means nothing in double quotes: write \\\\, or use single quotes",
    ),
    (
        "comments must be separated",
        "a \"#\" stands right behind something else: put a blank before it, or quotes around the value",
    ),
    ("while scanning an anchor or alias", "\"*\" and \"&\" begin no text: put the value in quotes"),
    ("limits breached: Depth", "this is nested too deep"),
    ("limits breached", "this comes to more than a person writes: anchors that repeat anchors?"),
    ("reference to unknown value", "there is no such anchor; a text that begins with \"*\" stands in quotes"),
    ("Recursive reference", "this refers to itself"),
    ("recursion limit", "this is nested too deep"),
    ("only single YAML document", "a second document begins here"),
    ("a second document", "a second document begins here"),
];

/// One line, a lowercase fragment.
pub fn explain(error: &Error) -> String {
    match error.without_snippet() {
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the key {key:?} stands here for the second time")
        }
        Error::MultipleDocuments { .. } => "a second document begins here".to_owned(),
        Error::MergeKeyNotAllowed { .. } => "<< is not read here: write the fields out".to_owned(),
        Error::UnsupportedTag { .. } => "a tag (!name) is not read here: write the value itself".to_owned(),
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => "this is nested too deep".to_owned(),
        Error::Budget { .. } => {
            "this comes to more than a person writes: anchors that repeat anchors?".to_owned()
        }
        Error::SerdeUnknownField { field, expected, .. } => {
            let near = Near::to(field, expected.iter().copied());
            match near == Near::default() {
                true => format!("unknown field {field:?}; known here: {}", expected.join(", ")),
                false => format!("unknown field {field:?}{near}"),
            }
        }
        Error::SerdeMissingField { field, .. } => format!("the field {field:?} is missing"),
        Error::Unexpected { expected: "mapping start", .. } => "a mapping is expected here".to_owned(),
        Error::Unexpected { expected: "string scalar", .. } => "text is expected here".to_owned(),
        Error::Unexpected { expected: "sequence start", .. } => "a list is expected here".to_owned(),
        Error::InvalidScalar { ty: "u8" | "u16" | "u32" | "u64", .. } => {
            "a whole number is expected here".to_owned()
        }
        other => in_words(&UserMessageFormatter.format_message(other)),
    }
}

fn in_words(said: &str) -> String {
    if let Some((_, ours)) = WORDS.iter().find(|(theirs, _)| said.contains(theirs)) {
        return (*ours).to_owned();
    }
    if said.contains("invalid boolean") {
        return "true or false is expected here".to_owned();
    }
    if let Some((_, expected)) =
        said.split_once("invalid type: ").and_then(|(_, rest)| rest.split_once(", expected "))
    {
        return format!("{expected} is expected here");
    }
    if let Some(rest) = said.split_once("unexpected character: `").map(|(_, rest)| rest) {
        let character = rest.strip_suffix('\'').unwrap_or(rest);
        return match character {
            "@" | "`" | "%" => format!("{character:?} begins no text: put the value in quotes"),
            // The parser wrote it as an escape, or it is one.
            other => format!(
                "the character {} cannot stand here",
                other.escape_default().to_string().replace("\\\\", "\\")
            ),
        };
    }
    // One line, whatever the parser quotes.
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}
