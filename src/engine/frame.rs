//! The format of answers: sections between marks, all of them in base64 between a first and a last line.
//!
//! Login scripts may print before it, and programs may print anything within a section: neither is mistaken for a mark,
//! since marks contain the [`Nonce`]. Base64 preserves every byte.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use memchr::memmem;

use super::nonce::Nonce;

/// The largest answer that is read, in bytes: some thousand resources with their contents.
const LIMIT: usize = 64 * 1024 * 1024;

/// Why an answer cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The output is empty.
    #[error("the host returned no output (exit status {status})")]
    Nothing {
        /// Of the program.
        status: i32,
    },
    /// There is output, but no first mark in it.
    #[error("the host returned {start:?} instead of an observation")]
    Garbage {
        /// The first 200 characters.
        start: String,
    },
    /// The last mark is missing.
    #[error("the host's answer is truncated after {bytes} bytes (exit status {status})")]
    Truncated {
        /// The size of the output.
        bytes: usize,
        /// Of the program.
        status: i32,
    },
    /// The output is larger than any answer.
    #[error("the host returned {bytes} bytes, more than {limit}")]
    TooMuch {
        /// The size of the output.
        bytes: usize,
        /// The largest answer that is read.
        limit: usize,
    },
    /// What is between the marks is not an answer.
    #[error("the host's answer is damaged: {reason}")]
    Damaged {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A required section is missing.
    #[error("the host's answer has no section {name}")]
    Missing {
        /// Of the section.
        name: &'static str,
    },
}

/// A section's name and the shell text that prints it.
pub(super) type Section = (&'static str, String);

/// The environment of programs that download: the mirrors are reached without a proxy.
pub(super) const DIRECT: &str = include_str!("direct.sh");

/// A program that prints sections.
pub(super) fn script(nonce: &Nonce, sections: &[Section]) -> String {
    let nonce = nonce.as_str();
    let mut inner = String::new();
    for (name, text) in sections {
        inner.push_str(&format!("printf '\\n%s %s\\n' {nonce} {name}\n{text}"));
    }
    format!(
        "(\nexport LC_ALL=C PATH=\"$PATH:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin\"\n\
         unset POSIXLY_CORRECT QUOTING_STYLE\n{DIRECT}exec </dev/null\n\
         echo {nonce} begin\n(\n{inner}printf '\\n%s %s\\n' {nonce} last\n) | base64\necho {nonce} end\n)\n"
    )
}

/// Whether this line of the output is the last of a frame.
pub(super) fn ends(nonce: &Nonce, line: &str) -> bool {
    line.strip_suffix(" end").is_some_and(|line| line.ends_with(nonce.as_str()))
}

/// What follows the first frame of an output.
pub(super) fn after<'a>(nonce: &Nonce, stdout: &'a [u8]) -> &'a [u8] {
    let mark = format!("{} end\n", nonce.as_str());
    memmem::find(stdout, mark.as_bytes()).map_or(&[], |at| &stdout[at + mark.len()..])
}

/// The sections of one answer.
#[derive(Debug)]
pub(super) struct Sections {
    names: BTreeMap<String, Vec<u8>>,
}

impl Sections {
    /// Reads what [`script`] printed.
    pub(super) fn parse(nonce: &Nonce, status: i32, stdout: &[u8]) -> Result<Self, FrameError> {
        if stdout.len() > LIMIT {
            return Err(FrameError::TooMuch { bytes: stdout.len(), limit: LIMIT });
        }
        if stdout.iter().all(u8::is_ascii_whitespace) {
            return Err(FrameError::Nothing { status });
        }
        let text = String::from_utf8_lossy(stdout);
        let (_, after) = text
            .split_once(&format!("{} begin\n", nonce.as_str()))
            .ok_or_else(|| FrameError::Garbage { start: text.chars().take(200).collect() })?;
        let (encoded, _) = after
            .split_once(&format!("{} end", nonce.as_str()))
            .ok_or(FrameError::Truncated { bytes: stdout.len(), status })?;
        let packed: Vec<u8> = encoded.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
        let inner =
            BASE64_STANDARD.decode(packed).map_err(|_| FrameError::Damaged { reason: "not base64" })?;
        let sections = Self { names: split(&inner, &format!("\n{} ", nonce.as_str())) };
        if !sections.names.contains_key("last") {
            return Err(FrameError::Damaged { reason: "the last section is missing" });
        }
        Ok(sections)
    }

