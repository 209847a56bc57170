use std::collections::BTreeMap;

use super::*;
use crate::machine::power_call::PowerVerb;

/// A directory with a program of this name and text.
fn directory(name: &str, text: &str, mode: u32) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("source");
    std::fs::write(&source, text).unwrap();
    let path = directory.path().join(name);
    // By another process: no program that a test starts meanwhile has the file open for writing.
    assert!(std::process::Command::new("cp").arg(&source).arg(&path).status().unwrap().success());
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    directory
}

async fn called(text: &str, deadline: Duration) -> Result<String, String> {
    let directory = directory("ipmi", text, 0o755);
    let hook = PowerHook { deadline, ..PowerHook::find(directory.path(), "ipmi").unwrap() };
    let parameters = BTreeMap::from([("bmc".to_owned(), "192.0.2.9".to_owned())]);
    let secret = BTreeMap::from([("password", "hunter2")]);
    let request = PowerRequest {
        verb: PowerVerb::Status,
        host: "h1",
        address: "10.0.0.2",
        parameters: &parameters,
        secret,
    };
    hook.call(&request).await.map_err(|error| error.to_string())
}

const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_hook_has_arguments_a_request_and_no_environment() {
    let script = "#!/bin/sh\necho \"$@\"\ncat\necho\necho \"${HOME-none} $PWD\"\n";
    let request = r#"{"verb":"status","host":"h1","address":"10.0.0.2","parameters":{"bmc":"192.0.2.9"},"secret":{"password":"hunter2"}}"#;
    let expected = format!("status h1 10.0.0.2\n{request}\nnone /\n");
    assert_eq!(called(script, LONG).await, Ok(expected));
    // It may leave its input unread.
    assert_eq!(called("#!/bin/sh\nexec <&-\necho off\n", LONG).await, Ok("off\n".to_owned()));
}

#[tokio::test]
async fn a_hook_that_fails_is_reported_with_its_last_line() {
    for (script, expected) in [
        (
            "#!/bin/sh\necho one >&2\necho ' no route to BMC ' >&2\necho >&2\nexit 3\n",
            "exit status 3: no route to BMC",
        ),
        ("#!/bin/sh\nexit 1\n", "exit status 1: no message"),
        ("#!/bin/sh\nkill -9 $$\n", "signal 9: no message"),
        ("#!/bin/sh\nprintf '\\033[31mred' >&2\nexit 1\n", "exit status 1: [31mred"),
    ] {
        let error = called(script, LONG).await.unwrap_err();
        assert_eq!(error, format!("power hook ipmi status: {expected}"), "{script}");
    }
    let error = called("#!/nonexistent\n", LONG).await.unwrap_err();
    assert_eq!(error, "power hook ipmi: cannot run");
}

