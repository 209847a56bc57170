//! Clusters made up for tests, and a simulation of growing one while everything goes wrong.

use std::time::Duration;

use proptest::prelude::*;

use super::member::{Health, Member, Membership, Status};
use super::membership::{LearnerProgress, MemberGoal, MembershipChange, Move, next};
use super::quorum::quorum;

/// Where all members of a made up cluster are in their logs.
const LOG: u64 = 10_000;

pub(crate) fn peer_url(name: &str) -> String {
    format!("https://{name}:2380")
}

pub(crate) fn voter(id: u64, name: &str) -> Member {
    Member {
        id,
        name: name.to_owned(),
        peer_urls: vec![peer_url(name)],
        client_urls: vec![format!("https://{name}:2379")],
        is_learner: false,
        health: Health::Healthy(Status {
            leader: false,
            raft_index: LOG,
            raft_applied: LOG,
            db_size: 20 << 20,
            revision: 8000,
            version: "3.6.16".to_owned(),
            latency: Duration::from_micros(1500),
        }),
    }
}

pub(crate) fn learner(id: u64, name: &str) -> Member {
    Member { is_learner: true, ..voter(id, name) }
}

pub(crate) fn leading(mut member: Member) -> Member {
    if let Health::Healthy(status) = &mut member.health {
        status.leader = true;
    }
    member
}

pub(crate) fn at(mut member: Member, applied: u64) -> Member {
    if let Health::Healthy(status) = &mut member.health {
        status.raft_applied = applied;
    }
    member
}

pub(crate) fn down(mut member: Member) -> Member {
    member.health = Health::Unknown { reason: "no answer".to_owned() };
    member
}

pub(crate) fn unstarted(mut member: Member) -> Member {
    member.name.clear();
    member.client_urls.clear();
    member.health = Health::Unknown { reason: "has not started".to_owned() };
    member
}

pub(crate) fn membership(members: Vec<Member>) -> Membership {
    Membership { cluster_id: 1, members, alarms: Vec::new() }
}

/// What goes wrong in one turn.
#[derive(Debug, Clone, Copy)]
enum Fault {
    None,
    /// The change is not made, and fails.
    FailsBefore,
    /// The change is made, and fails all the same.
    FailsAfter,
    /// The run is killed: it forgets what it knew.
    Killed,
    /// etcd on the host does not come up this turn, nor does it copy anything.
    Slow,
    /// The present learner will never come up, nor copy anything more.
    Stuck,
    /// A voter stops answering.
    Dies(usize),
    /// All voters answer again.
    Revive,
}

/// etcd as its documentation has it: at most one learner, and changes need quorum.
struct World {
    members: Vec<Simulated>,
    next_id: u64,
}

struct Simulated {
    id: u64,
    host: String,
    named: bool,
    learner: bool,
    alive: bool,
    stuck: bool,
    applied: u64,
}

/// One `deploy-node`, started again whenever it was killed or gave up.
struct Run {
    goal: MemberGoal,
    started: bool,
    waited: u64,
}

const LIMIT: u64 = 12;

impl World {
    fn new(voters: u64) -> Self {
        let voter = |id| Simulated {
            id,
            host: format!("old-{id}"),
            named: true,
            learner: false,
            alive: true,
            stuck: false,
            applied: LOG,
        };
        Self { members: (0..voters).map(voter).collect(), next_id: voters }
    }

    fn voters(&self) -> impl Iterator<Item = &Simulated> {
        self.members.iter().filter(|member| !member.learner)
    }

    fn has_quorum(&self) -> bool {
        self.voters().filter(|voter| voter.alive).count() >= quorum(self.voters().count())
    }

    fn observe(&self) -> Membership {
        let leader = self.voters().find(|voter| voter.alive).map(|voter| voter.id);
        let seen = |member: &Simulated| {
            let mut seen = at(voter(member.id, &member.host), member.applied);
            seen.is_learner = member.learner;
            if Some(member.id) == leader {
                seen = leading(seen);
            }
            match (member.named, member.alive) {
                (false, _) => unstarted(seen),
                (true, false) => down(seen),
                (true, true) => seen,
            }
        };
        membership(self.members.iter().map(seen).collect())
    }

    /// Refuses what etcd refuses.
    fn change(&mut self, change: &MembershipChange) -> Result<(), &'static str> {
        if !self.has_quorum() {
            return Err("no quorum");
        }
        match change {
            MembershipChange::AddLearner { peer_url: url } => {
                if self.members.iter().any(|member| member.learner) {
                    return Err("too many learners");
                }
                if self.members.iter().any(|member| peer_url(&member.host) == *url) {
                    return Err("peer URL exists");
                }
                let host = url.trim_start_matches("https://").trim_end_matches(":2380").to_owned();
                self.members.push(Simulated {
                    id: self.next_id,
                    host,
                    named: false,
                    learner: true,
                    alive: false,
                    stuck: false,
                    applied: 0,
                });
                self.next_id += 1;
            }
            MembershipChange::Promote { id } => {
                let member = self.members.iter_mut().find(|member| member.id == *id).ok_or("not found")?;
                if member.applied * 10 < LOG * 9 {
                    return Err("not in sync");
                }
                member.learner = false;
            }
            MembershipChange::Remove { id, .. }
            | MembershipChange::Evict { id, .. }
            | MembershipChange::Replace { id, .. }
            | MembershipChange::Retire { id, .. } => self.members.retain(|member| member.id != *id),
        }
        Ok(())
    }

    /// What etcd on the hosts gets done in one turn.
    fn tick(&mut self, started: &[&str]) {
        for member in self.members.iter_mut().filter(|member| !member.stuck) {
            if started.contains(&member.host.as_str()) {
                member.named = true;
                member.alive = true;
            }
            if member.named && member.alive {
                member.applied = LOG.min(member.applied + LOG / 4);
            }
        }
    }
}

