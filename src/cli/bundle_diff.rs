//! `metalform bundle diff`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::failure::{Exit, Failure};
use super::output::{Format, document, print};
use crate::bundle::difference::{BundleDifference, difference};
use crate::bundle::manifest::Bundle;
use crate::report::table::table;

/// Show what another bundle has: platforms, components, images and packages that are new, changed or gone
#[derive(Debug, Args)]
pub(super) struct Diff {
    /// Directory of the bundle that there is
    before: PathBuf,
    /// Directory of the other one
    after: PathBuf,
    /// Output format
    #[arg(long, short, default_value = "table")]
    output: Format,
}

pub(super) fn diff(arguments: &Diff) -> Result<ExitCode, Failure> {
    let read = |directory: &PathBuf| {
        Bundle::read(directory).map_err(|error| Failure::from_error(Exit::Configuration, &error))
    };
    let found = difference(&read(&arguments.before)?, &read(&arguments.after)?);
    match arguments.output {
        Format::Json | Format::Yaml => document(arguments.output, &found)?,
        Format::Name => {
            print(&found.changes.iter().map(|change| format!("{}\n", change.name)).collect::<String>())?;
        }
        Format::Table | Format::Wide => print(&text(&found))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn text(found: &BundleDifference) -> String {
    let cell = |version: &Option<String>| match version.as_deref() {
        None => "-".to_owned(),
        Some("") => "yes".to_owned(),
        Some(version) => version.to_owned(),
    };
    let rows: Vec<[String; 4]> = found
        .changes
        .iter()
        .map(|change| {
            let kind = change.kind.as_str().to_owned();
            [kind, change.name.clone(), cell(&change.before), cell(&change.after)]
        })
        .collect();
    let mut text =
        if rows.is_empty() { String::new() } else { table(&["KIND", "NAME", "BEFORE", "AFTER"], &rows) };
    text += &format!("{} new files, {} MiB\n", found.new_files, found.new_bytes.div_ceil(1 << 20));
    text
}
