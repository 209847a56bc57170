//! The progress lines of an apply program.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::engine::nonce::Nonce;
use crate::engine::process::Process;

/// One line. Numbers count tasks, then certificate requests, then the reboot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProgressLine {
    /// A task begins.
    Begin(usize),
    /// The task is done.
    Done(usize),
    /// The task failed; the program ends.
    Fail {
        number: usize,
        status: i32,
        /// The end of what the task printed.
        output: String,
    },
    /// The task waits for a lock of another process.
    Wait { number: usize, reason: String },
    /// A certificate signing request, PEM.
    Request { number: usize, pem: String },
    /// Everything was done.
    End,
    /// The process of the program.
    At(Process),
    /// The program stopped before the next task, as it was signalled to.
    Stopped,
}

/// Parses one line; `None` when it is not a progress line.
pub(crate) fn parse(nonce: &Nonce, line: &str) -> Option<ProgressLine> {
    let (_, ours) = line.split_once(nonce.as_str())?;
    let words: Vec<&str> = ours.split_whitespace().collect();
    match words.as_slice() {
        ["begin", number] => Some(ProgressLine::Begin(number.parse().ok()?)),
        ["done", number] => Some(ProgressLine::Done(number.parse().ok()?)),
        ["fail", number, status, output @ ..] => Some(ProgressLine::Fail {
            number: number.parse().ok()?,
            status: status.parse().ok()?,
            output: decoded(output.first().unwrap_or(&""))?,
        }),
        ["wait", number, reason] => {
            Some(ProgressLine::Wait { number: number.parse().ok()?, reason: decoded(reason)? })
        }
        ["request", number, pem] => {
            Some(ProgressLine::Request { number: number.parse().ok()?, pem: decoded(pem)? })
        }
        ["end"] => Some(ProgressLine::End),
        ["at", id, group, started] => Process::parse(id, group, started).map(ProgressLine::At),
        ["stopped"] => Some(ProgressLine::Stopped),
        _ => None,
    }
}

fn decoded(text: &str) -> Option<String> {
    Some(String::from_utf8_lossy(&BASE64_STANDARD.decode(text).ok()?).into_owned())
}

/// The summary of a program that has ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ProgressSummary {
    /// The task that failed: its number, status and output.
    pub(crate) failed: Option<(usize, i32, String)>,
    /// Requests by number.
    pub(crate) requests: BTreeMap<usize, String>,
    /// Whether it reached its end.
    pub(crate) ended: bool,
    /// Whether it stopped because it was signalled to.
    pub(crate) stopped: bool,
}

impl ProgressSummary {
    /// From the standard output of the program.
    pub(crate) fn of(nonce: &Nonce, stdout: &[u8]) -> Self {
        let mut summary = Self::default();
        for line in String::from_utf8_lossy(stdout).lines().filter_map(|line| parse(nonce, line)) {
            match line {
                ProgressLine::Fail { number, status, output } => {
                    summary.failed = Some((number, status, output))
                }
                ProgressLine::Request { number, pem } => {
                    summary.requests.insert(number, pem);
                }
                ProgressLine::End => summary.ended = true,
                ProgressLine::Stopped => summary.stopped = true,
                ProgressLine::Begin(_)
                | ProgressLine::Done(_)
                | ProgressLine::Wait { .. }
                | ProgressLine::At(_) => {}
            }
        }
        summary
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_with_the_nonce_count() {
        let nonce = Nonce::new(9);
        let cases = [
            ("NONCE begin 0", Some(ProgressLine::Begin(0))),
            ("motd without newlineNONCE done 12", Some(ProgressLine::Done(12))),
            (
                "NONCE fail 3 100 bm8=",
                Some(ProgressLine::Fail { number: 3, status: 100, output: "no".into() }),
            ),
            ("NONCE fail 3 1 ", Some(ProgressLine::Fail { number: 3, status: 1, output: String::new() })),
            ("NONCE wait 2 bm8=", Some(ProgressLine::Wait { number: 2, reason: "no".into() })),
            ("NONCE request 1 UEVN", Some(ProgressLine::Request { number: 1, pem: "PEM".into() })),
            ("NONCE end", Some(ProgressLine::End)),
            ("NONCE stopped", Some(ProgressLine::Stopped)),
            ("NONCE at 20 10 3000", Process::parse("20", "10", "3000").map(ProgressLine::At)),
            ("NONCE at 20 0 3000", None),
            ("begin 0", None),
            ("NONCE begin x", None),
        ];
        for (line, expected) in cases {
            assert_eq!(parse(&nonce, &line.replace("NONCE", nonce.as_str())), expected, "{line}");
        }
    }
}
