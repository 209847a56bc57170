use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use sha2::{Digest, Sha256};

use super::progress::{self, ProgressSummary};
use super::*;
use crate::engine::observe;
use crate::engine::shells::{run, shells, start};
use crate::resource::contract::host_condition::HostCondition;
use crate::resource::contract::owed::Owed;
use crate::resource::contract::probe::{Answer, PathState, Probe};
use crate::resource::contract::remote_file::RemoteFile;
use crate::resource::contract::step::{Access, AccountTool, MountVerb, PackageVersion, UnitVerb};

fn nonce() -> Nonce {
    Nonce::new(5)
}

/// Owned by the user that runs the test.
fn access(dir: &Path, mode: u32) -> Access {
    let owner = dir.ancestors().find_map(|dir| fs::metadata(dir).ok()).unwrap();
    Access { owner: owner.uid().to_string(), group: owner.gid().to_string(), mode }
}

fn segment(steps: &[Step]) -> Segment {
    let tasks = steps.iter().enumerate().map(|(at, step)| Task {
        ids: vec![format!("step:{at}")],
        begins: true,
        ends: true,
        steps: vec![step.clone()],
    });
    Segment { tasks: tasks.collect(), ..Segment::default() }
}

fn applied(shell: &str, steps: &[Step]) -> ProgressSummary {
    let output = run(shell, &program(&segment(steps), PackageManager::Apt, "", &nonce()));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    ProgressSummary::of(&nonce(), &output.stdout)
}

fn names(dir: &Path) -> BTreeSet<String> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn write(dir: &Path, name: &str, content: &[u8]) -> Step {
    let path = dir.join(name).to_str().unwrap().to_owned();
    Step::WriteFile { path, content: content.to_vec(), access: access(dir, 0o640), sensitive: false }
}

fn file_name() -> impl Strategy<Value = String> {
    let character = prop_oneof![
        Just(' '),
        Just('\''),
        Just('"'),
        Just('\n'),
        Just('\\'),
        Just('$'),
        Just('`'),
        Just('-'),
        Just('*'),
        Just('?'),
        Just('['),
        Just('~'),
        Just('#'),
        Just(';'),
        Just('&'),
        Just('\r'),
        Just('\t'),
        Just('!'),
        Just('%'),
        Just('='),
        Just('ä'),
        Just('漢'),
        Just('\u{301}'),
        Just('🦀'),
        Just('\u{1}'),
        Just('n'),
        Just('.'),
        Just('a'),
    ];
    let name = prop::collection::vec(character, 1..40).prop_map(String::from_iter);
    name.prop_filter("not a directory's own name", |name| name != "." && name != "..")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// What is written under any name is found under that name, whole, by every shell.
    #[test]
    fn any_name_and_content_survives_both_ways(
        files in prop::collection::btree_map(file_name(), prop::collection::vec(any::<u8>(), 0..300), 1..5),
        target in file_name(),
    ) {
        for shell in shells() {
            let dir = tempfile::tempdir().unwrap();
            let mut steps: Vec<Step> =
                files.iter().map(|(name, content)| write(&dir.path().join("-new '\ndir"), name, content)).collect();
            let link = dir.path().join(&target).to_str().unwrap().to_owned();
            steps.push(Step::Symlink { path: link.clone(), target: target.clone() });
            prop_assert_eq!(applied(shell, &steps), ProgressSummary { ended: true, ..ProgressSummary::default() });

            let path_of = |step: &Step| match step {
                Step::WriteFile { path, .. } | Step::Symlink { path, .. } => path.clone(),
                _ => unreachable!(),
            };
            let probe = |step: &Step| Probe::Path { path: path_of(step), unless_sha256: Some("00".into()) };
            let probes: BTreeSet<Probe> = steps.iter().map(probe).collect();
            let output = run(shell, &observe::program(&probes, &nonce()));
            let observed = observe::parse(&probes, &nonce(), &output).unwrap();
            for step in &steps {
                match (step, observed.get(&probe(step)).unwrap()) {
                    (Step::WriteFile { content, .. }, Answer::Path(PathState::File { mode, content: found, .. })) => {
                        prop_assert_eq!(found.as_ref(), Some(content));
                        prop_assert_eq!(*mode, 0o640);
                    }
                    (Step::Symlink { target, .. }, Answer::Path(PathState::Symlink { target: found })) => {
                        prop_assert_eq!(found, target);
                    }
                    (step, answer) => prop_assert!(false, "{step:?}: {answer:?}"),
                }
            }
        }
    }
}

#[test]
fn the_first_failure_ends_the_program_and_reports_its_output() {
    let dir = tempfile::tempdir().unwrap();
    let long = "for i in 0 1 2 3 4 5 6 7 8 9; do printf '%0999d' 1; done; echo the end >&2; exit 9";
    let steps = [
        write(dir.path(), "first", b"1"),
        Step::Run { script: long.to_owned() },
        write(dir.path(), "never", b"2"),
    ];
    for shell in shells() {
        let (number, status, output) = applied(shell, &steps).failed.unwrap();
        assert_eq!((number, status), (1, 9), "{shell}");
        assert_eq!((output.len(), output.ends_with("the end\n")), (4096, true), "{shell}");
        assert_eq!(names(dir.path()), BTreeSet::from(["first".to_owned()]));
    }
}

