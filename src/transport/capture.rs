//! Collects the output of a run: finds where the program's own output begins, and what it means if it never began.

use super::error::TransportError;
use super::shell::{Elevation, Frame};
use super::{LineSink, Output};

/// The most that one program may print, both streams together, in bytes.
pub const OUTPUT_LIMIT: usize = 64 << 20;

/// The program printed more than [`OUTPUT_LIMIT`].
#[derive(Debug, PartialEq, Eq)]
pub struct OutputLimitExceeded;

/// A stream of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// How far sudo is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SudoStage {
    /// It has not started the shell, and has prompted for the password this many times.
    Prompted(usize),
    /// The script's own shell runs.
    Started,
}

/// Collects both streams of one run, without what login files print before the mark.
pub struct Capture<'a> {
    stdout: Marked,
    stderr: Marked,
    sudo: bool,
    /// sudo's prompt, where it may prompt.
    prompt: Option<String>,
    prompted: usize,
    /// Bytes of standard error, since its last mark, in which no prompt begins.
    searched: usize,
    lines: &'a mut LineSink<'a>,
    /// Bytes of standard output already given to `lines`.
    reported: usize,
}

impl<'a> Capture<'a> {
    /// For one run of one frame.
    pub fn new(frame: &Frame, lines: &'a mut LineSink<'a>) -> Self {
        Self {
            stdout: Marked::new(&frame.mark, 1),
            stderr: Marked::new(&frame.mark, if frame.elevation == Elevation::None { 1 } else { 2 }),
            sudo: frame.elevation != Elevation::None,
            prompt: (frame.elevation == Elevation::SudoWithPassword).then(|| frame.prompt()),
            prompted: 0,
            searched: 0,
            lines,
            reported: 0,
        }
    }

    /// Adds what arrived.
    ///
    /// # Errors
    /// Once the limit is exceeded.
    pub fn push(&mut self, source: OutputStream, data: &[u8]) -> Result<(), OutputLimitExceeded> {
        match source {
            OutputStream::Stdout => {
                let seen = if self.stdout.has_begun() { self.stdout.bytes.len() } else { 0 };
                self.stdout.push(data);
                self.report_lines(seen);
            }
            OutputStream::Stderr => {
                self.stderr.push(data);
                self.count_prompts();
            }
        }
        if self.stdout.size + self.stderr.size > OUTPUT_LIMIT { Err(OutputLimitExceeded) } else { Ok(()) }
    }

    /// How far sudo is. Without sudo: whether the script's shell runs.
    pub fn sudo_stage(&self) -> SudoStage {
        if self.stderr.has_begun() { SudoStage::Started } else { SudoStage::Prompted(self.prompted) }
    }

    fn count_prompts(&mut self) {
        // Before the first mark the output is not sudo's.
        let Some(prompt) = self.prompt.as_ref().filter(|_| self.stderr.awaited == 1) else { return };
        let (bytes, length) = (&self.stderr.bytes, prompt.len());
        while let Some(at) = bytes[self.searched..].windows(length).position(|part| part == prompt.as_bytes())
        {
            self.prompted += 1;
            self.searched += at + length;
        }
        self.searched = self.searched.max(bytes.len().saturating_sub(length - 1));
    }

    /// The output, when the program ran.
    ///
    /// # Errors
    /// `SudoRefused` when the login shell worked and sudo did not start the script's shell; `NoShell` when the script did
    /// not start for another reason.
    pub fn finish(self, status: i32, host: &str, user: &str) -> Result<Output, TransportError> {
        if self.stdout.has_begun() && self.stderr.has_begun() {
            let rest = String::from_utf8_lossy(&self.stdout.bytes[self.reported..]);
            if !rest.is_empty() {
                (self.lines)(&rest);
            }
            return Ok(Output { status, stdout: self.stdout.bytes, stderr: self.stderr.bytes });
        }
        let mut message = String::from_utf8_lossy(&self.stderr.bytes).into_owned();
        if let Some(prompt) = &self.prompt {
            message = message.replace(prompt, "");
        }
        if self.sudo && self.stderr.awaited == 1 {
            let reason = sudo_complaint(&message).unwrap_or("no message").to_owned();
            return Err(TransportError::SudoRefused { host: host.to_owned(), user: user.to_owned(), reason });
        }
        let printed = String::from_utf8_lossy(&self.stdout.bytes);
        let reason = match last_line(&message).or_else(|| last_line(&printed)) {
            Some(line) => format!("{line} (exit status {status})"),
            None => {
                format!("exit status {status} and no output; a start-up file of the shell may exit")
            }
        };
        Err(TransportError::NoShell { host: host.to_owned(), reason })
    }

