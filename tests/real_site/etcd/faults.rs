//! Joins of real members of etcd that break off at every move, while a client writes without pause. What breaks off is
//! metalform, the joiner or the leader, by SIGKILL. `tests/vagrant/scenarios/etcd_faults.py` does it to real hosts.
//! `METALFORM_SEED` chooses two of the cases, `METALFORM_LONG=1` runs them all.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use metalform::engine::wait::{WaitStatus, wait_for};
use metalform::etcd::act::{perform, withdraw};
use metalform::etcd::member::Membership;
use metalform::etcd::membership::{LearnerProgress, MemberGoal, MembershipChange, Move, next};
use tokio::time::{Instant as Time, sleep, timeout};

use super::process::EtcdProcesses;
use super::writer::Writer;

const VOTERS: [usize; 3] = [11, 12, 13];
const JOINERS: [usize; 2] = [14, 15];
/// The longest time without a confirmed write. An election takes 1 to 2 s, and the client a second to turn elsewhere.
const GAP: Duration = Duration::from_secs(5);
/// Of a join, and of what follows it.
const LIMIT: Duration = Duration::from_secs(60);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(50);
/// How much of a request is left to happen after its caller is gone.
const MIDWAY: Duration = Duration::from_millis(3);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Add,
    Start,
    Promote,
}

/// Of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Instant {
    Before,
    Midway,
    After,
}

/// What gets SIGKILL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Metalform,
    /// Off until the next run.
    Joiner,
    /// Started again at once, as a kubelet does.
    Leader,
}

type Fault = (Victim, Step, Instant);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Killed(Fault),
    TwoAtOnce,
}

impl Case {
    fn all() -> Vec<Self> {
        let mut all = vec![Self::TwoAtOnce];
        for step in [Step::Add, Step::Start, Step::Promote] {
            for instant in [Instant::Before, Instant::Midway, Instant::After] {
                all.push(Self::Killed((Victim::Metalform, step, instant)));
                all.push(Self::Killed((Victim::Leader, step, instant)));
                // Before its start there is nothing to kill.
                if step == Step::Promote || (step, instant) == (Step::Start, Instant::After) {
                    all.push(Self::Killed((Victim::Joiner, step, instant)));
                }
            }
        }
        all
    }

    /// Two of them, or all.
    fn chosen(seed: usize) -> Vec<Self> {
        let all = Self::all();
        if std::env::var("METALFORM_LONG").is_ok_and(|long| long == "1") {
            return all;
        }
        let first = seed % all.len();
        let second = (first + 1 + seed / all.len() % (all.len() - 1)) % all.len();
        vec![all[first], all[second]]
    }
}

/// Real members, and a kubelet for each.
struct Cluster {
    processes: Mutex<EtcdProcesses>,
    /// `--initial-cluster` and `--initial-cluster-state` of each static pod.
    manifests: Mutex<BTreeMap<usize, (String, &'static str)>>,
    off: Mutex<Option<usize>>,
    /// As the Lease in the API does, it admits one run at a time.
    lease: tokio::sync::Mutex<()>,
}

impl Cluster {
    fn begin(processes: EtcdProcesses) -> Self {
        let pairs = VOTERS.map(|number| format!("n{number}={}", EtcdProcesses::peer_url(number)));
        let manifests = VOTERS.map(|number| (number, (pairs.join(","), "new"))).into();
        let cluster = Self {
            processes: Mutex::new(processes),
            manifests: Mutex::new(manifests),
            off: Mutex::new(None),
            lease: tokio::sync::Mutex::new(()),
        };
        cluster.supervise();
        cluster
    }

    /// Starts what has a manifest and does not run.
    fn supervise(&self) {
        let (mut processes, off) = (self.processes.lock().unwrap(), *self.off.lock().unwrap());
        for (number, (initial_cluster, state)) in &*self.manifests.lock().unwrap() {
            if off != Some(*number) && !processes.runs(*number) {
                processes.start(*number, initial_cluster, state);
            }
        }
    }

    fn kill(&self, number: usize) {
        self.processes.lock().unwrap().kill(number);
    }

