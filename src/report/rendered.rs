//! Compiled resources in the form of a state file, without secrets.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use crate::resource;
use crate::resource::contract::kind::Kind;
use crate::resource::fields::field_spec::FieldType;
use crate::state::{Compiled, Ensure, ResourceId};

/// Shown in place of a secret.
const MASK: &str = "(sensitive)";

/// A resource; serialises with its kind and name first.
pub struct Rendered<'a>(pub &'a Compiled);

impl Serialize for Rendered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(one) = self;
        let names = |ids: &[ResourceId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
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
                map.serialize_entry(key, &names(ids))?;
            }
        }
        map.end()
    }
}

/// Permission bits, numbers and booleans are no secrets; everything else may be one.
fn may_contain_a_secret(kind: Kind, field: &str) -> bool {
    let spec = resource::fields(kind).iter().find(|spec| spec.name == field);
    !matches!(spec.map(|spec| spec.takes), Some(FieldType::Mode | FieldType::Integer | FieldType::Boolean))
}
