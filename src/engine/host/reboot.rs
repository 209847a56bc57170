//! Waiting for a host that reboots during a plan.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::{EventSink, HostError, HostSession};
use crate::engine::apply::RebootWork;
use crate::engine::cancel::CancelLevel;
use crate::engine::wait::{WaitStatus, wait_for};
use crate::model::event::Event;
use crate::resource::contract::probe::{Answer, Probe};
use crate::transport::error::TransportError;

/// The limit of one observation: the host may go down during it.
const OBSERVE: Duration = Duration::from_secs(20);

impl HostSession<'_> {
    /// Waits until the host has another boot id than before its reboot.
    ///
    /// # Errors
    /// [`HostError::NotBack`] when the deadline passes, and at once when another host answers in its place;
    /// [`HostError::Interrupted`] at once when the run is cancelled.
    pub(super) async fn come_back(&self, work: &RebootWork, events: EventSink<'_>) -> Result<(), HostError> {
        let condition = format!("{} to be back after its reboot", self.name);
        let (began, reported) = (Instant::now(), Mutex::new(None));
        let report = |seen: &str| {
            let mut reported = reported.lock().unwrap_or_else(PoisonError::into_inner);
            if reported.as_deref() != Some(seen) {
                *reported = Some(seen.to_owned());
                events(Event::Waiting {
                    host: self.name.clone(),
                    condition: condition.clone(),
                    last_seen: seen.to_owned(),
                    elapsed: began.elapsed(),
                });
            }
        };
        let look = || async {
            let status = self.has_booted(&work.boot_id).await;
            if let WaitStatus::NotYet(seen) = &status {
                report(seen);
            }
            status
        };
        let limit = Duration::from_secs(u64::from(work.seconds));
        let waited = tokio::select! {
            // Checked first, because a cancelled observation is no sign of the host.
            biased;
            () = self.share.cancel.reached(CancelLevel::AfterResource) => return Err(HostError::Interrupted),
            waited = wait_for(condition.as_str(), limit, look) => waited,
        };
        waited
            .map_err(|error| HostError::NotBack { resources: work.ids.clone(), reason: error.to_string() })?;
        if work.ends {
            for resource in &work.ids {
                events(Event::ResourceDone { host: self.name.clone(), resource: resource.clone() });
            }
        }
        Ok(())
    }

    async fn has_booted(&self, before: &str) -> WaitStatus<()> {
        let probe = Probe::Sysctl { key: "kernel.random.boot_id".to_owned() };
        match self.observe_within(&BTreeSet::from([probe.clone()]), OBSERVE).await {
            Err(HostError::Transport(error)) if is_permanent(&error) => WaitStatus::Never(error.to_string()),
            Err(error) => WaitStatus::NotYet(error.to_string()),
            Ok(observed) => match observed.get(&probe) {
                Some(Answer::Sysctl(Some(now))) if now != before => WaitStatus::Holds(()),
                _ => WaitStatus::NotYet("not gone down yet".to_owned()),
            },
        }
    }
}

