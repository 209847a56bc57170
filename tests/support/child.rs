//! Feeding a child process; standard library only, so that the library's own tests include this file too.

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// Starts a command, writes `input` to it, and collects its output. A program that fails may leave the rest unread.
pub fn feed(command: &mut Command, input: &[u8]) -> Output {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_vec());
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}
