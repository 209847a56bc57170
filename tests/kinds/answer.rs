//! Answers of a host, in the short form of the case files.

use std::collections::BTreeSet;

use metalform::resource::contract::probe::{
    Account, Answer, GroupEntry, GroupState, InstalledPackage, KeysState, MountState, PasswordState,
    PathState, Probe, UnitState, UserState,
};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::certificates::{Authorities, Leaf};

/// `absent`, `other`, `{text: ..}`, `{bytes: [..]}`, `{zeros: N}`, `{directory: true}` or `{link: target}`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PathForm {
    text: Option<String>,
    bytes: Option<Vec<u8>>,
    zeros: Option<usize>,
    directory: bool,
    link: Option<String>,
    mode: Option<String>,
    owner: Option<String>,
    group: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PackageForm {
    version: String,
    #[serde(default)]
    held: bool,
    /// Whether dpkg has not configured it.
    #[serde(default)]
    unpacked: bool,
}

/// Defaults are those of a running, enabled service.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct UnitForm {
    load: String,
    active: String,
    unit_file: String,
    needs_daemon_reload: bool,
    /// Seconds since 1970.
    started: Option<i64>,
    changed: Option<i64>,
}

impl Default for UnitForm {
    fn default() -> Self {
        let [load, active, unit_file] = ["loaded", "active", "enabled"].map(str::to_owned);
        Self { load, active, unit_file, needs_daemon_reload: false, started: None, changed: None }
    }
}

/// The user exists where it has a uid. Defaults are those of a local user.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct UserForm {
    uid: Option<u32>,
    group: String,
    home: String,
    shell: String,
    comment: String,
    local: bool,
    groups: BTreeSet<String>,
    holder: Option<String>,
    is_login: bool,
}

impl Default for UserForm {
    fn default() -> Self {
        let [group, home, shell] = ["deploy", "/home/deploy", "/bin/sh"].map(str::to_owned);
        let (comment, local, groups) = (String::new(), true, BTreeSet::new());
        Self { uid: None, group, home, shell, comment, local, groups, holder: None, is_login: false }
    }
}

/// The group exists where it has a gid.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct GroupForm {
    gid: Option<u32>,
    primary_of: Vec<String>,
    elsewhere: bool,
    holder: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PasswordForm {
    same: bool,
    locked: bool,
    has_hash: bool,
}

/// By default the home exists and is empty.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct KeysForm {
    home: String,
    home_exists: bool,
    directory: Value,
    file: Value,
}