/// Whether the error stays the same once the host has started. While a host shuts down or boots it may refuse logins
/// and sessions (pam_nologin(8)).
fn is_permanent(error: &TransportError) -> bool {
    matches!(
        error,
        TransportError::HostKeyMismatch { .. }
            | TransportError::HostKeyUnknown { .. }
            | TransportError::KnownHosts { .. }
            | TransportError::IdentityUnreadable { .. }
    )
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::num::NonZeroUsize;

    use async_trait::async_trait;

    use super::*;
    use crate::engine::apply::PackageManager;
    use crate::engine::nonce::Nonce;
    use crate::engine::plan::Plan;
    use crate::engine::share::Share;
    use crate::engine::{cancel, shells};
    use crate::resource::contract::change::{Change, Verdict};
    use crate::resource::contract::step::Step;
    use crate::transport::{LineSink, Output, Program, Replies, Transport};

    /// Runs programs on this machine, with a simulated boot id and reachability.
    struct Rebooting {
        /// The boot ids of the next observations; the last one is repeated.
        looks: Mutex<VecDeque<Result<&'static str, TransportError>>>,
        runs: Mutex<usize>,
    }

    #[async_trait]
    impl Transport for Rebooting {
        async fn run(
            &self,
            program: &Program,
            progress: &mut LineSink<'_>,
        ) -> Result<Output, TransportError> {
            *self.runs.lock().unwrap() += 1;
            // This machine stays up.
            let mut script = program.script.replace("exec systemctl reboot", ":");
            if script.contains("boot_id") {
                let mut looks = self.looks.lock().unwrap();
                let look = if looks.len() > 1 { looks.pop_front().unwrap() } else { looks[0].clone() };
                let printed = format!("==> /proc/sys/kernel/random/boot_id <==\n{}", look?);
                script = format!("head() {{ echo '{printed}'; }}\n{script}");
            }
            let output = shells::run("sh", &Program { script, ..program.clone() });
            String::from_utf8_lossy(&output.stdout).lines().for_each(progress);
            Ok(output)
        }

        async fn converse(
            &self,
            program: &Program,
            _: Replies,
            progress: &mut LineSink<'_>,
        ) -> Result<Output, TransportError> {
            self.run(program, progress).await
        }
    }

    fn unreachable() -> TransportError {
        TransportError::Unreachable { host: "10.0.0.1:22".into(), reason: "connection refused".into() }
    }

    fn no_shell() -> TransportError {
        TransportError::NoShell { host: "10.0.0.1:22".into(), reason: "System is booting up".into() }
    }

    fn other_host() -> TransportError {
        let (host, found, expected) = ("10.0.0.1:22".into(), "SHA256:b".into(), "SHA256:a".into());
        TransportError::HostKeyMismatch { host, found, expected }
    }

    /// A command, a reboot and a command: what was reported, the result, and the number of programs. The run is
    /// cancelled once `cancelled_at` is seen.
    async fn rebooted(
        looks: Vec<Result<&'static str, TransportError>>,
        cancelled_at: Option<&str>,
    ) -> (Vec<String>, Result<(), HostError>, usize) {
        let transport = Rebooting { looks: Mutex::new(looks.into()), runs: Mutex::new(0) };
        let (handle, cancel) = cancel::channel();
        let share = Share::new(cancel, NonZeroUsize::MIN);
        let host = HostSession::new("node-1".parse().unwrap(), &transport, Nonce::new(2)).sharing(&share);
        let change = |id: &str, step| {
            (id.to_owned(), Verdict::Change(Change { differences: Vec::new(), steps: vec![step] }))
        };
        let run = || Step::Run { script: "true".into() };
        let verdicts = vec![
            change("command:before", run()),
            change("reboot:now", Step::Reboot { boot_id: "one".into(), seconds: 60 }),
            change("command:after", run()),
        ];
        let reported = Mutex::new(Vec::new());
        let events = |event: Event| {
            reported.lock().unwrap().push(match event {
                Event::ResourceBegun { resource, .. } => format!("begun {resource}"),
                Event::ResourceDone { resource, .. } => format!("done {resource}"),
                Event::Waiting { last_seen, .. } => {
                    if cancelled_at == Some(last_seen.as_str()) {
                        handle.cancel(CancelLevel::AfterResource);
                    }
                    last_seen
                }
                other => panic!("{other:?}"),
            });
        };
        let no_signer = |_: &_, _: &str| Err("no signer".to_owned());
        let outcome = host.apply(&Plan { verdicts }, PackageManager::Apt, &no_signer, &events).await;
        (reported.into_inner().unwrap(), outcome, transport.runs.into_inner().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn the_rest_of_the_plan_runs_once_the_host_has_another_boot_id() {
        let looks = vec![Ok("one"), Err(unreachable()), Err(unreachable()), Err(no_shell()), Ok("two")];
        let (reported, outcome, runs) = rebooted(looks, None).await;
        assert_eq!(outcome, Ok(()));
        let expected = [
            "begun command:before",
            "done command:before",
            "begun reboot:now",
            "not gone down yet",
            "10.0.0.1:22: no SSH connection: connection refused",
            "10.0.0.1:22: no usable shell: System is booting up",
            "done reboot:now",
            "begun command:after",
            "done command:after",
        ];
        assert_eq!(reported, expected);
        assert_eq!(runs, 2 + 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_that_does_not_come_back_ends_the_plan() {
        let began = Instant::now();
        let (reported, outcome, _) = rebooted(vec![Err(unreachable())], None).await;
        assert_eq!(
            outcome.unwrap_err().to_string(),
            "reboot:now: waited 60 s for node-1 to be back after its reboot: \
             10.0.0.1:22: no SSH connection: connection refused"
        );
        assert_eq!(reported.last().unwrap(), "10.0.0.1:22: no SSH connection: connection refused");
        assert!(began.elapsed() >= Duration::from_secs(60));
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_run_does_not_wait_for_the_host() {
        let began = Instant::now();
        let (reported, outcome, _) = rebooted(vec![Ok("one")], Some("not gone down yet")).await;
        assert_eq!(outcome, Err(HostError::Interrupted));
        assert_eq!(reported.last().unwrap(), "not gone down yet");
        assert!(began.elapsed() < Duration::from_secs(5));
    }

    #[tokio::test(start_paused = true)]
    async fn another_host_in_its_place_ends_the_wait_at_once() {
        let began = Instant::now();
        let (_, outcome, _) = rebooted(vec![Err(unreachable()), Err(other_host())], None).await;
        let message = outcome.unwrap_err().to_string();
        assert!(message.contains("gave up waiting for node-1 to be back") && message.contains("SHA256:b"));
        assert!(began.elapsed() < Duration::from_secs(5));
    }
}
