//! One script of membership for both: metalform's own client against the server in this process and against real
//! processes, with the same transcript.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use metalform::engine::wait::{WaitStatus, wait_for};
use metalform::etcd::act::{ActError, perform};
use metalform::etcd::client::{DEADLINE, EtcdAccess};
use metalform::etcd::defragment::{self, DefragmentMemory, DefragmentStep};
use metalform::etcd::member::Membership;
use metalform::etcd::membership::MembershipChange;
use metalform::etcd::snapshot;
use tokio::task::JoinHandle;

use super::certificates::EtcdCa;
use super::process::EtcdProcesses;
use super::server::{MemberServer, SharedEtcd};
use crate::simulated_etcd::Etcd;

/// How members are started and stopped.
trait Members {
    fn access(&self, numbers: &[usize]) -> EtcdAccess;
    async fn start(&mut self, number: usize, initial_cluster: &str, state: &str);
    async fn stop(&mut self, number: usize);
    fn last_line(&self, number: usize) -> String;
}

impl Members for EtcdProcesses {
    fn access(&self, numbers: &[usize]) -> EtcdAccess {
        Self::access(self, numbers)
    }

    async fn start(&mut self, number: usize, initial_cluster: &str, state: &str) {
        Self::start(self, number, initial_cluster, state);
    }

    async fn stop(&mut self, number: usize) {
        self.kill(number);
    }

    fn last_line(&self, number: usize) -> String {
        Self::last_line(self, number)
    }
}

/// Members in this process, at the same sort of address.
struct Served {
    etcd: SharedEtcd,
    ca: EtcdCa,
    listening: Vec<(usize, JoinHandle<()>)>,
}

impl Served {
    fn new() -> Self {
        Self { etcd: Arc::new(Mutex::new(Etcd::default())), ca: EtcdCa::new(), listening: Vec::new() }
    }

    /// 100 more than the real members', whose test runs in this process too.
    fn number(number: usize) -> usize {
        number + 100
    }
}

impl Members for Served {
    fn access(&self, numbers: &[usize]) -> EtcdAccess {
        let endpoints =
            numbers.iter().map(|number| EtcdProcesses::client_url(Self::number(*number))).collect();
        EtcdAccess { endpoints, connector: Arc::new(self.ca.credentials()), deadline: DEADLINE }
    }

    async fn start(&mut self, number: usize, initial_cluster: &str, state: &str) {
        let peer_url = EtcdProcesses::peer_url(Self::number(number));
        let name = format!("n{number}");
        let mut data =
            self.etcd.lock().unwrap().members.iter().find(|one| one.name == name).map(|one| one.id);
        if state == "new" {
            data = Some(self.etcd.lock().unwrap().begin(&name, &peer_url));
        }
        self.etcd.lock().unwrap().start(&name, &peer_url, initial_cluster, &mut data).unwrap();
        let address = (EtcdProcesses::address(Self::number(number)), 2379).into();
        let listening = MemberServer::new(&self.etcd, &peer_url).listen(address, &self.ca).await;
        self.listening.push((number, listening));
    }

    async fn stop(&mut self, number: usize) {
        let name = format!("n{number}");
        let mut etcd = self.etcd.lock().unwrap();
        etcd.members.iter_mut().filter(|one| one.name == name).for_each(|one| one.running = false);
        for (_, listening) in self.listening.iter().filter(|(listening, _)| *listening == number) {
            listening.abort();
        }
    }

    fn last_line(&self, _: usize) -> String {
        String::new()
    }
}

struct Played<'a, M> {
    members: &'a mut M,
    peer_url: fn(usize) -> String,
    lines: Vec<String>,
}

