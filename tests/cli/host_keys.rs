//! The key of a new host: what changes nothing does not remember it.

use crate::sandbox::Sandbox;
use crate::sshd::Sshd;

#[test]
fn only_what_changes_something_or_is_saved_remembers_a_new_host_key() {
    let sandbox = Sandbox::new();
    let _sshd = Sshd::start(&sandbox);
    let roster = std::fs::read_to_string(sandbox.path("roster.yaml")).unwrap();
    let pinned = roster.lines().find(|line| line.trim_start().starts_with("host_key:")).unwrap();
    sandbox.write("roster.yaml", &roster.replace(pinned, "    host_key: accept-new"));
    sandbox.write(
        "tree/states/files.yaml",
        "about: A link.\nresources:\n  - symlink: $DIR/link\n    target: x\n",
    );
    let known_hosts = sandbox.path("known_hosts");
    for (verb, options, remembers) in [
        ("plan", &[][..], false),
        ("apply", &["--dry-run"], false),
        ("plan", &["--out", "$DIR/saved"], true),
        ("apply", &[], true),
    ] {
        let hosts =
            ["--tree", "$DIR/tree", "--roster", "$DIR/roster.yaml", "--known-hosts", "$DIR/known_hosts"];
        sandbox.run(&[&[verb], &hosts[..], options].concat()).ended(0);
        let content = std::fs::read_to_string(&known_hosts).unwrap_or_default();
        assert_eq!(!content.is_empty(), remembers, "{verb} {options:?}: {content:?}");
        let _absent = std::fs::remove_file(&known_hosts);
    }
}
