//! Programs of a job on a host, which the host refuses once it has been given a larger token.
//!
//! # Guarantees
//! - The host keeps the largest token of its jobs in `/var/lib/metalform/fence` (root, 0600), which a reboot and a reset
//!   leave alone. Only what installs the operating system again removes it.
//! - A program with a smaller token changes nothing, whenever it arrives.
//! - A program with a larger token begins once those with smaller ones have ended, or fails with
//!   [`FenceRefusal::Busy`] after 30 s.
//!
//! # Assumptions
//! The host has flock(1), which util-linux has.

use std::sync::Arc;

use async_trait::async_trait;

use crate::transport::error::{FenceRefusal, TransportError};
use crate::transport::{LineSink, Output, Program, Replies, Transport};

/// Contains the largest token that the host was given.
pub const FENCE_FILE: &str = "/var/lib/metalform/fence";

const CHECK: &str = include_str!("fence.sh");
/// Exit status of a program that the check refuses.
const REFUSED: i32 = 86;
/// Begins the line that the check prints with it.
const MARK: &str = "metalform-fence ";

/// A transport whose programs all have one token.
pub struct FencedTransport {
    inner: Arc<dyn Transport>,
    host: String,
    token: u64,
}

impl FencedTransport {
    /// `host` is its name, for errors.
    pub fn new(inner: Arc<dyn Transport>, host: impl Into<String>, token: u64) -> Self {
        Self { inner, host: host.into(), token }
    }
}

#[async_trait]
impl Transport for FencedTransport {
    async fn converse(
        &self,
        program: &Program,
        replies: Replies,
        lines: &mut LineSink<'_>,
    ) -> Result<Output, TransportError> {
        let output = self.inner.converse(&fenced(program, self.token), replies, lines).await?;
        match refusal(&output) {
            Some(reason) => {
                Err(TransportError::Fenced { host: self.host.clone(), token: self.token, reason })
            }
            None => Ok(output),
        }
    }

    async fn run(&self, program: &Program, lines: &mut LineSink<'_>) -> Result<Output, TransportError> {
        let output = self.inner.run(&fenced(program, self.token), lines).await?;
        match refusal(&output) {
            Some(reason) => {
                Err(TransportError::Fenced { host: self.host.clone(), token: self.token, reason })
            }
            None => Ok(output),
        }
    }
}

/// The token in the file of a host; 0 where there is no file.
///
/// # Errors
/// When the file contains no number that a token can have.
pub fn largest_token(content: Option<&[u8]>) -> Result<i64, FenceRefusal> {
    let Some(content) = content else { return Ok(0) };
    let token = std::str::from_utf8(content).ok().and_then(|text| text.trim().parse().ok());
    token.filter(|token| *token >= 0).ok_or(FenceRefusal::Unreadable)
}

fn fenced(program: &Program, token: u64) -> Program {
    let script = format!("fence_token={token}\n{CHECK}{}", program.script);
    Program { script, payload: program.payload.clone() }
}