    /// The content of a section.
    pub(super) fn bytes(&self, name: &'static str) -> Result<&[u8], FrameError> {
        self.names.get(name).map(Vec::as_slice).ok_or(FrameError::Missing { name })
    }

    /// As a string; bytes that are not UTF-8 are replaced.
    pub(super) fn text(&self, name: &'static str) -> Result<String, FrameError> {
        Ok(String::from_utf8_lossy(self.bytes(name)?).into_owned())
    }
}

fn split(inner: &[u8], mark: &str) -> BTreeMap<String, Vec<u8>> {
    pieces(inner, mark.as_bytes())
        .into_iter()
        .skip(1)
        .map(|piece| {
            let end = piece.iter().position(|b| *b == b'\n').unwrap_or(piece.len());
            let name = String::from_utf8_lossy(&piece[..end]).into_owned();
            (name, piece.get(end + 1..).unwrap_or_default().to_vec())
        })
        .collect()
}

/// `bytes` split at every `mark`.
pub(super) fn pieces<'a>(bytes: &'a [u8], mark: &[u8]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    let mut from = 0;
    for at in memmem::find_iter(bytes, mark) {
        pieces.push(&bytes[from..at]);
        from = at + mark.len();
    }
    pieces.push(&bytes[from..]);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::shells::{run, shells};
    use crate::model::cluster::MIRROR_NAME;
    use crate::transport::Program;

    fn nonce() -> Nonce {
        Nonce::new(7)
    }

    #[test]
    fn mirrors_are_reached_without_a_proxy() {
        for shell in shells() {
            for (before, others) in [
                ("unset no_proxy NO_PROXY", ""),
                ("unset no_proxy; NO_PROXY=.a.example", ",.a.example"),
                ("no_proxy=.a.example NO_PROXY=.b.example", ",.a.example"),
            ] {
                let script = format!("{before}\nset -u\n{DIRECT}echo \"$no_proxy $NO_PROXY\"\n");
                let output = run(shell, &Program { script, payload: Vec::new() });
                let expected = format!("localhost,127.0.0.1,{MIRROR_NAME}{others}");
                let printed = String::from_utf8(output.stdout).unwrap();
                assert_eq!(printed, format!("{expected} {expected}\n"), "{shell}: {before}");
            }
        }
    }

    fn answer(inner: &str) -> String {
        let inner = inner.replace("MARK", nonce().as_str());
        let encoded = BASE64_STANDARD.encode(inner);
        format!("{0} begin\n{encoded}\n{0} end\n", nonce().as_str())
    }

    #[test]
    fn output_before_and_after_the_answer_is_skipped() {
        let noisy = format!("Welcome!\r\nno newline{}bye\n", answer("\nMARK a\n1\n2\n\nMARK last\n"));
        let sections = Sections::parse(&nonce(), 0, noisy.as_bytes()).unwrap();
        assert_eq!(sections.text("a").unwrap(), "1\n2\n");
        assert_eq!(sections.bytes("b"), Err(FrameError::Missing { name: "b" }));
    }

    #[test]
    fn a_damaged_answer_is_refused() {
        let whole = answer("\nMARK last\n");
        let cases: [(String, &str); 6] = [
            (" \n".into(), "the host returned no output (exit status 3)"),
            (
                "This account is disabled.".into(),
                "the host returned \"This account is disabled.\" instead of an observation",
            ),
            (whole[..60].into(), "the host's answer is truncated after 60 bytes (exit status 3)"),
            (whole.replace("\n", "\n!"), "the host's answer is damaged: not base64"),
            (answer("\nMARK a\n"), "the host's answer is damaged: the last section is missing"),
            ("x".repeat(LIMIT + 1), "the host returned 67108865 bytes, more than 67108864"),
        ];
        for (stdout, message) in cases {
            let error = Sections::parse(&nonce(), 3, stdout.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }
}
