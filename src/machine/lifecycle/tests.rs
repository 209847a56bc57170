use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;

use super::*;
use crate::kube_api::eviction::DrainPod;
use crate::kube_api::pod_name::PodName;
use crate::machine::api::host_state::HostState;
use crate::machine::api::machine_status::MachinePhase;
use crate::machine::host_choice::{HostChoice, HostShortage};
use crate::machine::host_job::{HostJob, HostWork, JobFailure};
use crate::machine::host_state::{ClaimView, HostOrders};
use crate::machine::job_queue::JobQueue;
use crate::machine::kubelet_refusal::AbsentVersion;
use crate::model::api_contract::NOT_READY_TAINT;
use crate::model::name::HostName;
use crate::model::node::Taint;

/// Of all tables.
const NOW: i64 = 100_000;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn name(text: &str) -> HostName {
    text.parse().unwrap()
}

fn job(text: &str) -> HostJob {
    match text {
        "check" => HostJob::Check,
        "upgrade" => HostJob::UpgradePackages,
        "deploy" => HostJob::Deploy,
        "restart" => HostJob::RestartKubelet,
        "stop" => HostJob::StopKubelet,
        "reset" => HostJob::Reset,
        other => panic!("{other}"),
    }
}

/// `claim=Provisioning done=check …`: what differs from a Machine with both finalizers that has no host. `claim=STATE` is its
/// own host, `free=STATE` the one that it has noted. All hosts are h1.
struct Words<'a>(Vec<&'a str>);

impl<'a> Words<'a> {
    fn has(&self, word: &str) -> bool {
        self.0.contains(&word)
    }

    fn value(&self, key: &str) -> Option<&'a str> {
        self.0.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }

    fn ago(&self, key: &str) -> Option<Timestamp> {
        Some(at(NOW - self.value(key)?.parse::<i64>().unwrap()))
    }

    fn machine(&self) -> MachineView {
        MachineView {
            uid: "u-1".to_owned(),
            deleting_since: self.ago("deleting"),
            finalizers: !self.has("bare"),
            owned: !self.has("standalone"),
            noted: self.value("noted").map(name),
            provider_id: self
                .value("id")
                .or(self.has("id").then_some("h1"))
                .map(|host| format!("metalform://{host}/u-1")),
            joined: self.has("joined"),
            unlinked_since: self.ago("unlinked"),
            drained: self.has("drained"),
            deletion_announced: self.ago("announced"),
            upgrades_packages: self.has("upgrades"),
            drain_timeout: None,
            settings: NodeSettings::default(),
        }
    }

    fn host(&self) -> Option<HostView> {
        let state = self.value("claim").or(self.value("free")).or(self.value("other"))?;
        let uid = if self.value("other").is_some() { "u-2" } else { "u-1" };
        let since = self.ago("since").unwrap_or(at(NOW - 60));
        let waited = self.value("waited").map_or(0, |seconds| seconds.parse().unwrap());
        let queue = JobQueue { since: self.ago("queued"), waited: SignedDuration::from_secs(waited) };
        let claim = ClaimView { machine_uid: uid.to_owned(), machine: "a/web".to_owned(), since, queue };
        let failure = self.value("failed").map(|text| {
            let parts: Vec<&str> = text.split(':').collect();
            let last = at(NOW - parts[2].parse::<i64>().unwrap());
            let attempts = parts[1].parse().unwrap();
            JobFailure { job: job(parts[0]), attempts, last, message: "broken".to_owned() }
        });
        let done = self.value("done").into_iter().flat_map(|jobs| jobs.split(',')).map(job);
        Some(HostView {
            name: name("h1"),
            version: "42".to_owned(),
            state: serde_json::from_value::<HostState>(state.into()).unwrap(),
            claim: self.value("free").is_none().then_some(claim),
            last_token: 7,
            failures: 0,
            finalizer: true,
            deleting: self.has("host-deleted"),
            done: done.collect(),
            failure,
            residue: Vec::new(),
            silent_since: self.ago("silent"),
            orders: HostOrders {
                lost: self.has("lost"),
                powered_off: self.has("off"),
                ..HostOrders::default()
            },
            has_power_hook: false,
            hook_reports_off: false,
        })
    }

    fn node(&self) -> Option<MachineNode> {
        let provider_id = match self.value("node")? {
            "own" => Some("metalform://h1/u-1".to_owned()),
            "none" => None,
            other => Some(other.to_owned()),
        };
        let taint =
            Taint { key: NOT_READY_TAINT.to_owned(), value: String::new(), effect: "NoSchedule".to_owned() };
        Some(MachineNode {
            provider_id,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            taints: Some(taint).filter(|_| self.has("tainted")).into_iter().collect(),
            unschedulable: self.has("cordoned"),
            ready: self.has("ready"),
            message: String::new(),
            pod_network: self.has("network"),
        })
    }

    /// `web`, or `web:blocked`.
    fn pods(&self) -> Option<Vec<DrainPod>> {
        let pod = |text: &str| {
            let (pod, blocked) = text.split_once(':').map_or((text, false), |(pod, _)| (pod, true));
            let name = PodName { namespace: "a".to_owned(), name: pod.to_owned() };
            let blocked = blocked.then(|| "budget web".to_owned());
            DrainPod { name, terminating: false, managed: true, blocked }
        };
        let words = self.value("pods")?;
        Some(words.split(',').filter(|word| !word.is_empty()).map(pod).collect())
    }
}