#[test]
fn a_payload_that_breaks_off_leaves_the_old_file() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "old").unwrap();
    let mut cut =
        program(&segment(&[write(dir.path(), "file", b"new content")]), PackageManager::Apt, "", &nonce());
    cut.payload.truncate(4);
    for shell in shells() {
        let failed = ProgressSummary::of(&nonce(), &run(shell, &cut).stdout).failed;
        assert_eq!(failed, Some((0, 1, "only 4 of 11 bytes arrived\n".to_owned())), "{shell}");
        assert_eq!(fs::read_to_string(dir.path().join("file")).unwrap(), "old");
        assert_eq!(names(dir.path()), BTreeSet::from(["file".to_owned()]));
    }
}

/// With an owner that does not exist.
fn of_nobody(dir: &Path, name: &str) -> Step {
    let Step::WriteFile { path, content, access, sensitive } = write(dir, name, b"x") else { panic!() };
    let access = Access { owner: "no such user".into(), ..access };
    Step::WriteFile { path, content, access, sensitive }
}

#[test]
fn of_files_that_are_made_together_those_before_the_one_that_fails_are_done() {
    for shell in shells() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("in the way")).unwrap();
        let files = |third: Step| {
            let long = "n".repeat(230);
            [
                write(dir.path(), "a", b"1"),
                write(dir.path(), "a.b", b"22"),
                third,
                write(dir.path(), &long, b""),
                write(dir.path(), &format!("{long}x"), b"5"),
            ]
        };
        let (two, all) = (BTreeSet::from(["a", "a.b", "in the way"].map(str::to_owned)), 6);
        for (third, message) in [
            (of_nobody(dir.path(), "c"), "invalid user"),
            (write(dir.path(), "in the way", b"x"), "in the way"),
            (write(dir.path(), "a/c", b"x"), "File exists"),
        ] {
            let failed = applied(shell, &files(third.clone())).failed;
            let (number, status, output) = failed.unwrap_or_else(|| panic!("{shell}: {third:?}"));
            assert_eq!((number, status), (2, 1), "{shell}: {output}");
            assert!(output.contains(message), "{shell}: {output}");
            assert_eq!(names(dir.path()), two, "{shell}: {third:?}");
        }
        let mut cut =
            program(&segment(&files(write(dir.path(), "c", b"333"))), PackageManager::Apt, "", &nonce());
        cut.payload.truncate(5);
        let failed = ProgressSummary::of(&nonce(), &run(shell, &cut).stdout).failed;
        assert_eq!(failed, Some((2, 1, "only 2 of 3 bytes arrived\n".to_owned())), "{shell}");
        assert_eq!(names(dir.path()), two, "{shell}");

        let summary = applied(shell, &files(write(dir.path(), "c", b"333")));
        assert_eq!(summary, ProgressSummary { ended: true, ..ProgressSummary::default() }, "{shell}");
        assert_eq!(names(dir.path()).len(), all, "{shell}");
        assert_eq!(fs::read_to_string(dir.path().join("c")).unwrap(), "333");
        let mode = fs::metadata(dir.path().join("c")).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode, 0o640);
    }
}

/// Of a command that is not among the tasks of [`segment`].
fn reactions() -> Reactions {
    let [reaction, cause] = ["command:React", "file:/etc/a.conf"].map(|id| id.parse().unwrap());
    Reactions::of(
        &[Owed { reaction, cause, until_boot: false }],
        &BTreeSet::new(),
        &BTreeSet::from(["command:React"]),
    )
}

#[test]
fn a_file_that_cannot_be_made_is_named_where_there_are_reactions_too() {
    for shell in shells() {
        let dir = tempfile::tempdir().unwrap();
        let steps = [write(dir.path(), "a", b"1"), of_nobody(dir.path(), "b")];
        let segment = Segment { reactions: reactions(), ..segment(&steps) };
        let output = run(shell, &program(&segment, PackageManager::Apt, "", &nonce()));
        let (number, _, message) = ProgressSummary::of(&nonce(), &output.stdout).failed.unwrap();
        assert_eq!(number, 1, "{shell}: {message}");
        assert!(message.contains("invalid user"), "{shell}: {message}");
        assert_eq!(names(dir.path()), BTreeSet::from(["a".to_owned()]), "{shell}");
    }
}

#[test]
fn no_function_of_a_program_is_defined_twice() {
    let (dir, path) = (Path::new("/tmp"), || "/tmp/x".to_owned());
    let from = RemoteFile { url: "http://a".into(), sha256: String::new(), ca: None };
    let steps = [
        write(dir, "a", b""),
        write(dir, "b", b""),
        edit(&dir.join("x"), Some(""), ""),
        Step::Download { from, path: path(), access: access(dir, 0o644) },
        Step::MakeDirectory { path: path(), access: access(dir, 0o755) },
        Step::VerifyUnit { name: "a.service".into(), files: Vec::new(), sensitive: false },
        Step::ReloadUnit("a.service".into()),
        Step::Await { condition: HostCondition::File { path: path() }, seconds: 1 },
        Step::SetPassword { user: "a".into(), hash: "$".into() },
        Step::Mount { point: path(), verb: MountVerb::Unmount },
        Step::RefreshPackageIndex,
    ];
    for manager in [PackageManager::Apt, PackageManager::Dnf] {
        let segment = Segment { reactions: reactions(), ..segment(&steps) };
        let script = program(&segment, manager, "", &nonce()).script;
        // Each run of staged files has a function `files` of its own.
        let names = script.lines().filter_map(|line| line.split_once("() {")).map(|(name, _)| name);
        let mut names: Vec<&str> = names.filter(|name| *name != "files").collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert!(names.contains(&"settle") && names.contains(&"settle_owed"), "{names:?}");
        assert_eq!(names.len(), count, "{names:?}");
    }
}

