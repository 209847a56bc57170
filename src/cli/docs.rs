//! `metalform docs`.

use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use rust_embed::RustEmbed;

use super::failure::{Exit, Failure};
use super::output::print;
use crate::model::bootstrap_configuration::BootstrapConfiguration;
use crate::model::roster::Roster;
use crate::resource::KindSpec;
use crate::resource::kinds;
use crate::state::{SHARED_KEYS, expected, fields_of, schema};

/// Print reference pages, in Markdown, and JSON schemas for editors
#[derive(Debug, Args)]
pub struct Docs {
    #[command(subcommand)]
    page: Page,
}

#[derive(Debug, Subcommand)]
enum Page {
    /// Every kind of resource that a state file can have, with its fields and an example
    Kinds,
    /// The JSON schema of a file, for editors: "# yaml-language-server: $schema=PATH" as its first line names it
    Schema {
        /// Of what
        file: SchemaOf,
    },
}

/// What people write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SchemaOf {
    /// A file in states/.
    State,
    /// states/top.yaml.
    Top,
    /// Hosts, for --roster.
    Roster,
    /// /etc/metalform/bootstrap.yaml.
    Configuration,
}

impl SchemaOf {
    /// The schema, of the very tables and types that read such a file.
    pub fn schema(self) -> serde_json::Value {
        match self {
            Self::State => schema::state(kinds()),
            Self::Top => schema::top(),
            Self::Roster => Roster::schema(),
            Self::Configuration => BootstrapConfiguration::schema(),
        }
    }
}

/// For each kind, `NAME.md`: an example, what it does, what absent means, what is refused.
#[derive(RustEmbed)]
#[folder = "src/cli/manual/"]
struct Manual;

impl Docs {
    /// Runs it.
    ///
    /// # Errors
    /// When standard output is closed.
    pub fn run(&self) -> Result<ExitCode, Failure> {
        match self.page {
            Page::Kinds => print(&page(kinds()))?,
            Page::Schema { file } => {
                let text = serde_json::to_string_pretty(&file.schema())
                    .map_err(|error| Failure::from_error(Exit::Bug, &error))?;
                print(&format!("{text}\n"))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What the manual says of a kind, in Markdown; empty where it says nothing.
pub fn manual(kind: &str) -> String {
    let file = Manual::get(&format!("{kind}.md"));
    file.map(|file| String::from_utf8_lossy(&file.data).into_owned()).unwrap_or_default()
}

/// The whole reference page.
pub fn page(kinds: &[KindSpec]) -> String {
    let mut page = "# Kinds of resources

<!-- Made by `metalform docs kinds`. -->

A state file says in `about` what it is for, in `requires` which states come before it, and in `resources` what a
host must have, in the order to bring it about:

```yaml
about: Says who manages this machine.
resources:
  - file: /etc/motd
    content: |
      {{ node.name }} is managed: changes by hand are undone.
    when: not facts.container
```

The first key of a resource is its kind, the value its name. Together they are its id, `file:/etc/motd`. Beside the
fields of its kind it may have:

| Key | Takes | What it says |
| --- | --- | --- |
"
    .to_owned();
    for key in SHARED_KEYS {
        page.push_str(&format!("| `{}` | {} | {} |\n", key.name, key.takes, key.about));
    }
    page.push_str("\nKinds: ");
    let links: Vec<String> = kinds.iter().map(|kind| format!("[{0}](#{0})", kind.name)).collect();
    page.push_str(&format!("{}.\n", links.join(", ")));
    for kind in kinds {
        page.push_str(&section(kind));
    }
    page
}

fn section(kind: &KindSpec) -> String {
    let mut section = format!("\n## {}\n\n{}\n\n{}", kind.name, kind.about, manual(kind.name));
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
