//! Ctrl-C once, twice, and before anything was changed: on this machine and through a real sshd.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::sandbox::{Ran, Sandbox};
use crate::sshd::Sshd;

const DEADLINE: Duration = Duration::from_secs(30);

/// A command that tells its process id and goes on when it may, and two resources after it.
const STATE: &str = "about: Takes its time.
resources:
  - command: Wait
    run: echo $$ >$DIR/pid.new && mv $DIR/pid.new $DIR/pid && until test -e $DIR/go; do sleep 0.05; done; touch $DIR/waited
    creates: $DIR/waited
  - symlink: $DIR/second
    target: x
  - symlink: $DIR/third
    target: x
";

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}

/// What has ended is gone, or waits for its parent to notice.
fn runs(process: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// A run whose first resource is at work.
struct Run<'a> {
    sandbox: &'a Sandbox,
    child: Child,
    command: String,
}

impl<'a> Run<'a> {
    fn start(sandbox: &'a Sandbox, arguments: &[&str]) -> Self {
        Self::start_with_hangup("default", sandbox, arguments)
    }

    /// As env(1) sets the action of SIGHUP: `default` or `ignore`.
    fn start_with_hangup(action: &str, sandbox: &'a Sandbox, arguments: &[&str]) -> Self {
        sandbox.write("tree/states/files.yaml", STATE);
        let errors = std::fs::File::create(sandbox.path("stderr")).unwrap();
        let own = sandbox.command(&[&["apply", "-vv", "--tree", "$DIR/tree"], arguments].concat());
        let child = sandbox
            .command_of("env")
            .arg(format!("--{action}-signal=HUP"))
            .arg(own.get_program())
            .args(own.get_args())
            .stdout(Stdio::piped())
            .stderr(Stdio::from(errors))
            .spawn()
            .unwrap();
        let pid = sandbox.path("pid");
        wait_until("the first resource is not begun", || Path::new(&pid).exists());
        let command = std::fs::read_to_string(&pid).unwrap().trim().to_owned();
        Self { sandbox, child, command }
    }

    fn interrupt(&self) {
        self.send(Signal::INT);
    }

    fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn stderr(&self) -> String {
        std::fs::read_to_string(self.sandbox.path("stderr")).unwrap()
    }

    fn wait_for(&self, text: &str) {
        wait_until(text, || self.stderr().contains(text));
    }

    fn end(self) -> (Ran, String) {
        let stderr = self.sandbox.path("stderr");
        let ran = self.sandbox.ran(self.child.wait_with_output().unwrap());
        (ran, std::fs::read_to_string(stderr).unwrap())
    }
}

const STOPPING: &str = "stopping: each host finishes its current resource, and no further host starts; interrupt again to stop at once\n";

fn once(arguments: &[&str], sandbox: &Sandbox, host: &str) {
    let run = Run::start(sandbox, arguments);
    run.interrupt();
    run.wait_for(STOPPING);
    run.wait_for("requested to stop");
    assert!(runs(&run.command), "the resource at hand is finished");
    sandbox.write("go", "");
    let (ran, stderr) = run.end();
    assert_eq!(ran.code, 130, "{stderr}");
    assert_eq!(
        ran.stdout,
        format!(
            "{host}: changed=1 unchanged=0 interrupted  TIME\n    not done: symlink:$DIR/second, symlink:$DIR/third\n"
        )
    );
    assert!(
        stderr.ends_with(&format!(
            "error: interrupted: {host}\nhint: run the same command again; it resumes\n"
        )),
        "{stderr}"
    );
    assert!(sandbox.path("waited").exists() && !sandbox.path("second").is_symlink());

    let again = sandbox.run(&[&["apply", "--tree", "$DIR/tree"], arguments].concat());
    assert_eq!(again.ended(0), format!("{host}: changed=2 unchanged=1  TIME\n"));
}

