//! `metalform render`.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::Value;

use super::Global;
use super::failure::Failure;
use super::host_trouble;
use super::output::{Format, document, print};
use super::states::StateArguments;
use crate::resource;
use crate::resource::contract::kind::Kind;
use crate::resource::fields::field_spec::FieldType;
use crate::state::{Compiled, Ensure};

/// Show the resources that states come to on hosts, with every value filled in; changes nothing
///
/// Hosts are asked for facts where states depend on them. What a sensitive resource holds is not shown.
#[derive(Debug, Args)]
pub struct Render {
    #[command(flatten)]
    states: StateArguments,
    /// Output format; "name" lists the ids of resources
    #[arg(long, short, default_value = "yaml")]
    output: Format,
}

/// What stands for a secret.
const MASK: &str = "(sensitive)";

impl Render {
    /// Runs it.
    ///
    /// # Errors
    /// For each host whose states come to nothing, one line a fault.
    pub async fn run(&self, global: &Global) -> Result<ExitCode, Failure> {
        let work = self.states.read(global).await?;
        let outcomes = work.compiled().await;
        let hosts: BTreeMap<&str, Vec<Rendered<'_>>> = outcomes
            .iter()
            .filter_map(|(name, outcome)| {
                Some((name.as_str(), outcome.as_ref().ok()?.iter().map(Rendered).collect()))
            })
            .collect();
        match self.output {
            Format::Json => document(Format::Json, &hosts)?,
            Format::Name => {
                print(&hosts.values().flatten().map(|one| format!("{}\n", one.0.id)).collect::<String>())?
            }
            Format::Yaml | Format::Table | Format::Wide => document(Format::Yaml, &hosts)?,
        }
        let troubles = outcomes.iter().filter_map(|(name, outcome)| Some((name, outcome.as_ref().err()?)));
        host_trouble::failure(troubles).map_or(Ok(ExitCode::SUCCESS), Err)
    }
}

/// A resource as a state file would have it: its kind and name first.
struct Rendered<'a>(&'a Compiled);

impl Serialize for Rendered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(one) = self;
        let texts =
            |ids: &[crate::state::ResourceId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(one.id.kind.name(), &one.id.name)?;
        for (name, value) in &one.fields {
            if one.sensitive && may_contain_a_secret(one.id.kind, name) {
                map.serialize_entry(name, MASK)?;
            } else {
                map.serialize_entry::<_, Value>(name, value)?;
            }
        }
        if one.ensure == Ensure::Absent {
            map.serialize_entry("ensure", "absent")?;
        }
        if one.sensitive {
            map.serialize_entry("sensitive", &true)?;
        }
        for (key, ids) in [("after", &one.after), ("only_if_changed", &one.only_if_changed)] {
            if !ids.is_empty() {
                map.serialize_entry(key, &texts(ids))?;
            }
        }
        map.end()
    }
}

/// A string may be anything; permission bits, numbers and booleans are no secrets.
fn may_contain_a_secret(kind: Kind, field: &str) -> bool {
    let spec = resource::fields(kind).iter().find(|spec| spec.name == field);
    !matches!(spec.map(|spec| spec.takes), Some(FieldType::Mode | FieldType::Integer | FieldType::Boolean))
}
