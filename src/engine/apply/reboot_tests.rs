//! The end of a program that reboots its host, by the shells of this machine; systemctl is played.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::progress::ProgressSummary;
use super::{PackageManager, RebootWork, Segment, program};
use crate::engine::nonce::Nonce;
use crate::engine::shells::{run, shells};
use crate::model::shell_word::quote;
use crate::transport::Program;

#[test]
fn the_host_goes_down_after_its_program_has_ended() {
    let ids = vec!["reboot:x".to_owned()];
    let reboot = RebootWork { ids, begins: true, ends: true, boot_id: "one".to_owned(), seconds: 1 };
    let segment = Segment { reboot: Some(reboot), ..Segment::default() };
    let nonce = Nonce::new(6);
    for shell in shells() {
        let dir = tempfile::tempdir().unwrap();
        let (systemctl, called) = (dir.path().join("systemctl"), dir.path().join("called"));
        std::fs::write(
            &systemctl,
            "#!/bin/sh\necho \"$@\" >\"${0%/*}/part\" && mv \"${0%/*}/part\" \"${0%/*}/called\"\n",
        )
        .unwrap();
        std::fs::set_permissions(&systemctl, std::fs::Permissions::from_mode(0o755)).unwrap();
        let program = program(&segment, PackageManager::Apt, "", &nonce);
        let script = format!("PATH={}:$PATH\n{}", quote(dir.path().to_str().unwrap()), program.script);
        let output = run(shell, &Program { script, ..program });
        // The transport waits until no process holds the output open, so this is the end of the connection.
        assert!(ProgressSummary::of(&nonce, &output.stdout).ended && !called.exists(), "{shell}");
        let awaited = Command::new("sh")
            .args(["-c", "for i in $(seq 100); do [ -e \"$0\" ] && exit; sleep 0.1; done; exit 1"])
            .arg(&called)
            .status()
            .unwrap();
        assert!(awaited.success(), "{shell}");
        assert_eq!(std::fs::read_to_string(&called).unwrap(), "reboot\n", "{shell}");
    }
}
