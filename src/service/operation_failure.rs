//! Why an operation did not complete on a node, and what to do about it.

use super::command_error::{CommandError, CommandFailure, ErrorClass};
use super::etcd_members::DEFRAGMENT;
use super::remedies::{remedy, retry};
use crate::etcd::member::AlarmKind;
use crate::etcd::membership::Obstacle;
use crate::model::error_chain::error_chain;
use crate::model::name::HostName;
use crate::model::node::NodeProblems;
use crate::model::resumption::ResumedBy;
use crate::operation::class::FailureClass;
use crate::operation::contract::Blocker;
use crate::operation::driver::RunFault;
use crate::operation::run::RunError;
use crate::operation::site::EffectError;
use crate::transport::error::TransportError;
use crate::workspace::host_lock::HostLockError;

/// Why an operation did not complete on a node.
#[derive(Debug, thiserror::Error)]
pub enum OperationFailure {
    /// The manifest of the Node is wrong, or the bundle does not have its Kubernetes version. Nothing was done.
    #[error("{0}")]
    Manifest(#[from] NodeProblems),
    /// The cluster has no Node of this name. Nothing was done.
    #[error("{0}: the cluster has no such Node: it was added after the snapshot was taken")]
    NoNode(HostName),
    /// Another operation is running on the host. Nothing was done.
    #[error("{error}")]
    Locked {
        /// Which.
        error: HostLockError,
        /// What resumes the command.
        resumed: ResumedBy,
    },
    /// The Node is not what it was when the operation was requested. Nothing was done.
    #[error("{node}: the Node has changed while this waited: {what}")]
    Changed {
        /// The node.
        node: HostName,
        /// What has changed.
        what: String,
        /// What resumes the command.
        resumed: ResumedBy,
    },
    /// The run ended before every phase held.
    #[error("{node}: {}", error_chain(error))]
    Run {
        /// The node.
        node: HostName,
        /// Why it ended.
        error: RunError,
        /// The option with which the same command does without the host.
        without_host: Option<&'static str>,
        /// Whether the host is that of a manifest; the cluster need not have its Node.
        by_manifest: bool,
        /// What resumes the command.
        resumed: ResumedBy,
    },
}

impl CommandError for OperationFailure {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Manifest(_) | Self::NoNode(_) | Self::Locked { error: HostLockError::File(_), .. } => {
                ErrorClass::Configuration
            }
            Self::Locked { error: HostLockError::Held { .. }, .. } | Self::Changed { .. } => {
                ErrorClass::Refused
            }
            Self::Run { error: RunError::Fault(RunFault::Blocked { blocker, .. }), .. } => {
                blocker_class(blocker)
            }
            Self::Run { error, .. } => error.class().map_or(ErrorClass::Interrupted, ErrorClass::from),
        }
    }

    fn errors(&self) -> Vec<String> {
        match self {
            Self::Manifest(problems) => problems.to_string().lines().map(str::to_owned).collect(),
            Self::Run { node, error: RunError::Fault(RunFault::Blocked { blocker, .. }), .. } => {
                blocker_lines(node, blocker)
            }
            other @ (Self::Run { .. } | Self::Locked { .. } | Self::Changed { .. } | Self::NoNode(_)) => {
                vec![other.to_string()]
            }
        }
    }

    fn hints(&self) -> Vec<String> {
        let mut hints = self.causes_hints();
        let next = self.resumed().instruction();
        let other_command = matches!(self.resumed(), ResumedBy::Expansion | ResumedBy::MemberReplacement);
        // Also where the cause has hints of its own: the same command, which is the obvious one, would undo what was
        // written since.
        if other_command && !hints.iter().any(|hint| hint.contains(&next)) {
            hints.push(next);
        }
        hints
    }
}

impl OperationFailure {
    fn resumed(&self) -> ResumedBy {
        match self {
            Self::Run { resumed, .. } | Self::Locked { resumed, .. } | Self::Changed { resumed, .. } => {
                *resumed
            }
            Self::Manifest(_) | Self::NoNode(_) => ResumedBy::SameCommand,
        }
    }

