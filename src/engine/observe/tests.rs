use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use super::*;
use crate::engine::shells::{run, shells};
use crate::resource::contract::probe::{Account, PasswordState, PathState, UnitState, UserState};

fn nonce() -> Nonce {
    Nonce::new(3)
}

fn observed(shell: &str, probes: &[Probe]) -> Vec<Answer> {
    let set: BTreeSet<Probe> = probes.iter().cloned().collect();
    let observed = parse(&set, &nonce(), &run(shell, &program(&set, &nonce()))).unwrap();
    assert_eq!(observed.0.len(), set.len(), "every probe has an answer");
    probes.iter().map(|probe| observed.get(probe).unwrap().clone()).collect()
}

/// What a host would have to print for its answer to have these sections.
pub(super) fn answered(probes: &[Probe], sections: &[(&'static str, &str)]) -> Vec<Answer> {
    let sections: Vec<Section> =
        sections.iter().map(|(name, text)| (*name, format!("cat <<'END'\n{text}\nEND\n"))).collect();
    let program = Program { script: frame::script(&nonce(), &sections), payload: Vec::new() };
    let set: BTreeSet<Probe> = probes.iter().cloned().collect();
    let observed = parse(&set, &nonce(), &run("sh", &program)).unwrap();
    probes.iter().map(|probe| observed.get(probe).unwrap().clone()).collect()
}

fn path(path: impl Into<String>, unless: Option<&str>) -> Probe {
    Probe::Path { path: path.into(), unless_sha256: unless.map(str::to_owned) }
}

/// Of `hello\n`.
const HELLO: &str = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";

#[test]
fn paths_are_told_by_what_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("file"), "hello\n").unwrap();
    fs::set_permissions(at("file"), fs::Permissions::from_mode(0o4640)).unwrap();
    fs::create_dir(at("dir")).unwrap();
    symlink("no where\n", at("link")).unwrap();
    symlink(at("file"), at("good link")).unwrap();
    fs::write(at("large"), vec![b'x'; 1024 * 1024 + 1]).unwrap();
    assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    let probes = [
        path(at("file"), None),
        path(at("file"), Some(HELLO)),
        path(at("file"), Some("00")),
        path(at("dir"), Some("00")),
        path(at("link"), Some("00")),
        path(at("good link"), None),
        path(at("pipe"), Some("00")),
        path(at("absent"), Some("00")),
        path(at("file/below"), None),
        path(at("large"), Some("00")),
        Probe::Content { path: at("good link") },
        Probe::Content { path: at("absent") },
        Probe::Content { path: at("large") },
        Probe::Content { path: "/proc/sys/kernel/ostype".into() },
    ];
    for shell in shells() {
        let answers = observed(shell, &probes);
        let Answer::Path(PathState::File { mode: 0o4640, sha256, size: 6, content: None, owner, .. }) =
            &answers[0]
        else {
            panic!("{shell}: {:?}", answers[0]);
        };
        assert_eq!((sha256.as_str(), owner.is_empty()), (HELLO, false));
        assert_eq!(answers[1], answers[0], "{shell}: content that is right does not travel");
        let Answer::Path(PathState::File { content, .. }) = &answers[2] else { panic!("{:?}", answers[2]) };
        assert_eq!(content.as_deref(), Some(&b"hello\n"[..]));
        assert!(matches!(answers[3], Answer::Path(PathState::Directory { .. })), "{shell}");
        assert_eq!(answers[4], Answer::Path(PathState::Symlink { target: "no where\n".into() }));
        assert_eq!(answers[5], Answer::Path(PathState::Symlink { target: at("file") }));
        assert_eq!(answers[6], Answer::Path(PathState::Other));
        assert_eq!(answers[7], Answer::Path(PathState::Absent));
        assert_eq!(answers[8], Answer::Path(PathState::Absent));
        let Answer::Path(PathState::File { size, content: None, .. }) = answers[9] else { panic!("{shell}") };
        assert_eq!(size, 1024 * 1024 + 1);
        assert_eq!(answers[10], Answer::Content(Some(b"hello\n".to_vec())));
        assert_eq!(answers[11], Answer::Content(None));
        assert_eq!(answers[12], Answer::Failed("larger than 1048576 bytes".into()));
        assert_eq!(answers[13], Answer::Content(Some(b"Linux\n".to_vec())));
    }
}

