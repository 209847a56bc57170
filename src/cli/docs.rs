//! `metalform docs`.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::failure::Failure;
use super::output::print;
use crate::resource::{KindSpec, kinds};
use crate::state::{expected, fields_of};

/// Print reference pages, in Markdown
#[derive(Debug, Args)]
pub struct Docs {
    #[command(subcommand)]
    page: Page,
}

#[derive(Debug, Subcommand)]
enum Page {
    /// Every kind of resource that a state file can have, with its fields
    Kinds,
}

/// What every resource may be told, whatever its kind; the state language has them, not the kinds.
const SHARED: &[(&str, &str)] = &[
    ("ensure", "`present`, or `absent` for what must not be there."),
    ("when", "An expression; the resource is left out where it is false."),
    ("each", "A list, or an expression that gives one; `item` is each of it in turn."),
    ("after", "Ids of resources that run first, wherever they stand."),
    ("only_if_changed", "Ids; the resource runs only when one of them was changed."),
    ("sensitive", "`true` for what must never be shown."),
];

impl Docs {
    /// Runs it.
    ///
    /// # Errors
    /// When standard output is closed.
    pub fn run(&self) -> Result<ExitCode, Failure> {
        match self.page {
            Page::Kinds => print(&page(kinds()))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn page(kinds: &[KindSpec]) -> String {
    let mut page =
        "# Kinds of resources\n\nThe first key of a resource is its kind, the value its name. Beside \
                    the fields of its kind it may have:\n\n| Key | What it says |\n| --- | --- |\n"
            .to_owned();
    for (key, about) in SHARED {
        page.push_str(&format!("| `{key}` | {about} |\n"));
    }
    for kind in kinds {
        page.push_str(&section(kind));
    }
    page
}

fn section(kind: &KindSpec) -> String {
    let mut section = format!("\n## {}\n\n{}\n", kind.name, kind.about);
    if kind.fields.is_empty() {
        return section;
    }
    section.push_str("\n| Field | Takes | Required | |\n| --- | --- | --- | --- |\n");
    let templated = fields_of(kind.fields).any(|field| field.name == "source");
    for field in fields_of(kind.fields) {
        let required = match field.required {
            true if templated && field.name == "content" => "yes, or `source`",
            true => "yes",
            false => "",
        };
        // A bar would end the column.
        let about = field.about.replace('|', "\\|");
        section.push_str(&format!(
            "| `{}` | {} | {required} | {about} |\n",
            field.name,
            expected(field.sort)
        ));
    }
    section
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_a_table_of_its_fields() {
        let kind = kinds().iter().find(|kind| kind.name == "template").unwrap();
        insta::assert_snapshot!(section(kind), @r#"

        ## template

        A file made from a template, by its path.

        | Field | Takes | Required | |
        | --- | --- | --- | --- |
        | `content` | text | yes, or `source` | Its whole text. |
        | `mode` | quoted octal digits like "0644" |  | Permission bits, "0644" by default. |
        | `owner` | text |  | User, root by default. |
        | `group` | text |  | Group, root by default. |
        | `replace` | true or false |  | Whether a file that exists is changed, true by default; false makes it only when it is missing. |
        | `source` | text |  | A template, by its path in templates/; its text becomes the content. |
        "#);
    }
}
