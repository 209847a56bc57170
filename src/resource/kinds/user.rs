//! `user`: a local user, in /etc/passwd.

mod password;

use std::collections::BTreeSet;

use crate::resource::contract::change::{Change, Verdict};
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::kind::Kind;
use crate::resource::contract::probe::{Account, Observed, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::AccountTool;
use crate::resource::fields::account_name;
use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_spec::{FieldSpec, FieldType};
use crate::resource::fields::field_values::FieldValues;
use crate::resource::fields::path;
use crate::resource::kinds::user::password::{Password, is_hash};

pub const FIELDS: &[FieldSpec] = &[
    FieldSpec::optional(
        "uid",
        FieldType::Integer,
        "User number, the next free one by default; the number of an existing user is never changed.",
    ),
    FieldSpec::optional(
        "group",
        FieldType::String,
        "Primary group; by default the group with the user's name, which is created where it is missing.",
    ),
    FieldSpec::optional(
        "groups",
        FieldType::StringList,
        "Supplementary groups; the user may have others too.",
    ),
    FieldSpec::optional(
        "exact_groups",
        FieldType::Boolean,
        "Whether the user is removed from all other supplementary groups, false by default.",
    ),
    FieldSpec::optional(
        "home",
        FieldType::String,
        "Home directory, /home/NAME by default; the content of a previous home is not moved.",
    ),
    FieldSpec::optional(
        "create_home",
        FieldType::Boolean,
        "Whether the home directory of a new user is created, true by default, false for a system user.",
    ),
    FieldSpec::optional("shell", FieldType::String, "Path of the login shell."),
    FieldSpec::optional("comment", FieldType::String, "Full name or purpose."),
    FieldSpec::optional(
        "system",
        FieldType::Boolean,
        "Whether a new user gets a number of the range for system users, false by default.",
    ),
    FieldSpec::optional(
        "password_hash",
        FieldType::String,
        "Hash of crypt(5), `$6$…` or `$y$…`; never shown. Without it the password is unchanged, and a new user has none.",
    ),
    FieldSpec::optional(
        "locked",
        FieldType::Boolean,
        "Whether the password is locked; SSH keys are not affected. Unchanged where it is not set.",
    ),
    FieldSpec::optional(
        "remove_home",
        FieldType::Boolean,
        "With `ensure: absent`: whether the home is removed with its content, false by default.",
    ),
];

/// A user. Root, and the user that metalform is logged in as, are never removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    name: String,
    ensure: Ensure,
    uid: Option<u32>,
    group: Option<String>,
    groups: BTreeSet<String>,
    exact_groups: bool,
    home: Option<String>,
    create_home: bool,
    shell: Option<String>,
    comment: Option<String>,
    system: bool,
    password: Password,
    remove_home: bool,
}

impl User {
    pub fn parse(name: &str, fields: &FieldValues) -> Result<Self, FieldError> {
        let name = account_name::named(fields, name)?;
        let (group, groups) = (fields.string("group"), fields.list("groups"));
        account_name::check(fields, "group", &group)?;
        account_name::check(fields, "groups", &groups)?;
        let home = path::field(fields, "home")?;
        let shell = path::field(fields, "shell")?;
        let comment = fields.string("comment");
        for (field, text) in [("home", &home), ("shell", &shell), ("comment", &comment)] {
            // A field of passwd(5).
            if text.as_deref().is_some_and(|text| text.contains(|c: char| c == ':' || c.is_control())) {
                return Err(fields.invalid(field, "must be a single line without ':'"));
            }
        }
        let password_hash = fields.string("password_hash");
        if password_hash.as_deref().is_some_and(|hash| !is_hash(hash)) {
            let reason = "must be a hash of crypt(5), which begins with '$'";
            return Err(fields.invalid("password_hash", reason));
        }
        let system = fields.boolean("system", false);
        Ok(Self {
            name,
            ensure: fields.ensure,
            uid: fields.account_number("uid")?,
            group,
            groups: groups.into_iter().collect(),
            exact_groups: fields.boolean("exact_groups", false),
            home,
            create_home: fields.boolean("create_home", !system),
            shell,
            comment,
            system,
            password: Password { hash: password_hash, locked: fields.optional_boolean("locked") },
            remove_home: fields.boolean("remove_home", false),
        })
    }

    pub fn probes(&self) -> Vec<Probe> {
        let mut probes = vec![self.probe()];
        if self.ensure == Ensure::Present {
            probes.extend(self.named_groups().map(|name| group_probe(name)));
            probes.extend(self.password.probe(&self.name));
        }
        probes
    }

    fn probe(&self) -> Probe {
        Probe::User { name: self.name.clone(), uid: self.uid }
    }

    /// The groups that must exist, and the primary group of a new user, which may.
    fn named_groups(&self) -> impl Iterator<Item = &String> {
        std::iter::once(self.group.as_ref().unwrap_or(&self.name)).chain(&self.groups)
    }