/// Contents of which every second one is right, and names that sha256sum escapes.
#[test]
fn of_many_files_only_those_that_differ_send_their_content() {
    let dir = tempfile::tempdir().unwrap();
    let at = |n: usize| {
        dir.path().join(format!("{n:03} it's\\{}", "\n".repeat(n % 3))).to_str().unwrap().to_owned()
    };
    let probes: Vec<Probe> = (0..120)
        .map(|n| path(at(n), [Some(HELLO), Some("00"), None][n % 3].filter(|_| n % 7 != 0)))
        .collect();
    (0..120).for_each(|n| fs::write(at(n), "hello\n").unwrap());
    for shell in shells() {
        for (n, answer) in observed(shell, &probes).iter().enumerate() {
            let Answer::Path(PathState::File { content, .. }) = answer else { panic!("{answer:?}") };
            assert_eq!(content.is_some(), n % 3 == 1 && n % 7 != 0, "{shell}: {n}");
        }
    }
}

#[test]
fn the_kernel_and_guards_answer() {
    let guard = |script: &str| Probe::Guard { script: script.into() };
    let probes = [
        Probe::Sysctl { key: "kernel.ostype".into() },
        Probe::Sysctl { key: "net.ipv4.ip_local_port_range".into() },
        Probe::Sysctl { key: "no.such.key".into() },
        Probe::Module { name: "no-such-module".into() },
        Probe::Module { name: "kernel".into() },
        guard("exit 7"),
        guard("-x; it's \"here\"\nexit 3"),
        guard("cat; echo noise; echo noise >&2; test ! -t 0"),
        guard("set -e; cd /; false; :"),
        guard("timeout 9 sh -c 'exit 124'"),
        guard("{ echo 8 0; } >&3"),
    ];
    for shell in shells() {
        let answers = observed(shell, &probes);
        assert_eq!(answers[0], Answer::Sysctl(Some("Linux".into())), "{shell}");
        let Answer::Sysctl(Some(range)) = &answers[1] else { panic!("{shell}: {:?}", answers[1]) };
        assert_eq!(range.split(' ').count(), 2);
        assert_eq!(answers[2], Answer::Sysctl(None));
        assert_eq!(answers[3], Answer::Module(false));
        assert!(matches!(answers[4], Answer::Module(_)));
        assert_eq!(answers[5], Answer::Guard(7));
        assert_eq!(answers[6], Answer::Guard(2), "an unclosed quote is a syntax error of the guard alone");
        assert_eq!(answers[7], Answer::Guard(0));
        assert_eq!(answers[8], Answer::Guard(1), "nothing of one guard is left for the next one");
        assert_eq!(answers[9], Answer::Guard(124), "its own, not that of the time limit");
        assert_ne!(answers[10], Answer::Guard(0), "it writes to no other descriptor");
    }
}

#[test]
fn of_guards_that_are_late_the_others_count() {
    let probes = ["sleep 60", "true"].map(|script| Probe::Guard { script: script.into() });
    let failed = Answer::Failed("the guard did not end within 30 s".into());
    assert_eq!(
        answered(&probes, &[("guards", "1 0\nended 124")]),
        [failed, Answer::Guard(0)],
        "timeout(1) ended their shell"
    );
}

#[test]
fn a_key_pair_belongs_together_or_not() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    for name in ["a", "it's b"] {
        let made = rcgen::generate_simple_self_signed(["x".to_owned()]).unwrap();
        fs::write(at(&format!("{name}.key")), made.signing_key.serialize_pem()).unwrap();
        fs::write(at(&format!("{name}.crt")), made.cert.pem()).unwrap();
    }
    fs::write(at("broken.key"), "no key").unwrap();
    let pair = |key: &str, certificate: &str| Probe::KeyPair { key: at(key), certificate: at(certificate) };
    let probes = [
        pair("a.key", "a.crt"),
        pair("it's b.key", "it's b.crt"),
        pair("a.key", "it's b.crt"),
        pair("broken.key", "a.crt"),
        pair("absent.key", "a.crt"),
    ];
    let expected = [true, true, false, false, false].map(Answer::KeyPair);
    assert_eq!(observed("sh", &probes), expected);
}

