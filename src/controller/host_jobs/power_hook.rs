//! A power hook: a program of the operator that is run without a shell.
//!
//! # Guarantees
//! - A name selects a program in one directory, and nothing else ([`PowerHook::find`]).
//! - It ends within [`DEADLINE`], with at most [`MOST_OUTPUT`]; what it started ends with it, also when the call is
//!   dropped.
//! - Secrets are in its standard input alone. Its environment is `PATH`, and what it prints is not logged, but for the last
//!   line of its standard error where it fails.

use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, geteuid, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use zeroize::Zeroizing;

use crate::machine::power_call::PowerRequest;

/// Of one call.
const DEADLINE: Duration = Duration::from_secs(60);
/// Of each of both streams, in bytes.
const MOST_OUTPUT: u64 = 64 << 10;
/// Characters of the last line of an error that are shown.
const SHOWN: usize = 256;
/// The programs that it may run by name.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Write permission of the group and of others.
const WRITABLE: u32 = 0o022;
/// Any permission to execute.
const EXECUTABLE: u32 = 0o111;

/// A program in the directory of the power hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PowerHook {
    name: String,
    path: PathBuf,
    deadline: Duration,
}

/// A power hook cannot be run, or failed.
#[derive(Debug, thiserror::Error)]
pub enum PowerHookError {
    /// It would be another file than one of the directory.
    #[error("power hook {0:?}: expected a name of lowercase letters, digits and '-'")]
    Name(String),
    /// It cannot be read.
    #[error("power hook {}", path.display())]
    Missing {
        /// Of the program.
        path: PathBuf,
        source: io::Error,
    },
    /// It is no program.
    #[error("power hook {}: not an executable file", .0.display())]
    NotExecutable(PathBuf),
    /// Others could replace what root runs.
    #[error("power hook {}: {reason} ({} {})", path.display(), reason.remedy(), path.display())]
    Replaceable {
        /// Of the program, or of a directory that it is in.
        path: PathBuf,
        /// Why.
        reason: Replaceable,
    },
    /// It does not start.
    #[error("power hook {hook}: cannot run")]
    Spawn {
        /// Its name.
        hook: String,
        source: io::Error,
    },
    /// It was ended.
    #[error("power hook {hook} {verb}: not done within {seconds} s")]
    TimedOut {
        /// Its name.
        hook: String,
        /// `status`.
        verb: String,
        /// The deadline.
        seconds: u64,
    },
    /// It was ended.
    #[error("power hook {hook} {verb}: more than {} KiB of output", MOST_OUTPUT >> 10)]
    TooMuchOutput {
        /// Its name.
        hook: String,
        /// `status`.
        verb: String,
    },
    /// It failed.
    #[error("power hook {hook} {verb}: {status}: {line}")]
    Failed {
        /// Its name.
        hook: String,
        /// `status`.
        verb: String,
        /// `exit status 1`.
        status: String,
        /// The last line of its standard error.
        line: String,
    },
}

/// Why another user can replace a file, or what is in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Replaceable {
    /// Its owner can.
    #[error("owned by user {owner}, expected {expected}")]
    Owner {
        /// The user ID of its owner.
        owner: u32,
        /// The effective user ID of this process.
        expected: u32,
    },
    /// Its group or others can.
    #[error("writable by its group or by others")]
    Writable,
}

impl Replaceable {
    /// `None` for what the user `euid` alone can replace. Pure.
    fn of(owner: u32, mode: u32, euid: u32) -> Option<Self> {
        if owner != euid {
            return Some(Self::Owner { owner, expected: euid });
        }
        (mode & WRITABLE != 0).then_some(Self::Writable)
    }

    /// A command that takes the path.
    fn remedy(self) -> &'static str {
        match self {
            Self::Owner { .. } => "chown root:root",
            Self::Writable => "chmod go-w",
        }
    }
}

impl PowerHook {
    /// The program with this name, as it is now.
    ///
    /// # Errors
    /// When the name is no name, or names no program that root alone can replace.
    pub(super) fn find(directory: &Path, name: &str) -> Result<Self, PowerHookError> {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if name.is_empty() || name.starts_with('-') || !name.bytes().all(allowed) {
            return Err(PowerHookError::Name(name.to_owned()));
        }
        let path = directory.join(name);
        let missing = |source| PowerHookError::Missing { path: path.clone(), source };
        let metadata = std::fs::metadata(&path).map_err(missing)?;
        if !metadata.is_file() || metadata.permissions().mode() & EXECUTABLE == 0 {
            return Err(PowerHookError::NotExecutable(path));
        }
        // It may be a link that leads out of the directory.
        let target = std::fs::canonicalize(&path).map_err(missing)?;
        for checked in [path.as_path(), directory, target.parent().unwrap_or(directory)] {
            let metadata = std::fs::metadata(checked).map_err(missing)?;
            let (owner, mode) = (metadata.uid(), metadata.permissions().mode());
            if let Some(reason) = Replaceable::of(owner, mode, geteuid().as_raw()) {
                return Err(PowerHookError::Replaceable { path: checked.to_owned(), reason });
            }
        }
        Ok(Self { name: name.to_owned(), path, deadline: DEADLINE })
    }

