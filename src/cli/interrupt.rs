//! Ctrl-C, SIGTERM from systemd and others, and the hangup of a terminal: of a connection to this machine that was lost.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;

use super::failure::{Exit, Failure};
use crate::engine::cancel::{CancelHandle, CancelLevel};
use crate::model::resumption::ResumedBy;

/// How long connections to hosts get to close after the second signal.
const GRACE: Duration = Duration::from_secs(3);

/// What a signal does to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interruption {
    /// The first signal ends the command: it leaves nothing half done, or is resumed by running it again.
    Immediate,
    /// The first signal cancels the command, which finishes what it must; the second ends it.
    Graceful,
}

/// SIGINT, SIGTERM and SIGHUP, received from the moment that this is created.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// `None` where it was ignored when the process began, by nohup(1).
    hangup: Option<Signal>,
}

impl Signals {
    /// Starts receiving. Must be called within a runtime.
    ///
    /// # Errors
    /// When no handler can be installed.
    pub fn listen() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(|error| Failure::from_error(Exit::Bug, &error));
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let hangup = (!ignores_hangup(&status)).then(|| listen(SignalKind::hangup())).transpose()?;
        let (interrupt, terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
        Ok(Self { interrupt, terminate, hangup })
    }

    /// Completes when the command must end; until then, cancels it as `interruption` requires. `resumed` is what resumes
    /// the command.
    pub async fn interrupted(
        mut self,
        handle: &CancelHandle,
        interruption: Interruption,
        resumed: ResumedBy,
    ) -> Failure {
        let hangup = self.hangup.take();
        tokio::select! {
            () = self.next() => {}
            () = hung_up(hangup) => {}
        }
        if interruption == Interruption::Graceful {
            handle.cancel(CancelLevel::AfterResource);
            // The end of a terminal sends several hangups, which are one request to end.
            self.next().await;
            handle.cancel(CancelLevel::Now);
            // The command completes before that, unless a host hangs.
            let _elapsed = timeout(GRACE, std::future::pending::<()>()).await;
        }
        Failure::new(Exit::Interrupted, "interrupted").hint(resumed.instruction())
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

async fn hung_up(hangup: Option<Signal>) {
    match hangup {
        Some(mut hangup) => {
            hangup.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// Whether a process ignores SIGHUP, by its `/proc/PID/status`, proc_pid_status(5).
fn ignores_hangup(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hangup_is_the_first_signal_of_the_mask() {
        for (status, expected) in [
            ("Name:\tmetalform\nSigBlk:\t0000000000000001\nSigIgn:\t0000000000001001\n", true),
            ("SigBlk:\t0000000000000001\nSigIgn:\t0000000000001000\nSigCgt:\t0000000000000001\n", false),
            ("", false),
        ] {
            assert_eq!(ignores_hangup(status), expected, "{status}");
        }
    }
}
