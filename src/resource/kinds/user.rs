//! `user`: a user of the host's own files.

use std::collections::BTreeSet;

use crate::resource::contract::change::{Change, Difference, Verdict};
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Account, Observed, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::{AccountTool, Step};
use crate::resource::fields::account_name;
use crate::resource::fields::field::{FieldSort, FieldSpec};
use crate::resource::fields::given::{FieldError, Given};
use crate::resource::fields::path;

/// Its fields.
pub const FIELDS: &[FieldSpec] = &[
    FieldSpec {
        name: "uid",
        sort: FieldSort::Integer,
        required: false,
        about: "Its number, the next free one by default; that of a user who exists is never changed.",
    },
    FieldSpec {
        name: "group",
        sort: FieldSort::Text,
        required: false,
        about: "Primary group; by default that of the user's name, which is made when it is missing.",
    },
    FieldSpec {
        name: "groups",
        sort: FieldSort::TextList,
        required: false,
        about: "Supplementary groups; the user may be in others too.",
    },
    FieldSpec {
        name: "exact_groups",
        sort: FieldSort::Boolean,
        required: false,
        about: "Whether the user is taken out of all other supplementary groups, false by default.",
    },
    FieldSpec {
        name: "home",
        sort: FieldSort::Text,
        required: false,
        about: "Home directory, /home/NAME by default; when it changes, what is in the old one stays there.",
    },
    FieldSpec {
        name: "create_home",
        sort: FieldSort::Boolean,
        required: false,
        about: "Whether a new user's home is made, true by default, false of a system user.",
    },
    FieldSpec { name: "shell", sort: FieldSort::Text, required: false, about: "Login shell, by its path." },
    FieldSpec { name: "comment", sort: FieldSort::Text, required: false, about: "Full name or purpose." },
    FieldSpec {
        name: "system",
        sort: FieldSort::Boolean,
        required: false,
        about: "Whether a new user gets a number of the range for system users, false by default.",
    },
    FieldSpec {
        name: "password_hash",
        sort: FieldSort::Text,
        required: false,
        about: "As crypt(5) writes it, `$6$…` or `$y$…`; never shown. Without it the password stays as it is, and \
                a new user has none.",
    },
    FieldSpec {
        name: "locked",
        sort: FieldSort::Boolean,
        required: false,
        about: "Whether the password is locked; keys let the user in all the same. Left as it is when not given.",
    },
    FieldSpec {
        name: "remove_home",
        sort: FieldSort::Boolean,
        required: false,
        about: "With `ensure: absent`, whether the home goes with all that is in it, false by default.",
    },
];

/// A user. Who it is that metalform logs in as, or is root, is never removed.
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
    password_hash: Option<String>,
    locked: Option<bool>,
    remove_home: bool,
}

impl User {
    pub(in crate::resource) fn parse(name: &str, given: &Given) -> Result<Self, FieldError> {
        let name = account_name::named("user", name)?;
        let (group, groups) = (given.text("group"), given.list("groups"));
        account_name::check(given, "group", &group)?;
        account_name::check(given, "groups", &groups)?;
        let home = path::field(given, "home")?;
        let shell = path::field(given, "shell")?;
        let comment = given.text("comment");
        for (field, text) in [("home", &home), ("shell", &shell), ("comment", &comment)] {
            // A field of passwd(5).
            if text.as_deref().is_some_and(|text| text.contains(|c: char| c == ':' || c.is_control())) {
                return Err(given.invalid(field, "it must be one line of text without ':'"));
            }
        }
        let password_hash = given.text("password_hash");
        if password_hash.as_deref().is_some_and(|hash| !is_hash(hash)) {
            let reason = "it must be a hash as crypt(5) writes it, which begins with '$'";
            return Err(given.invalid("password_hash", reason));
        }
        let system = given.boolean("system", false);
        Ok(Self {
            name,
            ensure: given.ensure,
            uid: given.account_number("uid")?,
            group,
            groups: groups.into_iter().collect(),
            exact_groups: given.boolean("exact_groups", false),
            home,
            create_home: given.boolean("create_home", !system),
            shell,
            comment,
            system,
            password_hash,
            locked: given.optional_boolean("locked"),
            remove_home: given.boolean("remove_home", false),
        })
    }

    pub(in crate::resource) fn probes(&self) -> Vec<Probe> {
        let mut probes = vec![self.probe()];
        if self.ensure == Ensure::Present {
            probes.extend(self.named_groups().map(|name| group_probe(name)));
            probes.extend(self.password_probe());
        }
        probes
    }

    fn probe(&self) -> Probe {
        Probe::User { name: self.name.clone(), uid: self.uid }
    }

    fn password_probe(&self) -> Option<Probe> {
        let asked = self.password_hash.is_some() || self.locked.is_some();
        asked.then(|| Probe::Password { user: self.name.clone(), hash: self.password_hash.clone() })
    }

    /// The groups that must exist, and the one that a new user would have if it exists.
    fn named_groups(&self) -> impl Iterator<Item = &String> {
        std::iter::once(self.group.as_ref().unwrap_or(&self.name)).chain(&self.groups)
    }