    fn causes_hints(&self) -> Vec<String> {
        match self {
            Self::Manifest(problems) => {
                let mut commands = problems.label_commands();
                if commands.is_empty() {
                    commands.push("fix the manifest and run kubectl apply -f again".to_owned());
                }
                commands
            }
            Self::NoNode(_) => {
                vec!["apply its manifest again (kubectl apply -f), then run `metalform expand`".to_owned()]
            }
            Self::Locked { error, resumed } => error.hint(*resumed).into_iter().collect(),
            Self::Changed { resumed, .. } => vec![resumed.instruction()],
            Self::Run { error: RunError::Fault(RunFault::Blocked { blocker, .. }), .. } => {
                blocker_hints(blocker, self.resumed())
            }
            Self::Run { node, error, .. } if error.class() == Some(FailureClass::Workload) => {
                vec![
                    "`kubectl get pdb -A` shows the disruption budgets: free them and run the same command again, or give it more time with --drain-timeout SECONDS"
                        .to_owned(),
                    format!(
                        "pods that are terminating on a Node that is not Ready wait for its kubelet: start it on the host; if it cannot run any more, `metalform remove-node {node} --offline` removes the Node, and `metalform reset-host --filename FILE` resets the host by the Node's manifest"
                    ),
                ]
            }
            Self::Run { error, resumed, .. } if error.class() == Some(FailureClass::OtherOperation) => {
                vec![resumed.after("`metalform operations list` shows what runs: wait for it or end it")]
            }
            Self::Run { error, by_manifest: true, .. } if self.class() == ErrorClass::Ssh => {
                vec![manifest_hint(error).to_owned()]
            }
            Self::Run { node, error, without_host, resumed, .. } => {
                let gone = without_host.filter(|_| self.class() == ErrorClass::Ssh);
                let gone = gone.map(|option| format!("if the host is gone for good, add {option}"));
                let hints = run_hint(self.class(), node, *resumed).into_iter();
                hints.chain(file_remedy(error, *resumed)).chain(gone).collect()
            }
        }
    }
}

impl From<FailureClass> for ErrorClass {
    fn from(class: FailureClass) -> Self {
        match class {
            FailureClass::Configuration => Self::Configuration,
            FailureClass::Ssh => Self::Ssh,
            FailureClass::Host => Self::Host,
            FailureClass::Etcd | FailureClass::OtherOperation => Self::Etcd,
            FailureClass::Api | FailureClass::Workload => Self::Api,
            FailureClass::Own => Self::Bug,
        }
    }
}

fn run_hint(class: ErrorClass, node: &HostName, resumed: ResumedBy) -> Option<String> {
    match class {
        ErrorClass::Ssh => Some(format!("`metalform node check {node}` tests the connection to the host")),
        ErrorClass::Host => Some(retry(resumed)),
        ErrorClass::Etcd => Some("`metalform etcd health` shows every member".to_owned()),
        ErrorClass::Api => {
            Some("kubectl get --raw /readyz?verbose shows which checks of the API server fail".to_owned())
        }
        ErrorClass::Interrupted => Some(resumed.instruction()),
        ErrorClass::Configuration | ErrorClass::Refused | ErrorClass::Bug => None,
    }
}

/// Of a file of this machine.
fn file_remedy(error: &RunError, resumed: ResumedBy) -> Option<String> {
    let RunError::Effect { source, .. } = error else { return None };
    match &**source {
        EffectError::File(error) => Some(remedy(&error.to_string(), resumed)),
        _ => None,
    }
}

/// Of a host that was not reached by the settings in a manifest.
fn manifest_hint(error: &RunError) -> &'static str {
    let connection = match error {
        RunError::Effect { source, .. } => match &**source {
            EffectError::Host(error) => error.connection(),
            _ => None,
        },
        _ => None,
    };
    match connection {
        Some(TransportError::HostKeyUnknown { .. } | TransportError::HostKeyMismatch { .. }) => {
            "set metalform.dev/ssh-host-key in the manifest to the key that \
             `cat /etc/ssh/ssh_host_ed25519_key.pub` shows on the host's console"
        }
        _ => "check that the host is on, and fix the annotations metalform.dev/ssh-* in the manifest",
    }
}

fn blocker_class(blocker: &Blocker) -> ErrorClass {
    match blocker {
        Blocker::Preflight(_) | Blocker::StillDiffers(_) | Blocker::LeftBehind(_) => ErrorClass::Host,
        Blocker::Refused(_) | Blocker::Etcd(Obstacle::Irreplaceable { .. }) => ErrorClass::Refused,
        Blocker::Removal(_) => ErrorClass::Refused,
        Blocker::Etcd(_) | Blocker::LearnerRemoved(_) => ErrorClass::Etcd,
    }
}

