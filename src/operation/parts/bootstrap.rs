//! What only the bootstrap node has: CAs, the package service, the registry, the cluster's own objects.

use std::collections::BTreeSet;

use crate::operation::effect::{Action, LookKey, Observation};
use crate::operation::layer::Layer;

/// What was observed of the bootstrap node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BootstrapPart {
    /// Files of the CAs, and of what they issued to this machine, that are missing.
    pub missing_trust: Option<BTreeSet<String>>,
    /// Whether the cluster's first etcd member has yet to begin.
    pub new_cluster: Option<bool>,
    /// Why `metalform serve` does not accept connections, or `None` when it does.
    pub package_service: Option<Option<String>>,
    /// Why the registry does not accept connections, or `None` when it does.
    pub registry: Option<Option<String>>,
    /// Images of the bundle that the registry lacks.
    pub missing_images: Option<BTreeSet<String>>,
    /// Objects of the cluster that are missing or differ.
    pub missing_objects: Option<BTreeSet<String>>,
}

impl BootstrapPart {
    /// Takes in what is this part's.
    pub fn put(&mut self, observation: &Observation) {
        match observation {
            Observation::Trust(files) => self.missing_trust = Some(files.clone()),
            Observation::NewClusterMark(new) => self.new_cluster = Some(*new),
            Observation::PackageService(complaint) => self.package_service = Some(complaint.clone()),
            Observation::Registry(complaint) => self.registry = Some(complaint.clone()),
            Observation::Images(images) => self.missing_images = Some(images.clone()),
            Observation::Objects(objects) => self.missing_objects = Some(objects.clone()),
            _ => {}
        }
    }

    /// Forgets what is this part's.
    pub fn forget(&mut self, key: &LookKey) {
        match key {
            LookKey::Trust => self.missing_trust = None,
            LookKey::NewClusterMark => self.new_cluster = None,
            LookKey::PackageService => self.package_service = None,
            LookKey::Registry => self.registry = None,
            LookKey::Images => self.missing_images = None,
            LookKey::Objects => self.missing_objects = None,
            _ => {}
        }
    }

    /// Takes an action as done. A registry that is not there yet has none of `images`, the API of a node that has not
    /// joined a cluster none of `objects`, and on a `bare` host the CAs are those of a new cluster.
    pub fn predict(
        &mut self,
        action: &Action,
        images: &BTreeSet<String>,
        objects: &BTreeSet<String>,
        (joined, bare): (bool, bool),
    ) {
        match action {
            Action::CreateTrust(_) => {
                self.missing_trust = Some(BTreeSet::new());
                if bare {
                    self.new_cluster = Some(true);
                }
            }
            Action::RemoveNewClusterMark => self.new_cluster = Some(false),
            Action::Apply(Layer::Serving, _) => self.package_service = Some(None),
            Action::Apply(Layer::Registry, _) if self.registry != Some(None) => {
                self.registry = Some(None);
                self.missing_images = Some(images.clone());
            }
            Action::LoadImages(_) => self.missing_images = Some(BTreeSet::new()),
            Action::Apply(Layer::First, _) if !joined => self.missing_objects = Some(objects.clone()),
            Action::ApplyObjects(..) => self.missing_objects = Some(BTreeSet::new()),
            _ => {}
        }
    }
}
