//! Runs programs of the engine with the shell of this machine.

use std::io::Write;
use std::process::Command;

use metalform::transport::{Output, Program};

use crate::child::feed;

pub fn run(program: &Program) -> Output {
    let mut script = tempfile::NamedTempFile::new().unwrap();
    script.write_all(program.script.as_bytes()).unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "eval \"$(cat \"$0\")\""]).arg(script.path());
    let output = feed(&mut command, &program.payload);
    Output { status: output.status.code().unwrap(), stdout: output.stdout, stderr: output.stderr }
}