    /// Gives whole lines to `lines`. `seen`: how much was searched for line breaks before, so that one long line costs no
    /// more than many short ones.
    fn report_lines(&mut self, seen: usize) {
        if !self.stdout.has_begun() {
            return;
        }
        let output = &self.stdout.bytes;
        let Some(last) = output[seen..].iter().rposition(|byte| *byte == b'\n') else { return };
        let end = seen + last;
        for line in String::from_utf8_lossy(&output[self.reported..end]).split('\n') {
            (self.lines)(line);
        }
        self.reported = end + 1;
    }
}

/// The reason in sudo's message: the first line that names sudo, else the first line; warnings about name resolution
/// do not count.
fn sudo_complaint(message: &str) -> Option<&str> {
    let lines = || {
        message
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.contains("unable to resolve host"))
    };
    lines().find(|line| line.contains("sudo")).or_else(|| lines().next())
}

/// The last line that is not empty, up to 200 characters.
fn last_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    Some(line.chars().take(200).collect())
}

/// A stream in which marks precede the program's own output.
struct Marked {
    needle: Vec<u8>,
    /// Marks that have not arrived.
    awaited: usize,
    /// The bytes since the last mark.
    bytes: Vec<u8>,
    /// The number of all bytes, marks included.
    size: usize,
}

impl Marked {
    fn new(mark: &str, awaited: usize) -> Self {
        Self { needle: format!("{mark}\n").into_bytes(), awaited, bytes: Vec::new(), size: 0 }
    }

    fn push(&mut self, data: &[u8]) {
        self.size += data.len();
        // A mark may arrive in two pieces.
        let mut from = self.bytes.len().saturating_sub(self.needle.len());
        self.bytes.extend_from_slice(data);
        while self.awaited > 0 {
            let found =
                self.bytes[from..].windows(self.needle.len()).position(|window| window == self.needle);
            let Some(at) = found else { return };
            self.bytes.drain(..from + at + self.needle.len());
            self.awaited -= 1;
            from = 0;
        }
    }