#[test]
fn directories_are_made_at_once_or_the_culprit_is_named() {
    for shell in shells() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        let make =
            |name: &str, mode| Step::MakeDirectory { path: at(name), access: access(dir.path(), mode) };
        let mode = |name: &str| fs::metadata(at(name)).unwrap().permissions().mode() & 0o7777;
        assert!(applied(shell, &[make("a/b", 0o750), make("a", 0o711), make("-c\n'", 0o1777)]).ended);
        assert_eq!((mode("a/b"), mode("a"), mode("-c\n'")), (0o750, 0o711, 0o1777), "{shell}");
        fs::write(at("file"), "").unwrap();
        let failed =
            applied(shell, &[make("d", 0o700), make("file", 0o700), make("e", 0o700)]).failed.unwrap();
        assert_eq!((failed.0, failed.1), (1, 1), "{shell}");
    }
}

#[test]
fn a_directory_loses_the_set_group_id_bit_that_its_mode_does_not_have() {
    for shell in shells() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        let make =
            |name: &str, mode| Step::MakeDirectory { path: at(name), access: access(dir.path(), mode) };
        let mode = |name: &str| fs::metadata(at(name)).unwrap().permissions().mode() & 0o7777;
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o2775)).unwrap();
        fs::create_dir(at("old")).unwrap();
        assert_eq!(mode("old") & 0o2000, 0o2000, "it is inherited");
        let set = Step::SetAccess { path: at("old"), access: access(dir.path(), 0o755) };
        let steps = [make("alone", 0o750), set, make("a", 0o711), make("b", 0o2755), make("c", 0o711)];
        assert!(applied(shell, &steps).ended, "{shell}");
        let modes = ["alone", "old", "a", "b", "c"].map(mode);
        assert_eq!(modes, [0o750, 0o755, 0o711, 0o2755, 0o711], "{shell}");
    }
}

#[test]
fn a_small_number_of_processes_writes_many_files() {
    let dir = tempfile::tempdir().unwrap();
    let steps: Vec<Step> = (0..50).map(|n| write(dir.path(), &format!("f{n}"), b"text")).collect();
    let mut program = program(&segment(&steps), PackageManager::Apt, "", &nonce());
    // The number of the last process that was made, in a namespace that is ours alone.
    program.script += "\ncut -d' ' -f5 /proc/loadavg\n";
    let output = run("unshare -Urpf --mount-proc sh", &program);
    let output = String::from_utf8(output.stdout).unwrap();
    let last: usize = output.lines().next_back().unwrap().parse().unwrap();
    assert_eq!(names(dir.path()).len(), 50);
    assert!(last < 120, "two for each file, and a few: {last}");
}

#[test]
fn what_a_killed_run_left_behind_goes() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(".metalform.file.4711"), "half").unwrap();
    fs::write(dir.path().join(".metalform.other.4711"), "half").unwrap();
    assert!(applied("sh", &[write(dir.path(), "file", b"x")]).ended);
    let left = [".metalform.other.4711", "file"].map(str::to_owned);
    assert_eq!(names(dir.path()), BTreeSet::from(left));
}

#[test]
fn what_a_run_beside_this_one_is_about_to_move_stays() {
    for shell in shells() {
        let dir = tempfile::tempdir().unwrap();
        let other = std::process::Command::new(shell.split(' ').next().unwrap())
            .args(["-c", "read -r line"])
            .stdin(std::process::Stdio::piped())
            .spawn();
        let mut other = other.unwrap();
        let theirs = format!(".metalform.file.{}", other.id());
        fs::write(dir.path().join(&theirs), "whole").unwrap();
        assert!(applied(shell, &[write(dir.path(), "file", b"x")]).ended, "{shell}");
        other.kill().unwrap();
        other.wait().unwrap();
        assert_eq!(names(dir.path()), BTreeSet::from([theirs, "file".to_owned()]), "{shell}");
    }
}

#[test]
fn a_large_payload_is_compressed_and_arrives_whole() {
    let dir = tempfile::tempdir().unwrap();
    let (text, name) = ("line of text\n".repeat(10_000), "ä".repeat(120));
    let steps = [write(dir.path(), "a", text.as_bytes()), write(dir.path(), &name, b"b")];
    let program = program(&segment(&steps), PackageManager::Apt, "", &nonce());
    assert!(program.payload.len() < text.len() / 10);
    for shell in shells() {
        assert!(ProgressSummary::of(&nonce(), &run(shell, &program).stdout).ended, "{shell}");
        assert_eq!(fs::read_to_string(dir.path().join("a")).unwrap(), text);
        assert_eq!(fs::read_to_string(dir.path().join(&name)).unwrap(), "b");
    }
}

