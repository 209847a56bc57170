//! Every `metalform ...` command line of a message, a hint or a document is one that the program accepts.
//!
//! In string literals a command line is in backticks, so that its end is known; in documents also a line of a code
//! block. Placeholders (`NAME`, `{name}`, `FILE...`) count as a value.

use std::path::Path;
use std::sync::LazyLock;

use clap::CommandFactory;
use clap::error::ErrorKind;
use regex::Regex;

use crate::source_strings::literals;
use crate::sources::{files, read};

/// What follows the program's name where it names the program or its service, and no command line.
const PROSE: &[&str] = &["as", "bundle", "cluster", "is", "logs", "repository", "roster", "runs", "serve"];

static PLACEHOLDER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^(\{[^}]*\}|<[^>]*>|\[?[A-Z][A-Z_-]+\]?)(\.\.\.)?$").unwrap());
static SPAN: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"`(metalform\s+[^`]+)`").unwrap());
static RUN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\s*(?:\S+@\S+ [#$] |[#$] |sudo )*(metalform .+)$").unwrap());
static BARE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(^|[^`./\w])metalform ([a-z][a-z_-]*)").unwrap());
static EXAMPLE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?m)^#\s+(metalform .+)$").unwrap());

/// Why a command line is not accepted.
fn fault(line: &str) -> Option<String> {
    let words = words(line);
    let mut command = metalform::cli::Cli::command();
    let names = words.iter().skip(1).all(|word| !word.starts_with('-'));
    match command.try_get_matches_from_mut(&words) {
        Ok(_) => None,
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => None,
            // A command that is named, and not a command line to run.
            ErrorKind::MissingRequiredArgument
            | ErrorKind::MissingSubcommand
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
                if names =>
            {
                None
            }
            _ => Some(error.to_string().lines().next().unwrap_or_default().to_owned()),
        },
    }
}

/// The words of a command line up to a comment, a pipe or a redirection, with a value for each placeholder.
fn words(line: &str) -> Vec<String> {
    let line = line.replace("{host}=", "192.0.2.1:22=").replace("{fingerprint}", "SHA256:x");
    let line = line.as_str();
    let end = ["  #", " # ", " | ", " > ", " >", " && ", ";"].iter().filter_map(|end| line.find(end)).min();
    line[..end.unwrap_or(line.len())]
        .split_whitespace()
        .map(|word| word.trim_matches(['\'', '"']))
        .map(|word| if PLACEHOLDER.is_match(word) { "x".to_owned() } else { word.to_owned() })
        .collect()
}

/// `metalform X` in backticks.
fn in_backticks(text: &str) -> Vec<String> {
    SPAN.captures_iter(text).map(|found| found[1].to_owned()).filter(|line| is_command(line)).collect()
}

/// Whether a span is a command line, and not the name of the program or its service.
fn is_command(span: &str) -> bool {
    let word = span.split_whitespace().nth(1).unwrap_or_default();
    word != "..." && (word == "serve" || word == "bundle" || !PROSE.contains(&word))
}

/// Lines of code blocks that run metalform, after a prompt.
fn in_code_blocks(markdown: &str) -> Vec<String> {
    let blocks = markdown.split("```").skip(1).step_by(2).flat_map(str::lines);
    blocks.filter_map(|line| Some(RUN.captures(line)?[1].to_owned())).collect()
}

/// Command lines without backticks, whose end cannot be known.
fn bare(text: &str) -> Vec<String> {
    let words = BARE.captures_iter(text).map(|found| found[2].to_owned());
    words.filter(|word| !PROSE.contains(&word.as_str())).collect()
}

#[test]
fn command_lines_in_messages_exist() {
    let mut wrong = Vec::new();
    let mut checked = 0;
    for path in files("src", "rs") {
        for (line, text) in literals(&read(&path)) {
            let place = format!("{}:{line}", path.display());
            for word in bare(&text) {
                wrong.push(format!("{place}: put the command `metalform {word} ...` in backticks"));
            }
            for command in in_backticks(&text) {
                checked += 1;
                wrong.extend(fault(&command).map(|fault| format!("{place}: {command}: {fault}")));
            }
        }
    }
    assert!(checked > 5, "the sources were not read");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn command_lines_in_documents_and_comments_exist() {
    let mut wrong = Vec::new();
    let mut checked = 0;
    let mut check = |path: &Path, command: String| {
        checked += 1;
        wrong.extend(fault(&command).map(|fault| format!("{}: {command}: {fault}", path.display())));
    };
    let manuals = files("src", "md").into_iter().chain(files("docs", "md"));
    for path in manuals.chain(["README.md".into(), "tests/vagrant/README.md".into()]) {
        let text = read(&path);
        let prose: String = text.split("```").step_by(2).collect();
        in_backticks(&prose).into_iter().chain(in_code_blocks(&text)).for_each(|line| check(&path, line));
    }
    for path in files("src", "rs") {
        let comments: Vec<String> = read(&path)
            .lines()
            .filter_map(|line| line.trim_start().strip_prefix("//"))
            .map(|line| line.trim_start_matches(['/', '!']).to_owned())
            .collect();
        in_backticks(&comments.join("\n")).into_iter().for_each(|line| check(&path, line));
    }
    for path in files("roster", "yaml") {
        EXAMPLE.captures_iter(&read(&path)).for_each(|found| check(&path, found[1].to_owned()));
    }
    assert!(checked > 30, "the documents were not read: {checked}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn command_lines_are_recognised_and_judged() {
    assert_eq!(
        in_backticks("run `metalform\n etcd health`, `kubectl get` or `sudo metalform ...`"),
        ["metalform\n etcd health"]
    );
    let block = "```\nroot@boot # metalform serve   # a comment\nmetalform: an error\n```\nmetalform grows";
    assert_eq!(in_code_blocks(block), ["metalform serve   # a comment"]);
    assert_eq!(bare("metalform etcd health shows it; `metalform serve`; metalform runs on"), ["etcd"]);
    for accepted in [
        "metalform node check {node} --accept-host-key SHA256:...",
        "metalform deploy-node NAME...",
        "metalform docs schema state > FILE",
        "metalform bundle",
        "metalform apply --roster x --on 'web-*,!web-2'",
    ] {
        assert_eq!(fault(accepted), None, "{accepted}");
    }
    for refused in
        ["metalform reset-hosts x", "metalform plan --frobnicate", "metalform bundle build --cache x"]
    {
        assert!(fault(refused).is_some(), "{refused}");
    }
}
