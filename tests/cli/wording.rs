//! Help, errors and hints use the words of their field: no word of `tests/wording/deny.txt` is in them.

use std::sync::LazyLock;

use clap::CommandFactory;
use regex::{Regex, RegexBuilder};

use crate::source_strings::literals;
use crate::sources::{files, read};

/// Phrases that contain a denied word and are right: also a field of the state language and of kubeconfig, and words of
/// shell programs, dpkg and OpenSSH.
const ALLOWED: &[&str] = &[
    "certificate authority",
    "certificate authorities",
    "cert-authority",
    "certificate-authority",
    "db:Status-Want",
    "say begin",
    "say done",
    "say end",
    "say request",
];
/// A field's whole name in the state language.
const FIELDS: &[&str] = &["authority"];
/// `{name}` is replaced by a value.
static PLACEHOLDER: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\{\w*(?::[^}]*)?\}").unwrap());

/// Denied words, each with what to write instead.
fn denied() -> Vec<(Regex, String)> {
    let list = read("tests/wording/deny.txt");
    let entries = list.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    entries
        .map(|line| {
            let (pattern, instead) = line.split_once('\t').unwrap();
            let pattern = format!(r"\b(?:{pattern})\b");
            (RegexBuilder::new(&pattern).case_insensitive(true).build().unwrap(), instead.to_owned())
        })
        .collect()
}

/// One line for each denied word in a text.
fn faults(denied: &[(Regex, String)], place: &str, text: &str) -> Vec<String> {
    if FIELDS.contains(&text) {
        return Vec::new();
    }
    let text = PLACEHOLDER.replace_all(text, "").to_lowercase();
    let text = ALLOWED.iter().fold(text, |text, phrase| text.replace(&phrase.to_lowercase(), ""));
    denied
        .iter()
        .filter_map(|(pattern, instead)| Some((pattern.find(&text)?, instead)))
        .map(|(word, instead)| format!("{place}: {:?} in {text:?}; write: {instead}", word.as_str()))
        .collect()
}

#[test]
fn messages_use_no_denied_word() {
    let denied = denied();
    let mut wrong = Vec::new();
    for path in files("src", "rs") {
        if path.to_string_lossy().ends_with("tests.rs") {
            continue;
        }
        for (line, text) in literals(&read(&path)) {
            wrong.extend(faults(&denied, &format!("{}:{line}", path.display()), &text));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn help_uses_no_denied_word() {
    let denied = denied();
    let mut wrong = Vec::new();
    let mut commands = vec![("metalform".to_owned(), metalform::cli::Cli::command())];
    while let Some((name, command)) = commands.pop() {
        let texts = [command.get_about(), command.get_long_about()].into_iter().flatten();
        let mut help: Vec<String> = texts.map(ToString::to_string).collect();
        for argument in command.get_arguments() {
            help.extend(
                [argument.get_help(), argument.get_long_help()]
                    .into_iter()
                    .flatten()
                    .map(ToString::to_string),
            );
            let values = argument.get_possible_values();
            help.extend(values.iter().filter_map(|value| value.get_help().map(ToString::to_string)));
        }
        for text in help {
            wrong.extend(faults(&denied, &format!("{name} --help"), &text));
        }
        for sub in command.get_subcommands() {
            commands.push((format!("{name} {}", sub.get_name()), sub.clone()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_denied_word_is_found_whatever_its_case() {
    let denied = denied();
    assert!(denied.len() > 15, "the list was not read");
    assert_eq!(faults(&denied, "x", "Nobody Says so").len(), 2);
    assert_eq!(faults(&denied, "x", "the certificate authority; essays, standard").len(), 0);
}
