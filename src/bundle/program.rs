//! Runs programs of the build machine (go, dpkg-deb, apt-get).

use std::process::Stdio;

use tokio::process::Command;

/// Why a program failed.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The program could not be started.
    #[error("cannot run {program}")]
    Start {
        /// Name of the program.
        program: String,
        /// From the operating system.
        source: std::io::Error,
    },
    /// An exit status other than 0.
    #[error("{command}: {status}: {message}")]
    Failed {
        /// Command line, truncated.
        command: String,
        /// Exit status or signal.
        status: std::process::ExitStatus,
        /// The last lines of standard error, in one line.
        message: String,
    },
}

/// Runs a program and returns standard output and standard error. The program is killed when the future is dropped.
///
/// # Errors
/// When it cannot be started, or fails.
pub(super) async fn run(command: &mut Command) -> Result<(Vec<u8>, Vec<u8>), ProgramError> {
    let output = finish(command).await?;
    if output.status.success() {
        return Ok((output.stdout, output.stderr));
    }
    let message = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<_> = message.lines().filter(|line| !line.trim().is_empty()).collect();
    Err(ProgramError::Failed {
        command: describe(command),
        status: output.status,
        message: lines[lines.len().saturating_sub(4)..].join(" | "),
    })
}

/// Runs to the end, whatever its status.
///
/// # Errors
/// When it cannot be started.
pub(super) async fn finish(command: &mut Command) -> Result<std::process::Output, ProgramError> {
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = command.output().await;
    output.map_err(|source| ProgramError::Start {
        program: command.as_std().get_program().to_string_lossy().into_owned(),
        source,
    })
}

fn describe(command: &Command) -> String {
    let command = command.as_std();
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    let mut text = words.join(" ");
    if let Some((end, _)) = text.char_indices().nth(160) {
        text.truncate(end);
        text.push('…');
    }
    text
}
