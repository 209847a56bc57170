//! What commands on the bootstrap node begin with: the configuration, the bundle, the states.

use std::sync::Arc;

use jiff::Timestamp;

use super::failure::{Exit, Failure};
use super::ssh_arguments::SshArguments;
use super::{Global, LogFormat, hosts};
use crate::bundle::format::{IndexPaths, RepositoryIndex};
use crate::bundle::manifest::Bundle;
use crate::engine::facts;
use crate::engine::nonce::Nonce;
use crate::model::bootstrap_configuration::BootstrapConfiguration;
use crate::model::document::Document;
use crate::model::event::Event;
use crate::model::facts::Facts;
use crate::model::name::HostName;
use crate::model::node::NodeSpec;
use crate::operation::cluster_site::Workspace;
use crate::operation::goal::{NodeGoal, address_in};
use crate::report::Reporter;
use crate::report::plain::Detail;
use crate::state::{Library, StateError, Tree};
use crate::transport::Transport;
use crate::transport::local::LocalTransport;
use crate::workspace::layout::Layout;
use crate::workspace::trust::Subject;

/// The clock of every command.
#[expect(clippy::disallowed_methods, reason = "here the clock enters")]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// The operator's file, checked.
///
/// # Errors
/// When it is missing or wrong; one line for each thing that is wrong, with its place.
pub fn configuration(layout: &Layout) -> Result<BootstrapConfiguration, Failure> {
    let path = layout.configuration();
    let file = path.display().to_string();
    let text = hosts::read_text(&path)
        .map_err(|failure| failure.hint("the bootstrap node is described there; README.md has an example"))?;
    let parsed = BootstrapConfiguration::parse(&Document { file: &file, text: &text });
    let configuration = parsed.map_err(|problems| Failure {
        exit: Exit::Configuration,
        errors: problems.0.iter().map(ToString::to_string).collect(),
        hints: vec![format!("correct {file}, then run the same command again; nothing was changed")],
    })?;
    for warning in &configuration.warnings {
        tracing::warn!("{warning}");
    }
    Ok(configuration)
}

/// The states and templates.
///
/// # Errors
/// One line for each fault of a tree that was given.
pub fn library(global: &Global) -> Result<Library, Failure> {
    let tree = match &global.tree {
        Some(directory) => {
            Tree::directory(directory).map_err(|error| Failure::from_error(Exit::Configuration, &error))?
        }
        None => Tree::embedded(),
    };
    Library::read(&tree).map_err(|errors| faults(&errors))
}

/// One line for each fault of states and templates; advice that holds for several is given once.
pub fn faults(errors: &[StateError]) -> Failure {
    let mut hints: Vec<String> = Vec::new();
    for hint in errors.iter().filter_map(|error| error.hint().map(|hint| hint.to_string())) {
        if !hints.contains(&hint) {
            hints.push(hint);
        }
    }
    Failure { exit: Exit::Configuration, errors: errors.iter().map(ToString::to_string).collect(), hints }
}

/// Who tells of progress, in this detail where that is lines.
pub fn reporter(global: &Global, detail: Detail) -> Reporter {
    match (global.quiet, global.log_format) {
        (true, _) => Reporter::Silent,
        (false, LogFormat::Json) => Reporter::Json(now),
        (false, LogFormat::Text) => Reporter::for_people(detail),
    }
}

/// What this machine is.
///
/// # Errors
/// When it lacks what every supported host has.
pub async fn own_facts() -> Result<Facts, Failure> {
    let nonce = Nonce::new(rand::random());
    let output = LocalTransport
        .run(&facts::program(&nonce), &mut |_| {})
        .await
        .map_err(|error| Failure::from_error(Exit::Host, &error))?;
    facts::parse(&nonce, &output).map_err(|error| Failure::from_error(Exit::Host, &error))
}

/// Everything at once.
///
/// # Errors
/// The first part that is missing or wrong.
pub async fn setting(global: &Global, ssh: &SshArguments) -> Result<Arc<Workspace>, Failure> {
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::new(Exit::Configuration, "this command needs root on the bootstrap node")
            .hint("sudo metalform ..."));
    }
    let layout = Layout::default();
    let configuration = configuration(&layout)?;
    let facts = own_facts().await?;
    let subject_address =
        address_in(&facts, &configuration.networks.control_plane).map(|(_, ip)| ip).ok_or_else(|| {
            let planes: Vec<String> =
                configuration.networks.control_plane.iter().map(ToString::to_string).collect();
            Failure::new(
                Exit::Configuration,
                format!("this machine has no address on the control plane ({})", planes.join(", ")),
            )
            .hint("correct networks.controlPlane.cidr in /etc/metalform/bootstrap.yaml")
        })?;
    let name: HostName = facts.hostname.parse().map_err(|error| {
        Failure::from_error(Exit::Configuration, &error)
            .hint("hostnamectl set-hostname NAME gives this machine one")
    })?;
    if let Some(expected) = configuration.ca_node.as_ref().filter(|expected| **expected != name) {
        return Err(Failure::new(
            Exit::Configuration,
            format!("this machine is {name}, but ca.node is {expected}"),
        )
        .hint("run it on that node, or correct /etc/metalform/bootstrap.yaml"));
    }
    let (bundle_directory, bundle) = bundle(&configuration)?;
    let indexes = indexes(&bundle_directory, &bundle)?;
    let reporter = reporter(global, Detail::Phases);
    let report: Arc<dyn Fn(Event) + Send + Sync> = Arc::new(move |event| reporter.event(&event));
    let metalform = std::env::current_exe().map_err(|error| Failure::from_error(Exit::Bug, &error))?;
    let pool = Arc::new(ssh.pool(Some(name.clone())).await?);
    Ok(Arc::new(Workspace {
        layout,
        configuration,
        bundle,
        bundle_directory,
        library: library(global)?,
        subject: Subject { name, address: subject_address, indexes },
        metalform,
        pool,
        now,
        report,
    }))
}

fn bundle(configuration: &BootstrapConfiguration) -> Result<(std::path::PathBuf, Bundle), Failure> {
    let directory = configuration.bundle.clone();
    let bundle = Bundle::read(&directory).map_err(|error| {
        Failure::from_error(Exit::Configuration, &error).hint(format!(
            "metalform bundle build -o {} builds one, where there is a network",
            directory.display()
        ))
    })?;
    Ok((directory, bundle))
}

/// The bundle's repository indexes, unsigned.
fn indexes(directory: &std::path::Path, bundle: &Bundle) -> Result<Vec<RepositoryIndex>, Failure> {
    let read = |index: IndexPaths| {
        let path = directory.join(&index.unsigned);
        let text = std::fs::read_to_string(&path).map_err(|error| {
            Failure::new(Exit::Configuration, format!("{}: {error}", path.display()))
                .hint(format!("metalform bundle verify {}", directory.display()))
        })?;
        Ok(RepositoryIndex { signed_path: index.signed, text, signature: index.signature })
    };
    bundle.indexes().into_iter().map(read).collect()
}

/// The goal of an operation on this node.
pub fn goal(setting: &Workspace, spec: &NodeSpec) -> NodeGoal {
    NodeGoal {
        name: spec.name.clone(),
        roles: spec.roles.clone(),
        first: spec.name == setting.subject.name,
        networks: setting.configuration.networks.clone(),
        platforms: setting.bundle.platforms.clone(),
        authority: std::fs::read_to_string(setting.layout.pki().join("ca.crt")).ok(),
        clock: (setting.now)().as_second(),
        max_pods: setting.configuration.kubernetes.max_pods,
    }
}