fn edit(path: &Path, found: Option<&str>, content: &str) -> Step {
    Step::EditFile {
        path: path.to_str().unwrap().to_owned(),
        found: found.map(|before| hex::encode(Sha256::digest(before))),
        content: content.as_bytes().to_vec(),
        access: access(path.parent().unwrap(), 0o604),
        sensitive: false,
    }
}

#[test]
fn a_file_of_others_is_edited_only_while_it_is_what_was_seen() {
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    for shell in shells() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("-it's\n\\a \"file\"");
        let edits = [edit(&path, None, "1\n"), edit(&path, Some("1\n"), "1\n2\n")];
        assert_eq!(
            applied(shell, &edits),
            ProgressSummary { ended: true, ..ProgressSummary::default() },
            "{shell}"
        );
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("1\n2\n", 0o604));

        fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
        assert!(applied(shell, &[edit(&path, Some("1\n2\n"), "3\n")]).ended, "{shell}");
        assert_eq!(mode(&path), 0o751, "{shell}: the mode stays");

        let changed = format!("{} has changed since it was read; run again\n", path.display());
        for found in [None, Some("1\n")] {
            let failed = applied(shell, &[edit(&path, found, "4\n")]).failed;
            assert_eq!(failed, Some((0, 1, changed.clone())), "{shell}");
        }
        fs::rename(&path, dir.path().join("moved")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("moved"), &path).unwrap();
        let failed = applied(shell, &[edit(&path, Some("3\n"), "4\n")]).failed;
        assert_eq!(failed, Some((0, 1, changed)), "{shell}: a link is not followed");
        assert_eq!(fs::read_to_string(dir.path().join("moved")).unwrap(), "3\n");
        assert_eq!(names(dir.path()).len(), 2, "{shell}: nothing else is left");
    }
}

/// As `/etc/hosts` is in a container.
#[test]
fn a_file_that_is_a_mount_is_edited_in_place() {
    let dir = tempfile::tempdir().unwrap();
    let (path, below) = (dir.path().join("hosts"), dir.path().join("below"));
    fs::write(&path, "").unwrap();
    fs::write(&below, "old\n").unwrap();
    let segment = segment(&[edit(&path, Some("old\n"), "new\n")]);
    let program = program(&segment, PackageManager::Apt, "", &nonce());
    let mount =
        format!("mount --bind {} {}\n", quote(below.to_str().unwrap()), quote(path.to_str().unwrap()));
    let mounted = Program { script: mount + &program.script, payload: program.payload };
    let output = run("unshare -Urm sh", &mounted);
    assert!(ProgressSummary::of(&nonce(), &output.stdout).ended, "{output:?}");
    assert_eq!(fs::read_to_string(&below).unwrap(), "new\n");
    assert_eq!(fs::read_to_string(&path).unwrap(), "");
    assert_eq!(names(dir.path()).len(), 2, "nothing else is left");
}

/// A program with commands of this directory before those of the system.
fn with_commands(dir: &Path, steps: &[Step]) -> Program {
    let Program { script, payload } = program(&segment(steps), PackageManager::Apt, "", &nonce());
    Program { script: format!("PATH={}:$PATH\n{script}", quote(dir.to_str().unwrap())), payload }
}

fn executable(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The tools are played by scripts that note what they are given: real ones would change this machine.
#[test]
fn a_password_reaches_its_tool_and_no_argument_list() {
    for shell in shells() {
        let dir = tempfile::tempdir().unwrap();
        let seen = dir.path().join("seen");
        for tool in ["useradd", "chpasswd", "groupdel"] {
            let note = format!("printf '%s\\n' {tool} \"$@\" >>{0}; cat >>{0}", seen.display());
            executable(&dir.path().join(tool), &note);
        }
        executable(&dir.path().join("getent"), "exit 2");
        let comment = "-it's \"$(a)\" b";
        let arguments = ["-c", comment, "deploy"].map(str::to_owned).to_vec();
        let steps = [
            Step::Account { tool: AccountTool::AddUser, arguments },
            Step::SetPassword { user: "deploy".into(), hash: "$6$sa$lt`id`".into() },
            Step::Account { tool: AccountTool::DeleteGroup, arguments: vec!["gone".into()] },
            write(dir.path(), "file", b"x"),
        ];
        let output = run(shell, &with_commands(dir.path(), &steps));
        assert!(ProgressSummary::of(&nonce(), &output.stdout).ended, "{shell}: {output:?}");
        let expected = format!("useradd\n-c\n{comment}\ndeploy\nchpasswd\n-e\ndeploy:$6$sa$lt`id`\n");
        assert_eq!(fs::read_to_string(&seen).unwrap(), expected, "{shell}");
        assert_eq!(fs::read_to_string(dir.path().join("file")).unwrap(), "x", "{shell}");
    }
}

#[test]
fn a_users_keys_are_written_with_the_rights_of_the_user() {
    for shell in shells() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let home = dir.path().join("it's a home");
        fs::create_dir(&home).unwrap();
        // nobody's number, where this may be taken on.
        let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
        let uid = if is_root { 65534 } else { fs::metadata(&home).unwrap().uid() };
        if is_root {
            std::os::unix::fs::chown(&home, Some(uid), Some(uid)).unwrap();
        }
        let entry = format!("deploy:x:{uid}:{uid}:A \\b:{}:/bin/false", home.display());
        executable(&dir.path().join("getent"), &format!("cat <<'END'\n{entry}\nEND"));
        let keys = |found: Option<&str>, content: &str| Step::WriteAuthorizedKeys {
            user: "deploy".into(),
            found: found.map(|before| hex::encode(Sha256::digest(before))),
            content: content.as_bytes().to_vec(),
        };
        let applied = |steps: &[Step]| {
            let output = run(shell, &with_commands(dir.path(), steps));
            ProgressSummary::of(&nonce(), &output.stdout)
        };
        let file = home.join(".ssh/authorized_keys");
        let done = applied(&[keys(None, "a\n"), keys(Some("a\n"), "a\nb\n")]);
        assert_eq!(done, ProgressSummary { ended: true, ..ProgressSummary::default() }, "{shell}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "a\nb\n");
        let mode_and_owner = |path: &Path| {
            let metadata = fs::metadata(path).unwrap();
            (metadata.permissions().mode() & 0o7777, metadata.uid())
        };
        assert_eq!(mode_and_owner(&file), (0o600, uid), "{shell}");
        assert_eq!(mode_and_owner(file.parent().unwrap()), (0o700, uid), "{shell}");
        let (_, _, message) = applied(&[keys(Some("a\n"), "c\n")]).failed.unwrap();
        assert!(message.contains("authorized_keys has changed since it was read"), "{shell}: {message}");
        assert_eq!(names(file.parent().unwrap()).len(), 1, "{shell}: nothing else is left");

        fs::rename(home.join(".ssh"), dir.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), home.join(".ssh")).unwrap();
        let (_, _, message) = applied(&[keys(Some("a\nb\n"), "c\n")]).failed.unwrap();
        assert!(message.contains(".ssh is a link"), "{shell}: {message}");
    }
}