    /// Calls it with `VERB HOST ADDRESS` and the request on its standard input; what it printed.
    ///
    /// # Errors
    /// When it does not end with exit status 0 in time.
    pub(super) async fn call(&self, request: &PowerRequest<'_>) -> Result<String, PowerHookError> {
        let (hook, verb) = (self.name.clone(), request.verb.to_string());
        let mut child = self.spawn(request).map_err(|source| PowerHookError::Spawn { hook, source })?;
        let _group = EndOnDrop(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
        let hook = self.name.clone();
        let input = Zeroizing::new(
            serde_json::to_vec(request).expect("plain data with string keys can be serialised"),
        );
        let run = tokio::time::timeout(self.deadline, exchange(&mut child, &input)).await;
        let failed = |source| PowerHookError::Spawn { hook: self.name.clone(), source };
        let seconds = self.deadline.as_secs();
        let ended =
            run.map_err(|_| PowerHookError::TimedOut { hook: hook.clone(), verb: verb.clone(), seconds })?;
        let Ended { status, output, errors } = ended.map_err(failed)?;
        if [&output, &errors].iter().any(|stream| stream.len() as u64 > MOST_OUTPUT) {
            return Err(PowerHookError::TooMuchOutput { hook, verb });
        }
        if !status.is_some_and(|status| status.success()) {
            let line = last_line(&errors);
            return Err(PowerHookError::Failed { hook, verb, status: described(status), line });
        }
        Ok(String::from_utf8_lossy(&output).into_owned())
    }

    fn spawn(&self, request: &PowerRequest<'_>) -> io::Result<Child> {
        Command::new(&self.path)
            .args([request.verb.to_string().as_str(), request.host, request.address])
            .env_clear()
            .env("PATH", PATH)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
    }
}

/// Kills a program, with all processes of its group, when its call is done or dropped.
struct EndOnDrop(Option<Pid>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // The group may have ended already.
            let _ended = kill_process_group(group, Signal::KILL);
        }
    }
}

/// How a program ended; `status` is absent where it printed too much, and runs.
struct Ended {
    status: Option<ExitStatus>,
    output: Vec<u8>,
    errors: Vec<u8>,
}

/// Until both streams have ended and the program with them, or one is too long.
async fn exchange(child: &mut Child, input: &[u8]) -> io::Result<Ended> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let feed = async move {
        if let Some(mut stdin) = stdin {
            // A program may leave its input unread: a broken pipe is no error.
            let _unread = stdin.write_all(input).await;
        }
    };
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    let read = async { tokio::try_join!(bounded(stdout, &mut output), bounded(stderr, &mut errors)) };
    let (whole, ()) = tokio::join!(read, feed);
    let status = match whole {
        Ok(_) => Some(child.wait().await?),
        Err(Overflow::TooMuch) => None,
        Err(Overflow::Io(error)) => return Err(error),
    };
    Ok(Ended { status, output, errors })
}

/// Why reading has stopped.
enum Overflow {
    TooMuch,
    Io(io::Error),
}

/// Reads a stream to its end.
async fn bounded(stream: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>) -> Result<(), Overflow> {
    let Some(stream) = stream else { return Ok(()) };
    stream.take(MOST_OUTPUT + 1).read_to_end(into).await.map_err(Overflow::Io)?;
    if into.len() as u64 > MOST_OUTPUT { Err(Overflow::TooMuch) } else { Ok(()) }
}

fn described(status: Option<ExitStatus>) -> String {
    let code = |status: ExitStatus| status.code().map(|code| format!("exit status {code}"));
    let signal = |status: ExitStatus| status.signal().map(|signal| format!("signal {signal}"));
    status.and_then(|status| code(status).or_else(|| signal(status))).unwrap_or_default()
}

/// Without control characters.
fn last_line(errors: &[u8]) -> String {
    let text = String::from_utf8_lossy(errors);
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("no message");
    line.chars().filter(|character| !character.is_control()).take(SHOWN).collect()
}

#[cfg(test)]
mod tests;