    pub(in crate::resource) fn diff(
        &self,
        observed: &Observed,
        context: &Context<'_>,
    ) -> Result<Verdict, Refusal> {
        let state = observed.user(self.probe())?;
        let mut change = Change::default();
        match (self.ensure, &state.account) {
            (Ensure::Absent, None) => Ok(change.or("is absent")),
            (Ensure::Absent, Some(account)) => {
                if !account.local {
                    return Err(self.not_local());
                }
                if account.uid == 0 || state.is_login {
                    let why = if account.uid == 0 { "has uid 0" } else { "is who metalform logs in as" };
                    return Err(Refusal::KeptUser { user: self.name.clone(), why });
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
                let holder = state.holder.as_ref().filter(|holder| !context.pending.goes("user", holder));
                if let (Some(uid), Some(holder)) = (self.uid, holder) {
                    return Err(Refusal::NumberTaken {
                        number: format!("uid {uid}"),
                        holder: format!("the user {holder}"),
                    });
                }
                self.check_groups(observed, context)?;
                let has_group = self.group.is_none() && self.exists(&self.name, observed, context)?;
                self.create(has_group, &mut change);
                self.compare_password(observed, true, &mut change)?;
                Ok(Verdict::Change(change))
            }
            (Ensure::Present, Some(account)) => {
                if let Some(uid) = self.uid.filter(|uid| *uid != account.uid) {
                    let (account, is) = (format!("the user {}", self.name), format!("uid {}", account.uid));
                    return Err(Refusal::OtherNumber { account, is, wanted: uid });
                }
                self.check_groups(observed, context)?;
                self.compare(account, &state.groups, &mut change);
                self.compare_password(observed, false, &mut change)?;
                if !account.local && !change.steps.is_empty() {
                    return Err(self.not_local());
                }
                Ok(change.or(format!("exists with uid {}", account.uid)))
            }
        }
    }

    fn not_local(&self) -> Refusal {
        Refusal::NotLocal { account: format!("the user {}", self.name) }
    }

    /// Whether there is such a group when the turn of the user comes.
    fn exists(&self, group: &str, observed: &Observed, context: &Context<'_>) -> Result<bool, Refusal> {
        let pending = context.pending;
        let here = observed.group(group_probe(group))?.group.is_some() && !pending.goes("group", group);
        Ok(here || pending.comes("group", group))
    }

    fn check_groups(&self, observed: &Observed, context: &Context<'_>) -> Result<(), Refusal> {
        for group in self.group.iter().chain(&self.groups) {
            // A package may bring it.
            if !self.exists(group, observed, context)? && !context.pending.may_bring_files() {
                return Err(Refusal::NoGroup { group: group.clone() });
            }
        }
        Ok(())
    }

    /// useradd(8) refuses to make the group of the user's name where there is one, so then it is named.
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

    /// The mark of a lock is a `!` before the hash (shadow(5)).
    fn compare_password(
        &self,
        observed: &Observed,
        is_new: bool,
        change: &mut Change,
    ) -> Result<(), Refusal> {
        let Some(probe) = self.password_probe() else { return Ok(()) };
        let before = if is_new { None } else { observed.password(probe)? };
        let was_locked = before.is_none_or(|password| password.locked);
        // A lock stays that somebody put on a password; a password that never was set is none.
        let kept = before.is_some_and(|password| password.locked && password.has_hash);
        let has_hash = self.password_hash.is_some();
        let locked = self.locked.unwrap_or(if has_hash { kept } else { was_locked });
        let same = before.is_some_and(|password| password.same);
        match &self.password_hash {
            Some(hash) if !same || locked != was_locked => {
                if !same {
                    change.differences.push(Difference::Hidden { what: "password (sensitive)".to_owned() });
                }
                let mark = if locked { "!" } else { "" };
                let (user, hash) = (self.name.clone(), format!("{mark}{hash}"));
                change.steps.push(Step::SetPassword { user, hash });
            }
            // A new user has no password, which is as good as locked.
            None if locked != was_locked => {
                if !locked && !before.is_some_and(|password| password.has_hash) {
                    return Err(Refusal::NothingToUnlock { user: self.name.clone() });
                }
                let flag = if locked { "-L" } else { "-U" };
                change.account(AccountTool::ChangeUser, vec![flag.to_owned(), self.name.clone()]);
            }
            _ => {}
        }
        if locked != was_locked && !is_new {
            change.field("locked", Some(&was_locked.to_string()), Some(&locked.to_string()));
        }
        Ok(())
    }
}

fn group_probe(name: &str) -> Probe {
    Probe::Group { name: name.to_owned(), gid: None }
}

fn joined(groups: &BTreeSet<String>) -> String {
    groups.iter().map(String::as_str).collect::<Vec<_>>().join(",")
}

/// `$id$...`, in the characters that crypt(5) allows.
fn is_hash(text: &str) -> bool {
    text.starts_with('$')
        && text.matches('$').count() >= 3
        && text.bytes().all(|c| c.is_ascii_graphic() && !b":;*!\\".contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_taken_for_its_hash() {
        for good in ["$6$salt$hash./A", "$y$j9T$salt$hash", "$2b$05$abc", "$5$rounds=5000$s$h"] {
            assert!(is_hash(good), "{good}");
        }
        for bad in ["", "secret", "$ecret", "!$6$salt$hash", "$6$salt$ha:sh", "$6$salt$hash\n", "*"] {
            assert!(!is_hash(bad), "{bad:?}");
        }
    }
}