/// Why the check refused a program.
fn refusal(output: &Output) -> Option<FenceRefusal> {
    if output.status != REFUSED {
        return None;
    }
    let printed = String::from_utf8_lossy(&output.stderr);
    let reason = printed.lines().rev().find_map(|line| line.strip_prefix(MARK))?;
    Some(match reason.split_once(' ') {
        Some(("superseded", largest)) => FenceRefusal::Superseded { largest: largest.parse().ok()? },
        _ if reason == "busy" => FenceRefusal::Busy,
        _ if reason == "unreadable" => FenceRefusal::Unreadable,
        _ => FenceRefusal::Unwritable,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::*;
    use crate::engine::shells;
    use crate::transport::fake::FakeTransport;

    /// A host below a directory, whose programs are run by a shell of this machine.
    fn host(root: &Path, shell: &'static str, token: u64) -> FencedTransport {
        let root = root.display().to_string();
        let inner = FakeTransport::new(move |program| {
            let script = program
                .script
                .replace("=/var/lib/", &format!("={root}/var/lib/"))
                .replace("=/run/", &format!("={root}/run/"))
                .replace("flock \"$1\" -w 30", "flock \"$1\" -w 0.3");
            Ok(shells::run(shell, &Program { script, ..program.clone() }))
        });
        FencedTransport::new(Arc::new(inner), "rack-1", token)
    }

    async fn run(host: &FencedTransport, script: &str, payload: &[u8]) -> Result<String, FenceRefusal> {
        let program = Program { script: script.to_owned(), payload: payload.to_vec() };
        match host.run(&program, &mut |_| {}).await {
            Ok(output) => {
                assert_eq!(output.status, 7, "{}", String::from_utf8_lossy(&output.stderr));
                Ok(String::from_utf8_lossy(&output.stdout).into_owned())
            }
            Err(TransportError::Fenced { reason, .. }) => Err(reason),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_token_is_a_number() {
        for (content, expected) in [
            (None, Ok(0)),
            (Some("7\n"), Ok(7)),
            (Some(""), Err(FenceRefusal::Unreadable)),
            (Some("-1\n"), Err(FenceRefusal::Unreadable)),
            (Some("9223372036854775808\n"), Err(FenceRefusal::Unreadable)),
        ] {
            assert_eq!(largest_token(content.map(str::as_bytes)), expected, "{content:?}");
        }
    }

    #[tokio::test]
    async fn the_largest_token_wins_in_every_shell() {
        for shell in shells::shells() {
            let root = tempfile::tempdir().unwrap();
            let file = root.path().join("var/lib/metalform/fence");
            let at = |token| host(root.path(), shell, token);
            // A host that no Machine has claimed is only looked at.
            assert_eq!(run(&at(0), "cat; exit 7", b"in").await, Ok("in".to_owned()), "{shell}");
            assert!(!file.exists(), "{shell}");
            for (token, expected) in [
                (3, Ok("in".to_owned())),
                (3, Ok("in".to_owned())),
                (2, Err(FenceRefusal::Superseded { largest: 3 })),
                (0, Err(FenceRefusal::Superseded { largest: 3 })),
                (10, Ok("in".to_owned())),
                (9, Err(FenceRefusal::Superseded { largest: 10 })),
            ] {
                assert_eq!(
                    run(&at(token), "set -eu; cat; exit 7", b"in").await,
                    expected,
                    "{shell}: {token}"
                );
            }
            assert_eq!(std::fs::read_to_string(&file).unwrap(), "10\n", "{shell}");
            assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600, "{shell}");
            for text in ["", "x\n", "-1\n", "1 2\n"] {
                std::fs::write(&file, text).unwrap();
                let refused = run(&at(11), "exit 7", b"").await;
                assert_eq!(refused, Err(FenceRefusal::Unreadable), "{shell}: {text:?}");
                assert_eq!(std::fs::read_to_string(&file).unwrap(), text, "{shell}");
            }
        }
    }

    #[tokio::test]
    async fn a_larger_token_waits_for_the_programs_under_smaller_ones() {
        let root = tempfile::tempdir().unwrap();
        let at = |token| host(root.path(), "sh", token);
        assert_eq!(run(&at(1), "exit 7", b"").await, Ok(String::new()));
        let lock = std::fs::File::options().append(true).open(root.path().join("run/metalform/fence.lock"));
        let lock = lock.unwrap();
        lock.lock_shared().unwrap();
        assert_eq!(run(&at(1), "echo beside; exit 7", b"").await, Ok("beside\n".to_owned()));
        assert_eq!(run(&at(2), "exit 7", b"").await, Err(FenceRefusal::Busy));
        drop(lock);
        assert_eq!(run(&at(2), "exit 7", b"").await, Ok(String::new()));
    }

    #[test]
    fn a_program_that_fails_by_itself_is_not_refused() {
        let output = |status, stderr: &str| Output { status, stdout: Vec::new(), stderr: stderr.into() };
        assert_eq!(refusal(&output(86, "something else\n")), None);
        assert_eq!(refusal(&output(1, "metalform-fence busy\n")), None);
        assert_eq!(refusal(&output(86, "metalform-fence unwritable\n")), Some(FenceRefusal::Unwritable));
    }
}
