//! `group`: a group of the host's own files.

use crate::resource::contract::change::{Change, Verdict};
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::AccountTool;
use crate::resource::fields::account_name;
use crate::resource::fields::field::{FieldSort, FieldSpec};
use crate::resource::fields::given::{FieldError, Given};

/// Its fields.
pub const FIELDS: &[FieldSpec] = &[
    FieldSpec {
        name: "gid",
        sort: FieldSort::Integer,
        required: false,
        about: "Its number, the next free one by default; that of a group that exists is never changed.",
    },
    FieldSpec {
        name: "system",
        sort: FieldSort::Boolean,
        required: false,
        about: "Whether a new one gets a number of the range for system groups, false by default.",
    },
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
    pub(in crate::resource) fn parse(name: &str, given: &Given) -> Result<Self, FieldError> {
        Ok(Self {
            name: account_name::named("group", name)?,
            ensure: given.ensure,
            gid: given.account_number("gid")?,
            system: given.boolean("system", false),
        })
    }

    pub(in crate::resource) fn probes(&self) -> Vec<Probe> {
        vec![self.probe()]
    }

    fn probe(&self) -> Probe {
        Probe::Group { name: self.name.clone(), gid: self.gid }
    }

    pub(in crate::resource) fn diff(
        &self,
        observed: &Observed,
        context: &Context<'_>,
    ) -> Result<Verdict, Refusal> {
        let state = observed.group(self.probe())?;
        let mut change = Change::default();
        match (self.ensure, &state.group) {
            (Ensure::Absent, None) => {}
            (Ensure::Absent, Some(group)) => {
                if !group.local {
                    return Err(Refusal::NotLocal { account: format!("the group {}", self.name) });
                }
                let stays = |user: &&String| !context.pending.goes("user", user);
                if let Some(user) = group.primary_of.iter().find(stays) {
                    return Err(Refusal::PrimaryGroup { group: self.name.clone(), user: user.clone() });
                }
                change.field("gid", Some(&group.gid.to_string()), None);
                change.account(AccountTool::DeleteGroup, vec![self.name.clone()]);
            }
            (Ensure::Present, Some(group)) => {
                if let Some(gid) = self.gid.filter(|gid| *gid != group.gid) {
                    let (account, is) = (format!("the group {}", self.name), format!("gid {}", group.gid));
                    return Err(Refusal::OtherNumber { account, is, wanted: gid });
                }
                return Ok(change.or(format!("exists with gid {}", group.gid)));
            }
            (Ensure::Present, None) => {
                let holder = state.holder.as_ref().filter(|holder| !context.pending.goes("group", holder));
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
        Ok(change.or("is absent"))
    }
}
