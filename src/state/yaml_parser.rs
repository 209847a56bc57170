//! The YAML parser of state files. Merge keys are refused, and only `true` and `false` are booleans, so that a file is
//! read the same by every tool.

use serde_saphyr::{DuplicateKeyPolicy, Error, MergeKeyPolicy};

use super::location::Position;
use super::yaml::{Node, position};
use super::yaml_fault::YamlFault;
use crate::model::{document, yaml_error};

/// Reads one document.
///
/// # Errors
/// The first fault.
pub fn parse(text: &str) -> Result<Node, YamlFault> {
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        strict_booleans: true,
        budget: serde_saphyr::budget! { max_depth: document::DEEPEST },
        reject_unsupported_tags: true,
        with_snippet: false,
    };
    let mut node: Node =
        serde_saphyr::from_str_with_options(text, options).map_err(|error| explain(text, &error))?;
    node.record_numbers(text);
    Ok(node)
}

fn explain(text: &str, error: &Error) -> YamlFault {
    let at = error.location().map(position).filter(|at| at.line > 0);
    if let Error::DuplicateMappingKey { key: Some(key), .. } = error {
        return YamlFault::DuplicateKey { key: key.clone(), at };
    }
    match unquoted_expression(text, at.map_or(0, |at| at.line)) {
        Some(at) => YamlFault::UnquotedExpression { at },
        None => YamlFault::Malformed { reason: yaml_error::explain(error), at },
    }
}

/// A `{{` where a value begins, on the line where the parser stopped or the one before it.
fn unquoted_expression(text: &str, near: u64) -> Option<Position> {
    let lines = (1..).zip(text.lines());
    lines.filter(|(number, _)| *number == near || number + 1 == near).find_map(|(line, content)| {
        let (before, _) = content.split_once("{{")?;
        let begins = before.trim_end();
        let value_begins = begins.is_empty() || begins.ends_with([':', '-', '[', ',']);
        let column = before.chars().count() as u64 + 1;
        value_begins.then_some(Position { line, column })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::yaml::{MapKey, Yaml};

    #[test]
    fn every_value_has_a_position_and_numbers_their_notation() {
        let node = parse("a: text\nb:\n  - 1.30\n  - 0644\n  - {c: yes, d: true}\n").unwrap();
        let Yaml::Map(entries) = &node.value else { panic!("{node:?}") };
        assert_eq!(entries[1].0, MapKey { at: Position { line: 2, column: 1 }, name: "b".to_owned() });
        let Yaml::List(items) = &entries[1].1.value else { panic!("{node:?}") };
        assert_eq!(items[0].at, Position { line: 3, column: 5 });
        assert_eq!(items[0].describe(), "the number 1.30");
        assert_eq!(items[1].describe(), "the number 0644");
        let Yaml::Map(inner) = &items[2].value else { panic!("{node:?}") };
        assert_eq!(inner[0].1.value, Yaml::String("yes".to_owned()));
        assert_eq!(inner[1].1.value, Yaml::Boolean(true));
    }

    #[test]
    fn faults_have_their_position() {
        let mut messages = Vec::new();
        for text in [
            "a: 1\nb: 2\na: 3\n",
            "a: {{ b }}\n",
            "a:\n  - {{ b[0] }}\n",
            "a: {{ b }}/c\n",
            "a: [x, {{ b }}]\n",
            "a: [x\nb: 2\n",
            "a: \"x\nb: 2\n",
            "base: &x {a: 1}\nb:\n  <<: *x\n",
            "? [a]\n: 2\n",
            "a: .nan\n",
            "a: 1\n---\nb: 2\n",
        ] {
            let error = parse(text).unwrap_err();
            messages
                .push(format!("{text:?} -> {:?} {error}", error.position().map(|at| (at.line, at.column))));
        }
        insta::assert_snapshot!(messages.join("\n"), @r#"
        "a: 1\nb: 2\na: 3\n" -> Some((3, 1)) duplicate key "a"
        "a: {{ b }}\n" -> Some((1, 4)) {{ }} must be quoted: YAML reads a map here
        "a:\n  - {{ b[0] }}\n" -> Some((2, 5)) {{ }} must be quoted: YAML reads a map here
        "a: {{ b }}/c\n" -> Some((1, 4)) {{ }} must be quoted: YAML reads a map here
        "a: [x, {{ b }}]\n" -> Some((1, 8)) {{ }} must be quoted: YAML reads a map here
        "a: [x\nb: 2\n" -> Some((2, 2)) illegal placement of ':' indicator
        "a: \"x\nb: 2\n" -> Some((2, 1)) a quoted string that starts above this line is not closed
        "base: &x {a: 1}\nb:\n  <<: *x\n" -> Some((3, 3)) << is not supported: write the fields out
        "? [a]\n: 2\n" -> None a key must be a string
        "a: .nan\n" -> Some((1, 4)) value `.nan` is not a finite number
        "a: 1\n---\nb: 2\n" -> Some((3, 1)) unexpected second document
        "#);
    }
}
