//! Differences as text and for JSON: unified diffs of files, before and after of other fields.
//!
//! Contains no secrets: these are [`Difference::Hidden`] already.

use serde::Serialize;
use similar::TextDiff;

use crate::resource::contract::change::Difference;

/// A difference, for JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// One field.
    Field {
        /// As in the state file.
        name: String,
        /// `null` if the field was absent.
        before: Option<String>,
        /// `null` if the field is removed.
        after: Option<String>,
    },
    /// A unified diff of a file.
    Diff(String),
    /// A description of what cannot be shown.
    Hidden(String),
}

/// Whether text has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// No escape sequences.
    Plain,
    /// Added and removed lines in colours.
    Colours,
}

const GREEN: &str = "\u{1b}[32m";
const RED: &str = "\u{1b}[31m";
const CYAN: &str = "\u{1b}[36m";
const RESET: &str = "\u{1b}[0m";

/// The differences of one resource, for JSON.
pub fn shown(differences: &[Difference]) -> Vec<Shown> {
    differences
        .iter()
        .map(|difference| match difference {
            Difference::Field { name, before, after } => {
                Shown::Field { name: name.clone(), before: before.clone(), after: after.clone() }
            }
            Difference::Text { path, before, after } => Shown::Diff(unified(path, before, after)),
            Difference::Hidden { what } => Shown::Hidden(what.clone()),
        })
        .collect()
}

/// The same as indented lines below the id of the resource.
pub fn text(resource: &str, differences: &[Difference], paint: Paint) -> String {
    let mut text = format!("  {}\n", printable(resource));
    for one in shown(differences) {
        match one {
            Shown::Field { name, before, after } => {
                let value = |value: Option<String>| value.map_or("(none)".to_owned(), |v| printable(&v));
                let line = format!("    {name}: {} → {}\n", value(before), value(after));
                // The lines of a value are indented below its name.
                text.push_str(&line.trim_end().replace('\n', "\n      "));
                text.push('\n');
            }
            Shown::Hidden(what) => text.push_str(&format!("    {what}\n")),
            Shown::Diff(diff) => {
                diff.split_terminator('\n')
                    .for_each(|line| text.push_str(&format!("    {}\n", painted(line, paint))));
            }
        }
    }
    text
}

/// In the format of diff -u; an absent file is empty.
fn unified(path: &str, before: &str, after: &str) -> String {
    TextDiff::from_lines(before, after).unified_diff().header(path, path).to_string()
}

fn painted(line: &str, paint: Paint) -> String {
    let line = printable(line);
    let colour = match line.as_bytes().first() {
        _ if paint == Paint::Plain => return line,
        Some(b'+') => GREEN,
        Some(b'-') => RED,
        Some(b'@') => CYAN,
        _ => return line,
    };
    format!("{colour}{line}{RESET}")
}

/// Escapes control characters: a host's file must not control the operator's terminal.
pub fn printable(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\t' => c.to_string(),
        c if c.is_control() => c.escape_default().to_string(),
        c => c.to_string(),
    };
    text.chars().map(shown).collect()
}

/// The same in one line.
pub fn printable_line(text: &str) -> String {
    printable(text).replace(['\n', '\t'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differences() -> Vec<Difference> {
        vec![
            Difference::Text { path: "/etc/x".into(), before: "a\nb\n".into(), after: "a\nc\n".into() },
            Difference::Field { name: "mode".into(), before: None, after: Some("0600".into()) },
            Difference::Hidden { what: "content (sensitive)".into() },
        ]
    }

    #[test]
    fn text_has_a_unified_diff_below_the_resource() {
        insta::assert_snapshot!(text("line:x is set", &differences(), Paint::Plain), @"
          line:x is set
            --- /etc/x
            +++ /etc/x
            @@ -1,2 +1,2 @@
             a
            -b
            +c
            mode: (none) → 0600
            content (sensitive)
        ");
    }

    #[test]
    fn json_has_the_same_differences() {
        insta::assert_json_snapshot!(shown(&differences()), @r#"
        [
          {
            "diff": "--- /etc/x\n+++ /etc/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
          },
          {
            "field": {
              "name": "mode",
              "before": null,
              "after": "0600"
            }
          },
          {
            "hidden": "content (sensitive)"
          }
        ]
        "#);
    }

    #[test]
    fn a_host_cannot_send_escape_sequences_to_the_terminal() {
        let evil =
            Difference::Text { path: "/x".into(), before: String::new(), after: "\u{1b}]0;x\u{7}\n".into() };
        let text = text("file:/x", &[evil], Paint::Colours);
        assert!(text.contains("\u{1b}[32m+\\u{1b}]0;x\\u{7}\u{1b}[0m"), "{text:?}");
    }
}
