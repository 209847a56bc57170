//! Prompts for secrets on the controlling terminal, without echo.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;

use async_trait::async_trait;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::sync::Mutex;

use crate::transport::secret::{PromptError, Prompter, Secret};

/// The controlling terminal (tty(4)), also where the standard streams are redirected.
const TERMINAL: &str = "/dev/tty";

/// Prompts one at a time.
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
        // Restored also when Ctrl-C drops this future in the middle of a prompt.
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
        // The line break that ended the input was not echoed either.
        writeln!(device).map_err(|error| failed(&error))?;
        match typed.map_err(|error| failed(&error))? {
            typed if typed.expose().is_empty() => Err(PromptError::Refused),
            typed => Ok(typed),
        }
    }
}

/// Switches echo off until it is dropped.
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
        // A terminal that was closed has no echo to restore.
        let _ = tcsetattr(&self.device, OptionalActions::Flush, &self.before);
    }
}

fn failed(error: &std::io::Error) -> PromptError {
    PromptError::Terminal(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn without_a_terminal_a_prompt_is_an_error() {
        let terminal = Terminal { device: "/nonexistent/tty".into(), turn: Mutex::default() };
        assert_eq!(terminal.ask("passphrase").await, Err(PromptError::NoTerminal));
        let terminal = Terminal { device: "/dev/null".into(), turn: Mutex::default() };
        assert!(matches!(terminal.ask("passphrase").await, Err(PromptError::Terminal(_))));
    }
}