fn scene(text: &str) -> MachineScene {
    let words = Words(text.split_whitespace().collect());
    let choice = words.value("choice").map(|choice| match choice.strip_prefix("not-") {
        Some(host) => HostChoice::NotedUnavailable(name(host)),
        None if choice == "none" => {
            HostChoice::None(HostShortage { hosts: 2, in_use: 2, ..HostShortage::default() })
        }
        None => HostChoice::Host(name(choice)),
    });
    let work = words.value("runs").map_or(HostWork::Idle, |text| {
        let (job_name, token) = text.split_once('@').unwrap();
        HostWork::Running { job: job(job_name), token: token.parse().unwrap(), phase: "Kubelet".to_owned() }
    });
    let newer = crate::model::skew::check("1.31.0".parse().unwrap(), &["1.30.9".parse().unwrap()]);
    MachineScene {
        machine: words.machine(),
        host: words.host(),
        choice,
        node: words.node(),
        work,
        pods: words.pods(),
        elsewhere: !words.has("alone"),
        skew: match words.has("absent") {
            true => Some(AbsentVersion::new("1.33.0", &["1.35.4", "1.34.3"]).into()),
            false => newer.err().filter(|_| words.has("skewed")).map(Into::into),
        },
        limits: LifecycleLimits::DEFAULT,
    }
}

fn step(step: &MachineStep) -> String {
    let list =
        |pods: &BTreeSet<PodName>| pods.iter().map(|pod| pod.name.clone()).collect::<Vec<_>>().join(" ");
    match step {
        MachineStep::AddFinalizers => "add finalizers".to_owned(),
        MachineStep::NoteHost(host) => format!("note {host}"),
        MachineStep::ForgetHost(host) => format!("forget {host}"),
        MachineStep::ClaimHost { host, version, token } => format!("claim {host} of {version} with {token}"),
        MachineStep::Begin(job, fence) => format!("{job} {}", fence.token),
        MachineStep::Cancel(job) => format!("cancel {job}"),
        MachineStep::SetProviderId(id) => format!("set {id}"),
        MachineStep::LinkNode => "link".to_owned(),
        MachineStep::ChangeNode(change) => {
            format!("change taints {}", change.taints.as_ref().map_or(0, Vec::len))
        }
        MachineStep::Delete(error) => format!("delete for {error:?}"),
        MachineStep::Cordon => "cordon".to_owned(),
        MachineStep::ListPods => "list pods".to_owned(),
        MachineStep::Evict(pods) => format!("evict {}", list(pods)),
        MachineStep::AnnounceDeletion(when) => format!("announce {}", when.as_second() - NOW),
        MachineStep::DeletePods(pods) => format!("delete pods {}", list(pods)),
        MachineStep::MarkDrained(end) => format!("mark {}", end.reason()),
        MachineStep::RemoveFinalizers => "remove finalizers".to_owned(),
    }
}