/// In a mount namespace of its own.
#[test]
fn a_mount_comes_as_fstab_says_and_who_holds_it_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (point, fstab) = (dir.path().join("a \"point\""), dir.path().join("fstab"));
    fs::create_dir(&point).unwrap();
    let escaped = point.to_str().unwrap().replace(' ', "\\040");
    fs::write(&fstab, format!("none {escaped} tmpfs ro,size=64k 0 0\n")).unwrap();
    let step = |verb| Step::Mount { point: point.to_str().unwrap().to_owned(), verb };
    let look = Step::Run {
        script: format!("grep -F ' {escaped} ' /proc/self/mountinfo >>{}", dir.path().join("seen").display()),
    };
    let in_namespace = |before: &str, steps: &[Step]| {
        let Program { script, payload } = program(&segment(steps), PackageManager::Apt, "", &nonce());
        let script = format!("mount --bind {} /etc/fstab\n{before}{script}", quote(fstab.to_str().unwrap()));
        let output = run("unshare -Urm sh", &Program { script, payload });
        (ProgressSummary::of(&nonce(), &output.stdout), output)
    };
    let other = dir.path().join("other");
    fs::write(&other, format!("none {escaped} tmpfs rw,noexec 0 0\n")).unwrap();
    let turn = Step::Run { script: format!("cat {} >/etc/fstab", other.display()) };
    let steps = [
        step(MountVerb::Mount),
        look.clone(),
        turn,
        step(MountVerb::Remount),
        look,
        step(MountVerb::Unmount),
    ];
    let (summary, output) = in_namespace("", &steps);
    assert!(summary.ended, "{output:?}");
    let seen = fs::read_to_string(dir.path().join("seen")).unwrap();
    let options: Vec<&str> = seen.lines().filter_map(|line| line.split(' ').nth(5)).collect();
    assert!(options[0].starts_with("ro") && options[1].contains("rw,noexec"), "{seen}");

    let hold = format!("mount -t tmpfs none {0}\nexec 9>{0}/file\n", quote(point.to_str().unwrap()));
    let (summary, output) = in_namespace(&hold, &[step(MountVerb::Unmount)]);
    let (_, _, message) = summary.failed.unwrap_or_else(|| panic!("{output:?}"));
    assert!(message.contains("it is held by process "), "{message}");
}

/// restorecon's part is played by a script that notes its arguments; a file says whether SELinux is enabled.
#[test]
fn what_is_new_gets_its_context_where_selinux_is_enabled() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir(at("bin")).unwrap();
    let note = format!("for path; do echo \"${{path#{}}}\"; done >>{}", at(""), at("seen"));
    executable(&dir.path().join("bin/restorecon"), &note);
    executable(&dir.path().join("bin/id"), "echo 0");
    let directory = |name: &str| Step::MakeDirectory { path: at(name), access: access(dir.path(), 0o700) };
    let link = Step::Symlink { path: at("link"), target: "file".into() };
    let steps = [
        directory("a"),
        directory("b"),
        write(dir.path(), "file", b"x"),
        write(dir.path(), "other", b"y"),
        link,
    ];
    for shell in shells() {
        for (enabled, expected) in [(true, "a b file other link"), (false, "")] {
            let mark = if enabled { at("bin") } else { at("absent") };
            fs::write(at("seen"), "").unwrap();
            let mut program = with_commands(&dir.path().join("bin"), &steps);
            program.script = program.script.replace("/sys/fs/selinux/enforce", &mark);
            let output = run(shell, &program);
            assert_eq!(ProgressSummary::of(&nonce(), &output.stdout).failed, None, "{shell}");
            let seen = fs::read_to_string(at("seen")).unwrap();
            assert_eq!(seen.split_whitespace().collect::<Vec<_>>().join(" "), expected, "{shell}");
        }
    }
}

