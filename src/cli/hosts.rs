//! Which hosts a command of the state engine is about, and how each is reached.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;
use tokio::time::Instant;

use super::conduct::Conduct;
use super::deploy_node;
use super::failure::{Exit, Failure, chain};
use super::host_trouble::{Outcomes, outcomes};
use super::ssh_arguments::SshArguments;
use crate::engine::host::HostError;
use crate::engine::nonce::Nonce;
use crate::engine::roster::RosterFault;
use crate::engine::{self, fleet};
use crate::kube_api::{client, nodes};
use crate::model::document::{self, Document};
use crate::model::event::{Event, HostOutcome};
use crate::model::name::HostName;
use crate::model::node::NodeSpec;
use crate::model::role::Role;
use crate::model::roster::{Host, Roster};
use crate::model::selector::Selector;
use crate::model::ssh_target::{HostKeyPolicy, SshTarget};
use crate::transport::error::TransportError;
use crate::transport::pool::ConnectionPool;
use crate::workspace::layout::Layout;

/// The roster of the cluster itself.
const KUBERNETES: &str = "kubernetes";
/// What this machine is called where its own name is not one that a Node could have.
const UNNAMED: &str = "localhost";

/// Options that say which hosts.
#[derive(Debug, Args)]
pub struct HostArguments {
    /// Hosts, from a YAML file; or "kubernetes": the Nodes of the cluster. May be repeated
    #[arg(long, value_name = "FILE")]
    roster: Vec<PathBuf>,
    /// Only these: node-1, node-*, role:etcd, rack=a, role:etcd&rack=a, !node-3; separated by commas
    #[arg(long, value_name = "SELECTOR", requires = "roster")]
    on: Option<Selector>,
    /// This machine, without SSH; with --roster, as the one host of it that --on means
    #[arg(long)]
    local: bool,
    /// Hosts to work on at the same time
    #[arg(long, value_name = "N", default_value_t = fleet::LIMIT)]
    pub limit: NonZeroUsize,
    #[command(flatten)]
    ssh: SshArguments,
}

/// The hosts, and what the roster says for all of them.
pub struct Selected {
    /// By name; never none.
    pub hosts: Vec<Host>,
    /// The `cluster` of templates.
    pub cluster: BTreeMap<String, Value>,
    pool: ConnectionPool,
}

impl HostArguments {
    /// The hosts meant.
    ///
    /// # Errors
    /// When nothing says which, a roster cannot be read, or a selector means nobody.
    pub async fn select(&self) -> Result<Selected, Failure> {
        if self.roster.is_empty() {
            if self.local {
                return self.this_machine().await;
            }
            return Err(Failure::new(Exit::Configuration, "it is not said for which hosts")
                .hint("--roster FILE names hosts, --local is this machine"));
        }
        let roster = self.roster().await?;
        let hosts: Vec<Host> = match &self.on {
            Some(selector) => selector
                .select(&roster)
                .map_err(|error| Failure::new(Exit::Configuration, format!("--on: {error}")))?
                .into_iter()
                .cloned()
                .collect(),
            None => roster.hosts.values().cloned().collect(),
        };
        let local = match (&hosts[..], self.local) {
            ([], _) => {
                let error = format!("there is no host in {}", self.roster_names());
                return Err(Failure::new(Exit::Configuration, error));
            }
            (_, false) => self.is_kubernetes().then(|| own_name(&hosts)).flatten(),
            ([only], true) => Some(only.name.clone()),
            (many, true) => {
                let error = format!("this machine is one host, but {} are selected", many.len());
                return Err(Failure::new(Exit::Configuration, error).hint("--on NAME selects one"));
            }
        };
        Ok(Selected { hosts, cluster: roster.vars, pool: self.ssh.pool(local).await? })
    }

    /// This machine where nothing else is said.
    ///
    /// # Errors
    /// As [`HostArguments::select`].
    pub async fn select_or_local(&self) -> Result<Selected, Failure> {
        if self.roster.is_empty() { self.this_machine().await } else { self.select().await }
    }

    async fn this_machine(&self) -> Result<Selected, Failure> {
        let name = hostname();
        let unnamed = || UNNAMED.parse().map_err(|error| Failure::from_error(Exit::Bug, &error));
        let host = Host {
            name: name.parse().or_else(|_| unnamed())?,
            ssh: SshTarget {
                host: "127.0.0.1".to_owned(),
                port: 22,
                user: "root".to_owned(),
                identity_files: Vec::new(),
                identities_only: true,
                sudo: false,
                host_key: HostKeyPolicy::Known,
                bastion: None,
            },
            roles: [Role::Node].into(),
            labels: BTreeMap::new(),
            taints: Vec::new(),
            vars: BTreeMap::new(),
        };
        Ok(Selected {
            cluster: BTreeMap::new(),
            pool: self.ssh.pool(Some(host.name.clone())).await?,
            hosts: vec![host],
        })
    }

    fn is_kubernetes(&self) -> bool {
        self.roster == [Path::new(KUBERNETES)]
    }

    fn roster_names(&self) -> String {
        self.roster.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    }

