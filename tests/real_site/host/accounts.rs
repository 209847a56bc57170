//! Users and groups of the host, and the commands that change them.

use std::collections::{BTreeMap, BTreeSet};

use metalform::resource::contract::probe::{Account, GroupEntry, GroupState, PasswordState, UserState};
use metalform::resource::contract::step::AccountTool;

/// The first number of an ordinary user, and of a user of the system.
const FIRST: u32 = 1000;
const FIRST_OF_THE_SYSTEM: u32 = 100;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accounts {
    pub users: BTreeMap<String, User>,
    pub groups: BTreeMap<String, GroupEntry>,
    /// The user of the SSH connection.
    pub login: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub account: Account,
    /// Supplementary groups.
    pub groups: BTreeSet<String>,
    /// As shadow(5) has it: `!` is a lock.
    pub password: String,
}

impl User {
    pub fn new(account: Account) -> Self {
        Self { account, groups: BTreeSet::new(), password: "!".to_owned() }
    }
}

impl Accounts {
    pub fn user(&self, name: &str, uid: Option<u32>) -> UserState {
        let user = self.users.get(name);
        let holder = self.users.iter().find(|(other, user)| *other != name && Some(user.account.uid) == uid);
        UserState {
            account: user.map(|user| user.account.clone()),
            groups: user.map(|user| user.groups.clone()).unwrap_or_default(),
            holder: holder.map(|(name, _)| name.clone()),
            is_login: self.login == name,
        }
    }

    pub fn group(&self, name: &str, gid: Option<u32>) -> GroupState {
        let holder = self.groups.iter().find(|(other, group)| *other != name && Some(group.gid) == gid);
        let primary_of = |group: &GroupEntry| {
            let members = self.users.iter().filter(|(_, user)| user.account.group == name);
            let mut all: BTreeSet<String> = members.map(|(name, _)| name.clone()).collect();
            all.extend(group.primary_of.iter().cloned());
            GroupEntry { primary_of: all.into_iter().collect(), ..group.clone() }
        };
        GroupState {
            group: self.groups.get(name).map(primary_of),
            holder: holder.map(|(name, _)| name.clone()),
        }
    }

    pub fn password(&self, user: &str, hash: Option<&str>) -> Option<PasswordState> {
        let stored = &self.users.get(user)?.password;
        let unlocked = stored.trim_start_matches('!');
        Some(PasswordState {
            same: !unlocked.is_empty() && Some(unlocked) == hash,
            locked: stored.starts_with('!') || stored == "*",
            has_hash: unlocked.starts_with('$'),
        })
    }

    pub fn set_password(&mut self, user: &str, hash: &str) -> Result<(), String> {
        let user = self.users.get_mut(user).ok_or("chpasswd: no such user")?;
        hash.clone_into(&mut user.password);
        Ok(())
    }

    /// Runs a command; the answer is a home to make, or to remove where it is an absence.
    pub fn run(&mut self, tool: AccountTool, arguments: &[String]) -> Result<Option<Home>, String> {
        let (name, options) = arguments.split_last().ok_or("no name")?;
        match tool {
            AccountTool::AddUser => return self.add_user(name, options),
            AccountTool::ChangeUser => self.change_user(name, options)?,
            AccountTool::DeleteUser => {
                let user = self.users.remove(name).ok_or("userdel: no such user")?;
                // Its own group goes with it, unless others have it.
                let others = self.users.values().any(|other| other.account.group == *name);
                if user.account.group == *name && !others {
                    self.groups.remove(name);
                }
                return Ok(options.contains(&"-r".to_owned()).then_some(Home::Gone(user.account.home)));
            }
            AccountTool::AddGroup => {
                let gid = value(options, "-g").and_then(|gid| gid.parse().ok());
                self.add_group(name, gid, options.contains(&"-r".to_owned()))?;
            }
            AccountTool::DeleteGroup => {
                self.groups.remove(name);
            }
        }
        Ok(None)
    }