/// `STEP; CONDITION`: the last condition of those that are expected to change, by name.
#[track_caller]
fn check(condition: MachineConditionKind, cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let plan = next(&scene(text), at(NOW));
        let found = plan.conditions.iter().find(|found| found.kind == condition);
        let shown = found.map_or("-", |found| found.reason.name());
        let taken = plan.step.as_ref().map_or("-".to_owned(), step);
        let lost = if plan.lost { "; lost" } else { "" };
        let wake = plan.wake.map(|wake| format!("; in {} s", wake.as_second() - NOW)).unwrap_or_default();
        assert_eq!(format!("{taken}; {shown}{lost}{wake}"), *expected, "{text}");
    }
}

#[test]
fn a_machine_notes_one_host_and_claims_that_one() {
    check(
        MachineConditionKind::HostClaimed,
        &[
            ("bare", "add finalizers; NoHost"),
            ("", "-; NoHost"),
            ("choice=none", "-; NoHostAvailable"),
            ("choice=h1", "note h1; Claiming"),
            ("choice=h1 skewed", "-; VersionSkew; in 300 s"),
            ("choice=h1 absent", "-; VersionNotInBundle; in 300 s"),
            ("absent", "-; VersionNotInBundle; in 300 s"),
            ("noted=h1 choice=h1 free=Available", "claim h1 of 42 with 8; Claiming"),
            // A version that changed meanwhile does not let go of what is noted.
            ("noted=h1 choice=h1 free=Available skewed", "claim h1 of 42 with 8; Claiming"),
            ("noted=h1 choice=h1", "-; NoHost"),
            ("noted=h1 choice=h1 free=Unknown", "-; NoHost"),
            ("noted=h1 choice=h1 free=Available host-deleted", "-; NoHost"),
            ("noted=h1 choice=not-h1 other=Claimed", "forget h1; HostNotAvailable"),
            ("noted=h1 choice=not-h1 free=Quarantined", "forget h1; HostNotAvailable"),
            ("noted=h2 choice=h1 free=Available", "forget h2; HostNotAvailable"),
            // Its claim is found again whatever it has noted.
            ("claim=Claimed choice=h2", "preflight check 7; Claimed; in 7140 s"),
            // Its Host is gone. Its provider ID is that of this host for ever.
            ("noted=h1 choice=not-h1 joined id", "-; HostLost; lost"),
            ("noted=h1 choice=h2 joined id", "-; HostLost; lost"),
            ("noted=h1 choice=not-h1 id", "-; HostLost; lost"),
            ("choice=h2 id", "-; HostLost; lost"),
            ("noted=h1 other=InUse joined", "-; HostLost; lost"),
            ("noted=h1 claim=Claimed joined id=h0", "-; Claimed; lost"),
        ],
    );
}

