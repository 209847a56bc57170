//! When unit files are reloaded in a transaction of apt, by the shells of this machine, an apt-get that runs one script of a
//! package, and a systemctl that says what it was called with.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::engine::shells::{run, shells};
use crate::transport::Program;

/// What systemctl was called with by `command`, where a package has that script.
fn called(shell: &str, command: &str, script: &str) -> Vec<String> {
    called_with(shell, command, script, "")
}

/// The same after `before`, in the directory that has the one of metalform.
fn called_with(shell: &str, command: &str, script: &str, before: &str) -> Vec<String> {
    let root = tempfile::tempdir().unwrap();
    let path = |name: &str| root.path().join(name).display().to_string();
    for directory in ["bin", "booted"] {
        fs::create_dir(path(directory)).unwrap();
    }
    let program = |name: &str, text: &str| {
        fs::write(path(name), format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(path(name), fs::Permissions::from_mode(0o755)).unwrap();
    };
    program("bin/systemctl", &format!("echo \"$*\" >>{}", path("calls")));
    // The first directory for scripts, and then the systemctl above, not that of this machine.
    let first =
        r#"for word; do case $word in DPkg::Path=*) word=${word#*=} PATH=${word%%:*}:$PATH ;; esac; done"#;
    program("bin/apt-get", &format!("{first}\n{script}"));
    let script = format!(
        r#"PATH={bin}:$PATH log={log} task=1
        touch "$log"
        exec 3</dev/null 4>/dev/null
        cd {root}
        {before}
        sync() {{ :; }}
        {functions}
        {command}"#,
        root = root.path().display(),
        bin = path("bin"),
        log = path("log"),
        functions = include_str!("apt.sh")
            .replace("=/var/lib/metalform", &format!("={}", path("metalform")))
            .replace("/usr/sbin/policy-rc.d", &path("policy"))
            .replace("/run/systemd/system", &path("booted")),
    );
    let output = run(shell, &Program { script, payload: Vec::new() });
    assert_eq!(output.status, 0, "{shell}: {output:?}");
    assert!(!root.path().join("metalform/deferral").exists(), "{shell}");
    let calls = fs::read_to_string(path("calls")).unwrap_or_default();
    calls.lines().map(str::to_owned).collect()
}

#[test]
fn unit_files_are_reloaded_once_or_before_what_depends_on_it() {
    let reload = "systemctl daemon-reload; systemctl --system daemon-reload";
    for shell in shells() {
        let installed = |script: &str| called(shell, "install_packages a", script);
        assert_eq!(installed("true"), [""; 0], "{shell}");
        assert_eq!(installed(reload), ["daemon-reload"], "{shell}");
        let stopped = format!("{reload}; systemctl is-active --quiet a; systemctl stop a; {reload}");
        assert_eq!(installed(&stopped), ["is-active --quiet a", "stop a", "daemon-reload"], "{shell}");
        for dependent in ["start a", "try-restart a", "reload a", "enable --now a"] {
            let started = format!("{reload}; systemctl {dependent}; systemctl {dependent}");
            assert_eq!(installed(&started), ["daemon-reload", dependent, dependent], "{shell}");
        }
        assert_eq!(called(shell, "remove_packages a", "true"), ["daemon-reload"], "{shell}: always");
        assert_eq!(called(shell, "remove_packages a", reload), ["daemon-reload"], "{shell}");
        assert_eq!(
            called(shell, "remove_packages a && exit 1 || true", "exit 100"),
            ["daemon-reload"],
            "{shell}"
        );
        let without_room = called_with(shell, "install_packages a", reload, "touch metalform");
        assert_eq!(without_room, ["daemon-reload", "--system daemon-reload"], "{shell}");
        let without_systemd = |command: &str| called_with(shell, command, reload, "rmdir booted");
        for command in ["install_packages a", "remove_packages a"] {
            let each = without_systemd(command);
            assert_eq!(each, ["daemon-reload", "--system daemon-reload"], "{shell} {command}: none of ours");
        }
    }
}