/// One line for each reason.
pub fn blocker_lines(node: &HostName, blocker: &Blocker) -> Vec<String> {
    match blocker {
        Blocker::Preflight(failures) => {
            failures.iter().map(|failure| format!("{node}: {}", failure.what)).collect()
        }
        Blocker::Refused(refusals) => {
            refusals.iter().map(|(id, reason)| format!("{node}: {id}: {reason}")).collect()
        }
        Blocker::Removal(refusals) => {
            refusals.iter().map(|refusal| format!("{node} cannot be removed: {refusal}")).collect()
        }
        Blocker::LeftBehind(left) => {
            left.iter().map(|left| format!("{node}: not as it was before: {left}")).collect()
        }
        Blocker::StillDiffers(resources) => {
            vec![format!("{node}: still differs after apply: {}", resources.join("; "))]
        }
        Blocker::Etcd(obstacle) => vec![format!("{node}: {obstacle}")],
        Blocker::LearnerRemoved(why) => {
            vec![format!("{node}: its etcd learner was removed again: it {why}")]
        }
    }
}

const RECOVER: &str = "where no API server answers, `metalform etcd recover` shows what etcd, or an API server, can continue with, and asks";

fn blocker_hints(blocker: &Blocker, resumed: ResumedBy) -> Vec<String> {
    let hint = match blocker {
        Blocker::Preflight(failures) => {
            return failures.iter().map(|failure| failure.hint.clone()).collect();
        }
        // Of a saved plan, the host may have changed since.
        Blocker::Refused(_) => match resumed {
            ResumedBy::NewPlan(_) => return vec![resumed.instruction()],
            _ => return Vec::new(),
        },
        Blocker::LeftBehind(_) => {
            "remove this on the host, then run the same command again; with --check, `metalform reset-host` lists what differs"
        }
        Blocker::Removal(refusals) => {
            return refusals.iter().map(|refusal| refusal.hint().to_owned()).collect();
        }
        Blocker::StillDiffers(_) => "journalctl on the host shows what reverts it or keeps it from starting",
        Blocker::Etcd(obstacle @ (Obstacle::DataLost { name, .. } | Obstacle::FirstDataLost { name })) => {
            let mut hints = vec![
                "if the disk of /var/lib/etcd is not mounted, mount it: the member then resumes".to_owned(),
                format!(
                    "`metalform deploy-node {name} --replace-member` removes the member through the others, and joins it again as a learner"
                ),
            ];
            if matches!(obstacle, Obstacle::FirstDataLost { .. }) {
                hints.push(RECOVER.to_owned());
            }
            return hints;
        }
        Blocker::Etcd(Obstacle::NameTaken { name, there, .. }) => {
            return vec![
                format!(
                    "if the machine at {there} is gone, `metalform deploy-node {name} --replace-member` removes its member through the others, and joins this one as a learner"
                ),
                format!(
                    "`metalform remove-node {name}` removes the member wherever it is, and resets the host; then deploy it again"
                ),
            ];
        }
        Blocker::Etcd(Obstacle::AddressTaken { other, .. }) => {
            return vec![format!(
                "`metalform remove-node {other}` removes that member through the others; add --offline if its machine is gone"
            )];
        }
        Blocker::Etcd(Obstacle::Alarm { alarm, .. }) if *alarm == AlarmKind::NoSpace.name() => DEFRAGMENT,
        Blocker::Etcd(_) => "`metalform etcd members` shows every member",
        Blocker::LearnerRemoved(_) => {
            return vec![resumed.after("look at journalctl -u kubelet and /var/log/pods on the host")];
        }
    };
    vec![hint.to_owned()]
}

