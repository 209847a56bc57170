//! Runs programs of the engine with the shell of this machine.

use std::io::Write;
use std::process::{Command, Stdio};

use metalform::transport::{Output, Program};

pub fn run(program: &Program) -> Output {
    let mut script = tempfile::NamedTempFile::new().unwrap();
    script.write_all(program.script.as_bytes()).unwrap();
    let mut child = Command::new("sh")
        .args(["-c", "eval \"$(cat \"$0\")\""])
        .arg(script.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stdin, payload) = (child.stdin.take().unwrap(), program.payload.clone());
    // A program that fails does not read all of its payload.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&payload)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Output { status: output.status.code().unwrap(), stdout: output.stdout, stderr: output.stderr }
}
