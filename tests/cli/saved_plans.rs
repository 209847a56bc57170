//! A plan that is kept and applied: just that plan, or nothing.

use std::os::unix::fs::PermissionsExt;

use crate::sandbox::{Ran, Sandbox};

const STATE: &str = "about: Harmless files.
resources:
  - file: $DIR/first
    content: \"{{ cluster.greeting }}\\n\"
    owner: \"{{ cluster.user }}\"
    group: \"{{ cluster.user }}\"
  - file: $DIR/secret
    content: hunter2
    mode: \"0600\"
    owner: \"{{ cluster.user }}\"
    group: \"{{ cluster.user }}\"
    sensitive: true
  - symlink: $DIR/link
    target: first
";

fn roster(sandbox: &Sandbox, greeting: &str) {
    let user = std::process::Command::new("id").arg("-un").output().unwrap();
    let user = String::from_utf8(user.stdout).unwrap();
    let user = user.trim();
    sandbox.write(
        "roster.yaml",
        &format!("defaults: {{vars: {{user: {user}, greeting: {greeting}}}}}\nhosts: {{node-1: }}\n"),
    );
}

/// A plan of three changes, kept. Its command has relative paths.
fn planned() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("tree/states/files.yaml", STATE);
    roster(&sandbox, "hello");
    let plan =
        sandbox.run(&["plan", "--tree", "tree", "--roster", "roster.yaml", "--local", "--out", "saved"]);
    assert!(plan.ended(0).starts_with("node-1: 3 to change, 0 unchanged\n"));
    sandbox
}

fn apply(sandbox: &Sandbox) -> Ran {
    let mut command = sandbox.command(&["apply", "--plan", "$DIR/saved"]);
    sandbox.ran(command.current_dir("/").output().unwrap())
}

#[test]
fn a_kept_plan_is_applied_once() {
    let sandbox = planned();
    let mode = std::fs::metadata(sandbox.path("saved")).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode, 0o600);
    let text = std::fs::read_to_string(sandbox.path("saved")).unwrap();
    assert!(!text.contains("hunter2") && !text.contains("hello"), "{text}");
    assert_eq!(apply(&sandbox).ended(0), "node-1: changed=3 unchanged=0  TIME\n");
    assert_eq!(std::fs::read_to_string(sandbox.path("first")).unwrap(), "hello\n");

    let again = apply(&sandbox);
    assert_eq!((again.code, again.stdout.as_str()), (7, ""));
    insta::assert_snapshot!(again.stderr, @r"
    error: node-1: file:$DIR/first already matches, but the plan changes it: host drifted since the plan was made
    error: node-1: file:$DIR/secret already matches, but the plan changes it: host drifted since the plan was made
    error: node-1: symlink:$DIR/link already matches, but the plan changes it: host drifted since the plan was made
    hint: nothing was changed on any host; make a new plan and review it
    ");
}

/// What is done between the plan and its application, and the error lines.
type Move = (fn(&Sandbox), &'static [&'static str]);

