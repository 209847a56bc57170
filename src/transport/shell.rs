//! The command that runs every program.
//!
//! The command is short, fixed in form, and reads the same in login shells that are no POSIX shell (csh, fish): it
//! contains no backslash, no `!`, no line break, and single quotes only around whole words. The script itself is sent on
//! standard input, so nothing it contains is ever quoted.
//!
//! What the host's shell does, in this order:
//! 1. writes the mark to standard error (and below sudo once more, which tells the output of the two sides apart);
//! 2. reads exactly the script, which ends in the mark, and stops if it did not arrive whole;
//! 3. writes the mark to standard output, and evaluates the script, whose standard input is the payload.
//!
//! `head -c` of GNU coreutils and of uutils reads no byte more than its argument, on pipes and sockets.

use sha2::{Digest, Sha256};

/// Follows the mark in sudo's prompt: no other program prints that.
const PROMPT: &str = "-password:";

/// A script made ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// A line that no script contains, because it is derived from the script's digest.
    pub mark: String,
    /// For the login shell, or for `sh -c`.
    pub command: String,
    /// Sent to standard input before the payload.
    pub script: Vec<u8>,
    /// With sudo, the mark is printed twice on standard error, before and after sudo.
    pub elevation: Elevation,
}

/// How a script is run as root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Elevation {
    /// Without sudo: the login user is root, or the script needs no root.
    None,
    /// With `sudo -n`, which never prompts.
    Sudo,
    /// With sudo, which may prompt for the login user's password with [`Frame::prompt`]. The script must not be sent
    /// before the second mark: sudo would read it as further answers.
    SudoWithPassword,
}

impl Frame {
    /// The mark and the command depend on the script and the elevation alone.
    pub fn new(script: &str, elevation: Elevation) -> Self {
        let digest = Sha256::digest(script.as_bytes());
        let mark = format!("metalform-{}", hex::encode(&digest[..8]));
        // The empty line ends a line that the script may have left with a backslash.
        let script = format!("{script}\n\n#{mark}");
        let inner = format!(
            "echo {mark} >&2; set -- \"$(head -c {length})\"; \
             case $1 in *{mark}) echo {mark}; eval \"shift; $1\";; *) exit 126;; esac",
            length = script.len()
        );
        let sudo =
            |how: &str| format!("exec sh -c 'echo {mark} >&2; exec sudo {how} -- sh -c \"$0\"' '{inner}'");
        let command = match elevation {
            Elevation::None => format!("exec sh -c '{inner}'"),
            Elevation::Sudo => sudo("-n"),
            Elevation::SudoWithPassword => sudo(&format!("-S -p {mark}{PROMPT}")),
        };
        Self { mark, command, script: script.into_bytes(), elevation }
    }

    /// sudo's prompt.
    pub fn prompt(&self) -> String {
        format!("{}{PROMPT}", self.mark)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::process::{Command, Output, Stdio};

    use super::*;

    /// Runs as a login shell would, with standard input as a pipe.
    fn by_pipe(frame: &Frame, payload: &[u8]) -> Output {
        let mut child = Command::new("sh")
            .args(["-c", &frame.command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = [&frame.script, payload].concat();
        let writer = std::thread::spawn(move || stdin.write_all(&input));
        let output = child.wait_with_output().unwrap();
        // A program that does not read its input breaks the pipe.
        let _ = writer.join().unwrap();
        output
    }

    /// The same with a socket, which sshd of some systems uses.
    fn by_socket(frame: &Frame, payload: &[u8]) -> Vec<u8> {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let child = Command::new("sh")
            .args(["-c", &frame.command])
            .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs.try_clone().unwrap())))
            .stdout(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut writing = ours.try_clone().unwrap();
        let input = [&frame.script, payload].concat();
        let writer = std::thread::spawn(move || {
            writing.write_all(&input).unwrap();
            writing.shutdown(std::net::Shutdown::Write).unwrap();
        });
        let mut output = Vec::new();
        ours.read_to_end(&mut output).unwrap();
        writer.join().unwrap();
        assert!(child.wait_with_output().unwrap().status.success());
        output
    }

    fn stdout(frame: &Frame, payload: &[u8]) -> String {
        let text = String::from_utf8(by_pipe(frame, payload).stdout).unwrap();
        text.strip_prefix(&format!("{}\n", frame.mark)).unwrap().to_owned()
    }

    #[test]
    fn the_script_finds_exactly_the_payload_on_a_pipe_and_on_a_socket() {
        let payload: Vec<u8> = (0..=255).cycle().take(300_000).collect();
        let frame = Frame::new("sha256sum -; cat", Elevation::None);
        let expected = format!("{}  -\n", hex::encode(Sha256::digest(&payload)));
        assert_eq!(stdout(&frame, &payload), expected);
        assert_eq!(by_socket(&frame, &payload), format!("{}\n{expected}", frame.mark).into_bytes());
    }

    #[test]
    fn a_script_of_five_megabytes_runs() {
        let script = format!(": '{}'; cat", "ü'\\''\n".repeat(750_000));
        assert!(script.len() > 5_000_000);
        assert_eq!(stdout(&Frame::new(&script, Elevation::None), b"payload"), "payload");
    }

    #[test]
    fn no_content_breaks_out() {
        for (script, printed) in [
            ("", ""),
            ("# only a comment", ""),
            ("echo one \\", "one\n"),
            ("echo one\\", "one\n"),
            ("cat <<'END'\n' \" $x `y` $(z) \\ !! \nEND", "' \" $x `y` $(z) \\ !! \n"),
            ("printf %s \"$# $0\"", "0 sh"),
            ("#!/bin/sh\nset -eu\necho ok", "ok\n"),
            ("echo ';;' 'esac'\n", ";; esac\n"),
            ("cat", "payload"),
        ] {
            assert_eq!(stdout(&Frame::new(script, Elevation::None), b"payload"), printed, "{script:?}");
        }
    }

    #[test]
    fn the_exit_status_is_that_of_the_script() {
        for (script, status) in
            [("true", 0), ("false", 1), ("exit 42", 42), ("set -e; false; true", 1), ("(", 2)]
        {
            let frame = Frame::new(script, Elevation::None);
            assert_eq!(by_pipe(&frame, b"").status.code(), Some(status), "{script}");
        }
    }

    #[test]
    fn a_script_that_did_not_arrive_whole_does_not_run() {
        let mut frame = Frame::new("echo ran", Elevation::None);
        frame.script.pop();
        let output = by_pipe(&frame, b"");
        assert_eq!((output.stdout.as_slice(), output.status.code()), (&b""[..], Some(126)));
    }

    #[test]
    fn the_command_has_nothing_that_csh_or_fish_reads_otherwise() {
        for elevation in [Elevation::None, Elevation::Sudo, Elevation::SudoWithPassword] {
            let frame = Frame::new("it's \\ ! \n", elevation);
            assert!(!frame.command.contains(['\\', '!', '\n', '`']), "{}", frame.command);
        }
    }
}
