//! A host that exists only here, at the level of probes and steps: it answers [`Probe`]s and performs [`Step`]s on
//! a small file tree and on what a machine has beside files. What happens to it, a script decides.

pub mod accounts;
pub mod boot;
pub mod fstab;
pub mod guards;
pub mod observe;
pub mod packages;
pub mod perform;
pub mod seed;
pub mod session;
pub mod title;
pub mod tree;
pub mod units;

use std::collections::{BTreeMap, BTreeSet};

use metalform::model::facts::Facts;
use metalform::resource::contract::host_condition::HostCondition;
use metalform::resource::contract::probe::MountState;

use self::accounts::Accounts;
use self::packages::Packages;
use self::tree::Tree;
use self::units::Units;

/// A command of states/mirror.yaml, and what it writes.
const FIRST_COPY: (&str, &str) = (
    "systemctl start metalform-mirror-sync.service || test -e /var/lib/metalform/mirror/contents.json",
    "/var/lib/metalform/mirror/contents.json",
);

/// How the bootstrap node reaches the host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Link {
    #[default]
    Up,
    /// Connections are refused with this reason.
    Unreachable(String),
    /// Whatever is sent gets no answer.
    Silent,
    /// The connection breaks when a change has reached this many of its steps.
    BreaksAfter(usize),
}

/// One machine.
#[derive(Debug, Clone)]
pub struct ScriptedHost {
    pub facts: Facts,
    pub link: Link,
    /// Whether it has power.
    pub on: bool,
    pub tree: Tree,
    pub packages: Packages,
    pub units: Units,
    pub accounts: Accounts,
    /// Kernel parameters, by their dotted keys.
    pub sysctls: BTreeMap<String, String>,
    /// Modules that are loaded or built in.
    pub modules: BTreeSet<String>,
    /// Modules that modprobe finds; each with the kernel parameters that it brings.
    pub loadable: BTreeMap<String, BTreeMap<String, String>>,
    pub swap: bool,
    /// Images in containerd's `k8s.io` namespace.
    pub images: BTreeSet<String>,
    /// Images that can be pulled; `None` is any.
    pub mirror: Option<BTreeSet<String>>,
    /// Destination → the rest of the line that `ip route` prints.
    pub routes: BTreeMap<String, String>,
    pub mounts: BTreeMap<String, MountState>,
    /// Names of devices (`UUID=1f`) → where they lead.
    pub devices: BTreeMap<String, String>,
    /// TCP ports that something listens on.
    pub listening: BTreeSet<u16>,
    /// What is seen instead of a condition; one that is not here holds.
    pub unmet: BTreeMap<HostCondition, String>,
    /// Conditions that are waited for in vain.
    pub never: BTreeSet<HostCondition>,
    /// Commands on the PATH.
    pub commands: BTreeSet<String>,
    /// Exit status of guards that nothing here knows, by their text.
    pub guards: BTreeMap<String, i32>,
    /// Steps that fail, by the beginning of their title, and how.
    pub failing: BTreeMap<String, Failing>,
    /// Static pods whose container does not stay up, by their name.
    pub crashing: BTreeMap<String, Crash>,
    /// Static pods that are not Ready yet, by their name.
    pub starting: BTreeSet<String>,
    /// Whether its kubelet has registered since it was started.
    pub registered: bool,
    /// Titles of the steps that were performed.
    pub performed: Vec<String>,
    /// Private keys and certificates, by their digests, that belong together although they are no real ones.
    pub pairs: BTreeSet<(String, String)>,
    /// Scripts of states → a file that each writes.
    pub brings: BTreeMap<String, String>,
    /// Seconds since the epoch.
    pub clock: u64,
    boots: u32,
}

/// How a step fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failing {
    pub status: i32,
    pub output: String,
}

/// A container that ends each time that it is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crash {
    pub status: i32,
    pub restarts: i32,
    /// The last line of its log.
    pub last_line: String,
}

impl ScriptedHost {
    /// A fresh Debian machine with these facts.
    pub fn new(facts: Facts) -> Self {
        let sysctls = [
            ("kernel.random.boot_id", facts.boot_id.as_str()),
            ("net.ipv4.ip_forward", "0"),
            ("net.ipv6.conf.all.forwarding", "0"),
            ("fs.inotify.max_user_instances", "128"),
            ("fs.inotify.max_user_watches", "65536"),
            ("kernel.keys.maxbytes", "20000"),
            ("kernel.keys.maxkeys", "200"),
            ("kernel.keys.root_maxbytes", "25000000"),
            ("kernel.keys.root_maxkeys", "1000000"),
            ("vm.overcommit_memory", "0"),
            ("vm.panic_on_oom", "0"),
            ("kernel.panic", "0"),
            ("kernel.panic_on_oops", "0"),
        ];
        let bridge = ["net.bridge.bridge-nf-call-iptables", "net.bridge.bridge-nf-call-ip6tables"];
        let brings = BTreeMap::from(bridge.map(|key| (key.to_owned(), "1".to_owned())));
        let loadable = ["overlay", "nf_tables", "nf_conntrack", "ip_vs"].map(|name| (name, BTreeMap::new()));
        Self {
            link: Link::Up,
            on: true,
            tree: Tree::default(),
            packages: Packages::default(),
            units: Units::default(),
            accounts: Accounts::default(),
            sysctls: sysctls.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            modules: BTreeSet::new(),
            loadable: loadable
                .into_iter()
                .chain([("br_netfilter", brings)])
                .map(|(name, keys)| (name.to_owned(), keys))
                .collect(),
            swap: facts.swap,
            images: BTreeSet::new(),
            mirror: None,
            routes: BTreeMap::new(),
            mounts: BTreeMap::new(),
            devices: BTreeMap::new(),
            listening: BTreeSet::new(),
            unmet: BTreeMap::new(),
            never: BTreeSet::new(),
            commands: ["openssl", "curl", "bash"].map(str::to_owned).into(),
            guards: BTreeMap::new(),
            failing: BTreeMap::new(),
            crashing: BTreeMap::new(),
            starting: BTreeSet::new(),
            registered: false,
            performed: Vec::new(),
            pairs: BTreeSet::new(),
            brings: BTreeMap::from([(FIRST_COPY.0.to_owned(), FIRST_COPY.1.to_owned())]),
            clock: u64::try_from(facts.clock).unwrap_or(0),
            boots: 0,
            facts,
        }
    }

    /// Whether a unit runs, which nothing does without power.
    pub fn runs(&self, unit: &str) -> bool {
        self.on && self.units.state(unit, &self.tree).active == "active"
    }
}