#[tokio::test]
async fn a_hook_that_hangs_is_killed_with_all_that_it_started() {
    let pid = tempfile::NamedTempFile::new().unwrap();
    let script = format!("#!/bin/sh\nsleep 1000 &\necho $! >{}\nwait\n", pid.path().display());
    let error = called(&script, Duration::from_secs(2)).await.unwrap_err();
    assert_eq!(error, "power hook ipmi status: not done within 2 s");
    let child: i32 = std::fs::read_to_string(pid.path()).unwrap().trim().parse().unwrap();
    let ends = Duration::from_secs(10);
    let ended = async {
        while std::fs::read_to_string(format!("/proc/{child}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(ends, ended).await.expect("the child of the hook is killed too");
}

#[tokio::test]
async fn a_hook_that_prints_too_much_is_killed() {
    for script in ["#!/bin/sh\nexec yes\n", "#!/bin/sh\nexec yes >&2\n"] {
        let error = called(script, LONG).await.unwrap_err();
        assert_eq!(error, "power hook ipmi status: more than 64 KiB of output", "{script}");
    }
}

#[test]
fn a_name_is_that_of_a_program_which_root_alone_can_replace() {
    let executable = directory("ipmi", "#!/bin/sh\n", 0o755);
    let found = |directory: &Path, name: &str| {
        PowerHook::find(directory, name)
            .map(|_| ())
            .map_err(|error| error.to_string().replace(&directory.display().to_string(), "DIRECTORY"))
    };
    let name = |name: &str| {
        Err(format!("power hook {name:?}: expected a name of lowercase letters, digits and '-'"))
    };
    for (wanted, expected) in [
        ("ipmi", Ok(())),
        ("../bin/sh", name("../bin/sh")),
        ("/bin/sh", name("/bin/sh")),
        ("a/b", name("a/b")),
        ("..", name("..")),
        ("", name("")),
        ("-c", name("-c")),
        ("ipmi off", name("ipmi off")),
        ("missing", Err("power hook DIRECTORY/missing".to_owned())),
        ("source", Err("power hook DIRECTORY/source: not an executable file".to_owned())),
    ] {
        assert_eq!(found(executable.path(), wanted), expected, "{wanted}");
    }
    std::fs::create_dir(executable.path().join("folder")).unwrap();
    let error = found(executable.path(), "folder").unwrap_err();
    assert_eq!(error, "power hook DIRECTORY/folder: not an executable file");
    for mode in [0o775, 0o757] {
        let writable = directory("ipmi", "#!/bin/sh\n", mode);
        let error = found(writable.path(), "ipmi").unwrap_err();
        let expected =
            "power hook DIRECTORY/ipmi: writable by its group or by others (chmod go-w DIRECTORY/ipmi)";
        assert_eq!(error, expected);
    }
}

#[test]
fn a_directory_of_a_hook_is_not_writable_by_others() {
    let hooks = directory("ipmi", "#!/bin/sh\n", 0o755);
    let elsewhere = directory("tool", "#!/bin/sh\n", 0o755);
    std::os::unix::fs::symlink(elsewhere.path().join("tool"), hooks.path().join("link")).unwrap();
    let set = |directory: &Path, mode| {
        std::fs::set_permissions(directory, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let refused = |name: &str| {
        PowerHook::find(hooks.path(), name).err().map(|error| {
            let text = error.to_string().replace(&hooks.path().display().to_string(), "HOOKS");
            text.replace(&elsewhere.path().canonicalize().unwrap().display().to_string(), "ELSEWHERE")
        })
    };
    let writable = |path: &str| {
        Some(format!("power hook {path}: writable by its group or by others (chmod go-w {path})"))
    };
    assert_eq!((refused("ipmi"), refused("link")), (None, None));
    set(elsewhere.path(), 0o777);
    assert_eq!((refused("ipmi"), refused("link")), (None, writable("ELSEWHERE")));
    for mode in [0o775, 0o757] {
        set(hooks.path(), mode);
        assert_eq!((refused("ipmi"), refused("link")), (writable("HOOKS"), writable("HOOKS")));
    }
}

#[test]
fn the_effective_user_alone_owns_a_hook_and_may_write_it() {
    let owned = |owner| Some(Replaceable::Owner { owner, expected: 0 });
    for (owner, mode, expected) in [
        (0, 0o100755, None),
        (0, 0o100700, None),
        (0, 0o40755, None),
        (0, 0o100775, Some(Replaceable::Writable)),
        (0, 0o100757, Some(Replaceable::Writable)),
        // A sticky directory too: every user may add a file to it.
        (0, 0o41777, Some(Replaceable::Writable)),
        (1000, 0o100755, owned(1000)),
        (1000, 0o100777, owned(1000)),
    ] {
        assert_eq!(Replaceable::of(owner, mode, 0), expected, "{owner} {mode:o}");
    }
    assert_eq!(Replaceable::of(1000, 0o100755, 1000), None);
    let error = |reason| PowerHookError::Replaceable { path: "/x".into(), reason }.to_string();
    let expected = "power hook /x: owned by user 1000, expected 0 (chown root:root /x)";
    assert_eq!(error(Replaceable::Owner { owner: 1000, expected: 0 }), expected);
}
