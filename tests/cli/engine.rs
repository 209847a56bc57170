//! plan, apply, render, facts and check.

use crate::sandbox::Sandbox;

const STATE: &str = "about: Harmless files.
resources:
  - directory: $DIR/target
    owner: \"{{ cluster.user }}\"
    group: \"{{ cluster.user }}\"
  - template: $DIR/target/greeting
    source: greeting.j2
    owner: \"{{ cluster.user }}\"
    group: \"{{ cluster.user }}\"
  - file: $DIR/target/secret
    content: hunter2
    mode: \"0600\"
    owner: \"{{ cluster.user }}\"
    group: \"{{ cluster.user }}\"
    sensitive: true
  - symlink: $DIR/target/link
    target: greeting
";

/// A roster with this machine, whose files are those of whoever runs the test.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let user = std::process::Command::new("id").arg("-un").output().unwrap();
    let user = String::from_utf8(user.stdout).unwrap();
    sandbox.write(
        "roster.yaml",
        &format!(
            "defaults: {{vars: {{user: {}, greeting: hello}}}}\nhosts: {{node-1: , node-2: {{address: 192.0.2.2}}}}\n",
            user.trim()
        ),
    );
    sandbox.write("tree/states/files.yaml", STATE);
    sandbox.write("tree/templates/greeting.j2", "{{ cluster.greeting }} {{ node.name }}\n");
    sandbox
}

#[test]
fn a_plan_shows_diffs_hides_secrets_and_changes_nothing() {
    let sandbox = sandbox();
    let plan = sandbox.engine("plan", &[]).ended(0);
    assert!(plan.starts_with("node-1: 4 to change, 0 unchanged\n"), "{plan}");
    assert!(plan.contains("    @@ -0,0 +1 @@\n    +hello node-1\n"), "{plan}");
    assert!(plan.contains("content (sensitive)") && !plan.contains("hunter2"), "{plan}");
    assert!(!plan.contains('\u{1b}'), "colours are for terminals: {plan}");
    assert!(!sandbox.path("target").exists());
    assert_eq!(sandbox.engine("apply", &["--dry-run"]).ended(0), plan);
    assert!(!sandbox.path("target").exists());
}

#[test]
fn what_was_applied_is_not_changed_again() {
    let sandbox = sandbox();
    assert_eq!(sandbox.engine("plan", &["--detailed-exitcode"]).code, 2);
    assert_eq!(sandbox.engine("apply", &[]).ended(0), "node-1: changed=4 unchanged=0  TIME\n");
    let listing = ["greeting: \"hello node-1\\n\"", "link -> greeting", "secret: \"hunter2\""];
    assert_eq!(sandbox.listing("target"), listing);
    assert_eq!(sandbox.engine("apply", &[]).ended(0), "node-1: changed=0 unchanged=4  TIME\n");
    let again = sandbox.engine("plan", &["--detailed-exitcode"]);
    assert_eq!(again.ended(0), "node-1: 0 to change, 4 unchanged\n");
}

#[test]
fn programs_get_the_same_plan_as_json() {
    let sandbox = sandbox();
    let text = sandbox.engine("plan", &["-o", "json"]).ended(0);
    let plan: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&plan["apiVersion"], &plan["kind"]), (&"metalform.dev/v1alpha1".into(), &"Plan".into()));
    assert_eq!(plan["hosts"][0]["host"], "node-1");
    assert_eq!(plan["hosts"][0]["changes"][1]["resource"], "template:$DIR/target/greeting");
    let diff = plan["hosts"][0]["changes"][1]["differences"][0]["diff"].as_str().unwrap();
    assert!(diff.ends_with("+hello node-1\n"), "{diff}");
    assert!(!text.contains("hunter2"));
}

#[test]
fn a_failure_ends_the_host_and_shows_the_end_of_its_output() {
    let sandbox = sandbox();
    sandbox.write(
        "tree/states/broken.yaml",
        "about: Fails.\nresources:\n  - command: Break\n    run: echo first; echo last words; exit 3\n    creates: $DIR/never\n  - symlink: $DIR/after\n    target: x\n",
    );
    let ran = sandbox.engine("apply", &["broken"]);
    assert_eq!(ran.code, 4);
    assert_eq!(
        ran.stdout,
        "node-1: changed=0 unchanged=0 failed  TIME\n    first\n    last words\n    not done: command:Break, symlink:$DIR/after\n"
    );
    assert!(
        ran.stderr.contains("error: node-1: command:Break failed with status 3: last words\n"),
        "{}",
        ran.stderr
    );
    assert!(!sandbox.path("after").is_symlink());
}