#[test]
fn jobs_run_one_after_the_other_under_the_token_of_the_claim() {
    check(
        MachineConditionKind::Deployed,
        &[
            ("noted=h1 claim=Claimed", "preflight check 7; Pending; in 7140 s"),
            ("noted=h1 claim=Claimed standalone", "preflight check 7; Pending"),
            // Not on the way to a Node that is Ready, but beside the job.
            ("noted=h1 claim=Claimed runs=check@7", "set metalform://h1/u-1; Pending; in 7140 s"),
            ("noted=h1 claim=Claimed runs=check@7 id", "-; Pending; in 7140 s"),
            ("noted=h1 claim=Claimed runs=check@6", "cancel preflight check; Pending; in 7140 s"),
            ("noted=h1 claim=Claimed runs=reset@7", "cancel reset; Pending; in 7140 s"),
            ("noted=h1 claim=Claimed failed=check:1:5", "-; Pending; in 10 s"),
            ("noted=h1 claim=Claimed failed=check:1:15", "preflight check 7; Pending; in 7140 s"),
            ("noted=h1 claim=Claimed skewed", "-; Pending; in 300 s"),
            ("noted=h1 claim=Claimed done=check", "deployment 7; Pending; in 7140 s"),
            ("noted=h1 claim=Claimed done=check upgrades", "upgrade of packages 7; Pending; in 7140 s"),
            ("noted=h1 claim=Provisioning done=check,upgrade upgrades", "deployment 7; Pending; in 7140 s"),
            (
                "noted=h1 claim=Provisioning done=check runs=deploy@7",
                "set metalform://h1/u-1; InProgress; in 7140 s",
            ),
            ("noted=h1 claim=Provisioning done=check runs=deploy@7 id", "-; InProgress; in 7140 s"),
            ("noted=h1 claim=Provisioning done=check failed=deploy:6:0", "-; Failed; in 480 s"),
            ("noted=h1 claim=Provisioning done=check silent=5", "-; HostUnreachable; in 7140 s"),
            ("noted=h1 claim=Unreachable done=check", "-; HostUnreachable; in 7140 s"),
            ("noted=h1 claim=Provisioning done=check since=7199", "deployment 7; Pending; in 1 s"),
            ("noted=h1 claim=Provisioning done=check since=7200", "delete for JoinClusterTimeoutError; -"),
            // The turn of a job is waited for, however long that takes.
            (
                "noted=h1 claim=Provisioning done=check since=9000 queued=8990 runs=deploy@7 id",
                "-; InProgress",
            ),
            ("noted=h1 claim=Provisioning done=check since=9000 queued=1 waited=9", "deployment 7; Pending"),
            (
                "noted=h1 claim=Provisioning done=check since=9000 waited=1801 runs=deploy@7 id",
                "-; InProgress; in 1 s",
            ),
            (
                "noted=h1 claim=Provisioning done=check since=9000 waited=1800 runs=deploy@7 id",
                "delete for JoinClusterTimeoutError; -",
            ),
            // No other host while the first may run.
            ("noted=h1 claim=Unreachable joined id silent=9000 node=own", "-; Succeeded"),
            ("noted=h1 claim=InUse joined id silent=9000 off node=own", "-; -; lost"),
            ("noted=h1 claim=InUse joined id silent=9000 lost node=own", "-; -; lost"),
            ("noted=h1 claim=InUse joined id host-deleted node=own", "-; -; lost"),
            ("noted=h1 claim=Resetting done=check", "-; -; lost"),
        ],
    );
}

#[test]
fn a_node_is_linked_by_its_provider_id_alone() {
    let deployed = "noted=h1 claim=Provisioning done=check,deploy";
    let cases = [
        ("", "set metalform://h1/u-1; NodeNotFound; in 7140 s"),
        ("id", "-; NodeNotFound; in 7140 s"),
        ("id node=own", "link; NodeNotFound; in 7140 s"),
        ("id node=own tainted", "link; NodeNotFound; in 7140 s"),
        ("id node=own ready network tainted", "change taints 0; NodeLinked; in 7140 s"),
        ("id node=own ready network", "link; NodeNotFound; in 7140 s"),
        ("id node=none", "-; ForeignNode; in 7140 s"),
        ("id node=metalform://h1/u-0", "-; ForeignNode; in 7140 s"),
        ("id node=metalform://h1/U-1", "-; ForeignNode; in 7140 s"),
        ("id node=own joined", "-; NodeLinked"),
        // Deleted by hand.
        ("id joined", "-; NodeMissing"),
        ("id joined unlinked=59", "-; NodeMissing; in 1 s"),
    ];
    let cases = cases.map(|(words, expected)| (format!("{deployed} {words}"), expected));
    let cases: Vec<(&str, &str)> = cases.iter().map(|(text, expected)| (text.as_str(), *expected)).collect();
    check(MachineConditionKind::NodeLinked, &cases);
    check(
        MachineConditionKind::NodeLinked,
        &[
            ("noted=h1 claim=InUse id joined unlinked=60", "restart of the kubelet 7; NodeMissing; in 540 s"),
            ("noted=h1 claim=InUse id joined unlinked=60 runs=restart@7", "-; NodeMissing; in 540 s"),
            ("noted=h1 claim=InUse id joined unlinked=60 done=restart", "-; NodeMissing; in 540 s"),
            ("noted=h1 claim=InUse id joined unlinked=60 failed=restart:1:99", "-; NodeMissing; in 540 s"),
            ("noted=h1 claim=InUse id joined unlinked=600", "-; NodeLost; lost"),
            ("noted=h1 claim=InUse id joined unlinked=600 node=none", "-; NodeLost; lost"),
        ],
    );
}