#[test]
fn units_are_matched_by_their_order() {
    let unit = |name: &str| Probe::Unit { name: name.into() };
    let probes = [unit("a.service"), unit("b.service")];
    let block = |id: &str, load: &str, active: &str, reload: &str, started: &str| {
        format!(
            "Id={id}\nLoadState={load}\nActiveState={active}\nSubState=dead\nUnitFileState=\nNeedDaemonReload={reload}\n\
             ActiveEnterTimestamp={started}\nStateChangeTimestamp=\n"
        )
    };
    let two = format!(
        "{}\n{}",
        block("a.service", "loaded", "active", "yes", "Mon 2026-11-23 18:11:53 UTC"),
        block("alias.service", "not-found", "inactive", "no", "")
    );
    let state = |load: &str, active: &str, needs_daemon_reload, started| {
        Answer::Unit(UnitState {
            load: load.into(),
            active: active.into(),
            sub: "dead".into(),
            unit_file: String::new(),
            needs_daemon_reload,
            started,
            changed: None,
        })
    };
    assert_eq!(
        answered(&probes, &[("units", &two)]),
        [state("loaded", "active", true, Some(1_795_457_513)), state("not-found", "inactive", false, None)]
    );
    // A start that cannot be compared might hide a restart that is due.
    let local = format!(
        "{}\n{}",
        block("a.service", "loaded", "active", "yes", "Mo 23.11.2026 18:11:53 CET"),
        block("b.service", "not-found", "inactive", "no", "n/a")
    );
    assert_eq!(
        answered(&probes, &[("units", &local)]),
        [
            Answer::Failed("ActiveEnterTimestamp=Mo 23.11.2026 18:11:53 CET is not a time in UTC".into()),
            state("not-found", "inactive", false, None)
        ]
    );
    let refused = "System has not been booted with systemd as init system (PID 1). Can't operate.";
    let failed = Answer::Failed(refused.into());
    assert_eq!(answered(&probes, &[("units", refused)]), [failed.clone(), failed]);
}

#[test]
fn images_routes_and_swap_are_read_from_listings() {
    let image = |reference: &str| Probe::Image { reference: reference.into() };
    let route = |destination: &str| Probe::Route { destination: destination.into() };
    let probes = [
        image("registry.k8s.io/pause:3.10"),
        image("registry.k8s.io/pause:3"),
        image("registry.k8s.io/pause@sha256:ab"),
        image("registry.k8s.io/etcd@sha256:cd"),
        image("registry.k8s.io/etcd@sha256:ef"),
        route("10.96.0.0/12"),
        Probe::Swap,
    ];
    let sections = [
        (
            "images",
            "REF TYPE DIGEST SIZE PLATFORMS LABELS\n\
             registry.k8s.io/pause:3.10 application/vnd.oci.image.manifest.v1+json sha256:ab 1 KiB linux/amd64 -\n\
             registry.k8s.io/etcd@sha256:cd application/vnd.oci.image.manifest.v1+json sha256:cd 1 KiB linux/amd64 -\n\
             registry.k8s.io/etcd@sha256:ef application/vnd.oci.image.manifest.v1+json sha256:cd 1 KiB linux/amd64 -",
        ),
        ("routes", "default via 10.0.0.1 dev eth0\n10.96.0.0/12 dev eth1 scope link"),
        ("swap", "Filename Type Size Used Priority"),
    ];
    let expected = [
        Answer::Image(true),
        Answer::Image(false),
        // The kubelet does not find it by the tag.
        Answer::Image(false),
        Answer::Image(true),
        // The name was given to another image.
        Answer::Image(false),
        Answer::Route(Some("dev eth1 scope link".into())),
        Answer::Swap(false),
    ];
    assert_eq!(answered(&probes, &sections), expected);
    let failed = answered(&[route("10.96.0.0/12")], &[("routes", "sh: ip: not found\nfailed")]);
    assert_eq!(failed, [Answer::Failed("sh: ip: not found".into())]);
}