#[test]
fn a_plan_that_is_not_what_would_be_done_now_is_refused() {
    let moves: [Move; 6] = [
        (
            |sandbox| sandbox.write("first", "by hand\n"),
            &[
                "node-1: file:$DIR/first requires another change than the plan has: host drifted since the plan was made",
            ],
        ),
        (
            |sandbox| roster(sandbox, "goodbye"),
            &[
                "node-1: file:$DIR/first has another desired state than in the plan: states or values changed since it was made",
            ],
        ),
        (
            |sandbox| {
                let text = STATE.replace(
                    "  - symlink: $DIR/link\n    target: first\n",
                    "  - symlink: $DIR/new\n    target: x\n",
                );
                sandbox.write("tree/states/files.yaml", &text);
            },
            &[
                "node-1: symlink:$DIR/link is in the plan, but not in the states any more",
                "node-1: symlink:$DIR/new is not in the plan: states or values changed since it was made",
            ],
        ),
        (
            |sandbox| sandbox.write("roster.yaml", "hosts: {node-2: }\n"),
            &[
                "node-2: selected now, but not when the plan was made",
                "node-1: in the plan, but no longer selected",
            ],
        ),
        (
            |sandbox| {
                let text = std::fs::read_to_string(sandbox.path("saved")).unwrap();
                let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
                sandbox.write("saved", &text.replace(&version, "\"version\": \"0.0.1\""));
            },
            &[concat!(
                "$DIR/saved: made by metalform 0.0.1, but this is metalform ",
                env!("CARGO_PKG_VERSION")
            )],
        ),
        (
            |sandbox| {
                let text = std::fs::read_to_string(sandbox.path("saved")).unwrap();
                let at = text.find("\"machine\": \"").unwrap() + 12;
                let other = if text[at..].starts_with('0') { "1" } else { "0" };
                sandbox.write("saved", &format!("{}{other}{}", &text[..at], &text[at + 1..]));
            },
            &["node-1: this is not the machine that the plan was made for"],
        ),
    ];
    for (change, expected) in moves {
        let sandbox = planned();
        change(&sandbox);
        let before = sandbox.listing(".");
        let ran = apply(&sandbox);
        let errors: Vec<&str> = ran.stderr.lines().filter_map(|line| line.strip_prefix("error: ")).collect();
        assert_eq!((ran.code, errors.as_slice(), ran.stdout.as_str()), (7, expected, ""), "{}", ran.stderr);
        assert_eq!(sandbox.listing("."), before, "nothing is done");
    }
}

#[test]
fn a_plan_of_another_build_of_the_same_version_is_refused() {
    let sandbox = planned();
    let text = std::fs::read_to_string(sandbox.path("saved")).unwrap();
    let at = text.find("\"sha256\": \"").unwrap() + 11;
    sandbox.write("saved", &format!("{}{}{}", &text[..at], "0".repeat(64), &text[at + 64..]));
    let ran = apply(&sandbox);
    assert_eq!((ran.code, ran.stdout.as_str()), (7, ""), "{}", ran.stderr);
    let version = env!("CARGO_PKG_VERSION");
    let start = format!(
        "error: $DIR/saved: made by build 000000000000 of metalform {version}, but this is build {}",
        &text[at..at + 12]
    );
    assert!(ran.stderr.starts_with(&start), "{}", ran.stderr);
    assert!(!sandbox.path("first").exists());
}

#[test]
fn what_is_no_plan_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("saved", "{}");
    let ran = apply(&sandbox);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.starts_with("error: $DIR/saved: missing field `apiVersion`"), "{}", ran.stderr);
    let both = sandbox.run(&["apply", "--plan", "$DIR/saved", "--local"]);
    assert_eq!(both.code, 1);
    assert!(both.stderr.contains("cannot be used with"), "{}", both.stderr);
}

#[test]
fn the_plan_of_a_deployment_is_a_file_and_an_option_of_its_own() {
    let sandbox = planned();
    for (arguments, expected) in [
        (
            &["expand", "--plan", "$DIR/saved"][..],
            "error: $DIR/saved: expected SavedDeployment of metalform.dev/v1alpha1, found SavedPlan",
        ),
        (&["expand", "--plan", "$DIR/missing"], "error: $DIR/missing: No such file"),
        (&["expand", "--plan", "saved", "--dry-run"], "cannot be used with"),
        (&["expand", "--plan", "saved", "--out", "other"], "--dry-run"),
        (&["expand", "--out", "other"], "--dry-run"),
        (&["deploy-node", "--plan", "saved", "node-1"], "cannot be used with"),
        (&["deploy-node", "--plan", "saved", "--replace"], "cannot be used with"),
        (&["deploy-node", "--plan", "saved", "--replace-member"], "cannot be used with"),
        (&["deploy-node"], "required"),
    ] {
        let ran = sandbox.run(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{arguments:?}: {}", ran.stderr);
    }
}
