//! What is refused before any host is touched: each in one error line, with exit code 1.

use crate::sandbox::Sandbox;

/// Arguments, and the error line.
const CASES: &[(&[&str], &str)] = &[
    (&["plan", "--frobnicate"], "unexpected argument '--frobnicate' found"),
    (&["paln"], "unrecognized subcommand 'paln'"),
    (
        &["plan", "-o", "xml"],
        "invalid value 'xml' for '--output <OUTPUT>' [possible values: table, wide, json, yaml, name]",
    ),
    (
        &["plan", "--roster", "r", "--on", "role:king"],
        "invalid value 'role:king' for '--on <SELECTOR>': \"king\" is not a role; the roles are bootstrap, master (or control-plane), etcd, mirror, infra and node",
    ),
    (
        &["apply", "--detailed-exitcode", "--local"],
        "the following required arguments were not provided: --dry-run",
    ),
    (
        &["apply", "--local", "--serial", "0"],
        "invalid value '0' for '--serial <N|P%>': expected a number of hosts or a percentage up to 100%",
    ),
    (
        &["apply", "--local", "--max-failures", "half"],
        "invalid value 'half' for '--max-failures <N|P%>': expected a number of hosts or a percentage up to 100%",
    ),
    (
        &["plan", "--local", "Bad_Name"],
        "invalid value 'Bad_Name' for '[STATE]...': invalid state name \"Bad_Name\": use lowercase letters, digits and '-', with '/' between directories",
    ),
    (&["plan"], "no hosts specified"),
    (&["plan", "--roster", "$DIR/none.yaml"], "$DIR/none.yaml: No such file or directory (os error 2)"),
    (
        &["plan", "--roster", "$DIR/malformed.yaml"],
        "$DIR/malformed.yaml:2:12: unknown field \"adress\"; did you mean \"address\"?",
    ),
    (&["plan", "--roster", "$DIR/empty.yaml"], "no hosts in $DIR/empty.yaml"),
    (&["plan", "--roster", "$DIR/roster.yaml", "--on", "node-3"], "--on: no host matches node-3"),
    (
        &["plan", "--roster", "$DIR/roster.yaml", "--local"],
        "--local requires exactly one host, but 2 are selected",
    ),
    (&["plan", "--local", "filse"], "command line: there is no state filse; did you mean \"files\"?"),
    (&["check", "$DIR/nowhere"], "cannot read $DIR/nowhere: No such file or directory (os error 2)"),
];

#[test]
fn bad_input_is_one_error_line_and_exit_code_1() {
    let sandbox = Sandbox::new();
    sandbox.write("tree/states/files.yaml", "about: Nothing.\nresources: []\n");
    sandbox.write("roster.yaml", "hosts: {node-1: , node-2: }\n");
    sandbox.write("empty.yaml", "hosts: {}\n");
    sandbox.write("malformed.yaml", "hosts:\n  node-1: {adress: 192.0.2.1}\n");
    let mut wrong = Vec::new();
    for (arguments, expected) in CASES {
        let tree: &[&str] = match arguments[0] {
            "plan" | "apply" => &["--tree", "$DIR/tree"],
            _ => &[],
        };
        let ran = sandbox.run(&[arguments, tree].concat());
        let errors: Vec<&str> = ran.stderr.lines().filter_map(|line| line.strip_prefix("error: ")).collect();
        let others = ran.stderr.lines().filter(|line| !line.starts_with("hint: ")).count();
        if (ran.code, errors.as_slice(), others, ran.stdout.as_str()) != (1, &[*expected][..], 1, "") {
            wrong.push(format!("{arguments:?}: {ran:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
