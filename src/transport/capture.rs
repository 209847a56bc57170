//! Reads what came back: finds where the program's own output begins, and what it means if it never began.

use super::error::TransportError;
use super::shell::{Elevation, Frame};
use super::{Output, Progress};

/// The most that one program may print, both streams together, bytes.
pub const OUTPUT_LIMIT: usize = 64 << 20;

/// The program printed more than [`OUTPUT_LIMIT`].
#[derive(Debug, PartialEq, Eq)]
pub struct TooMuch;

/// Which stream bytes are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// How far sudo is with us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SudoStage {
    /// It has not let us through, and has asked for the password so many times.
    Asked(usize),
    /// The script's own shell runs.
    Through,
}

/// Collects both streams of one run. What login files print before the mark is left out.
pub struct Capture<'a> {
    stdout: Marked,
    stderr: Marked,
    sudo: bool,
    /// What sudo asks with, where it may ask.
    prompt: Option<String>,
    asked: usize,
    /// Bytes of standard error, since its last mark, in which no prompt begins.
    searched: usize,
    progress: &'a mut Progress<'a>,
    /// Bytes of standard output already given to `progress`.
    reported: usize,
}

impl<'a> Capture<'a> {
    /// For one run of one frame.
    pub fn new(frame: &Frame, progress: &'a mut Progress<'a>) -> Self {
        Self {
            stdout: Marked::new(&frame.mark, 1),
            stderr: Marked::new(&frame.mark, if frame.elevation == Elevation::None { 1 } else { 2 }),
            sudo: frame.elevation != Elevation::None,
            prompt: (frame.elevation == Elevation::SudoWithPassword).then(|| frame.prompt()),
            asked: 0,
            searched: 0,
            progress,
            reported: 0,
        }
    }

    /// Takes what arrived.
    ///
    /// # Errors
    /// Once the limit is passed; there is no use in going on.
    pub fn push(&mut self, source: Source, data: &[u8]) -> Result<(), TooMuch> {
        match source {
            Source::Stdout => {
                let seen = if self.stdout.has_begun() { self.stdout.bytes.len() } else { 0 };
                self.stdout.push(data);
                self.report_lines(seen);
            }
            Source::Stderr => {
                self.stderr.push(data);
                self.count_prompts();
            }
        }
        if self.stdout.size + self.stderr.size > OUTPUT_LIMIT { Err(TooMuch) } else { Ok(()) }
    }

    /// How far sudo is. Without sudo, whether the script's shell runs.
    pub fn sudo_stage(&self) -> SudoStage {
        if self.stderr.has_begun() { SudoStage::Through } else { SudoStage::Asked(self.asked) }
    }

    fn count_prompts(&mut self) {
        // Before the first mark it is not sudo that speaks.
        let Some(prompt) = self.prompt.as_ref().filter(|_| self.stderr.awaited == 1) else { return };
        let (bytes, length) = (&self.stderr.bytes, prompt.len());
        while let Some(at) = bytes[self.searched..].windows(length).position(|part| part == prompt.as_bytes())
        {
            self.asked += 1;
            self.searched += at + length;
        }
        self.searched = self.searched.max(bytes.len().saturating_sub(length - 1));
    }

    /// The output, when the program ran.
    ///
    /// # Errors
    /// `SudoRefused` when the login shell worked and sudo did not let us through; `NoShell` when the script
    /// did not start for another reason.
    pub fn finish(self, status: i32, host: &str, user: &str) -> Result<Output, TransportError> {
        if self.stdout.has_begun() && self.stderr.has_begun() {
            let rest = String::from_utf8_lossy(&self.stdout.bytes[self.reported..]);
            if !rest.is_empty() {
                (self.progress)(&rest);
            }
            return Ok(Output { status, stdout: self.stdout.bytes, stderr: self.stderr.bytes });
        }
        let mut said = String::from_utf8_lossy(&self.stderr.bytes).into_owned();
        if let Some(prompt) = &self.prompt {
            said = said.replace(prompt, "");
        }
        if self.sudo && self.stderr.awaited == 1 {
            let reason = sudo_complaint(&said).unwrap_or("it said nothing").to_owned();
            return Err(TransportError::SudoRefused { host: host.to_owned(), user: user.to_owned(), reason });
        }
        let printed = String::from_utf8_lossy(&self.stdout.bytes);
        let reason = match last_line(&said).or_else(|| last_line(&printed)) {
            Some(line) => format!("{line} (exit status {status})"),
            None => {
                format!("exit status {status}, and nothing was said: does a start-up file of its shell exit?")
            }
        };
        Err(TransportError::NoShell { host: host.to_owned(), reason })
    }

