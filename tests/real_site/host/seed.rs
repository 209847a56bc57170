//! A host in the state that a probe saw: the other direction of [`ScriptedHost::answer`].

use metalform::resource::contract::host_condition::HostCondition;
use metalform::resource::contract::probe::{
    Account, Answer, GroupEntry, KeysState, Observed, PasswordState, PathState, Probe, UserState,
};
use metalform::resource::contract::step::Access;

use super::ScriptedHost;
use super::accounts::User;
use super::guards::KnownGuard;
use super::tree::{Content, Entry, of_root};

impl ScriptedHost {
    /// Makes the host one that answers so. False where an answer cannot come from a host's state: a probe that
    /// failed.
    pub fn seed(&mut self, observed: &Observed) -> bool {
        // Of two probes of one file, the content is what is known of it; and a pair needs both files.
        let later = |probe: &Probe| matches!(probe, Probe::Content { .. } | Probe::KeyPair { .. });
        let (last, first): (Vec<_>, Vec<_>) = observed.0.iter().partition(|(probe, _)| later(probe));
        first.into_iter().chain(last).all(|(probe, answer)| self.seed_one(probe, answer))
    }

    fn seed_one(&mut self, probe: &Probe, answer: &Answer) -> bool {
        match (probe, answer) {
            (Probe::Path { path, unless_sha256 }, Answer::Path(state)) => {
                self.seed_path(path, state, unless_sha256.as_deref());
            }
            (Probe::Content { path }, Answer::Content(Some(bytes))) => {
                let access = match self.tree.get(path) {
                    Some(Entry::File { access, .. }) => access.clone(),
                    _ => of_root(0o644),
                };
                self.tree.write(path, Content::Bytes(bytes.clone()), access, 1);
            }
            (Probe::Empty { path }, Answer::Empty(false)) if self.tree.below(path).is_empty() => {
                self.tree.write(&format!("{path}/of-others"), "x".into(), of_root(0o644), 1);
            }
            (Probe::Package { name }, Answer::Package(Some(package))) => {
                self.packages.installed.insert(name.clone(), package.clone());
            }
            (Probe::Unit { name }, Answer::Unit(state)) => self.units.put(name, state.clone()),
            (Probe::Written { files, packages }, Answer::Written(Some(at))) => {
                self.clock = self.clock.max(10);
                let list = packages.first().map(|name| format!("/var/lib/dpkg/info/{name}.list"));
                if let Some(path) = files.first().cloned().or(list) {
                    self.tree.write(&path, "".into(), of_root(0o644), u64::try_from(*at).unwrap());
                }
            }
            (Probe::Listener { port }, Answer::Listener(true)) => {
                self.listening.insert(*port);
            }
            (Probe::Sysctl { key }, Answer::Sysctl(value)) => {
                match value {
                    Some(value) => self.sysctls.insert(key.clone(), value.clone()),
                    None => self.sysctls.remove(key),
                };
                if key == "kernel.random.boot_id" {
                    self.facts.boot_id = value.clone().unwrap_or_default();
                }
            }
            (Probe::Module { name }, Answer::Module(true)) => {
                self.modules.insert(name.clone());
            }
            (Probe::Swap, Answer::Swap(on)) => self.swap = *on,
            (Probe::Image { reference }, Answer::Image(true)) => {
                self.images.insert(reference.clone());
            }
            (Probe::KeyPair { key, certificate }, Answer::KeyPair(true)) => {
                self.pairs.extend(self.tree.sha256(key).zip(self.tree.sha256(certificate)));
            }
            (Probe::Route { destination }, Answer::Route(Some(line))) => {
                self.routes.insert(destination.clone(), line.clone());
            }
            (Probe::Condition(condition), Answer::Condition(seen)) => match (condition, seen) {
                (HostCondition::File { path }, None) => self.tree.write(path, "".into(), of_root(0o644), 1),
                (HostCondition::File { .. }, Some(_)) | (_, None) => {}
                (condition, Some(seen)) => {
                    self.unmet.insert(condition.clone(), seen.clone());
                }
            },
            (Probe::User { name, uid }, Answer::User(state)) => self.seed_user(name, *uid, state),
            (Probe::Group { name, gid }, Answer::Group(state)) => {
                self.accounts.groups.extend(state.group.clone().map(|group| (name.clone(), group)));
                if let (Some(holder), Some(gid)) = (&state.holder, gid) {
                    let group = GroupEntry { gid: *gid, primary_of: Vec::new(), local: true };
                    self.accounts.groups.insert(holder.clone(), group);
                }
            }
            (Probe::Password { user, hash }, Answer::Password(Some(password))) => {
                self.seed_password(user, hash.as_deref(), *password);
            }
            (Probe::AuthorizedKeys { user }, Answer::AuthorizedKeys(Some(keys))) => {
                self.seed_keys(user, keys)
            }
            (Probe::Mount { point, source }, Answer::Mount(Some(live))) => {
                self.devices.extend(source.clone().zip(live.expected_device.clone()));
                self.mounts.insert(point.clone(), live.clone());
            }
            (Probe::Guard { script }, Answer::Guard(status)) => self.seed_guard(script, *status),
            (_, Answer::Failed(_)) => return false,
            // Nothing is there.
            _ => {}
        }
        true
    }