#[test]
fn directories_access_and_removal() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let mode = |name: &str| fs::metadata(at(name)).unwrap().permissions().mode() & 0o7777;
    fs::create_dir_all(at("full/of/things")).unwrap();
    fs::create_dir(at("empty")).unwrap();
    let steps = [
        Step::MakeDirectory { path: at("a/b"), access: access(dir.path(), 0o700) },
        write(dir.path(), "file", b""),
        Step::SetAccess { path: at("file"), access: access(dir.path(), 0o600) },
        Step::Remove { path: at("full"), recursive: true },
        Step::Remove { path: at("empty"), recursive: false },
        Step::Remove { path: at("absent"), recursive: false },
    ];
    assert_eq!(applied("sh", &steps), ProgressSummary { ended: true, ..ProgressSummary::default() });
    assert_eq!((mode("a"), mode("a/b"), mode("file")), (0o755, 0o700, 0o600));
    assert_eq!(names(dir.path()), BTreeSet::from(["a".to_owned(), "file".to_owned()]));
    let refused = applied("sh", &[Step::Remove { path: at("a"), recursive: false }]);
    assert!(refused.failed.is_some(), "a directory that is not empty goes only when that is asked");
}

#[test]
fn a_command_reads_neither_the_payload_nor_disturbs_its_reader() {
    let dir = tempfile::tempdir().unwrap();
    let steps = [Step::Run { script: "cat; cd /; umask 0".into() }, write(dir.path(), "file", b"x")];
    assert!(applied("sh", &steps).ended);
    assert_eq!(fs::read_to_string(dir.path().join("file")).unwrap(), "x");
}

#[test]
fn every_step_is_valid_shell() {
    let package = PackageVersion { name: "it's".into(), version: Some("1".into()), hold: true };
    let steps = [
        Step::RefreshPackageIndex,
        Step::InstallPackages(vec![package]),
        Step::RemovePackages(vec!["a".into()]),
        Step::HoldPackage { name: "a".into(), hold: false },
        Step::ReloadUnitFiles,
        Step::Unit { name: "a@b.service".into(), verb: UnitVerb::Restart },
        Step::SetSysctl { key: "net.ipv4.ip_forward".into(), value: "1".into() },
        Step::LoadModule("overlay".into()),
        edit(Path::new("/tmp/x"), Some(""), ""),
        Step::SwapOff,
        Step::PullImage("a".into()),
        Step::PullImage("b".into()),
        Step::WriteAuthorizedKeys { user: "a".into(), found: None, content: Vec::new() },
        Step::Account { tool: AccountTool::ChangeUser, arguments: vec!["a".into()] },
        Step::Account { tool: AccountTool::DeleteGroup, arguments: vec!["a".into()] },
        Step::SetPassword { user: "a".into(), hash: "$".into() },
        Step::Mount { point: "/a".into(), verb: MountVerb::Unmount },
        Step::ReplaceRoute { destination: "fd00::/8".into(), via: "dev eth0".into() },
    ];
    for (shell, manager) in
        shells().into_iter().flat_map(|s| [(s, PackageManager::Apt), (s, PackageManager::Dnf)])
    {
        let program = program(&segment(&steps), manager, "", &nonce());
        let mut words = shell.split(' ');
        let checked = Command::new(words.next().unwrap())
            .args(words)
            .args(["-n", "-c", &program.script])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(checked.status.success(), "{shell}: {}", String::from_utf8_lossy(&checked.stderr));
    }
}

/// apt's own part is played by a script that notes its last arguments and what a service that would start is
/// told.
#[test]
fn services_are_kept_from_starting_only_while_packages_are_installed() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let executable = |name: &str, text: &str| {
        fs::write(at(name), format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(at(name), fs::Permissions::from_mode(0o755)).unwrap();
    };
    executable("apt-get", "./policy; echo $? >>seen; shift $(($# - 2)); echo \"$@\" >>seen");
    executable("sync", "exit 0");
    let script = format!(
        "cd {dir} && PATH=.:$PATH log=log; : >log\n{functions}\npolicy=./policy deferral=./deferral unsynced=./unsynced\ninstall_packages 'a=1' b 3</dev/null\necho $? >>seen\n",
        dir = quote(dir.path().to_str().unwrap()),
        functions = PackageManager::Apt.functions(),
    );
    let policy_of_somebody = "#!/bin/sh\nexit 104\n";
    for shell in shells() {
        for (before, seen) in [(None, "101\na=1 b\n0\n"), (Some(policy_of_somebody), "104\na=1 b\n0\n")] {
            if let Some(policy) = before {
                executable("policy", policy);
            }
            let output = run(shell, &Program { script: script.clone(), payload: Vec::new() });
            assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{shell}");
            assert_eq!(fs::read_to_string(at("seen")).unwrap(), seen, "{shell}");
            assert_eq!(
                fs::exists(at("policy")).unwrap(),
                before.is_some(),
                "{shell}: ours goes, others' stays"
            );
            fs::remove_file(at("seen")).unwrap();
            drop(fs::remove_file(at("policy")));
        }
    }
}