impl<M: Members> Played<'_, M> {
    async fn seen(&mut self, what: &str, holds: impl Fn(&Membership) -> bool) -> Membership {
        let access = self.members.access(&[1, 2]);
        let waited = wait_for(what, Duration::from_secs(30), || async {
            match access.observe().await {
                Ok(seen) if holds(&seen) => WaitStatus::Holds(seen),
                Ok(seen) => WaitStatus::NotYet(format!("{seen:?}")),
                Err(error) => WaitStatus::NotYet(error.to_string()),
            }
        });
        let logs = || [1, 2].map(|number| self.members.last_line(number)).join("\n");
        let seen = waited.await.unwrap_or_else(|error| panic!("{error}\n{}", logs()));
        let lines = seen.members.iter().map(|member| {
            let vote = if member.is_learner { "learner" } else { "voter" };
            let health = if member.status().is_some() { "healthy" } else { "not healthy" };
            format!("{:?} {vote} {health}", member.name)
        });
        self.lines.push(format!("{what}: {}", lines.collect::<Vec<_>>().join(", ")));
        seen
    }

    /// Tries once.
    async fn attempt(&mut self, seen: &Membership, change: &MembershipChange) {
        let done = perform(&self.members.access(&[1]), seen, change).await;
        self.lines.push(done.map_or_else(|error| error.to_string(), |()| "changed".to_owned()));
    }

    /// Tries until etcd does it. How often and why not depends on time: not noted.
    async fn change(&mut self, seen: &Membership, change: &MembershipChange) {
        let access = self.members.access(&[1]);
        let done = wait_for("the change", Duration::from_secs(30), || async {
            match perform(&access, seen, change).await {
                Ok(()) => WaitStatus::Holds(()),
                Err(error @ ActError::NotYet { .. }) => WaitStatus::NotYet(error.to_string()),
                Err(error) => WaitStatus::Never(error.to_string()),
            }
        });
        let done = done.await;
        self.lines.push(done.map_or_else(|error| error.to_string(), |()| "changed".to_owned()));
    }

    async fn play(mut self) -> String {
        let cluster = |numbers: &[usize]| {
            let members = numbers.iter().map(|number| format!("n{number}={}", (self.peer_url)(*number)));
            members.collect::<Vec<_>>().join(",")
        };
        let (one, two) = (cluster(&[1]), cluster(&[1, 2]));
        let peer_url = (self.peer_url)(2);
        self.members.start(1, &one, "new").await;
        let seen = self.seen("one member", |seen| seen.leader().is_some()).await;
        self.change(&seen, &MembershipChange::AddLearner { peer_url }).await;
        let seen = self.seen("added", |seen| seen.members.len() == 2).await;
        let second = MembershipChange::AddLearner { peer_url: (self.peer_url)(3) };
        self.attempt(&seen, &second).await;
        self.members.start(2, &two, "existing").await;
        let healthy = |seen: &Membership| seen.members.iter().all(|member| member.status().is_some());
        let seen = self.seen("started", |seen| seen.members.len() == 2 && healthy(seen)).await;
        let learner = seen.members.iter().find(|member| member.is_learner).unwrap().id;
        self.change(&seen, &MembershipChange::Promote { id: learner }).await;
        let seen = self.seen("promoted", |seen| seen.voters().count() == 2 && healthy(seen)).await;
        self.attempt(&seen, &MembershipChange::Promote { id: learner }).await;
        // Decided while it was a learner.
        let late = MembershipChange::Remove { id: learner, why: "made no progress".to_owned() };
        self.attempt(&seen, &late).await;
        self.seen("still a voter", |seen| seen.voters().count() == 2 && healthy(seen)).await;
        self.members.stop(2).await;
        let access = self.members.access(&[1]);
        let waited = wait_for("no quorum", Duration::from_secs(30), || async {
            match access.observe().await {
                Ok(seen) => WaitStatus::NotYet(format!("{seen:?}")),
                Err(_) => WaitStatus::Holds(()),
            }
        });
        self.lines.push(if waited.await.is_ok() { "no quorum" } else { "still a quorum" }.to_owned());
        self.members.start(2, &two, "existing").await;
        self.seen("restarted", |seen| seen.members.len() == 2 && healthy(seen)).await;
        self.lines.join("\n")
    }
}

const TRANSCRIPT: &str = r#"one member: "n1" voter healthy
changed
added: "" learner not healthy, "n1" voter healthy
etcd cannot do this yet: etcdserver: too many learner members in cluster
started: "n1" voter healthy, "n2" learner healthy
changed
promoted: "n1" voter healthy, "n2" voter healthy
the members of etcd changed meanwhile: etcdserver: can only promote a learner member
the members of etcd changed meanwhile: it is a voter by now
still a voter: "n1" voter healthy, "n2" voter healthy
no quorum
restarted: "n1" voter healthy, "n2" voter healthy"#;

#[tokio::test]
async fn the_server_in_this_process_plays_the_script() {
    let peer_url = |number| EtcdProcesses::peer_url(Served::number(number));
    let mut members = Served::new();
    let played = Played { members: &mut members, peer_url, lines: Vec::new() };
    assert_eq!(played.play().await, TRANSCRIPT);
}

#[tokio::test]
async fn real_etcd_plays_the_same_script() {
    let Some(mut members) = EtcdProcesses::find() else { return };
    let played = Played { members: &mut members, peer_url: EtcdProcesses::peer_url, lines: Vec::new() };
    assert_eq!(played.play().await, TRANSCRIPT);
}