fn twice(arguments: &[&str], sandbox: &Sandbox, host: &str) {
    let run = Run::start(sandbox, arguments);
    run.interrupt();
    run.wait_for(STOPPING);
    let asked = Instant::now();
    run.interrupt();
    let command = run.command.clone();
    let (ran, stderr) = run.end();
    assert_eq!(ran.code, 130, "{stderr}");
    assert!(asked.elapsed() < Duration::from_secs(10));
    assert!(
        ran.stdout.starts_with(&format!("{host}: changed=0 unchanged=0 interrupted")),
        "{} {stderr}",
        ran.stdout
    );
    wait_until("the command on the host still runs", || !runs(&command));
    assert!(!sandbox.path("waited").exists() && !sandbox.path("second").is_symlink());
}

#[test]
fn a_terminal_that_is_closed_lets_the_resource_at_hand_end() {
    let sandbox = local();
    let run = Run::start(&sandbox, LOCAL);
    run.send(Signal::HUP);
    run.wait_for(STOPPING);
    // The shell sends one, and the kernel another.
    run.send(Signal::HUP);
    run.wait_for("requested to stop");
    assert!(runs(&run.command), "the resource at hand is finished");
    sandbox.write("go", "");
    let (ran, stderr) = run.end();
    assert_eq!(ran.code, 130, "{stderr}");
    assert!(sandbox.path("waited").exists() && !sandbox.path("second").is_symlink());
}

#[test]
fn a_run_under_nohup_outlives_its_terminal() {
    let sandbox = local();
    let run = Run::start_with_hangup("ignore", &sandbox, LOCAL);
    run.send(Signal::HUP);
    sandbox.write("go", "");
    let (ran, stderr) = run.end();
    assert_eq!(ran.ended(0), "node-1: changed=3 unchanged=0  TIME\n", "{stderr}");
}

const LOCAL: &[&str] = &["--roster", "$DIR/roster.yaml", "--local"];
const REMOTE: &[&str] = &["--roster", "$DIR/roster.yaml", "--known-hosts", "$DIR/known_hosts"];

fn local() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("roster.yaml", "hosts: {node-1: }\n");
    sandbox
}

#[test]
fn an_interrupt_lets_the_resource_at_hand_end() {
    once(LOCAL, &local(), "node-1");
}

#[test]
fn an_interrupt_lets_the_resource_at_hand_end_behind_sshd() {
    let sandbox = Sandbox::new();
    let _sshd = Sshd::start(&sandbox);
    once(REMOTE, &sandbox, "node-1");
}

#[test]
fn a_second_interrupt_ends_what_runs() {
    twice(LOCAL, &local(), "node-1");
}

#[test]
fn a_second_interrupt_ends_what_runs_behind_sshd() {
    let sandbox = Sandbox::new();
    let _sshd = Sshd::start(&sandbox);
    twice(REMOTE, &sandbox, "node-1");
}

/// A run whose first host accepts connections and sends nothing, ended by one signal. Returns its output.
fn ended_while_connecting(verb: &str) -> (Ran, Sandbox) {
    let sandbox = local();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    sandbox.write("roster.yaml", &format!("hosts: {{a: {{address: 127.0.0.1, port: {port}}}, b: }}\n"));
    sandbox.write("tree/states/files.yaml", "about: One.\nresources: [{symlink: $DIR/x, target: y}]\n");
    let child = sandbox
        .command(&[verb, "--tree", "$DIR/tree", "--roster", "$DIR/roster.yaml", "--limit", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _connection = silent.accept().unwrap();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let ran = sandbox.ran(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 130, "{}", ran.stderr);
    assert!(ran.stderr.contains("error: not started: the run was interrupted: b\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("error: interrupted: a\n"), "{}", ran.stderr);
    (ran, sandbox)
}

#[test]
fn before_anything_is_changed_one_interrupt_is_enough() {
    let (ran, sandbox) = ended_while_connecting("apply");
    assert_eq!(
        ran.stdout,
        "a: changed=0 unchanged=0 interrupted  TIME\nb: not started\n2 hosts: 1 interrupted, 1 not started\n"
    );
    assert!(!sandbox.path("x").is_symlink());
}

#[test]
fn one_interrupt_ends_a_plan_and_shows_what_is_known() {
    let (ran, _) = ended_while_connecting("plan");
    assert_eq!(ran.stdout, "a: interrupted\nb: not started\n");
}