    async fn observe(&self) -> Membership {
        loop {
            self.supervise();
            let access = self.processes.lock().unwrap().access(&VOTERS);
            match access.observe().await {
                Ok(seen) => return seen,
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    async fn change(&self, seen: &Membership, change: &MembershipChange) -> bool {
        let access = self.processes.lock().unwrap().access(&VOTERS);
        perform(&access, seen, change).await.is_ok()
    }

    /// Waits until every member is a healthy voter.
    async fn settled(&self, count: usize, case: Case) {
        let waited = wait_for("healthy voters and no learner", LIMIT, || async {
            let seen = self.observe().await;
            let well = seen.voters().filter(|voter| voter.status().is_some()).count();
            if (well, seen.members.len()) == (count, count) && seen.leader().is_some() {
                WaitStatus::Holds(())
            } else {
                WaitStatus::NotYet(format!("{seen:?}"))
            }
        });
        waited.await.unwrap_or_else(|error| panic!("{case:?}: {error}"));
    }

    /// As an operator removes a node.
    async fn remove(&self, number: usize) {
        let url = EtcdProcesses::peer_url(number);
        loop {
            let seen = self.observe().await;
            let Some(member) = seen.members.iter().find(|one| one.peer_urls.contains(&url)) else { break };
            let change = MembershipChange::Replace { id: member.id, voter: !member.is_learner };
            self.change(&seen, &change).await;
        }
        self.set_aside(number);
    }

    /// As a run does that ends without its host.
    async fn withdraw(&self, number: usize) {
        let access = self.processes.lock().unwrap().access(&VOTERS);
        let waited = wait_for("the learner to be withdrawn", LIMIT, || async {
            match withdraw(&access, &EtcdProcesses::peer_url(number)).await {
                Ok(_) => WaitStatus::Holds(()),
                Err(error) => WaitStatus::NotYet(error.to_string()),
            }
        });
        waited.await.unwrap();
    }

    fn set_aside(&self, number: usize) {
        self.manifests.lock().unwrap().remove(&number);
        let mut processes = self.processes.lock().unwrap();
        processes.kill(number);
        processes.wipe(number);
    }

    async fn play(&self, case: Case) {
        let [one, other] = JOINERS;
        let run = |number, fault| Run { cluster: self, number, fault }.join();
        let joiners = match case {
            Case::TwoAtOnce => {
                assert_eq!(tokio::join!(run(one, None), run(other, None)), (true, true), "{case:?}");
                2
            }
            Case::Killed(fault) => {
                run(one, Some(fault)).await;
                *self.off.lock().unwrap() = None;
                assert!(run(one, None).await, "{case:?}: the next run does not converge");
                1
            }
        };
        self.settled(VOTERS.len() + joiners, case).await;
        for number in JOINERS.into_iter().take(joiners) {
            self.remove(number).await;
        }
        self.settled(VOTERS.len(), case).await;
    }
}

/// A run of metalform, as far as it concerns etcd.
struct Run<'a> {
    cluster: &'a Cluster,
    number: usize,
    /// What will go wrong, once.
    fault: Option<Fault>,
}

impl Run<'_> {
    /// False where it ends before its node's member is a healthy voter.
    async fn join(mut self) -> bool {
        let _lease = self.cluster.lease.lock().await;
        let peer_url = EtcdProcesses::peer_url(self.number);
        let goal = MemberGoal { name: format!("n{}", self.number), peer_url };
        let mut started = false;
        loop {
            let seen = self.cluster.observe().await;
            let progress = LearnerProgress { started, ..LearnerProgress::STARTED };
            let decided = next(&goal, &seen, progress);
            let step = match &decided {
                Move::Holds => return true,
                Move::Change(MembershipChange::AddLearner { .. }) => Step::Add,
                Move::Change(MembershipChange::Promote { .. }) => Step::Promote,
                Move::StartLearner { .. } => Step::Start,
                Move::Change(_) | Move::Blocked(_) => panic!("{decided:?}"),
                _ => {
                    sleep(PAUSE).await;
                    continue;
                }
            };
            if self.strikes(step, Instant::Before, &seen).await {
                return false;
            }
            let patience = match self.fault {
                Some((_, at, Instant::Midway)) if at == step => MIDWAY,
                _ => LIMIT,
            };
            let done = timeout(patience, self.perform(&seen, &decided)).await.unwrap_or(false);
            started |= done && step == Step::Start;
            if self.strikes(step, Instant::Midway, &seen).await
                || done && self.strikes(step, Instant::After, &seen).await
            {
                return false;
            }
        }
    }

    async fn perform(&self, seen: &Membership, decided: &Move) -> bool {
        match decided {
            Move::Change(change @ MembershipChange::AddLearner { .. }) => {
                // Data that is there is of a member that was taken out.
                self.cluster.set_aside(self.number);
                self.cluster.change(seen, change).await
            }
            Move::Change(change) => self.cluster.change(seen, change).await,
            Move::StartLearner { initial_cluster, .. } => {
                let manifest = (initial_cluster.clone(), "existing");
                self.cluster.manifests.lock().unwrap().insert(self.number, manifest);
                self.cluster.supervise();
                true
            }
            _ => true,
        }
    }

    /// Whether it ends the run.
    async fn strikes(&mut self, step: Step, instant: Instant, seen: &Membership) -> bool {
        let Some((victim, ..)) = self.fault.take_if(|fault| (fault.1, fault.2) == (step, instant)) else {
            return false;
        };
        match victim {
            Victim::Metalform => {}
            Victim::Joiner => {
                *self.cluster.off.lock().unwrap() = Some(self.number);
                self.cluster.kill(self.number);
                self.cluster.withdraw(self.number).await;
            }
            Victim::Leader => {
                let leader = seen.leader().unwrap().0.name.trim_start_matches('n').parse().unwrap();
                self.cluster.kill(leader);
            }
        }
        victim != Victim::Leader
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_etcd_survives_joins_that_break_off_and_loses_no_write() {
    let Some(processes) = EtcdProcesses::find() else { return };
    let given = std::env::var("METALFORM_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: usize = given.unwrap_or_else(|| usize::try_from(std::process::id()).unwrap());
    let cluster = Cluster::begin(processes);
    cluster.settled(VOTERS.len(), Case::TwoAtOnce).await;
    let writer = Writer::start(cluster.processes.lock().unwrap().access(&VOTERS));
    for case in Case::chosen(seed) {
        let since = Time::now();
        let played = timeout(2 * LIMIT, cluster.play(case)).await;
        assert!(played.is_ok(), "METALFORM_SEED={seed} {case:?}: does not end in {} s", 2 * LIMIT.as_secs());
        let gap = writer.gap(since);
        assert!(gap <= GAP, "METALFORM_SEED={seed} {case:?}: no write was confirmed for {gap:?}");
    }
    assert_eq!(writer.lost().await, Vec::<usize>::new(), "METALFORM_SEED={seed}: confirmed and lost");
}