    /// Gives whole lines to `progress`. `seen`: how much was searched for line breaks before, so that one long
    /// line costs no more than many short ones.
    fn report_lines(&mut self, seen: usize) {
        if !self.stdout.has_begun() {
            return;
        }
        let output = &self.stdout.bytes;
        let Some(last) = output[seen..].iter().rposition(|byte| *byte == b'\n') else { return };
        let end = seen + last;
        for line in String::from_utf8_lossy(&output[self.reported..end]).split('\n') {
            (self.progress)(line);
        }
        self.reported = end + 1;
    }
}

/// What sudo objects to: the first line that is not a mere warning about name resolution, and rather one
/// that names sudo.
fn sudo_complaint(said: &str) -> Option<&str> {
    let lines = || {
        said.lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.contains("unable to resolve host"))
    };
    lines().find(|line| line.contains("sudo")).or_else(|| lines().next())
}

/// As much of it as fits into an error.
fn last_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    Some(line.chars().take(200).collect())
}

/// A stream in which marks come before the program's own output.
struct Marked {
    needle: Vec<u8>,
    /// Marks that are still to come.
    awaited: usize,
    /// What came since the last mark.
    bytes: Vec<u8>,
    /// All bytes that ever came.
    size: usize,
}

impl Marked {
    fn new(mark: &str, awaited: usize) -> Self {
        Self { needle: format!("{mark}\n").into_bytes(), awaited, bytes: Vec::new(), size: 0 }
    }

    fn push(&mut self, data: &[u8]) {
        self.size += data.len();
        // A mark may arrive in two halves.
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

    /// Feeds both streams, in pieces of one byte too, and gives what came of it.
    fn capture(
        sudo: bool,
        stdout: &str,
        stderr: &str,
    ) -> Result<(String, String, Vec<String>), TransportError> {
        let mut results = [1, 5, 1000].map(|piece| {
            let mut lines = Vec::new();
            let mut progress = |line: &str| lines.push(line.to_owned());
            let frame = frame(if sudo { Elevation::Sudo } else { Elevation::None });
            let mut capture = Capture::new(&frame, &mut progress);
            for (source, text) in [(Source::Stdout, stdout), (Source::Stderr, stderr)] {
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
    fn it_is_seen_how_far_sudo_is() {
        for (stderr, expected) in [
            ("", SudoStage::Asked(0)),
            ("MARK-password:motd\n", SudoStage::Asked(0)),
            ("MARK\nThe usual lecture\nMARK-pass", SudoStage::Asked(0)),
            ("MARK\nThe usual lecture\nMARK-password:", SudoStage::Asked(1)),
            ("MARK\nMARK-password:Sorry, try again.\nMARK-password:", SudoStage::Asked(2)),
            ("MARK\nMARK-password:MARK\n", SudoStage::Through),
            ("MARK\nMARK\nMARK-password:", SudoStage::Through),
        ] {
            for piece in [1, 7, 1000] {
                let frame = frame(Elevation::SudoWithPassword);
                let mut silent = |_: &str| ();
                let mut capture = Capture::new(&frame, &mut silent);
                stderr.as_bytes().chunks(piece).for_each(|data| capture.push(Source::Stderr, data).unwrap());
                assert_eq!(capture.sudo_stage(), expected, "{stderr:?} {piece}");
            }
        }
        let frame = frame(Elevation::SudoWithPassword);
        let mut silent = |_: &str| ();
        let mut capture = Capture::new(&frame, &mut silent);
        capture.push(Source::Stderr, b"MARK\nMARK-password:sudo: 1 incorrect password attempt\n").unwrap();
        let error = capture.finish(1, "h:22", "ops").unwrap_err();
        assert_eq!(
            error.to_string(),
            "h:22: sudo is refused to user ops: sudo: 1 incorrect password attempt"
        );
    }

    #[test]
    fn a_program_that_did_not_start_says_who_stopped_it() {
        for (sudo, stdout, stderr, expected) in [
            (
                true,
                "",
                "MARK\nsudo: a password is required\n",
                "sudo is refused to user admin: sudo: a password is required",
            ),
            (
                true,
                "",
                "motd\nMARK\nsudo: unable to resolve host h: Name unknown\nadmin is not in the sudoers file.\nReported.\n",
                "sudo is refused to user admin: admin is not in the sudoers file.",
            ),
            (
                true,
                "",
                "MARK\nsh: 1: exec: sudo: not found\n",
                "sudo is refused to user admin: sh: 1: exec: sudo: not found",
            ),
            (true, "", "MARK\n", "sudo is refused to user admin: it said nothing"),
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
                "no usable shell: exit status 1, and nothing was said: does a start-up file of its shell exit?",
            ),
        ] {
            let error = capture(sudo, stdout, stderr).unwrap_err();
            assert_eq!(error.to_string(), format!("h:22: {expected}"));
            assert!(error.is_permanent());
        }
    }
}