    pub fn diff(&self, observed: &Observed, context: &Context<'_>) -> Result<Verdict, Refusal> {
        let state = observed.user(self.probe())?;
        let mut change = Change::default();
        match (self.ensure, &state.account) {
            (Ensure::Absent, None) => Ok(change.into_verdict("is absent")),
            (Ensure::Absent, Some(account)) => {
                if !account.local {
                    return Err(self.not_local());
                }
                if account.uid == 0 || state.is_login {
                    let reason = if account.uid == 0 {
                        "has uid 0"
                    } else {
                        "is the user that metalform is logged in as"
                    };
                    return Err(Refusal::KeptUser { user: self.name.clone(), reason });
                }
                change.field("uid", Some(&account.uid.to_string()), None);
                if self.remove_home {
                    change.field("home", Some(&account.home), None);
                }
                let flag = self.remove_home.then(|| "-r".to_owned());
                change
                    .account(AccountTool::DeleteUser, flag.into_iter().chain([self.name.clone()]).collect());
                Ok(Verdict::Change(change))
            }
            (Ensure::Present, None) => {
                let holder =
                    state.holder.as_ref().filter(|holder| !context.pending.drops(Kind::User, holder));
                if let (Some(uid), Some(holder)) = (self.uid, holder) {
                    return Err(Refusal::NumberTaken {
                        number: format!("uid {uid}"),
                        holder: format!("the user {holder}"),
                    });
                }
                self.check_groups(observed, context)?;
                let has_group = self.group.is_none() && self.exists(&self.name, observed, context)?;
                self.create(has_group, &mut change);
                self.password.compare(&self.name, None, &mut change)?;
                Ok(Verdict::Change(change))
            }
            (Ensure::Present, Some(account)) => {
                if let Some(uid) = self.uid.filter(|uid| *uid != account.uid) {
                    let (account, found) =
                        (format!("the user {}", self.name), format!("uid {}", account.uid));
                    return Err(Refusal::OtherNumber { account, found, expected: uid });
                }
                self.check_groups(observed, context)?;
                self.compare(account, &state.groups, &mut change);
                let password =
                    self.password.probe(&self.name).map(|probe| observed.password(probe)).transpose()?;
                self.password.compare(&self.name, password.flatten(), &mut change)?;
                if !account.local && !change.steps.is_empty() {
                    return Err(self.not_local());
                }
                Ok(change.into_verdict(format!("exists with uid {}", account.uid)))
            }
        }
    }

    fn not_local(&self) -> Refusal {
        Refusal::NotLocal { account: format!("the user {}", self.name) }
    }

    /// Whether the group will exist when the user is reached.
    fn exists(&self, group: &str, observed: &Observed, context: &Context<'_>) -> Result<bool, Refusal> {
        let pending = context.pending;
        let exists =
            observed.group(group_probe(group))?.group.is_some() && !pending.drops(Kind::Group, group);
        Ok(exists || pending.adds(Kind::Group, group))
    }

    fn check_groups(&self, observed: &Observed, context: &Context<'_>) -> Result<(), Refusal> {
        for group in self.group.iter().chain(&self.groups) {
            // A package may create it.
            if !self.exists(group, observed, context)? && !context.pending.may_add_files() {
                return Err(Refusal::NoGroup { group: group.clone() });
            }
        }
        Ok(())
    }

    /// useradd(8) fails to create the group with the user's name where it exists, so it is passed then.
    fn create(&self, has_group: bool, change: &mut Change) {
        let uid = self.uid.map(|uid| uid.to_string());
        let group = self.group.clone().or_else(|| has_group.then(|| self.name.clone()));
        let groups = (!self.groups.is_empty()).then(|| joined(&self.groups));
        change.field("uid", None, Some(uid.as_deref().unwrap_or("the next free one")));
        let options = [
            ("-u", "", &uid),
            ("-g", "group", &group),
            ("-G", "groups", &groups),
            ("-d", "home", &self.home),
            ("-s", "shell", &self.shell),
            ("-c", "comment", &self.comment),
        ];
        let mut arguments = vec![if self.create_home { "-m" } else { "-M" }.to_owned()];
        arguments.extend(self.system.then(|| "-r".to_owned()));
        for (flag, name, value) in options {
            let Some(value) = value else { continue };
            if !name.is_empty() {
                change.field(name, None, Some(value));
            }
            arguments.extend([flag.to_owned(), value.clone()]);
        }
        arguments.push(self.name.clone());
        change.account(AccountTool::AddUser, arguments);
    }

    fn compare(&self, account: &Account, groups: &BTreeSet<String>, change: &mut Change) {
        let mut arguments: Vec<String> = Vec::new();
        let fields = [
            ("-g", "group", &account.group, &self.group),
            ("-d", "home", &account.home, &self.home),
            ("-s", "shell", &account.shell, &self.shell),
            ("-c", "comment", &account.comment, &self.comment),
        ];
        for (flag, name, before, after) in fields {
            if let Some(after) = after.as_ref().filter(|after| *after != before) {
                change.field(name, Some(before), Some(after));
                arguments.extend([flag.to_owned(), after.clone()]);
            }
        }
        let missing: BTreeSet<String> = self.groups.difference(groups).cloned().collect();
        if self.exact_groups && self.groups != *groups {
            change.field("groups", Some(&joined(groups)), Some(&joined(&self.groups)));
            arguments.extend(["-G".to_owned(), joined(&self.groups)]);
        } else if !missing.is_empty() {
            let after: BTreeSet<String> = groups.union(&self.groups).cloned().collect();
            change.field("groups", Some(&joined(groups)), Some(&joined(&after)));
            arguments.extend(["-a".to_owned(), "-G".to_owned(), joined(&missing)]);
        }
        if !arguments.is_empty() {
            arguments.push(self.name.clone());
            change.account(AccountTool::ChangeUser, arguments);
        }
    }
}

fn group_probe(name: &str) -> Probe {
    Probe::Group { name: name.to_owned(), gid: None }
}

fn joined(groups: &BTreeSet<String>) -> String {
    groups.iter().map(String::as_str).collect::<Vec<_>>().join(",")
}