    fn seed_path(&mut self, path: &str, state: &PathState, expected: Option<&str>) {
        let access = |mode: &u32, owner: &str, group: &str| Access {
            owner: owner.to_owned(),
            group: group.to_owned(),
            mode: *mode,
        };
        let entry = match state {
            PathState::Absent => return,
            PathState::Other => Entry::Other,
            PathState::Symlink { target } => Entry::Symlink(target.clone()),
            PathState::Directory { mode, owner, group } => Entry::Directory(access(mode, owner, group)),
            PathState::File { mode, owner, group, sha256, size, content } => {
                let is_asked = expected.is_some_and(|expected| expected != sha256);
                let content = match content {
                    Some(bytes) if is_asked => Content::Bytes(bytes.clone()),
                    _ => Content::Digest { sha256: sha256.clone(), size: *size },
                };
                Entry::File { content, access: access(mode, owner, group), written: 1 }
            }
        };
        // Two probes may see one file; what one of them brought stays.
        let known = matches!(self.tree.get(path), Some(Entry::File { content: Content::Bytes(_), .. }));
        if !known {
            self.tree.put(path, entry);
        }
    }

    fn seed_user(&mut self, name: &str, uid: Option<u32>, state: &UserState) {
        if let Some(account) = &state.account {
            let user = User { groups: state.groups.clone(), ..User::new(account.clone()) };
            self.accounts.users.insert(name.to_owned(), user);
            self.tree.put(&account.home, Entry::Directory(of_root(0o755)));
        }
        if let (Some(holder), Some(uid)) = (&state.holder, uid) {
            self.accounts.users.insert(holder.clone(), User::new(account(holder, uid)));
        }
        if state.is_login {
            name.clone_into(&mut self.accounts.login);
        }
    }

    fn seed_password(&mut self, user: &str, hash: Option<&str>, password: PasswordState) {
        let Some(user) = self.accounts.users.get_mut(user) else { return };
        let stored = match (password.same, password.has_hash) {
            (true, _) => hash.unwrap_or_default(),
            (false, true) => "$6$another$hash",
            (false, false) => "",
        };
        let mark = if password.locked { "!" } else { "" };
        user.password = format!("{mark}{stored}");
    }

    fn seed_keys(&mut self, user: &str, keys: &KeysState) {
        let account = Account { home: keys.home.clone(), ..account(user, 1005) };
        self.accounts.users.entry(user.to_owned()).or_insert_with(|| User::new(account));
        if keys.home_exists {
            self.tree.put(&keys.home, Entry::Directory(of_root(0o755)));
        }
        let directory = format!("{}/.ssh", keys.home);
        self.seed_path(&directory, &keys.directory, None);
        self.seed_path(&format!("{directory}/authorized_keys"), &keys.file, Some(""));
    }

    fn seed_guard(&mut self, script: &str, status: i32) {
        self.clock = self.clock.max(10);
        let first = |patterns: &[String]| patterns.first().map(|pattern| pattern.replace('*', "another"));
        match (KnownGuard::of(script), status) {
            (None, status) => {
                self.guards.insert(script.to_owned(), status);
            }
            (Some(KnownGuard::OtherSources { patterns, .. }), 0) => {
                if let Some(path) = first(&patterns) {
                    self.tree.write(&path, "deb http://archive.example/ a b\n".into(), of_root(0o644), 1);
                }
            }
            (Some(KnownGuard::DisabledSources { patterns }), 0) => {
                if let Some(path) = first(&patterns) {
                    self.tree.write(&path, "deb http://archive.example/ a b\n".into(), of_root(0o644), 1);
                }
            }
            (Some(KnownGuard::Directory(path)), 0) => self.tree.put(&path, Entry::Directory(of_root(0o755))),
            _ => {}
        }
    }
}

fn account(name: &str, uid: u32) -> Account {
    Account {
        uid,
        group: name.to_owned(),
        home: format!("/home/{name}"),
        shell: "/bin/sh".to_owned(),
        comment: String::new(),
        local: true,
    }
}