#[test]
fn a_node_accepts_pods_when_it_is_ready_and_has_a_pod_network() {
    check(
        MachineConditionKind::Ready,
        &[
            ("noted=h1 claim=InUse id joined node=own tainted", "-; NodeNotReady"),
            ("noted=h1 claim=InUse id joined node=own tainted network", "-; NodeNotReady"),
            ("noted=h1 claim=InUse id joined node=own tainted ready", "-; NoPodNetwork"),
            (
                "noted=h1 claim=InUse id joined node=own tainted ready network",
                "change taints 0; NodeChanging",
            ),
            ("noted=h1 claim=InUse id joined node=own ready network", "-; NodeReady"),
            ("noted=h1 claim=InUse id joined node=own ready", "-; NodeReady"),
            ("noted=h1 claim=InUse id joined node=own", "-; NodeNotReady"),
            ("noted=h1 claim=InUse id joined unlinked=1", "-; NodeMissing; in 59 s"),
        ],
    );
}

#[test]
fn a_machine_is_drained_before_its_host_is_reset() {
    let deleting = "noted=h1 claim=InUse id joined";
    let cases = [
        ("deleting=5 node=own ready", "cordon; Draining"),
        ("deleting=5 node=own ready cordoned", "list pods; Draining"),
        ("deleting=5 node=own ready cordoned pods=web,db:blocked", "evict web; Draining"),
        ("deleting=5 node=own ready cordoned pods=db:blocked", "-; Draining; in 10 s"),
        ("deleting=7000 node=own ready cordoned pods=db:blocked", "announce 300; DrainTimeoutAnnounced"),
        (
            "deleting=7199 announced=300 node=own ready cordoned pods=db:blocked",
            "-; DrainTimeoutAnnounced; in 1 s",
        ),
        ("deleting=7200 announced=300 node=own ready cordoned pods=db:blocked", "delete pods db; Draining"),
        ("deleting=5 node=own ready cordoned pods=", "mark Drained; Drained"),
        ("deleting=5 node=own", "mark NodeNotReady; NodeNotReady"),
        ("deleting=5 node=own ready alone", "mark NowhereToGo; NowhereToGo"),
        ("deleting=5", "mark NoNode; NoNode"),
        // A Node that is not its own is not drained.
        ("deleting=5 node=metalform://h1/u-2 ready", "mark NoNode; NoNode"),
        ("deleting=5 node=own ready silent=9 off", "mark HostOff; HostOff"),
        ("deleting=5 node=own ready runs=deploy@7", "cancel deployment; InProgress"),
    ];
    let cases = cases.map(|(words, expected)| (format!("{deleting} {words}"), expected));
    let cases: Vec<(&str, &str)> = cases.iter().map(|(text, expected)| (text.as_str(), *expected)).collect();
    check(MachineConditionKind::Drained, &cases);
}

