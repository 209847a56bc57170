//! `group`: a local group, in /etc/group.

use crate::resource::contract::change::{Change, Verdict};
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::kind::Kind;
use crate::resource::contract::probe::{Observed, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::AccountTool;
use crate::resource::fields::account_name;
use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_spec::{FieldSpec, FieldType};
use crate::resource::fields::field_values::FieldValues;

pub const FIELDS: &[FieldSpec] = &[
    FieldSpec::optional(
        "gid",
        FieldType::Integer,
        "Group number, the next free one by default; the number of an existing group is never changed.",
    ),
    FieldSpec::optional(
        "system",
        FieldType::Boolean,
        "Whether a new group gets a number of the range for system groups, false by default.",
    ),
];

/// A group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    name: String,
    ensure: Ensure,
    gid: Option<u32>,
    system: bool,
}

impl Group {
    pub fn parse(name: &str, fields: &FieldValues) -> Result<Self, FieldError> {
        Ok(Self {
            name: account_name::named(fields, name)?,
            ensure: fields.ensure,
            gid: fields.account_number("gid")?,
            system: fields.boolean("system", false),
        })
    }

    pub fn probes(&self) -> Vec<Probe> {
        vec![self.probe()]
    }

    fn probe(&self) -> Probe {
        Probe::Group { name: self.name.clone(), gid: self.gid }
    }

    pub fn diff(&self, observed: &Observed, context: &Context<'_>) -> Result<Verdict, Refusal> {
        let state = observed.group(self.probe())?;
        let mut change = Change::default();
        match (self.ensure, &state.group) {
            (Ensure::Absent, None) => {}
            (Ensure::Absent, Some(group)) => {
                if !group.local {
                    return Err(Refusal::NotLocal { account: format!("the group {}", self.name) });
                }
                let stays = |user: &&String| !context.pending.drops(Kind::User, user);
                if let Some(user) = group.primary_of.iter().find(stays) {
                    return Err(Refusal::PrimaryGroup { group: self.name.clone(), user: user.clone() });
                }
                change.field("gid", Some(&group.gid.to_string()), None);
                change.account(AccountTool::DeleteGroup, vec![self.name.clone()]);
            }
            (Ensure::Present, Some(group)) => {
                if let Some(gid) = self.gid.filter(|gid| *gid != group.gid) {
                    let (account, found) = (format!("the group {}", self.name), format!("gid {}", group.gid));
                    return Err(Refusal::OtherNumber { account, found, expected: gid });
                }
                return Ok(change.into_verdict(format!("exists with gid {}", group.gid)));
            }
            (Ensure::Present, None) => {
                let holder =
                    state.holder.as_ref().filter(|holder| !context.pending.drops(Kind::Group, holder));
                if let (Some(gid), Some(holder)) = (self.gid, holder) {
                    return Err(Refusal::NumberTaken {
                        number: format!("gid {gid}"),
                        holder: format!("the group {holder}"),
                    });
                }
                let gid = self.gid.map(|gid| gid.to_string());
                change.field("gid", None, Some(gid.as_deref().unwrap_or("the next free one")));
                let mut arguments = Vec::new();
                arguments.extend(self.system.then(|| "-r".to_owned()));
                arguments.extend(gid.into_iter().flat_map(|gid| ["-g".to_owned(), gid]));
                arguments.push(self.name.clone());
                change.account(AccountTool::AddGroup, arguments);
            }
        }
        Ok(change.into_verdict("is absent"))
    }
}