#[test]
fn hosts_that_cannot_be_reached_are_set_aside() {
    let sandbox = sandbox();
    sandbox.write(
        "away.yaml",
        "defaults: {vars: {user: root, greeting: hello}}\nhosts: {away: {address: 127.0.0.1, port: 1}}\n",
    );
    let ran = sandbox.run(&["apply", "--tree", "$DIR/tree", "--roster", "$DIR/away.yaml", "files"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (3, "away: unreachable  TIME\n"));
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(lines[0], "away: unreachable in TIME");
    assert!(lines[1].starts_with("error: away: 127.0.0.1:1: no SSH connection: "), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().filter(|line| line.starts_with("error: ")).count(), 1);
}

#[test]
fn a_rendered_state_has_every_value_but_no_secret() {
    let sandbox = sandbox();
    let text = sandbox.engine("render", &["files"]).ended(0);
    assert!(text.contains("hello node-1") && text.contains("content: (sensitive)"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
    assert!(text.contains("symlink: $DIR/target/link"), "{text}");
    let json = sandbox.engine("render", &["-o", "json"]).ended(0);
    let rendered: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(rendered["node-1"].as_array().unwrap().len(), 4);
    assert!(!sandbox.path("target").exists());
}

#[test]
fn a_certificate_is_refused_before_anything_is_done() {
    let sandbox = sandbox();
    sandbox.write(
        "tree/states/signed.yaml",
        "about: A certificate.\nrequires: [files]\nresources:\n  - certificate: $DIR/a.crt\n    key: $DIR/a.key\n    authority: etcd\n    common_name: a\n    usages: [server]\n",
    );
    let ran = sandbox.engine("apply", &["signed"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, "node-1: changed=0 unchanged=0 failed  TIME\n"));
    assert!(ran.stderr.contains("states/signed.yaml:4:5: certificate:$DIR/a.crt requires a CA"));
    assert!(!sandbox.path("target").exists());
}

#[test]
fn facts_of_this_machine_need_no_roster() {
    let sandbox = Sandbox::new();
    let text = sandbox.run(&["facts", "-o", "json"]).ended(0);
    let facts: serde_json::Value = serde_json::from_str(&text).unwrap();
    let [own] = &facts.as_object().unwrap().values().collect::<Vec<_>>()[..] else { panic!("{text}") };
    assert!(own["cpus"].as_u64().unwrap() > 0);
    assert!(sandbox.run(&["facts"]).ended(0).starts_with("NAME "));
    assert!(sandbox.run(&["facts", "-o", "yaml"]).ended(0).contains("machine_id: "));
}

#[test]
fn a_tree_is_checked_without_a_host() {
    let sandbox = sandbox();
    let valid = "$DIR/tree: OK; requires roster values cluster.greeting, cluster.user (see --roster)\n";
    assert_eq!(sandbox.run(&["check", "$DIR/tree"]).ended(0), valid);
    let with_roster = ["check", "--roster", "$DIR/roster.yaml", "$DIR/tree/states/"];
    assert_eq!(sandbox.run(&with_roster).ended(0), "$DIR/tree/states/: OK\n");
    sandbox.write("tree/templates/greeting.j2", "{{ node.disks }}\n");
    let ran = sandbox.run(&with_roster);
    insta::assert_snapshot!(ran.stderr, @r#"
    error: $DIR/tree/templates/greeting.j2:1:4: `node.disks` is undefined
    hint: set disks in the vars of the host in the roster; rendered for the resource at states/files.yaml:7:13
    "#);
    sandbox.write(
        "tree/states/files.yaml",
        "about: Wrong.\nresources:\n  - fiel: /a\n  - file: /b\n    mode: 0644\n",
    );
    let file = sandbox.run(&["check", "$DIR/tree/states/files.yaml"]);
    let ran = sandbox.run(&["check", "$DIR/tree"]);
    assert_eq!(file, ran);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    insta::assert_snapshot!(ran.stderr, @r#"
    error: $DIR/tree/states/files.yaml:3:5: unknown kind "fiel"; did you mean "file"?
    error: $DIR/tree/states/files.yaml:4:5: file requires the field "content"
    error: $DIR/tree/states/files.yaml:5:11: field "mode" of file must be a quoted octal mode such as "0644", not the number 0644
    hint: quote the value: "0644"
    "#);
    sandbox.write(
        "tree/states/files.yaml",
        "about: Wrong.\nresources:\n  - file: etc/motd\n    content: x\n  - route: 10.0.0.0/8\n    via: gate\n",
    );
    insta::assert_snapshot!(sandbox.run(&["check", "$DIR/tree"]).stderr, @r#"
    error: $DIR/tree/states/files.yaml:3:5: invalid file name "etc/motd": must be an absolute path
    error: $DIR/tree/states/files.yaml:6:10: field "via" of route: must be an IP address
    "#);
}

#[test]
fn the_reference_of_kinds_names_them_all() {
    let page = Sandbox::new().run(&["docs", "kinds"]).ended(0);
    for kind in metalform::resource::kinds() {
        assert!(page.contains(&format!("\n## {}\n", kind.kind)), "{}", kind.kind);
        for field in kind.fields {
            assert!(page.contains(&format!("| `{}` |", field.name)), "{}", field.name);
        }
    }
}

const AWAY: &str = "defaults: {vars: {user: root, greeting: hello}}\nhosts: {a: {address: 127.0.0.1, port: 1}, b: {address: 127.0.0.1, port: 1}, c: {address: 127.0.0.1, port: 1}}\n";

#[test]
fn a_batch_begins_only_when_the_one_before_ended_well() {
    let sandbox = sandbox();
    sandbox.write("away.yaml", AWAY);
    let arguments =
        ["apply", "--tree", "$DIR/tree", "--roster", "$DIR/away.yaml", "files", "--serial", "30%"];
    let set_aside = sandbox.run(&arguments);
    assert_eq!(set_aside.code, 3);
    assert!(set_aside.stdout.ends_with("3 hosts: 3 unreachable\n"), "{}", set_aside.stdout);
    let failed = sandbox.run(&[&arguments[..], &["--unreachable", "fail"]].concat());
    assert_eq!(failed.code, 3);
    assert_eq!(
        failed.stdout,
        "a: unreachable  TIME\nb: not started\nc: not started\n3 hosts: 1 unreachable, 2 not started\n"
    );
    let last = "error: not started: 1 failed, more than --max-failures=0 allows: b, c";
    assert!(failed.stderr.lines().any(|line| line == last), "{}", failed.stderr);
    let patient =
        sandbox.run(&[&arguments[..], &["--unreachable", "fail", "--max-failures", "50%"]].concat());
    assert!(patient.stdout.ends_with("3 hosts: 2 unreachable, 1 not started\n"), "{}", patient.stdout);
}

#[test]
fn programs_get_an_event_a_line() {
    let sandbox = sandbox();
    let ran = sandbox.engine("apply", &["--log-format", "json", "-o", "json", "away"]);
    let error: serde_json::Value = serde_json::from_str(ran.stderr.lines().next().unwrap()).unwrap();
    assert_eq!((ran.code, &error["event"]), (1, &"error".into()));

    let ran = sandbox.engine("apply", &["--log-format", "json", "-o", "json"]);
    let events: Vec<serde_json::Value> =
        ran.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names[..3], ["run-begun", "host-begun", "planned"]);
    assert_eq!(names.iter().filter(|name| **name == "resource-done").count(), 4);
    assert_eq!(names.last(), Some(&"host-ended"));
    assert!(events.iter().all(|event| event["time"].is_string()));
    assert!(events[1..].iter().all(|event| event["host"] == "node-1"));
    let result: serde_json::Value = serde_json::from_str(&ran.ended(0)).unwrap();
    assert_eq!((&result["kind"], &result["hosts"][0]["outcome"]), (&"Apply".into(), &"changed".into()));
    assert_eq!(result["hosts"][0]["changed"].as_array().unwrap().len(), 4);
}
