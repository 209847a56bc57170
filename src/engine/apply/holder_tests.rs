//! What is below a directory of another user is never changed with the rights of root. As the user of the tests
//! another user cannot be played: then these tests do nothing.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use super::progress::ProgressSummary;
use super::*;
use crate::engine::shells::{run, shells};
use crate::resource::contract::step::Access;

/// A user that every host has (nobody).
const USER: u32 = 65534;

/// A directory of the user, a file of root, and a place for commands.
struct Scene {
    dir: tempfile::TempDir,
}

impl Scene {
    /// `None` where the tests do not run as root.
    fn new() -> Option<Self> {
        if fs::metadata("/proc/self").unwrap().uid() != 0 {
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["home", "bin", "system"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        chown(dir.path().join("home"), Some(USER), Some(USER)).unwrap();
        let scene = Self { dir };
        fs::write(scene.at("system/shadow"), "secret").unwrap();
        fs::set_permissions(scene.at("system/shadow"), fs::Permissions::from_mode(0o600)).unwrap();
        Some(scene)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.at(name).to_str().unwrap().to_owned()
    }

    fn command(&self, name: &str, text: &str) {
        fs::write(self.at("bin").join(name), format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(self.at("bin").join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn apply(&self, shell: &str, steps: &[Step]) -> ProgressSummary {
        let works: Vec<Work> = steps
            .iter()
            .enumerate()
            .map(|(at, step)| Work { id: format!("step:{at}"), steps: vec![step.clone()] })
            .collect();
        let nonce = Nonce::new(5);
        let mut program = program(&segments(&works)[0], PackageManager::Apt, "", &nonce);
        program.script = format!("PATH={}:$PATH\n{}", self.text("bin"), program.script);
        ProgressSummary::of(&nonce, &run(shell, &program).stdout)
    }

    /// The file of root is as it was.
    fn assert_untouched(&self, case: &str) {
        let metadata = fs::metadata(self.at("system/shadow")).unwrap();
        assert_eq!((metadata.uid(), metadata.permissions().mode() & 0o7777), (0, 0o600), "{case}");
        assert_eq!(fs::read_to_string(self.at("system/shadow")).unwrap(), "secret", "{case}");
        assert_eq!(fs::read_dir(self.at("system")).unwrap().count(), 1, "{case}");
    }
}

fn of(owner: u32, mode: u32) -> Access {
    Access { owner: owner.to_string(), group: owner.to_string(), mode }
}

fn write(path: String, owner: u32) -> Step {
    Step::WriteFile { path, content: b"text".to_vec(), access: of(owner, 0o644), sensitive: false }
}

/// Each way to give something to the user.
fn givings(scene: &Scene, name: &str, owner: u32) -> Vec<(&'static str, Vec<Step>)> {
    let at = |extra: &str| scene.text(&format!("home/{name}{extra}"));
    let make = |extra| Step::MakeDirectory { path: at(extra), access: of(owner, 0o755) };
    fs::write(at("-there"), "").unwrap();
    chown(at("-there"), Some(USER), Some(USER)).unwrap();
    vec![
        ("one file", vec![write(at("-1"), owner)]),
        ("files side by side", vec![write(at("-2"), owner), write(at("-3"), owner)]),
        ("one directory", vec![make("-4")]),
        ("directories at once", vec![make("-5"), make("-6")]),
        ("access", vec![Step::SetAccess { path: at("-there"), access: of(owner, 0o644) }]),
    ]
}

#[test]
fn a_link_that_a_user_puts_in_the_place_of_a_file_is_not_followed() {
    let Some(scene) = Scene::new() else { return };
    // Just before the owner is set, as the user could at that instant.
    scene.command(
        "chown",
        &format!(
            "for last do :; done\ncase $last in */home/*) rm -rf -- \"$last\"; ln -s {} \"$last\" ;; esac\n\
             exec /bin/chown \"$@\"",
            scene.text("system/shadow")
        ),
    );
    for (number, shell) in shells().into_iter().enumerate() {
        for (what, steps) in givings(&scene, &format!("{number}"), USER) {
            scene.apply(shell, &steps);
            scene.assert_untouched(&format!("{shell}: {what}"));
        }
    }
}

#[test]
fn a_directory_that_a_user_replaced_by_a_link_leads_nowhere() {
    let Some(scene) = Scene::new() else { return };
    symlink(scene.at("system"), scene.at("home/conf")).unwrap();
    std::os::unix::fs::lchown(scene.at("home/conf"), Some(USER), Some(USER)).unwrap();
    // A link of root leads there as well.
    symlink(scene.at("home/conf"), scene.at("by-root")).unwrap();
    let access = of(USER, 0o644);
    for shell in shells() {
        for below in ["home/conf", "by-root"] {
            let at = |name: &str| scene.text(&format!("{below}/{name}"));
            for steps in [
                vec![write(at("new"), USER)],
                vec![write(at("new"), USER), write(at("newer"), USER)],
                vec![write(at("new"), 0)],
                vec![Step::MakeDirectory { path: at("new"), access: access.clone() }],
                vec![Step::SetAccess { path: at("shadow"), access: access.clone() }],
                vec![Step::Symlink { path: at("new"), target: "/x".into() }],
                vec![Step::Remove { path: at("shadow"), recursive: false }],
                vec![Step::Remove { path: at("shadow"), recursive: true }],
            ] {
                let failed = scene.apply(shell, &steps).failed;
                let case = format!("{shell}: {steps:?}");
                let (_, _, message) = failed.unwrap_or_else(|| panic!("{case}"));
                assert!(message.contains(" belongs to nobody: what is below it"), "{case}: {message}");
                scene.assert_untouched(&case);
            }
        }
    }
}

#[test]
fn what_belongs_to_root_cannot_be_below_a_directory_of_a_user() {
    let Some(scene) = Scene::new() else { return };
    for (number, shell) in shells().into_iter().enumerate() {
        for (what, steps) in givings(&scene, &format!("{number}"), 0) {
            let failed = scene.apply(shell, &steps).failed;
            let (_, _, message) = failed.unwrap_or_else(|| panic!("{shell}: {what}"));
            assert!(message.contains("belongs to nobody"), "{shell}: {what}: {message}");
        }
    }
}

#[test]
fn a_users_own_files_are_changed() {
    let Some(scene) = Scene::new() else { return };
    let owner_and_mode = |path: &Path| {
        let metadata = fs::symlink_metadata(path).unwrap();
        (metadata.uid(), metadata.permissions().mode() & 0o7777)
    };
    for (number, shell) in shells().into_iter().enumerate() {
        let at = |name: &str| scene.text(&format!("home/it's {number}{name}"));
        for (what, steps) in givings(&scene, &format!("it's {number}"), USER) {
            let done = scene.apply(shell, &steps);
            assert!(done.ended, "{shell}: {what}: {done:?}");
        }
        let edit = Step::EditFile {
            path: at("-1"),
            found: Some(hex::encode(<sha2::Sha256 as sha2::Digest>::digest("text"))),
            content: b"text and more".to_vec(),
            access: of(0, 0o600),
            sensitive: false,
        };
        let link = Step::Symlink { path: at("-link"), target: "-2".into() };
        let remove = Step::Remove { path: at("-3"), recursive: false };
        let done = scene.apply(shell, &[edit, link, remove]);
        assert!(done.ended, "{shell}: {done:?}");
        assert_eq!(fs::read_to_string(at("-1")).unwrap(), "text and more", "{shell}");
        assert_eq!(fs::read_to_string(at("-2")).unwrap(), "text", "{shell}");
        assert!(!Path::new(&at("-3")).exists(), "{shell}");
        for (name, mode) in [("-1", 0o644), ("-2", 0o644), ("-4", 0o755), ("-5", 0o755), ("-there", 0o644)] {
            assert_eq!(owner_and_mode(Path::new(&at(name))), (USER, mode), "{shell}: {name}");
        }
        assert_eq!(owner_and_mode(Path::new(&at("-link"))).0, USER, "{shell}");
    }
}

#[test]
fn a_home_and_what_is_in_it_are_made_by_one_program() {
    let Some(scene) = Scene::new() else { return };
    for (number, shell) in shells().into_iter().enumerate() {
        let home = scene.text(&format!("new-{number}"));
        let make = |path: String| Step::MakeDirectory { path, access: of(USER, 0o700) };
        let steps =
            [make(home.clone()), make(format!("{home}/.config")), write(format!("{home}/.config/a"), USER)];
        let done = scene.apply(shell, &steps);
        assert!(done.ended, "{shell}: {done:?}");
        assert_eq!(fs::metadata(format!("{home}/.config/a")).unwrap().uid(), USER);
    }
}
