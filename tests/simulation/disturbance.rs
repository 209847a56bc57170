//! What happens to machines, networks and databases while nobody asks for it.

use std::time::Duration;

use metalform::model::api_contract::API_SERVER;
use tokio::time::Instant;

use crate::support::cluster::{Cluster, ReachPod};
use crate::support::dice::Dice;
use crate::support::etcd::SimulatedMember;
use crate::support::host::{APISERVER, Host};

/// What one host meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Disturbance {
    /// No power.
    Off,
    /// No network.
    Cut,
    /// No SSH.
    Unreachable,
    /// Its etcd member is alone.
    Parted,
    /// Its etcd member stores nothing more.
    Lags,
    /// Two megabytes a second.
    Slow,
    /// etcd does not start, or ends.
    NoEtcd,
    /// etcd exits as often as it starts.
    Crashes,
    /// The API is away after each change of etcd's members.
    Stutters,
    /// The API is away.
    Away,
    /// Its database has reached its quota.
    Full,
    /// The pod of a run that failed long ago is there.
    OldPod,
    /// The data of its etcd member is gone.
    DataLost,
    /// Another machine has its place.
    Reinstalled,
    /// What etcd and the API servers run with is changed.
    Reconfigured,
}

const ALL: [Disturbance; 15] = [
    Disturbance::Off,
    Disturbance::Cut,
    Disturbance::Unreachable,
    Disturbance::Parted,
    Disturbance::Lags,
    Disturbance::Slow,
    Disturbance::NoEtcd,
    Disturbance::Crashes,
    Disturbance::Stutters,
    Disturbance::Away,
    Disturbance::Full,
    Disturbance::OldPod,
    Disturbance::DataLost,
    Disturbance::Reinstalled,
    Disturbance::Reconfigured,
];

impl Disturbance {
    /// Whether it may take a vote away for a while.
    fn is_of_votes(self) -> bool {
        matches!(self, Self::Off | Self::Cut | Self::Parted | Self::Lags | Self::NoEtcd | Self::Crashes)
    }

    fn befall(self, cluster: &mut Cluster, name: &str, dice: &Dice, now: Instant) {
        match self {
            Self::Off => cluster.host(name).on = false,
            Self::Cut => cluster.host(name).cut = true,
            Self::Unreachable => cluster.host(name).reached = false,
            Self::Parted => cluster.host(name).peers_cut = true,
            Self::Lags => cluster.host(name).lags = true,
            Self::Slow => cluster.host(name).speed = 2 << 20,
            Self::NoEtcd => cluster.host(name).etcd_works = false,
            Self::Crashes => cluster.host(name).etcd_crashes = true,
            Self::Stutters => cluster.away_after_change = Duration::from_secs(20),
            Self::Away => cluster.away_until = Some(now + dice.within(Duration::from_secs(50))),
            Self::Full => {
                let members: Vec<u64> = cluster.etcd.members.iter().map(|member| member.id).collect();
                cluster.etcd.full = (!members.is_empty()).then(|| *dice.pick(&members));
            }
            Self::OldPod => {
                cluster.reach_pods.insert(name.to_owned(), ReachPod::Ended);
            }
            Self::Reconfigured => cluster.configuration += 1,
            Self::DataLost => drop(cluster.host(name).lose_data()),
            Self::Reinstalled => cluster.reinstall(name),
        }
    }

    /// Whether `--replace-member` repairs it: most of all voters keep their data, and one of these has an API server.
    fn is_repairable(self, cluster: &Cluster, name: &str) -> bool {
        if !matches!(self, Self::DataLost | Self::Reinstalled) {
            return true;
        }
        let first = cluster.hosts[name].number == 1;
        if first && self == Self::Reinstalled {
            return false;
        }
        let has_data = |host: &Host, id: u64| host.etcd_data == Some(id);
        let voters: Vec<&SimulatedMember> = cluster.etcd.voters().collect();
        let keeps = |voter: &&&SimulatedMember| {
            voter.name != name && cluster.hosts.get(&voter.name).is_some_and(|host| has_data(host, voter.id))
        };
        let kept: Vec<&SimulatedMember> = voters.iter().filter(keeps).copied().collect();
        let votes = voters.iter().any(|voter| voter.name == name);
        // A recovery stops API servers whose Nodes it cannot yet change, and leaves others with the member that went on
        // alone. An API server whose own member has lost its data does not serve either, while its Node still records
        // it as ready.
        let lists = |servers: &String| kept.iter().any(|voter| servers.contains(&voter.client_url()));
        let serves = |voter: &&SimulatedMember| {
            let (node, host) = (cluster.nodes.get(&voter.name), cluster.hosts.get(&voter.name));
            node.is_some_and(|node| node.annotations.contains_key(API_SERVER))
                && host.is_some_and(|host| host.things.get(APISERVER).is_some_and(lists))
        };
        let most = kept.len() > voters.len() / 2;
        !votes && !first || most && kept.iter().any(serves)
    }
}

/// Something happens to one of these hosts, or passes; the answer is what, for people. That etcd has no quorum is rare.
pub fn disturb(cluster: &mut Cluster, names: &[&'static str], dice: &Dice, now: Instant) -> String {
    cluster.pass(now);
    cluster.disturbed = Some(now);
    let (name, what) = (*dice.pick(names), *dice.pick(&ALL));
    if dice.roll(2) == 0 {
        heal(cluster, name);
        return format!("{name} is well again");
    }
    let voters = cluster.etcd.voters().count();
    let able = cluster.etcd.voters().filter(|voter| cluster.etcd.is_well(voter)).count();
    let votes = cluster.etcd.voters().any(|voter| voter.name == name);
    if what.is_of_votes() && votes && able <= voters / 2 + 1 && dice.roll(4) > 0 {
        return format!("{name} is spared");
    }
    if !what.is_repairable(cluster, name) {
        return format!("{name} is spared");
    }
    what.befall(cluster, name, dice, now);
    cluster.pass(now);
    format!("{name}: {what:?}")
}

/// Nothing is wrong with a host, nor with the cluster as a whole.
pub fn heal(cluster: &mut Cluster, name: &str) {
    let host = cluster.host(name);
    (host.on, host.reached, host.cut, host.peers_cut) = (!host.gone, true, false, false);
    (host.etcd_works, host.etcd_crashes, host.lags) = (true, false, false);
    host.speed = crate::support::host::SPEED;
    (cluster.away_after_change, cluster.away_until, cluster.etcd.full) = (Duration::ZERO, None, None);
}