impl Default for KeysForm {
    fn default() -> Self {
        let absent = || Value::from("absent");
        Self { home: "/home/deploy".into(), home_exists: true, directory: absent(), file: absent() }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MountForm {
    source: String,
    device: Option<String>,
    expected_device: Option<String>,
    #[serde(rename = "type")]
    fs_type: String,
    options: BTreeSet<String>,
}

fn user_state(form: UserForm) -> UserState {
    let UserForm { uid, group, home, shell, comment, local, groups, holder, is_login } = form;
    let account = uid.map(|uid| Account { uid, group, home, shell, comment, local });
    UserState { account, groups, holder, is_login }
}

fn group_state(form: GroupForm) -> GroupState {
    let GroupForm { gid, primary_of, elsewhere, holder } = form;
    GroupState { group: gid.map(|gid| GroupEntry { gid, primary_of, local: !elsewhere }), holder }
}

fn keys_state(form: KeysForm) -> KeysState {
    let KeysForm { home, home_exists, directory, file } = form;
    let (directory, file) = (path_state(&directory, None), path_state(&file, Some("")));
    KeysState { home, home_exists, directory, file }
}

fn mount_state(form: MountForm) -> MountState {
    let MountForm { source, device, expected_device, fs_type, options } = form;
    MountState { device: device.unwrap_or_else(|| source.clone()), source, expected_device, fs_type, options }
}

fn form<T: for<'de> Deserialize<'de>>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{value}: {error}"))
}

pub fn answer(probe: &Probe, value: &Value, authorities: &Authorities) -> Answer {
    if let Some(said) = value.get("failed") {
        return Answer::Failed(form(said));
    }
    match probe {
        Probe::Path { unless_sha256, .. } => Answer::Path(path_state(value, unless_sha256.as_deref())),
        Probe::Content { .. } => Answer::Content(match value.get("certificate") {
            Some(leaf) => Some(authorities.issue(&form::<Leaf>(leaf)).into_bytes()),
            None => form::<Option<String>>(value).map(String::into_bytes),
        }),
        Probe::Package { .. } => Answer::Package(form::<Option<PackageForm>>(value).map(
            |PackageForm { version, held, unpacked }| InstalledPackage {
                version,
                held,
                configured: !unpacked,
            },
        )),
        Probe::Unit { .. } => {
            let UnitForm { load, active, unit_file, needs_daemon_reload, started, changed } =
                match value.as_str() {
                    Some(load) => UnitForm {
                        load: load.into(),
                        active: "inactive".into(),
                        unit_file: "".into(),
                        ..form(&Value::Object(Default::default()))
                    },
                    None => form(value),
                };
            let sub = if active == "active" { "running" } else { "dead" }.to_owned();
            Answer::Unit(UnitState { load, active, sub, unit_file, needs_daemon_reload, started, changed })
        }
        Probe::Written { .. } => Answer::Written(form(value)),
        Probe::Listener { .. } => Answer::Listener(form(value)),
        Probe::Sysctl { .. } => Answer::Sysctl(form(value)),
        Probe::Route { .. } => Answer::Route(form(value)),
        Probe::Module { .. } => Answer::Module(form(value)),
        Probe::Owed(_) => Answer::Owed(form(value)),
        Probe::Swap => Answer::Swap(form(value)),
        Probe::Image { .. } => Answer::Image(form(value)),
        Probe::KeyPair { .. } => Answer::KeyPair(form(value)),
        Probe::Empty { .. } => Answer::Empty(form(value)),
        Probe::Condition(_) => Answer::Condition(match form::<Value>(value) {
            Value::Bool(true) => None,
            seen => Some(form(&seen)),
        }),
        Probe::User { .. } => Answer::User(user_state(form(value))),
        Probe::Group { .. } => Answer::Group(group_state(form(value))),
        Probe::Password { .. } => Answer::Password(
            form::<Option<PasswordForm>>(value)
                .map(|PasswordForm { same, locked, has_hash }| PasswordState { same, locked, has_hash }),
        ),
        Probe::AuthorizedKeys { .. } => {
            Answer::AuthorizedKeys(form::<Option<KeysForm>>(value).map(keys_state))
        }
        Probe::Mount { .. } => Answer::Mount(form::<Option<MountForm>>(value).map(mount_state)),
        Probe::Guard { .. } => Answer::Guard(form(value)),
    }
}

/// As a host answers: the content is present only where it is requested and differs.
fn path_state(value: &Value, unless_sha256: Option<&str>) -> PathState {
    match value.as_str() {
        Some("absent") => return PathState::Absent,
        Some("other") => return PathState::Other,
        _ => {}
    }
    let path: PathForm = form(value);
    let root = |name: Option<String>| name.unwrap_or_else(|| "root".to_owned());
    let mode = |default: &str| u32::from_str_radix(path.mode.as_deref().unwrap_or(default), 8).unwrap();
    if let Some(target) = path.link {
        return PathState::Symlink { target };
    }
    if path.directory {
        return PathState::Directory { mode: mode("0755"), owner: root(path.owner), group: root(path.group) };
    }
    let mode = mode("0644");
    let zeros = path.zeros.map(|count| vec![0; count]);
    let content = path.text.map(String::into_bytes).or(path.bytes).or(zeros).expect("a file has a content");
    let sha256 = hex::encode(Sha256::digest(&content));
    let asked = unless_sha256.is_some_and(|expected| expected != sha256) && content.len() <= 1 << 20;
    PathState::File {
        mode,
        owner: root(path.owner),
        group: root(path.group),
        sha256,
        size: content.len() as u64,
        content: asked.then_some(content),
    }
}
