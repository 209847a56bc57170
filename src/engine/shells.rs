//! For tests: programs run by the shells of this machine, as they are run on a host.

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use crate::transport::{Output, Program};

#[path = "../../tests/support/child.rs"]
mod child;

/// Runs `program` by `shell` (a command line: `bash --posix`).
pub(crate) fn run(shell: &str, program: &Program) -> Output {
    let mut script = tempfile::NamedTempFile::new().unwrap();
    script.write_all(program.script.as_bytes()).unwrap();
    let mut words = shell.split(' ');
    let mut command = Command::new(words.next().unwrap());
    command.args(words).args(["-c", "eval \"$(cat \"$0\")\""]).arg(script.path());
    let output = child::feed(&mut command, &program.payload);
    let status = output.status.code().unwrap_or_else(|| 128 + output.status.signal().unwrap());
    Output { status, stdout: output.stdout, stderr: output.stderr }
}

/// Starts a script by `shell`, with pipes for its output.
pub(crate) fn start(shell: &str, script: &str) -> Child {
    let mut words = shell.split(' ');
    let mut command = Command::new(words.next().unwrap());
    command.args(words).args(["-c", script]).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The POSIX shells that are installed here.
pub(crate) fn shells() -> Vec<&'static str> {
    ["dash", "bash --posix", "busybox sh"]
        .into_iter()
        .filter(|shell| {
            let program = shell.split(' ').next().unwrap();
            std::env::split_paths(&std::env::var_os("PATH").unwrap()).any(|dir| dir.join(program).exists())
        })
        .collect()
}