#[tokio::test(start_paused = true)]
async fn a_client_without_a_socket_speaks_the_same_protocol() {
    let etcd: SharedEtcd = Arc::new(Mutex::new(Etcd::default()));
    let url = "https://192.0.2.11:2380";
    let member = MemberServer::new(&etcd, url);
    assert!(member.client().await.is_err(), "it does not run yet");
    let mut data = Some(etcd.lock().unwrap().begin("n1", url));
    etcd.lock().unwrap().start("n1", url, "", &mut data).unwrap();
    let mut client = member.client().await.unwrap();
    let learner = etcd_client::MemberAddOptions::new().with_is_learner();
    client.member_add(["https://192.0.2.12:2380"], Some(learner)).await.unwrap();
    let listed = client.member_list().await.unwrap();
    let urls: Vec<&[String]> = listed.members().iter().map(etcd_client::Member::peer_urls).collect();
    assert_eq!(urls, [["https://192.0.2.12:2380"], [url]]);
    let status = client.status().await.unwrap();
    assert_eq!((status.leader(), status.version()), (1, "3.6.16"));
    etcd.lock().unwrap().members[0].running = false;
    let error = client.status().await.unwrap_err();
    assert!(error.to_string().contains("connection refused"), "{error}");
}

#[tokio::test]
async fn real_etcd_s_snapshot_is_whole_with_and_without_quorum() {
    let Some(mut members) = EtcdProcesses::find() else { return };
    // Numbers of their own: members of the other tests run beside them.
    let cluster = format!("n31={},n32={}", EtcdProcesses::peer_url(31), EtcdProcesses::peer_url(32));
    members.start(31, &cluster, "new");
    members.start(32, &cluster, "new");
    let access = members.access(&[31, 32]);
    let observed = wait_for("two voters", Duration::from_secs(30), || async {
        match access.observe().await {
            Ok(seen) if seen.members.iter().all(|one| one.status().is_some()) => WaitStatus::Holds(seen),
            other => WaitStatus::NotYet(format!("{other:?}")),
        }
    });
    let observed = observed.await.unwrap_or_else(|error| panic!("{error}\n{}", members.last_line(31)));
    let source = snapshot::source(&observed).unwrap();
    assert!(!source.status().unwrap().leader, "{source:?}");
    let url = EtcdProcesses::client_url(31);
    let urls = [&url];
    let taken = async || {
        let mut kept = Vec::new();
        let streamed = snapshot::stream(&access, &urls, |part| {
            kept.extend_from_slice(part);
            Ok(())
        });
        streamed.await.map(|size| (size, kept.len() as u64))
    };
    let (size, kept) = taken().await.unwrap();
    assert!(size == kept && size > 4096, "{size} {kept}");
    members.kill(32);
    let (size, kept) = taken().await.unwrap();
    assert_eq!(size, kept);
    members.kill(31);
    assert!(matches!(taken().await, Err(snapshot::SnapshotError::Call(_))));
}

#[tokio::test]
async fn real_etcd_returns_its_free_space_and_accepts_writes_after_it_was_full() {
    let Some(mut members) = EtcdProcesses::find() else { return };
    members.quota = Some(8 << 20);
    members.start(41, &format!("n41={}", EtcdProcesses::peer_url(41)), "new");
    let access = members.access(&[41]);
    let observe = async || {
        let seen = wait_for("a leader", Duration::from_secs(30), || async {
            match access.observe().await {
                Ok(seen) if seen.leader().is_some() => WaitStatus::Holds(seen),
                other => WaitStatus::NotYet(format!("{other:?}")),
            }
        });
        seen.await.unwrap_or_else(|error| panic!("{error}\n{}", members.last_line(41)))
    };
    observe().await;
    let url = EtcdProcesses::client_url(41);
    let mut client = access.connector.connect(&[&url], DEADLINE).await.unwrap();
    // One key, so that nothing but old revisions fills it.
    let refused = loop {
        if let Err(error) = client.put("key", vec![0; 1 << 20], None).await {
            break error;
        }
    };
    assert!(refused.to_string().contains("database space exceeded"), "{refused}");
    let (mut memory, mut steps) = (DefragmentMemory::default(), Vec::new());
    let full = observe().await;
    let mut observed = full.clone();
    loop {
        let step = defragment::next(&observed, &memory).unwrap();
        defragment::perform(&access, &observed, &step).await.unwrap();
        match step {
            DefragmentStep::Compact { .. } => memory.compacted = true,
            DefragmentStep::Defragment { id } => drop(memory.done.insert(id)),
            DefragmentStep::ClearAlarm { .. } => {}
            DefragmentStep::Done | DefragmentStep::MoveLeader { .. } => break,
        }
        steps.push(step);
        assert!(steps.len() <= 3, "{steps:?}");
        observed = observe().await;
    }
    assert_eq!(steps.len(), 3, "{steps:?}");
    let size = |seen: &Membership| seen.leader().unwrap().1.db_size;
    assert!(size(&observed) * 3 < size(&full), "{} {}", size(&observed), size(&full));
    client.put("key", "small", None).await.unwrap();
}
