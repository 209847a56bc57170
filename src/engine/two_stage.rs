//! Two programs in one shell, on one channel: the second depends on the output of the first.
//!
//! After the first, the shell reads from its standard input a line with the length and the mark of the second, and the
//! second itself, which ends in the mark: it runs only when it arrived whole. At the end of its input the shell exits.

use std::mem;

use sha2::{Digest, Sha256};
use tokio::sync::mpsc::unbounded_channel;

use super::frame;
use super::nonce::Nonce;
use crate::transport::error::TransportError;
use crate::transport::{Output, Program, Transport};

const WAIT: &str = "read -r length mark || exit 0\n\
                    part=$(head -c \"$length\")\n\
                    case $part in *\"$mark\") eval \"$part\" ;; *) exit 126 ;; esac\n";

/// Runs `first`, which prints one frame, and then the script that `second` makes from this frame; `None` ends the run.
/// The output is that of both.
///
/// # Errors
/// As [`Transport::converse`].
pub(super) async fn run(
    transport: &dyn Transport,
    nonce: &Nonce,
    first: String,
    second: impl FnOnce(&[u8]) -> Option<String> + Send,
) -> Result<Output, TransportError> {
    let program = Program { script: first + WAIT, payload: Vec::new() };
    let (sender, replies) = unbounded_channel();
    let (mut waiting, mut printed) = (Some((sender, second)), Vec::new());
    let mut progress = |line: &str| {
        if waiting.is_none() {
            return;
        }
        printed.extend_from_slice(line.as_bytes());
        printed.push(b'\n');
        if frame::ends(nonce, line)
            && let Some((sender, second)) = waiting.take()
            && let Some(script) = second(&mem::take(&mut printed))
        {
            // Fails when the program has ended; its output shows why.
            let _unheard = sender.send(part(&script));
        }
    };
    transport.converse(&program, replies, &mut progress).await
}

fn part(script: &str) -> Vec<u8> {
    let mark = hex::encode(&Sha256::digest(script)[..8]);
    let script = format!("{script}\n#{mark}");
    format!("{} {mark}\n{script}", script.len()).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::local::LocalTransport;

    fn first() -> (Nonce, String) {
        let nonce = Nonce::new(4);
        let script = frame::script(&nonce, &[("a", "echo one; shell=mine\n".to_owned())]);
        (nonce, script)
    }

    #[tokio::test]
    async fn the_second_is_made_from_the_output_of_the_first() {
        let (nonce, script) = first();
        let second = |printed: &[u8]| {
            let sections = frame::Sections::parse(&nonce, 0, printed).unwrap();
            assert_eq!(sections.text("a").unwrap(), "one\n");
            Some(format!("echo {} two; echo \"it's\" '#'; exit 3", "long".repeat(50_000)))
        };
        let output = run(&LocalTransport, &nonce, script, second).await.unwrap();
        let rest = String::from_utf8_lossy(frame::after(&nonce, &output.stdout)).into_owned();
        assert!(rest.starts_with("longlong") && rest.ends_with("long two\nit's #\n"), "{}", rest.len());
        assert_eq!(output.status, 3);
    }

    #[tokio::test]
    async fn without_a_second_the_shell_exits() {
        let (nonce, script) = first();
        let output = run(&LocalTransport, &nonce, script, |_| None).await.unwrap();
        assert_eq!(output.status, 0);
        assert_eq!(frame::after(&nonce, &output.stdout), b"");
    }

    #[tokio::test]
    async fn a_truncated_second_does_not_run() {
        let mut cut = part("echo ran");
        cut.pop();
        let program = Program { script: WAIT.to_owned(), payload: cut };
        let output = LocalTransport.run(&program, &mut |_| {}).await.unwrap();
        assert_eq!((output.stdout.as_slice(), output.status), (&b""[..], 126));
    }
}