    fn add_group(&mut self, name: &str, gid: Option<u32>, system: bool) -> Result<(), String> {
        if self.groups.contains_key(name) {
            return Err(format!("groupadd: group '{name}' already exists"));
        }
        let taken: BTreeSet<u32> = self.groups.values().map(|group| group.gid).collect();
        let gid = gid.unwrap_or_else(|| free(&taken, system));
        self.groups.insert(name.to_owned(), GroupEntry { gid, primary_of: Vec::new(), local: true });
        Ok(())
    }

    fn add_user(&mut self, name: &str, options: &[String]) -> Result<Option<Home>, String> {
        if self.users.contains_key(name) {
            return Err(format!("useradd: user '{name}' already exists"));
        }
        let system = options.contains(&"-r".to_owned());
        let group = match value(options, "-g") {
            Some(group) => group,
            None => {
                self.add_group(name, None, system)?;
                name
            }
        };
        let mut account = Account {
            uid: 0,
            group: group.to_owned(),
            home: value(options, "-d").map_or_else(|| format!("/home/{name}"), str::to_owned),
            shell: value(options, "-s").unwrap_or("/bin/sh").to_owned(),
            comment: value(options, "-c").unwrap_or_default().to_owned(),
            local: true,
        };
        let taken: BTreeSet<u32> = self.users.values().map(|user| user.account.uid).collect();
        account.uid = match value(options, "-u") {
            Some(uid) => uid.parse().map_err(|_| "useradd: invalid user ID")?,
            None => free(&taken, system),
        };
        let home = Home::Made { path: account.home.clone(), owner: name.to_owned(), group: group.to_owned() };
        let groups = value(options, "-G").map(list).unwrap_or_default();
        self.check_groups(&groups)?;
        self.users.insert(name.to_owned(), User { groups, ..User::new(account) });
        Ok(options.contains(&"-m".to_owned()).then_some(home))
    }

    fn change_user(&mut self, name: &str, options: &[String]) -> Result<(), String> {
        let groups = value(options, "-G").map(list);
        self.check_groups(groups.as_ref().unwrap_or(&BTreeSet::new()))?;
        let user = self.users.get_mut(name).ok_or("usermod: no such user")?;
        let fields = [
            ("-g", &mut user.account.group),
            ("-d", &mut user.account.home),
            ("-s", &mut user.account.shell),
            ("-c", &mut user.account.comment),
        ];
        for (flag, field) in fields {
            if let Some(value) = value(options, flag) {
                value.clone_into(field);
            }
        }
        if let Some(groups) = groups {
            if !options.contains(&"-a".to_owned()) {
                user.groups.clear();
            }
            user.groups.extend(groups);
        }
        if options.contains(&"-L".to_owned()) {
            user.password = format!("!{}", user.password);
        }
        if options.contains(&"-U".to_owned()) {
            user.password = user.password.trim_start_matches('!').to_owned();
        }
        Ok(())
    }

    fn check_groups(&self, groups: &BTreeSet<String>) -> Result<(), String> {
        match groups.iter().find(|group| !self.groups.contains_key(*group)) {
            Some(group) => Err(format!("group '{group}' does not exist")),
            None => Ok(()),
        }
    }
}

/// What a command does to a home directory.
pub enum Home {
    Made { path: String, owner: String, group: String },
    Gone(String),
}

fn value<'a>(options: &'a [String], flag: &str) -> Option<&'a str> {
    let position = options.iter().position(|option| option == flag)?;
    options.get(position + 1).map(String::as_str)
}

fn list(groups: &str) -> BTreeSet<String> {
    groups.split(',').filter(|group| !group.is_empty()).map(str::to_owned).collect()
}

fn free(taken: &BTreeSet<u32>, system: bool) -> u32 {
    let first = if system { FIRST_OF_THE_SYSTEM } else { FIRST };
    (first..).find(|number| !taken.contains(number)).unwrap_or(first)
}