/// apt's own part is played by a script that names two archives to what it is to run before dpkg.
#[test]
fn packages_are_noted_until_they_are_synced_and_else_installed_again() {
    const APT: &str = r#"while [ "$1" != install ]; do
        case $1 in
        DPkg::Pre-Install-Pkgs::=*) note=${1#*=} ;;
        --reinstall) echo again >>seen ;;
        esac
        shift
    done
    shift 2
    echo "$@" >>seen
    printf '%s\n' /x/b_1%3a2_amd64.deb /x/libb_1_all.deb | sh -c "$note"
    cat lib/transaction >>seen
    read -r status <status
    exit $status"#;
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    executable(&at("apt-get"), APT);
    executable(&at("dpkg-query"), "printf '%s\\n' 'installed b' 'installed libb' 'config-files gone'");
    executable(&at("sync"), "exit 0");
    let script = format!(
        "cd {dir} && PATH=.:$PATH log=log; : >log\n{functions}\npolicy=./policy deferral=./deferral\n\
         install_packages 'b=1:2' 3</dev/null\necho $? >>seen\n",
        dir = quote(dir.path().to_str().unwrap()),
        functions = PackageManager::Apt.functions().replace("=/var/lib/metalform/", "=lib/"),
    );
    let before = "b\nlibb\ngone\n";
    let cases = [
        ("", 0, "b=1:2\nb\nlibb\n0\n", None),
        ("", 100, "b=1:2\nb\nlibb\n100\n", None),
        (before, 0, "again\nb=1:2 libb\nb\nlibb\ngone\nb\nlibb\n0\n", None),
        (before, 100, "again\nb=1:2 libb\nb\nlibb\ngone\nb\nlibb\n100\n", Some("b\nlibb\ngone\nb\nlibb\n")),
    ];
    for shell in shells() {
        for (noted, status, seen, left) in cases {
            drop(fs::remove_dir_all(at("lib")));
            if !noted.is_empty() {
                fs::create_dir(at("lib")).unwrap();
                fs::write(at("lib/transaction"), noted).unwrap();
            }
            fs::write(at("status"), format!("{status}\n")).unwrap();
            fs::write(at("seen"), "").unwrap();
            run(shell, &Program { script: script.clone(), payload: Vec::new() });
            assert_eq!(fs::read_to_string(at("seen")).unwrap(), seen, "{shell}: {noted:?}, {status}");
            assert_eq!(fs::read_to_string(at("lib/transaction")).ok().as_deref(), left, "{shell}: {noted:?}");
        }
    }
}

/// apt's update is played by a script that lists what it finds.
#[test]
fn an_index_is_refreshed_without_what_the_server_had_before() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let ours = [
        "10.0.0.1:8443_bundles_1.35.4_apt_dists_debian-13_InRelease",
        "10.0.0.1:8443_bundles_1.35.4_apt_dists_debian-13_main_binary-amd64_Packages.lz4",
    ];
    let others =
        ["10.0.0.11:8443_apt_dists_debian-13_InRelease", "deb.debian.org_debian_dists_trixie_InRelease"];
    let all = [ours, others].concat();
    executable(&at("apt-get"), "ls lists >seen");
    let source = "Types: deb\nURIs: https://10.0.0.1:8443/bundles/1.35.4/apt\nSuites: debian-13\n";
    let script = format!(
        "cd {dir} && PATH=.:$PATH log=log; : >log\n{functions}\nsources=sources lists=lists\n\
         refresh_index 3</dev/null\n",
        dir = quote(dir.path().to_str().unwrap()),
        functions = PackageManager::Apt.functions(),
    );
    fs::create_dir(at("lists")).unwrap();
    for shell in shells() {
        for (source, kept) in [(source, others.to_vec()), ("Types: deb\n", all.clone())] {
            fs::write(at("sources"), source).unwrap();
            for name in &all {
                fs::write(at("lists").join(name), "").unwrap();
            }
            let output = run(shell, &Program { script: script.clone(), payload: Vec::new() });
            assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{shell}");
            let seen = fs::read_to_string(at("seen")).unwrap();
            let seen: BTreeSet<&str> = seen.lines().collect();
            assert_eq!(seen, BTreeSet::from_iter(kept), "{shell}");
        }
    }
}