#[test]
fn a_machine_is_gone_when_no_host_is_its_own_or_the_host_is_given_up() {
    check(
        MachineConditionKind::HostReleased,
        &[
            ("bare deleting=5", "-; -"),
            ("deleting=5", "remove finalizers; Released"),
            ("deleting=5 noted=h1 free=Available", "remove finalizers; Released"),
            ("deleting=5 noted=h1 other=InUse", "remove finalizers; Released"),
            ("deleting=5 noted=h1 claim=InUse node=own ready", "cordon; DrainPending"),
            ("deleting=5 drained noted=h1 claim=Draining node=own", "-; Resetting"),
            ("deleting=5 drained noted=h1 claim=Resetting node=own runs=reset@7 done=stop", "-; Resetting"),
            (
                "deleting=5 drained noted=h1 claim=Resetting node=own done=stop failed=reset:1:0",
                "-; ResetFailed; in 15 s",
            ),
            ("deleting=5 drained noted=h1 claim=Unreachable node=own silent=100", "-; NoAnswer; in 3500 s"),
            ("deleting=5 drained noted=h1 claim=Quarantined node=own", "remove finalizers; HostQuarantined"),
            // Its Node can be deleted, and is first.
            ("deleting=5 drained noted=h1 claim=Quarantined node=own done=stop", "-; HostQuarantined"),
            ("deleting=5 drained noted=h1 claim=Quarantined done=stop", "remove finalizers; HostQuarantined"),
            ("deleting=5 drained noted=h1 claim=Lost node=own silent=9 lost", "-; HostQuarantined"),
            ("deleting=5 noted=h1 claim=Lost silent=9 lost", "remove finalizers; HostQuarantined"),
        ],
    );
}

#[test]
fn a_phase_follows_from_the_conditions() {
    for (text, has_error, was_ready, expected) in [
        ("choice=none", false, false, MachinePhase::Pending),
        ("noted=h1 claim=Claimed", false, false, MachinePhase::Provisioning),
        ("noted=h1 claim=Provisioning done=check,deploy id", false, false, MachinePhase::Provisioned),
        ("noted=h1 claim=InUse id joined node=own", false, false, MachinePhase::Provisioned),
        ("noted=h1 claim=InUse id joined node=own ready", false, false, MachinePhase::Running),
        ("noted=h1 claim=InUse id joined node=own", false, true, MachinePhase::Running),
        ("noted=h1 claim=InUse id joined node=own", true, true, MachinePhase::Failed),
        ("deleting=1 noted=h1 claim=InUse", true, true, MachinePhase::Deleting),
    ] {
        let scene = scene(text);
        let plan = next(&scene, at(NOW));
        let deleting = scene.machine.deleting_since.is_some();
        assert_eq!(phase(&plan.conditions, deleting, has_error, was_ready), expected, "{text}");
    }
}

#[test]
fn the_conditions_contain_the_whole_story() {
    let story = |text: &str| {
        let lines = next(&scene(text), at(NOW)).conditions.into_iter().map(|condition| {
            let status = condition.status.map_or("Unknown", |holds| if holds { "True" } else { "False" });
            format!("{} {status} {}: {}", condition.kind.name(), condition.reason.name(), condition.reason)
        });
        lines.collect::<Vec<_>>()
    };
    assert_eq!(
        story("noted=h1 claim=Provisioning done=check upgrades failed=upgrade:2:1"),
        [
            "HostClaimed True Claimed: host h1 is claimed",
            "HostChecked True Succeeded: the preflight check has succeeded",
            "PackagesUpgraded False Failed: the upgrade of packages failed and is repeated, attempts: 2: broken",
            "Deployed False Pending: the deployment has not begun",
            "Ready False NotDeployed: the host is not deployed",
        ]
    );
    assert_eq!(
        story(
            "deleting=7100 announced=200 noted=h1 claim=InUse joined node=own ready cordoned pods=db:blocked"
        ),
        [
            "Ready False Deleting: the machine is being deleted",
            "Drained False DrainTimeoutAnnounced: the pods of the node are evicted, left: a/db: budget web; pods that \
             are left at 1970-01-02T03:48:20Z are deleted without regard to their disruption budgets",
            "HostReleased False DrainPending: the node is drained first",
        ]
    );
}
