//! A standard error that cannot be written.

use std::fs::OpenOptions;
use std::process::Stdio;

use crate::sandbox::Sandbox;
use crate::sshd::Sshd;

#[test]
fn a_log_on_a_full_disk_ends_no_run() {
    let sandbox = Sandbox::new();
    sandbox.write("tree/states/files.yaml", "about: One.\nresources: [{symlink: $DIR/x, target: y}]\n");
    let _sshd = Sshd::start(&sandbox);
    let arguments =
        ["apply", "--tree", "$DIR/tree", "--roster", "$DIR/roster.yaml", "--known-hosts", "$DIR/known_hosts"];
    let output = sandbox
        .command(&arguments)
        // That there is no agent is logged.
        .env("METALFORM_LOG", "metalform=debug")
        .env("SSH_AUTH_SOCK", sandbox.path("no-agent"))
        .stderr(Stdio::from(OpenOptions::new().write(true).open("/dev/full").unwrap()))
        .output()
        .unwrap();
    assert_eq!(sandbox.ran(output).ended(0), "node-1: changed=1 unchanged=0  TIME\n");
    assert!(sandbox.path("x").is_symlink());
}