/// As [`observed`], where commands of this directory come before those of the system.
fn observed_with(commands: &std::path::Path, shell: &str, probes: &[Probe]) -> Vec<Answer> {
    let set: BTreeSet<Probe> = probes.iter().cloned().collect();
    let Program { script, payload } = program(&set, &nonce());
    let script = format!("PATH={}:$PATH\n{script}", commands.display());
    let observed = parse(&set, &nonce(), &run(shell, &Program { script, payload })).unwrap();
    probes.iter().map(|probe| observed.get(probe).unwrap().clone()).collect()
}

/// A getent that knows these entries, whoever is asked for.
fn getent(dir: &std::path::Path, passwd: &str, shadow: &str) {
    fs::write(dir.join("passwd"), passwd).unwrap();
    fs::write(dir.join("shadow"), shadow).unwrap();
    fs::write(dir.join("getent"), format!("#!/bin/sh\ncat {}/\"$1\"\n", dir.display())).unwrap();
    fs::set_permissions(dir.join("getent"), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn users_and_groups_are_read_from_the_hosts_own_files() {
    let user = |name: &str, uid| Probe::User { name: name.into(), uid };
    let group = |name: &str, gid| Probe::Group { name: name.into(), gid };
    let probes =
        [user("root", Some(0)), user("no-such", Some(0)), group("root", None), group("no-such", Some(0))];
    for shell in shells() {
        let answers = observed(shell, &probes);
        let Answer::User(root) = &answers[0] else { panic!("{shell}: {:?}", answers[0]) };
        let account = root.account.as_ref().unwrap();
        assert_eq!((account.uid, account.group.as_str(), account.local), (0, "root", true));
        assert_eq!(root.holder, None, "nobody else has it");
        let Answer::User(stranger) = &answers[1] else { panic!("{shell}: {:?}", answers[1]) };
        assert_eq!((stranger.account.as_ref(), stranger.holder.as_deref()), (None, Some("root")));
        let Answer::Group(root) = &answers[2] else { panic!("{shell}: {:?}", answers[2]) };
        let entry = root.group.as_ref().unwrap();
        assert_eq!((entry.gid, entry.primary_of.contains(&"root".to_owned()), entry.local), (0, true, true));
        let Answer::Group(stranger) = &answers[3] else { panic!("{shell}: {:?}", answers[3]) };
        assert_eq!((stranger.group.as_ref(), stranger.holder.as_deref()), (None, Some("root")));
    }
}

#[test]
fn members_logins_and_users_from_elsewhere_are_told() {
    let user = |name: &str| Probe::User { name: name.into(), uid: None };
    let sections = [
        ("users", "a:x:1:5:A b,,:/home/a:/bin/sh\nbroken"),
        ("groups", "g:x:5:\nsudo:x:27:b,a\nadm:x:4:a"),
        ("users-elsewhere", "a:x:1:5:other:/other:/bin/sh\nl:x:90001:90001::/home/l:/bin/zsh"),
        ("groups-elsewhere", ""),
        ("login", "a"),
    ];
    let answers = answered(&[user("a"), user("l")], &sections);
    let account = |uid, group: &str, home: &str, shell: &str, comment: &str, local| {
        let [group, home, shell, comment] = [group, home, shell, comment].map(str::to_owned);
        Some(Account { uid, group, home, shell, comment, local })
    };
    let a = UserState {
        account: account(1, "g", "/home/a", "/bin/sh", "A b,,", true),
        groups: BTreeSet::from(["adm".to_owned(), "sudo".to_owned()]),
        holder: None,
        is_login: true,
    };
    let l = UserState {
        account: account(90001, "90001", "/home/l", "/bin/zsh", "", false),
        ..UserState::default()
    };
    assert_eq!(answers, [Answer::User(a), Answer::User(l)]);
}

#[test]
fn of_a_password_only_what_was_asked_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let shadow = "a:$6$s$h:1::\nb:!$6$s$h:1::\nc:!:1::\nd:*:1::\ne:$6$other$h:1::\nf:!!:1::\n";
    getent(dir.path(), "", shadow);
    let probe = |user: &str| Probe::Password { user: user.into(), hash: Some("$6$s$h".into()) };
    let probes: Vec<Probe> = ["a", "b", "c", "d", "e", "f", "none"].into_iter().map(probe).collect();
    let state = |same, locked, has_hash| Answer::Password(Some(PasswordState { same, locked, has_hash }));
    for shell in shells() {
        let expected = [
            state(true, false, true),
            state(true, true, true),
            state(false, true, false),
            state(false, true, false),
            state(false, false, true),
            state(false, true, false),
            Answer::Password(None),
        ];
        assert_eq!(observed_with(dir.path(), shell, &probes), expected, "{shell}");
    }
    let set: BTreeSet<Probe> = probes.into_iter().collect();
    let Program { script, payload } = program(&set, &nonce());
    let script = format!("PATH={}:$PATH\n{script}", dir.path().display());
    let sections = Sections::parse(&nonce(), 0, &run("sh", &Program { script, payload }).stdout).unwrap();
    assert!(!sections.text("passwords").unwrap().contains('$'), "no hash leaves the host");
}

#[test]
fn keys_are_read_from_homes_and_never_through_links() {
    let dir = tempfile::tempdir().unwrap();
    let home = |name: &str| dir.path().join(format!("home of {name}"));
    let mut passwd = String::new();
    for name in ["a", "b", "linked", "trap", "pipe", "none"] {
        passwd.push_str(&format!("{name}:x:1:1::{}:/bin/sh\n", home(name).display()));
        if name != "none" {
            fs::create_dir_all(home(name).join(".ssh")).unwrap();
        }
    }
    getent(dir.path(), &passwd, "");
    let keys = |name: &str| home(name).join(".ssh/authorized_keys");
    fs::write(keys("a"), "ssh-ed25519 A\nno newline").unwrap();
    fs::write(keys("b"), "").unwrap();
    fs::set_permissions(keys("b"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::remove_dir(home("linked").join(".ssh")).unwrap();
    symlink(home("a").join(".ssh"), home("linked").join(".ssh")).unwrap();
    symlink("/etc/passwd", keys("trap")).unwrap();
    assert!(Command::new("mkfifo").arg(keys("pipe")).status().unwrap().success());
    let probe = |user: &&str| Probe::AuthorizedKeys { user: (*user).into() };
    let probes: Vec<Probe> =
        ["a", "b", "linked", "trap", "pipe", "none", "stranger"].iter().map(probe).collect();
    for shell in shells() {
        let answers = observed_with(dir.path(), shell, &probes);
        let state = |at: usize| match &answers[at] {
            Answer::AuthorizedKeys(Some(state)) => state.clone(),
            other => panic!("{shell}: {other:?}"),
        };
        let PathState::File { content, sha256, .. } = state(0).file else {
            panic!("{shell}: {:?}", state(0))
        };
        assert_eq!(content.as_deref(), Some(&b"ssh-ed25519 A\nno newline"[..]), "{shell}");
        assert_eq!(sha256.len(), 64);
        let PathState::File { content, mode: 0o640, .. } = state(1).file else { panic!("{:?}", state(1)) };
        assert_eq!(content.as_deref(), Some(&b""[..]), "{shell}");
        assert!(matches!(state(2).directory, PathState::Symlink { .. }), "{shell}");
        assert!(!matches!(state(2).file, PathState::File { content: Some(_), .. }), "{shell}");
        assert!(matches!(state(3).file, PathState::Symlink { .. }), "{shell}");
        assert_eq!(state(4).file, PathState::Other, "{shell}");
        assert!(!state(5).home_exists && state(4).home_exists, "{shell}");
        assert_eq!(answers[6], Answer::AuthorizedKeys(None), "{shell}");
    }
}

#[test]
fn mounts_are_told_with_where_the_names_of_devices_lead() {
    let mount = |point: &str, source: Option<&str>| Probe::Mount {
        point: point.into(),
        source: source.map(str::to_owned),
    };
    for shell in shells() {
        let answers = observed(shell, &[mount("/proc", Some("/dev/null")), mount("/no/such", None)]);
        let Answer::Mount(Some(proc)) = &answers[0] else { panic!("{shell}: {:?}", answers[0]) };
        assert_eq!((proc.fs_type.as_str(), proc.expected_device.as_deref()), ("proc", Some("/dev/null")));
        assert_eq!(answers[1], Answer::Mount(None), "{shell}");
    }
}
