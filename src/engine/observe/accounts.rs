//! Users and groups: the host's own files, and the entries of other sources (nsswitch.conf(5)) for the probed names. Of
//! passwords only the result of the comparison is returned.

use std::collections::{BTreeMap, BTreeSet};

use super::questions::Questions;
use super::{Answers, ObserveError, Section};
use crate::engine::frame::Sections;
use crate::model::shell_word::{quote, quote_all};
use crate::resource::contract::probe::{
    Account, Answer, GroupEntry, GroupState, PasswordState, Probe, UserState,
};

pub(super) fn ask(questions: &Questions<'_>) -> Vec<Section> {
    let users: BTreeSet<&str> = questions.users.iter().map(|(name, _)| *name).collect();
    let groups: BTreeSet<&str> = questions.groups.iter().map(|(name, _)| *name).collect();
    let mut sections = Vec::new();
    if !users.is_empty() || !groups.is_empty() {
        sections.push(("users", "cat /etc/passwd\n".to_owned()));
        sections.push(("groups", "cat /etc/group\n".to_owned()));
        let also = |database: &str, names: &BTreeSet<&str>| match names.is_empty() {
            true => String::new(),
            false => format!("getent {database} -- {} 2>/dev/null\n", quote_all(names.iter().copied())),
        };
        sections.push(("users-elsewhere", also("passwd", &users)));
        sections.push(("groups-elsewhere", also("group", &groups)));
        sections.push(("login", "printf '%s\\n' \"${SUDO_USER:-$(id -un)}\"\n".to_owned()));
    }
    if !questions.passwords.is_empty() {
        sections.push(("passwords", ask_passwords(&questions.passwords)));
    }
    sections
}

/// Prints a line for each existing user: its name, and those of `same`, `locked` and `hash` that apply.
fn ask_passwords(passwords: &[(&str, Option<&str>)]) -> String {
    let names = quote_all(passwords.iter().map(|(user, _)| *user));
    let same: Vec<String> = passwords
        .iter()
        .filter_map(|(user, hash)| hash.map(|hash| quote(&format!("{user}:{hash}"))))
        .collect();
    let same = match same.is_empty() {
        true => String::new(),
        false => format!("case \"$n:$h\" in {}) is=\"$is same\" ;; esac\n", same.join("|")),
    };
    format!(
        "entries=$(getent shadow -- {names} 2>/dev/null)\n\
         while IFS=: read -r n h rest; do\n\
         is=\n\
         case $h in '!'*|'*'*) is=locked ;; esac\n\
         while :; do case $h in '!'*) h=${{h#'!'}} ;; *) break ;; esac; done\n\
         case $h in ''|'*'*) ;; *) is=\"$is hash\" ;; esac\n\
         {same}\
         printf '%s %s\\n' \"$n\" \"$is\"\n\
         done <<END\n$entries\nEND\n\
         entries= h=\n"
    )
}

pub(super) fn answer(
    questions: &Questions<'_>,
    sections: &Sections,
    answers: &mut Answers,
) -> Result<(), ObserveError> {
    if !questions.users.is_empty() || !questions.groups.is_empty() {
        let files = Files::read(sections)?;
        for (name, uid) in questions.users.iter().copied() {
            answers.insert(Probe::User { name: name.to_owned(), uid }, files.user(name, uid));
        }
        for (name, gid) in questions.groups.iter().copied() {
            answers.insert(Probe::Group { name: name.to_owned(), gid }, files.group(name, gid));
        }
    }
    if !questions.passwords.is_empty() {
        let text = sections.text("passwords")?;
        let states: BTreeMap<&str, PasswordState> = text.lines().filter_map(password).collect();
        for (user, hash) in questions.passwords.iter().copied() {
            let probe = Probe::Password { user: user.to_owned(), hash: hash.map(str::to_owned) };
            answers.insert(probe, Answer::Password(states.get(user).copied()));
        }
    }
    Ok(())
}

