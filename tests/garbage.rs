//! Hosts that return garbage, too much, a part, or the wrong thing: the binary against an SSH server of this process
//! whose output is corrupted. One clear line each, the right exit code, and bounded memory.

#![expect(clippy::unwrap_used, reason = "all of it is test code; clippy knows only test functions")]

#[path = "ssh/server.rs"]
#[expect(dead_code, reason = "only some of its behaviours are of use here")]
mod server;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use russh::keys::PrivateKey;
use russh::keys::ssh_key::LineEnding;
use russh::keys::ssh_key::private::Ed25519Keypair;
use tokio::io::AsyncReadExt;

use self::server::{Behaviour, Server};

const SSH: i32 = 3;
const HOST: i32 = 4;

/// Memory limit of metalform while a host sends without end, KiB. It includes a debug build, its states and runtime.
const MEMORY: u64 = 200 * 1024;

/// The filter between a program ("$@") and the connection, the exit code of a plan, and part of the message.
const CORRUPTED: [(&str, &str, i32, &str); 14] = [
    ("nothing at all", "exit 0", SSH, "no usable shell"),
    ("nothing, and a status", "exit 42", SSH, "exit status 42"),
    ("a login message instead", "echo This account is disabled.", SSH, "This account is disabled."),
    ("random bytes", "head -c 1000000 /dev/urandom", SSH, "no usable shell"),
    ("zeros without end", "exec cat /dev/zero", SSH, "more than 64 MiB"),
    ("its answer, and then lines without end", "\"$@\"; exec yes", SSH, "more than 64 MiB"),
    ("the first 200 bytes", "\"$@\" | head -c 200", HOST, "truncated after"),
    ("every line twice", "\"$@\" | sed -u p", HOST, ""),
    ("lines in reverse order", "\"$@\" 2>/dev/null | tac", SSH, ""),
    (
        "marks of another run",
        "\"$@\" | sed -u 's/metalform-................................ /metalform-00000000000000000000000000000000 /'",
        HOST,
        "instead of an observation",
    ),
    ("something that is not base64", "\"$@\" | sed -u '3s/./!/g'", HOST, "damaged"),
    ("the base64 of something else", "\"$@\" | sed -u 's/^[A-Za-z0-9+/=]*$/aGVsbG8=/'", HOST, "damaged"),
    ("only the marks", "\"$@\" | grep --line-buffered metalform", HOST, "damaged"),
    ("binary in between", "\"$@\" | sed -u '3s/^/\\x00\\xff\\xfe/'", HOST, "damaged"),
];

/// Filters that leave the output intact.
const INTACT: [(&str, &str); 3] = [
    ("byte by byte", "\"$@\" | dd bs=1 2>/dev/null"),
    ("after noise", "echo welcome; echo >&2; head -c 100000 /dev/urandom; \"$@\""),
    ("before noise", "\"$@\"; echo bye; echo >&2"),
];

struct Ran {
    code: i32,
    stderr: String,
    /// Peak, KiB.
    memory: u64,
}

struct Site {
    directory: tempfile::TempDir,
}

impl Site {
    fn new(filter: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let site = Self { directory };
        let key = PrivateKey::from(Ed25519Keypair::from_seed(&[9; 32]));
        key.write_openssh_file(site.path("id"), LineEnding::LF).unwrap();
        // A program whose output is dropped gets no reply, and would wait until its deadline.
        let script = format!("#!/bin/sh\nshift\nset -- timeout 3 \"$@\"\n{filter}\n");
        fs::write(site.path("filter"), script).unwrap();
        fs::set_permissions(site.path("filter"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir_all(site.path("tree/states")).unwrap();
        fs::write(site.path("tree/states/top.yaml"), "node: {states: [it]}\n").unwrap();
        let state = "about: A file, and one that depends on what the host is.\nresources:\n  - symlink: $DIR/it\n    target: x\n  - symlink: $DIR/{{ facts.arch }}\n    target: x\n";
        fs::write(site.path("tree/states/it.yaml"), state.replace("$DIR", &site.text("made"))).unwrap();
        site
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    async fn run(&self, verb: &str) -> Ran {
        let login_prints =
            format!("export PATH=/usr/bin:/bin:/usr/sbin:/sbin; exec '{}' ", self.text("filter"));
        let server = Server::start(Behaviour { login_prints, ..Behaviour::default() }).await;
        let roster = format!(
            "hosts: {{h: {{address: 127.0.0.1, port: {}, key: {}, host_key: {:?}}}}}\n",
            server.port,
            self.text("id"),
            server.public_key(),
        );
        fs::write(self.path("roster.yaml"), roster).unwrap();
        let mut child = tokio::process::Command::new(env!("CARGO_BIN_EXE_metalform"))
            .args([verb, "--tree", &self.text("tree"), "--roster", &self.text("roster.yaml")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let status = format!("/proc/{}/status", child.id().unwrap());
        let mut errors = Vec::new();
        let mut stderr = child.stderr.take().unwrap();
        let mut memory = 0;
        let reading = async {
            // VmHWM is the peak, so it is enough to read it now and then.
            let mut piece = [0; 4096];
            loop {
                let looked =
                    tokio::time::timeout(std::time::Duration::from_millis(5), stderr.read(&mut piece));
                match looked.await {
                    Ok(Ok(0)) | Ok(Err(_)) => break,
                    Ok(Ok(length)) => errors.extend_from_slice(&piece[..length]),
                    Err(_) => {}
                }
                memory = memory.max(peak(Path::new(&status)));
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(60), reading)
            .await
            .expect("it ends within a minute");
        let code = child.wait().await.unwrap().code().unwrap();
        Ran { code, stderr: String::from_utf8(errors).unwrap(), memory }
    }
}

/// VmHWM (proc_pid_status(5)); 0 once the process has ended.
fn peak(status: &Path) -> u64 {
    let text = fs::read_to_string(status).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or_default()
}

/// What is wrong with the report of a corrupted output, if anything is.
fn complaint(ran: &Ran, code: i32, words: &str) -> Option<&'static str> {
    let errors: Vec<&str> = ran.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    let [error] = errors[..] else { return Some("not one error") };
    let complaints = [
        (ran.code != code, "another exit code"),
        (!error.starts_with("error: h: "), "the host is not named"),
        (!error.contains(words), "other words"),
        (error.len() > 600, "too long"),
        (error.contains(|c: char| c.is_control()), "control characters"),
        (!ran.stderr.contains("\nhint: "), "no hint"),
        (ran.memory > MEMORY, "too much memory"),
    ];
    complaints.into_iter().find(|(holds, _)| *holds).map(|(_, complaint)| complaint)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_corrupted_output_is_one_clear_line() {
    let mut complaints = Vec::new();
    for (what, filter, code, words) in CORRUPTED {
        let site = Site::new(filter);
        let ran = site.run("apply").await;
        if let Some(complaint) = complaint(&ran, code, words) {
            complaints.push(format!("{what}: {complaint}: {}, {} KiB: {}", ran.code, ran.memory, ran.stderr));
        }
        assert!(!site.path("made").exists(), "{what}: {}", ran.stderr);
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn noise_around_intact_output_is_ignored() {
    for (what, filter) in INTACT {
        let site = Site::new(filter);
        let ran = site.run("plan").await;
        assert_eq!(ran.code, 0, "{what}: {}", ran.stderr);
        let ran = site.run("apply").await;
        assert_eq!(ran.code, 0, "{what}: {}", ran.stderr);
        assert!(site.path("made/it").is_symlink());
    }
}