/// The failures of the nodes of one command, with the class of the first; `None` where there is none.
pub fn of<'a>(failures: impl IntoIterator<Item = &'a OperationFailure>) -> Option<CommandFailure> {
    let mut failures = failures.into_iter();
    let first = failures.next()?;
    let mut all = CommandFailure { class: first.class(), errors: first.errors(), hints: first.hints() };
    for failure in failures {
        all.errors.extend(failure.errors());
        all.add_hints(failure.hints());
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::host::HostError;
    use crate::model::resumption::PlanMaker;
    use crate::operation::preflight::PreflightFailure;
    use crate::workspace::atomic_file::FileError;

    fn run(node: &str, error: RunError) -> OperationFailure {
        run_resumed(node, error, ResumedBy::SameCommand)
    }

    fn run_resumed(node: &str, error: RunError, resumed: ResumedBy) -> OperationFailure {
        let node = node.parse().unwrap();
        OperationFailure::Run { node, error, without_host: None, by_manifest: false, resumed }
    }

    #[test]
    fn a_host_of_a_manifest_is_not_looked_for_in_the_cluster() {
        let host = || "192.0.2.1:22".to_owned();
        let key = TransportError::HostKeyUnknown { host: host(), found: "ssh-ed25519 SHA256:a".to_owned() };
        let silent = TransportError::Unreachable { host: host(), reason: "no route".to_owned() };
        for (error, by_manifest, hint) in [
            (key.clone(), true, "set metalform.dev/ssh-host-key in the manifest"),
            (silent, true, "check that the host is on"),
            (key, false, "`metalform node check n`"),
        ] {
            let source = Box::new(EffectError::Host(HostError::Transport(error)));
            let (phase, what) = ("Reachable".to_owned(), "collect facts".to_owned());
            let error = RunError::Effect { phase, what, source };
            let (node, resumed) = ("n".parse().unwrap(), ResumedBy::SameCommand);
            let failure = OperationFailure::Run { node, error, without_host: None, by_manifest, resumed };
            assert_eq!(failure.class(), ErrorClass::Ssh);
            let hints = failure.hints();
            assert!(matches!(&*hints, [only] if only.starts_with(hint)), "{hints:?}");
        }
    }

    #[test]
    fn what_ends_after_a_restoration_is_resumed_by_expand_and_a_begun_plan_by_a_new_one() {
        let blocked =
            |blocker| RunError::Fault(RunFault::Blocked { phase: "etcd voter".to_owned(), blocker });
        let errors = || {
            [
                RunError::Interrupted,
                blocked(Blocker::LearnerRemoved("has not started".to_owned())),
                blocked(Blocker::StillDiffers(vec!["file:/etc/a".to_owned()])),
                blocked(Blocker::Refused(vec![("file:/etc/a".to_owned(), "is not in the plan".to_owned())])),
                RunError::Stuck { phases: vec!["etcd voter".to_owned()] },
            ]
        };
        for (resumed, command, always) in [
            (ResumedBy::Expansion, "`metalform expand`", true),
            (ResumedBy::NewPlan(PlanMaker::Expand), "`metalform expand --dry-run --out FILE`", false),
        ] {
            for error in errors() {
                let hints = run_resumed("m3", error, resumed).hints().join("\n");
                assert!(!hints.contains("run the same command again; it resumes"), "{hints}");
                assert!(!always || hints.matches(command).count() == 1, "{hints}");
            }
            let interrupted = run_resumed("m3", RunError::Interrupted, resumed);
            assert!(interrupted.hints().concat().contains(command), "{:?}", interrupted.hints());
        }
    }

    #[test]
    fn a_node_that_has_changed_meanwhile_is_refused() {
        let (node, what) = ("node-1".parse().unwrap(), "roles".to_owned());
        let changed = OperationFailure::Changed { node, what, resumed: ResumedBy::SameCommand };
        assert_eq!(changed.class(), ErrorClass::Refused);
        assert_eq!(changed.errors(), ["node-1: the Node has changed while this waited: roles"]);
        assert_eq!(changed.hints(), ["run the same command again; it resumes"]);
    }

    #[test]
    fn each_reason_of_a_blocked_phase_is_one_line_with_its_hint() {
        let reason = |what: &str| PreflightFailure { what: what.to_owned(), hint: format!("fix {what}") };
        let blocker = Blocker::Preflight(vec![reason("one"), reason("two")]);
        let failure =
            run("node-1", RunError::Fault(RunFault::Blocked { phase: "Preflight".to_owned(), blocker }));
        assert_eq!(failure.class(), ErrorClass::Host);
        assert_eq!(failure.errors(), ["node-1: one", "node-1: two"]);
        assert_eq!(failure.hints(), ["fix one", "fix two"]);
    }

    #[test]
    fn a_member_at_another_address_is_removed_by_metalform() {
        let (name, there, here) = ("n", "https://192.0.2.1:2380", "https://192.0.2.2:2380");
        let [name, there, here] = [name, there, here].map(str::to_owned);
        let taken = [
            Obstacle::NameTaken { name, there, here },
            Obstacle::AddressTaken { other: "n".to_owned(), peer_url: String::new() },
        ];
        for obstacle in taken {
            let (phase, blocker) = ("etcd member".to_owned(), Blocker::Etcd(obstacle));
            let failure = run("n", RunError::Fault(RunFault::Blocked { phase, blocker }));
            let hints = failure.hints().concat();
            assert!(hints.contains("`metalform remove-node n`"), "{hints}");
            assert!(!failure.errors().concat().contains("etcdctl"), "{:?}", failure.errors());
        }
    }

    #[test]
    fn a_full_database_is_defragmented() {
        let alarm = |kind: AlarmKind| {
            let obstacle = Obstacle::Alarm { alarm: kind.name().to_owned(), member: 0x2a };
            let (phase, blocker) = ("etcd member".to_owned(), Blocker::Etcd(obstacle));
            run("n", RunError::Fault(RunFault::Blocked { phase, blocker }))
        };
        let full = alarm(AlarmKind::NoSpace);
        assert_eq!(full.errors(), ["n: etcd has the alarm NOSPACE for member 2a"]);
        assert_eq!(full.hints(), [DEFRAGMENT]);
        assert_eq!(alarm(AlarmKind::Corrupt).hints(), ["`metalform etcd members` shows every member"]);
    }

    #[test]
    fn pods_that_stay_are_no_failure_of_the_api_server() {
        let fault = RunFault::TimedOut {
            phase: "Drained".to_owned(),
            condition: "the pods of node-1 to leave".to_owned(),
            class: FailureClass::Workload,
            elapsed: std::time::Duration::from_secs(300),
            last_seen: "default/web-0: is terminating".to_owned(),
        };
        let failure = run("node-1", RunError::Fault(fault));
        assert_eq!(failure.class(), ErrorClass::Api);
        let hints = failure.hints();
        assert!(hints[0].contains("--drain-timeout"), "{hints:?}");
        assert!(hints[1].contains("`metalform remove-node node-1 --offline`"), "{hints:?}");
    }

    #[test]
    fn a_lease_that_another_operation_keeps_is_no_failure_of_a_member() {
        let fault = RunFault::TimedOut {
            phase: "etcd member".to_owned(),
            condition: "the lease on etcd membership to be free".to_owned(),
            class: FailureClass::OtherOperation,
            elapsed: std::time::Duration::from_secs(900),
            last_seen: "held by bootstrap/4711/node-2, renewed 3 s ago".to_owned(),
        };
        let failure = run("node-1", RunError::Fault(fault));
        assert_eq!(failure.class(), ErrorClass::Etcd);
        assert_eq!(
            failure.hints(),
            [
                "`metalform operations list` shows what runs: wait for it or end it, then run the same command again; it \
                 resumes"
            ]
        );
    }

    #[test]
    fn a_full_disk_of_this_machine_is_named_with_its_remedy() {
        let reason = std::io::Error::from_raw_os_error(28);
        let file = FileError { path: "/var/lib/metalform/nodes.json".into(), reason };
        let source = Box::new(EffectError::File(file));
        let error = RunError::Effect { phase: "Trust".to_owned(), what: "create the CAs".to_owned(), source };
        let hints = run("node-1", error).hints();
        assert!(matches!(&*hints, [only] if only.starts_with("free space on that file system")), "{hints:?}");
    }

    #[test]
    fn failures_of_several_nodes_are_one_error_with_each_hint_once() {
        let failures = [run("node-1", RunError::Interrupted), run("node-2", RunError::Interrupted)];
        let all = of(&failures).unwrap();
        assert_eq!(all.class(), ErrorClass::Interrupted);
        assert_eq!(all.errors(), ["node-1: interrupted", "node-2: interrupted"]);
        assert_eq!(all.hints(), ["run the same command again; it resumes"]);
        assert!(of(&[]).is_none());
    }
}
