//! Reads what came back: finds where the program's own output begins, and what it means if it never began.

use super::error::TransportError;
use super::shell::Frame;
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

/// Collects both streams of one run. What login files print before the mark is left out.
pub struct Capture<'a> {
    stdout: Marked,
    stderr: Marked,
    progress: &'a mut Progress<'a>,
    /// Bytes of standard output already given to `progress`.
    reported: usize,
}

impl<'a> Capture<'a> {
    /// For one run of one frame.
    pub fn new(frame: &Frame, progress: &'a mut Progress<'a>) -> Self {
        Self {
            stdout: Marked::new(&frame.mark, 1),
            stderr: Marked::new(&frame.mark, frame.stderr_marks),
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
                self.stdout.push(data);
                self.report_lines();
            }
            Source::Stderr => self.stderr.push(data),
        }
        if self.stdout.size + self.stderr.size > OUTPUT_LIMIT { Err(TooMuch) } else { Ok(()) }
    }

    /// The output, when the program ran.
    ///
    /// # Errors
    /// `SudoRefused` when the login shell worked and sudo did not let us through; `NoShell` when the script
    /// did not start for another reason.
    pub fn finish(self, status: i32, host: &str, user: &str) -> Result<Output, TransportError> {
        if let (Some(stdout), Some(stderr)) = (self.stdout.output(), self.stderr.output()) {
            let rest = String::from_utf8_lossy(stdout.get(self.reported..).unwrap_or_default());
            if !rest.is_empty() {
                (self.progress)(&rest);
            }
            return Ok(Output { status, stdout: stdout.to_vec(), stderr: stderr.to_vec() });
        }
        let said = String::from_utf8_lossy(self.stderr.last());
        if self.stderr.wanted == 2 && self.stderr.sections.len() == 2 {
            let reason = sudo_complaint(&said).unwrap_or("it said nothing").to_owned();
            return Err(TransportError::SudoRefused { host: host.to_owned(), user: user.to_owned(), reason });
        }
        let printed = String::from_utf8_lossy(self.stdout.last());
        let reason = match last_line(&said).or_else(|| last_line(&printed)) {
            Some(line) => format!("{line} (exit status {status})"),
            None => format!("exit status {status}, and nothing was said"),
        };
        Err(TransportError::NoShell { host: host.to_owned(), reason })
    }

    fn report_lines(&mut self) {
        let Some(stdout) = self.stdout.output() else { return };
        let fresh = stdout.get(self.reported..).unwrap_or_default();
        let Some(end) = fresh.iter().rposition(|byte| *byte == b'\n') else { return };
        for line in String::from_utf8_lossy(&fresh[..end]).split('\n') {
            (self.progress)(line);
        }
        self.reported += end + 1;
    }
}

/// What sudo objects to: the first line that is not a mere warning about name resolution, and rather one
/// that names sudo.
fn sudo_complaint(said: &str) -> Option<&str> {
    let lines = || {
        said.lines().map(str::trim).filter(|line| !line.is_empty() && !line.contains("unable to resolve host"))
    };
    lines().find(|line| line.contains("sudo")).or_else(|| lines().next())
}

fn last_line(text: &str) -> Option<&str> {
    text.lines().map(str::trim).rfind(|line| !line.is_empty())
}

/// A stream cut into sections by the mark; the program's own output is the section after the last one.
struct Marked {
    needle: Vec<u8>,
    wanted: usize,
    sections: Vec<Vec<u8>>,
    size: usize,
}

impl Marked {
    fn new(mark: &str, wanted: usize) -> Self {
        Self { needle: format!("{mark}\n").into_bytes(), wanted, sections: vec![Vec::new()], size: 0 }
    }

    fn push(&mut self, data: &[u8]) {
        self.size += data.len();
        let mut data = data.to_vec();
        while let Some(section) = self.sections.last_mut() {
            // The mark may have arrived in two halves.
            let seen = section.len().saturating_sub(self.needle.len());
            section.append(&mut data);
            if self.sections.len() > self.wanted {
                return;
            }
            let Some(section) = self.sections.last_mut() else { return };
            let found = section[seen..].windows(self.needle.len()).position(|window| window == self.needle);
            let Some(at) = found else { return };
            data = section.split_off(seen + at + self.needle.len());
            section.truncate(seen + at);
            self.sections.push(Vec::new());
        }
    }

    fn last(&self) -> &[u8] {
        self.sections.last().map(Vec::as_slice).unwrap_or_default()
    }

    fn output(&self) -> Option<&[u8]> {
        (self.sections.len() > self.wanted).then(|| self.last())
    }
}