    async fn roster(&self) -> Result<Roster, Failure> {
        if self.is_kubernetes() {
            return nodes_of_the_cluster().await;
        }
        read_roster(&self.roster)
    }
}

/// The hosts of these files.
///
/// # Errors
/// When one cannot be read; else one line for each thing that is wrong with them.
pub fn read_roster(paths: &[PathBuf]) -> Result<Roster, Failure> {
    let mut files = Vec::new();
    for path in paths {
        let text = read_text(path)
            .map_err(|failure| failure.hint("roster/example.yaml shows what a roster looks like"))?;
        files.push((path.display().to_string(), text));
    }
    let documents: Vec<Document<'_>> = files.iter().map(|(file, text)| Document { file, text }).collect();
    Roster::parse(&documents).map_err(|problems| Failure {
        exit: Exit::Configuration,
        errors: problems.0.iter().map(ToString::to_string).collect(),
        hints: Vec::new(),
    })
}

/// The text of a file that a person wrote.
///
/// # Errors
/// When it cannot be read, is too large for such a file, or is no text.
pub fn read_text(path: &Path) -> Result<String, Failure> {
    let name = path.display().to_string();
    let failed = |reason: String| Failure::new(Exit::Configuration, format!("{name}{reason}"));
    let bytes = std::fs::read(path).map_err(|error| failed(format!(": {error}")))?;
    document::text(bytes).map_err(|error| failed(format!("{}: {error}", error.place())))
}

impl Selected {
    /// Does `work` on the hosts, as `conduct` says. A host that cannot be reached, or that the states do not
    /// fit, holds up no other. `judge` tells what work that came to its end was: how the host is now, and how
    /// many of its resources were changed.
    pub async fn each<T>(
        &self,
        conduct: &Conduct<'_>,
        work: impl AsyncFn(&Host, engine::host::HostSession<'_>) -> Result<Result<T, Vec<RosterFault>>, HostError>,
        judge: impl Fn(&T) -> (HostOutcome, usize),
    ) -> Outcomes<T> {
        let wanted = |host: &&Host| conduct.only.as_ref().is_none_or(|only| only.contains(&host.name));
        let hosts: BTreeMap<&HostName, &Host> =
            self.hosts.iter().filter(wanted).map(|host| (&host.name, host)).collect();
        let (hosts, work, judge) = (&hosts, &work, &judge);
        let on_one = |name: HostName| async move {
            // A fleet gives no names but those that it was given.
            let Some(host) = hosts.get(&name) else { return Ok(Err(Vec::new())) };
            (conduct.events)(Event::HostBegun { host: name.clone() });
            let began = Instant::now();
            let transport = self.pool.transport(&host.name, &host.ssh);
            let nonce = Nonce::new(rand::random());
            let engine = engine::host::HostSession::new(name.clone(), transport.as_ref(), nonce);
            let result = work(host, engine.sharing(&conduct.share)).await;
            let (outcome, changed) = match &result {
                Ok(Ok(done)) => judge(done),
                Err(HostError::Transport(TransportError::Unreachable { .. })) => {
                    (HostOutcome::Unreachable, 0)
                }
                Err(HostError::Interrupted) => (HostOutcome::Stopped, 0),
                Ok(Err(_)) | Err(_) => (HostOutcome::Failed, 0),
            };
            (conduct.events)(Event::HostEnded { host: name, outcome, changed, elapsed: began.elapsed() });
            result
        };
        let well = |result: &Result<T, Vec<RosterFault>>| {
            result
                .as_ref()
                .is_ok_and(|done| matches!(judge(done).0, HostOutcome::Changed | HostOutcome::Unchanged))
        };
        let names = hosts.keys().copied().cloned().collect();
        outcomes(fleet::run(names, &conduct.rules, &conduct.share.cancel, on_one, well).await)
    }
}

async fn nodes_of_the_cluster() -> Result<Roster, Failure> {
    let failed = |error: &dyn std::error::Error| {
        Failure::new(Exit::Api, chain(error)).hint("run it as root on the bootstrap node")
    };
    let client = client::connect(&Layout::default().admin_conf()).await.map_err(|error| failed(&error))?;
    let nodes = nodes::list(&client).await.map_err(|error| failed(&error))?;
    let mut hosts = Vec::new();
    let mut errors = Vec::new();
    for node in &nodes {
        match NodeSpec::from_node(node) {
            Ok(spec) => hosts.push(Host::from(spec)),
            Err(problems) => errors.extend(problems.to_string().lines().map(str::to_owned)),
        }
    }
    if errors.is_empty() {
        return Ok(hosts.into_iter().collect());
    }
    Err(Failure { exit: Exit::Configuration, errors, hints: vec![deploy_node::CORRECT.to_owned()] })
}

/// A cluster's node does not go through its own sshd.
fn own_name(hosts: &[Host]) -> Option<HostName> {
    let own = hostname();
    hosts.iter().map(|host| &host.name).find(|name| name.as_str() == own).cloned()
}

fn hostname() -> String {
    // A machine without one is called otherwise.
    let text = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    text.trim().to_owned()
}