    fn has_begun(&self) -> bool {
        self.awaited == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(elevation: Elevation) -> Frame {
        Frame { mark: "MARK".to_owned(), ..Frame::new("", elevation) }
    }

    /// The result of both streams, which is the same for pieces of any size.
    fn capture(
        sudo: bool,
        stdout: &str,
        stderr: &str,
    ) -> Result<(String, String, Vec<String>), TransportError> {
        let mut results = [1, 5, 1000].map(|piece| {
            let mut lines = Vec::new();
            let mut sink = |line: &str| lines.push(line.to_owned());
            let frame = frame(if sudo { Elevation::Sudo } else { Elevation::None });
            let mut capture = Capture::new(&frame, &mut sink);
            for (source, text) in [(OutputStream::Stdout, stdout), (OutputStream::Stderr, stderr)] {
                text.as_bytes().chunks(piece).for_each(|data| capture.push(source, data).unwrap());
            }
            let output = capture.finish(1, "h:22", "admin")?;
            let text = |bytes| String::from_utf8(bytes).unwrap();
            Ok((text(output.stdout), text(output.stderr), lines))
        });
        results.sort_by_key(|result| format!("{result:?}"));
        let [first, second, third] = results;
        assert_eq!(first, second);
        assert_eq!(second, third);
        first
    }

    #[test]
    fn only_what_follows_the_mark_is_output() {
        for (sudo, stdout, stderr, expected) in [
            (false, "MARK\na\nb\n", "MARK\nerr", ("a\nb\n", "err", vec!["a", "b"])),
            (false, "Welcome!\nMARK\na", "tput: no\nMARK\n", ("a", "", vec!["a"])),
            (false, "no line breakMARK\n\nx", "MARK\n", ("\nx", "", vec!["", "x"])),
            (false, "MARK\nMARK\n", "MARK\nMARK\n", ("MARK\n", "MARK\n", vec!["MARK"])),
            (false, "MARK\n", "+ echo MARK >&2\nMARK\nx", ("", "x", vec![])),
            (true, "MARK\na\n", "MARK\nsudo: unable to resolve host h\nMARK\nerr", ("a\n", "err", vec!["a"])),
        ] {
            let (out, err, lines) = capture(sudo, stdout, stderr).unwrap();
            assert_eq!((out.as_str(), err.as_str()), (expected.0, expected.1), "{stdout:?} {stderr:?}");
            assert_eq!(lines, expected.2, "{stdout:?}");
        }
    }

    #[test]
    fn the_stage_of_sudo_is_found_in_standard_error() {
        for (stderr, expected) in [
            ("", SudoStage::Prompted(0)),
            ("MARK-password:motd\n", SudoStage::Prompted(0)),
            ("MARK\nThe usual lecture\nMARK-pass", SudoStage::Prompted(0)),
            ("MARK\nThe usual lecture\nMARK-password:", SudoStage::Prompted(1)),
            ("MARK\nMARK-password:Sorry, try again.\nMARK-password:", SudoStage::Prompted(2)),
            ("MARK\nMARK-password:MARK\n", SudoStage::Started),
            ("MARK\nMARK\nMARK-password:", SudoStage::Started),
        ] {
            for piece in [1, 7, 1000] {
                let frame = frame(Elevation::SudoWithPassword);
                let mut silent = |_: &str| ();
                let mut capture = Capture::new(&frame, &mut silent);
                stderr
                    .as_bytes()
                    .chunks(piece)
                    .for_each(|data| capture.push(OutputStream::Stderr, data).unwrap());
                assert_eq!(capture.sudo_stage(), expected, "{stderr:?} {piece}");
            }
        }
        let frame = frame(Elevation::SudoWithPassword);
        let mut silent = |_: &str| ();
        let mut capture = Capture::new(&frame, &mut silent);
        capture
            .push(OutputStream::Stderr, b"MARK\nMARK-password:sudo: 1 incorrect password attempt\n")
            .unwrap();
        let error = capture.finish(1, "h:22", "ops").unwrap_err();
        assert_eq!(error.to_string(), "h:22: sudo refuses user ops: sudo: 1 incorrect password attempt");
    }

    #[test]
    fn a_program_that_did_not_start_is_an_error_with_its_reason() {
        for (sudo, stdout, stderr, expected) in [
            (
                true,
                "",
                "MARK\nsudo: a password is required\n",
                "sudo refuses user admin: sudo: a password is required",
            ),
            (
                true,
                "",
                "motd\nMARK\nsudo: unable to resolve host h: Name unknown\nadmin is not in the sudoers file.\nReported.\n",
                "sudo refuses user admin: admin is not in the sudoers file.",
            ),
            (
                true,
                "",
                "MARK\nsh: 1: exec: sudo: not found\n",
                "sudo refuses user admin: sh: 1: exec: sudo: not found",
            ),
            (true, "", "MARK\n", "sudo refuses user admin: no message"),
            (
                true,
                "",
                "MARK\nMARK\nsh: head: not found\n",
                "no usable shell: sh: head: not found (exit status 1)",
            ),
            (true, "", "sh: not found\n", "no usable shell: sh: not found (exit status 1)"),
            (
                false,
                "This account is not available.\n",
                "",
                "no usable shell: This account is not available. (exit status 1)",
            ),
            (
                false,
                "",
                "",
                "no usable shell: exit status 1 and no output; a start-up file of the shell may exit",
            ),
        ] {
            let error = capture(sudo, stdout, stderr).unwrap_err();
            assert_eq!(error.to_string(), format!("h:22: {expected}"));
            assert!(error.is_permanent());
        }
    }
}