fn password(line: &str) -> Option<(&str, PasswordState)> {
    let (name, is) = line.split_once(' ')?;
    let is = |word: &str| is.split(' ').any(|found| found == word);
    let state = PasswordState { same: is("same"), locked: is("locked"), has_hash: is("hash") };
    (!name.is_empty()).then_some((name, state))
}

/// The entries of all sources.
struct Files {
    users: Vec<User>,
    groups: Vec<Group>,
    login: String,
}

/// A line of passwd(5).
struct User {
    name: String,
    uid: u32,
    gid: u32,
    comment: String,
    home: String,
    shell: String,
    local: bool,
}

/// A line of group(5).
struct Group {
    name: String,
    gid: u32,
    members: Vec<String>,
    local: bool,
}

impl Files {
    fn read(sections: &Sections) -> Result<Self, ObserveError> {
        let mut files =
            Self { users: Vec::new(), groups: Vec::new(), login: sections.text("login")?.trim().to_owned() };
        // The host's own files come first: an entry in both is local.
        for (section, local) in [("users", true), ("users-elsewhere", false)] {
            let text = sections.text(section)?;
            files.users.extend(text.lines().filter_map(|line| User::of(line, local)));
        }
        for (section, local) in [("groups", true), ("groups-elsewhere", false)] {
            let text = sections.text(section)?;
            files.groups.extend(text.lines().filter_map(|line| Group::of(line, local)));
        }
        Ok(files)
    }

    fn user(&self, name: &str, uid: Option<u32>) -> Answer {
        if self.users.is_empty() {
            return unreadable("/etc/passwd");
        }
        let account = self.users.iter().find(|user| user.name == name).map(|user| {
            let group = self.groups.iter().find(|group| group.gid == user.gid);
            Account {
                uid: user.uid,
                group: group.map_or_else(|| user.gid.to_string(), |group| group.name.clone()),
                home: user.home.clone(),
                shell: user.shell.clone(),
                comment: user.comment.clone(),
                local: user.local,
            }
        });
        let with = |group: &&Group| group.members.iter().any(|member| member == name);
        let holder = self.users.iter().find(|user| Some(user.uid) == uid && user.name != name);
        Answer::User(UserState {
            account,
            groups: self.groups.iter().filter(with).map(|group| group.name.clone()).collect(),
            holder: holder.map(|user| user.name.clone()),
            is_login: self.login == name,
        })
    }

    fn group(&self, name: &str, gid: Option<u32>) -> Answer {
        if self.groups.is_empty() {
            return unreadable("/etc/group");
        }
        let group = self.groups.iter().find(|group| group.name == name).map(|group| {
            let primary = self.users.iter().filter(|user| user.gid == group.gid);
            GroupEntry {
                gid: group.gid,
                primary_of: primary.map(|user| user.name.clone()).collect(),
                local: group.local,
            }
        });
        let holder = self.groups.iter().find(|group| Some(group.gid) == gid && group.name != name);
        Answer::Group(GroupState { group, holder: holder.map(|group| group.name.clone()) })
    }
}

fn unreadable(file: &str) -> Answer {
    Answer::Failed(format!("{file} cannot be read"))
}

impl User {
    fn of(line: &str, local: bool) -> Option<Self> {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, uid, gid, comment, home, shell] = fields.as_slice() else { return None };
        let [name, comment, home, shell] = [name, comment, home, shell].map(|field| (*field).to_owned());
        Some(Self { name, uid: uid.parse().ok()?, gid: gid.parse().ok()?, comment, home, shell, local })
    }
}

impl Group {
    fn of(line: &str, local: bool) -> Option<Self> {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, gid, members] = fields.as_slice() else { return None };
        let members = members.split(',').filter(|member| !member.is_empty()).map(str::to_owned);
        Some(Self { name: (*name).to_owned(), gid: gid.parse().ok()?, members: members.collect(), local })
    }
}
