//! The terminal of whoever runs us, for what must be typed unseen.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::sync::Mutex;

use super::failure::{Exit, Failure};
use crate::transport::secret::{PromptError, Prompter, Secret};

/// The controlling terminal (tty(4)), also where the standard streams are redirected.
const TERMINAL: &str = "/dev/tty";

/// Asks one question after another.
pub struct Terminal {
    device: PathBuf,
    turn: Mutex<()>,
}

impl Default for Terminal {
    fn default() -> Self {
        Self { device: TERMINAL.into(), turn: Mutex::default() }
    }
}

#[async_trait]
impl Prompter for Terminal {
    async fn ask(&self, question: &str) -> Result<Secret, PromptError> {
        let _turn = self.turn.lock().await;
        let mut device = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&self.device)
            .map_err(|_| PromptError::NoTerminal)?;
        let reading = device.try_clone().map_err(|error| failed(&error))?;
        // Also where Ctrl-C ends the run while somebody types: a future that is dropped drops this.
        let _silence = Silence::of(&device)?;
        write!(device, "{question}: ").map_err(|error| failed(&error))?;
        let line = tokio::task::spawn_blocking(move || -> std::io::Result<Secret> {
            let mut line = String::new();
            BufReader::with_capacity(1, reading).read_line(&mut line)?;
            let typed = Secret::new(line.trim_end_matches(['\n', '\r']));
            zeroize::Zeroize::zeroize(&mut line);
            Ok(typed)
        });
        let typed = tokio::select! {
            line = line => line.map_err(|error| PromptError::Terminal(error.to_string()))?,
            _ = tokio::signal::ctrl_c() => return Err(PromptError::Refused),
        };
        // What was typed did not show, so neither did its line break.
        writeln!(device).map_err(|error| failed(&error))?;
        match typed.map_err(|error| failed(&error))? {
            typed if typed.expose().is_empty() => Err(PromptError::Refused),
            typed => Ok(typed),
        }
    }
}

/// A terminal that does not show what is typed, as long as this lives.
struct Silence {
    device: File,
    before: Termios,
}

impl Silence {
    fn of(device: &File) -> Result<Self, PromptError> {
        let failed = |error: rustix::io::Errno| PromptError::Terminal(error.to_string());
        let before = tcgetattr(device).map_err(failed)?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(device, OptionalActions::Flush, &silent).map_err(failed)?;
        let device = device.try_clone().map_err(|error| PromptError::Terminal(error.to_string()))?;
        Ok(Self { device, before })
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        // A terminal that is gone needs no echo.
        let _ = tcsetattr(&self.device, OptionalActions::Flush, &self.before);
    }
}

fn failed(error: &std::io::Error) -> PromptError {
    PromptError::Terminal(error.to_string())
}

/// The first line of a file, or of an open descriptor: /dev/fd/3.
///
/// # Errors
/// When it cannot be read, or is empty.
pub fn secret_from(path: &Path) -> Result<Secret, Failure> {
    let failed = |reason: String| {
        Failure::new(Exit::Configuration, format!("{}: {reason}", path.display()))
            .hint("its first line is the secret; /dev/fd/3 is descriptor 3 of the calling program")
    };
    let text = std::fs::read_to_string(path).map(Secret::new).map_err(|error| failed(error.to_string()))?;
    match text.expose().lines().next() {
        Some(line) if !line.is_empty() => Ok(Secret::new(line)),
        _ => Err(failed("its first line is empty".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn where_there_is_no_terminal_nobody_is_asked() {
        let terminal = Terminal { device: "/nonexistent/tty".into(), turn: Mutex::default() };
        assert_eq!(terminal.ask("passphrase").await, Err(PromptError::NoTerminal));
        let terminal = Terminal { device: "/dev/null".into(), turn: Mutex::default() };
        assert!(matches!(terminal.ask("passphrase").await, Err(PromptError::Terminal(_))));
    }

    #[test]
    fn the_first_line_of_a_file_is_the_secret() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "hunter 2\nmore\n").unwrap();
        assert_eq!(secret_from(file.path()).unwrap().expose(), "hunter 2");
        std::fs::write(file.path(), "\nmore\n").unwrap();
        assert!(secret_from(file.path()).is_err());
    }
}