impl Run {
    fn new(name: &str) -> Self {
        let goal = MemberGoal { name: name.to_owned(), peer_url: peer_url(name) };
        Self { goal, started: false, waited: 0 }
    }

    fn forget(&mut self) {
        self.started = false;
        self.waited = 0;
    }

    fn decide(&mut self, world: &World) -> Move {
        let observed = world.observe();
        let listed = observed.members.iter().any(|member| member.peer_urls.contains(&self.goal.peer_url));
        self.waited = if listed { self.waited + 1 } else { 0 };
        let progress = LearnerProgress {
            started: self.started,
            waited: Duration::from_secs(self.waited),
            limit: Duration::from_secs(LIMIT),
            ..LearnerProgress::STARTED
        };
        next(&self.goal, &observed, progress)
    }
}

/// One turn of one run. True when it holds.
fn turn(world: &mut World, run: &mut Run, fault: Fault) -> bool {
    match fault {
        Fault::Dies(which) => {
            let alive: Vec<u64> = world.voters().filter(|voter| voter.alive).map(|voter| voter.id).collect();
            let id = alive.get(which % alive.len().max(1)).copied();
            world.members.iter_mut().filter(|member| Some(member.id) == id).for_each(|m| m.alive = false);
        }
        Fault::Revive => {
            world.members.iter_mut().filter(|member| member.named).for_each(|member| member.alive = true);
        }
        Fault::Killed => run.forget(),
        Fault::Stuck => {
            world.members.iter_mut().filter(|member| member.learner).for_each(|member| member.stuck = true);
        }
        Fault::None | Fault::FailsBefore | Fault::FailsAfter | Fault::Slow => {}
    }
    let decided = run.decide(world);
    match &decided {
        Move::Holds => return true,
        Move::StartLearner { id, initial_cluster } => {
            assert_eq!(initial_cluster.split(',').count(), world.members.len(), "etcd would refuse to start");
            assert!(world.members.iter().any(|member| member.id == *id), "it is in the list");
            run.started = true;
        }
        Move::Change(change) => {
            let before = world.voters().count();
            if !matches!(fault, Fault::FailsBefore) && world.change(change).is_ok() {
                assert!(world.voters().count() >= before, "no vote was lost");
                assert!(world.has_quorum(), "quorum outlives {change:?}");
                if matches!(change, MembershipChange::Remove { .. }) {
                    run.forget();
                } else {
                    assert!(world.voters().all(|voter| voter.alive), "{change:?} while a voter was down");
                }
            }
        }
        Move::Blocked(obstacle) => panic!("nothing here needs a person: {obstacle}"),
        Move::WaitForStart { .. }
        | Move::WaitForSync { .. }
        | Move::WaitForVoters { .. }
        | Move::WaitForLearner { .. } => {}
    }
    assert!(world.members.iter().filter(|member| member.learner).count() <= 1, "one learner at a time");
    if !matches!(fault, Fault::Slow) {
        let started: &[&str] = if run.started { &[run.goal.name.as_str()] } else { &[] };
        world.tick(started);
    }
    false
}

fn faults() -> impl Strategy<Value = Vec<Fault>> {
    let fault = prop_oneof![
        6 => Just(Fault::None),
        2 => Just(Fault::FailsBefore),
        2 => Just(Fault::FailsAfter),
        2 => Just(Fault::Killed),
        3 => Just(Fault::Slow),
        1 => Just(Fault::Stuck),
        2 => any::<prop::sample::Index>().prop_map(|index| Fault::Dies(index.index(5))),
        2 => Just(Fault::Revive),
    ];
    prop::collection::vec(fault, 0..80)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Two nodes join at once, with no Lease between them, which is worse than real.
    #[test]
    fn a_cluster_grows_whatever_goes_wrong_on_the_way(voters in 1..5_u64, faults in faults()) {
        let mut world = World::new(voters);
        let mut runs = [Run::new("b"), Run::new("c")];
        for (number, fault) in faults.into_iter().enumerate() {
            turn(&mut world, &mut runs[number % 2], fault);
        }
        let mut turns = 0;
        loop {
            let held = runs.each_mut().map(|run| turn(&mut world, run, Fault::Revive));
            if held == [true, true] {
                break;
            }
            turns += 1;
            prop_assert!(turns < 60, "does not converge");
        }
        prop_assert_eq!(world.voters().count(), usize::try_from(voters + 2)?);
        prop_assert_eq!(world.members.len(), world.voters().count());
    }
}