/// Messages of apt and dpkg (apt-pkg/fileutl.cc, lib/dpkg/dbmodify.c).
#[test]
fn a_lock_of_another_is_waited_for_and_its_holder_told() {
    let dir = tempfile::tempdir().unwrap();
    let lock = "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 12 (perl)";
    let stub = format!(
        "#!/bin/sh\nread -r left <left\necho $((left - 1)) >left\n[ $left -le 0 ] || {{ echo '{lock}'; echo 'E: Unable to lock'; exit 100; }}\n"
    );
    fs::write(dir.path().join("apt-get"), stub).unwrap();
    fs::set_permissions(dir.path().join("apt-get"), fs::Permissions::from_mode(0o755)).unwrap();
    let script = format!(
        "cd {dir} && PATH=.:$PATH nonce={nonce}\n{prelude}\n{functions}\npatience=1 task=3 sources=none\n\
         (refresh_index) 4>&1 >\"$log\" 2>&1 || fail 3 $?\n",
        dir = quote(dir.path().to_str().unwrap()),
        nonce = nonce().as_str(),
        prelude = include_str!("prelude.sh"),
        functions = PackageManager::Apt.functions(),
    );
    let lock = "Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 12 (perl)";
    for shell in shells() {
        for (left, fails) in [(0, false), (1, false), (9, true)] {
            fs::write(dir.path().join("left"), format!("{left}\n")).unwrap();
            let output = run(shell, &Program { script: script.clone(), payload: Vec::new() });
            let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
            let waits: Vec<_> = stdout.lines().filter_map(|line| progress::parse(&nonce(), line)).collect();
            let wait = progress::ProgressLine::Wait { number: 3, reason: lock.to_owned() };
            assert_eq!(
                waits.iter().filter(|line| **line == wait).count(),
                usize::from(left > 0),
                "{shell} {left}"
            );
            let failed = ProgressSummary::of(&nonce(), &output.stdout).failed;
            assert_eq!(failed.is_some(), fails, "{shell} {left}: {failed:?}");
            if let Some((_, status, message)) = failed {
                assert_eq!(status, 100, "{shell}");
                assert!(message.ends_with(&format!("{lock}; waited for 1 s\n")), "{shell}: {message}");
            }
        }
    }
}

/// As after a run that was killed: what it has started is still at work, and its next one must not begin after that.
#[test]
fn who_waits_for_a_lock_ends_with_its_connection() {
    let dir = tempfile::tempdir().unwrap();
    let stub = "#!/bin/sh\n[ -e free ] || { echo 'E: Could not get lock /a. It is held by process 12 (perl)'; exit 100; }\n\
                touch done\n";
    fs::write(dir.path().join("apt-get"), stub).unwrap();
    fs::set_permissions(dir.path().join("apt-get"), fs::Permissions::from_mode(0o755)).unwrap();
    let script = format!(
        "cd {dir} && PATH=.:$PATH nonce={nonce}\n{prelude}\n{functions}\ntask=3 sources=none\n\
         (refresh_index) 4>&1 >\"$log\" 2>&1 || fail 3 $?\n",
        dir = quote(dir.path().to_str().unwrap()),
        nonce = nonce().as_str(),
        prelude = include_str!("prelude.sh"),
        functions = PackageManager::Apt.functions(),
    );
    for shell in shells() {
        for connected in [true, false] {
            for name in ["free", "done"] {
                drop(fs::remove_file(dir.path().join(name)));
            }
            let mut child = start(shell, &script);
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            assert!(lines.any(|line| line.unwrap().contains(" wait 3 ")), "{shell}");
            let reader = connected.then_some(lines);
            fs::write(dir.path().join("free"), "").unwrap();
            let status = child.wait().unwrap();
            drop(reader);
            assert_eq!(dir.path().join("done").exists(), connected, "{shell} {status}");
        }
    }
}

#[test]
fn damaged_reports_of_progress_are_read() {
    let mark = nonce();
    let mark = mark.as_str();
    let seed = format!(
        "motd\n{mark} begin 0\n{mark} done 0\nx{mark} fail 1 100 bm8=\n{mark} request 2 UEVN\n{mark} end\n"
    );
    let words =
        &["\n", " ", "begin", "99999999999999999999", "-1", "fail 1 1 ", "request 1 ", "=", "\0", "end"];
    crate::damage::run("progress", &[seed.into_bytes()], words, |bytes| {
        let summary = ProgressSummary::of(&nonce(), bytes);
        assert!(!summary.ended || String::from_utf8_lossy(bytes).contains("end"));
    });
}

/// dnf's own part is played by a script that notes its arguments; the files of its locks lie in a directory of
/// the test's own.
#[test]
fn only_the_locks_of_the_packages_at_hand_are_released() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir_all(at("plugins")).unwrap();
    fs::write(at("dnf"), format!("#!/bin/sh\nshift 4; echo \"$@\" >>{}\n", quote(&at("seen")))).unwrap();
    fs::set_permissions(at("dnf"), fs::Permissions::from_mode(0o755)).unwrap();
    let functions = PackageManager::Dnf.functions().replace("/etc/dnf/", &format!("{}/", at("")));
    let four = "# Added lock\nkubelet-0:1.35.4-1.*\nother-data-0:1-1.*\n";
    let five = "version = \"1.0\"\n\n[[packages]]\nname = \"kubelet\"\n[[packages]]\nname = \"other-data\"\n";
    for shell in shells() {
        for (file, locks) in [("plugins/versionlock.list", four), ("versionlock.toml", five)] {
            fs::write(at(file), locks).unwrap();
            let script = format!(
                "PATH={}:$PATH\n{functions}\nrelease_packages data kubelet socat 3</dev/null\n",
                quote(dir.path().to_str().unwrap())
            );
            let output = run(shell, &Program { script, payload: Vec::new() });
            assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{shell}");
            assert_eq!(
                fs::read_to_string(at("seen")).unwrap(),
                "versionlock delete kubelet\n",
                "{shell} {file}"
            );
            fs::remove_file(at("seen")).unwrap();
            fs::remove_file(at(file)).unwrap();
        }
    }
}
