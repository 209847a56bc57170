//! What only the bootstrap node has.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpStream;

use super::ClusterSite;
use crate::bundle::registry;
use crate::engine::wait::{self, wait_for};
use crate::kube_api::manifests::{self, ApplyOutcome, Manifest};
use crate::model::cluster::SERVE_PORT;
use crate::operation::layer::Layer;
use crate::operation::site::{Done, Trouble};
use crate::operation::values::{ClusterInputs, values};
use crate::operation::world::{Seen, World};
use crate::render::values_of;
use crate::workspace::trust;

/// Where the registry listens, on the bootstrap node itself.
pub const REGISTRY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 5000);
/// Objects that every cluster has.
const OBJECTS: [&str; 3] =
    ["cluster/access.yaml.j2", "cluster/coredns.yaml.j2", "cluster/reachability.yaml.j2"];

impl ClusterSite {
    pub(super) fn missing_trust(&self) -> Result<Seen, Trouble> {
        let missing = trust::missing(&self.setting.layout, &self.setting.subject, (self.setting.now)())?;
        Ok(Seen::MissingTrust(missing))
    }

    pub(super) fn create_trust(&mut self) -> Result<Done, Trouble> {
        let now = (self.setting.now)();
        let missing = trust::missing(&self.setting.layout, &self.setting.subject, now)?.len();
        let made = trust::create(&self.setting.layout, &self.setting.subject, now, &mut rand::rng())?;
        self.trust = Some(made);
        Ok(Done { changed: missing })
    }

    /// That something listens is enough: what it answers, the package manager and containerd check.
    pub(super) async fn package_service(&mut self) -> Result<Seen, Trouble> {
        let address = SocketAddr::new(self.setting.subject.address, SERVE_PORT);
        let connected = TcpStream::connect(address).await;
        Ok(Seen::PackageService(connected.err().map(|error| format!("{address}: {error}"))))
    }

    pub(super) async fn missing_images(&mut self) -> Result<Seen, Trouble> {
        // systemd has started it; it needs a moment to listen.
        let listening = wait_for("the registry to listen", Duration::from_secs(20), || async {
            match TcpStream::connect(REGISTRY).await {
                Ok(_) => wait::WaitStatus::Holds(()),
                Err(error) => wait::WaitStatus::NotYet(error.to_string()),
            }
        });
        listening.await.map_err(manifests::ManifestApplyError::from)?;
        let missing: BTreeSet<String> = registry::missing(&self.setting.bundle, REGISTRY).await?;
        Ok(Seen::MissingImages(missing))
    }

    pub(super) async fn load_images(&mut self) -> Result<Done, Trouble> {
        let pushed =
            registry::load(&self.setting.bundle_directory, &self.setting.bundle, REGISTRY, &|_, _| {})
                .await?;
        Ok(Done { changed: pushed })
    }

    pub(super) async fn missing_objects(&mut self, world: &World) -> Result<Seen, Trouble> {
        let client = self.client().await?;
        let objects = self.objects(world)?;
        let differing = manifests::differing(&client, &objects).await?;
        Ok(Seen::MissingObjects(differing.into_iter().collect()))
    }

    pub(super) async fn apply_cluster_objects(&mut self, world: &World) -> Result<Done, Trouble> {
        let client = self.client().await?;
        let objects = self.objects(world)?;
        let applied = manifests::apply(&client, &objects).await?;
        Ok(Done { changed: applied.iter().filter(|one| one.outcome != ApplyOutcome::Unchanged).count() })
    }

    fn objects(&mut self, world: &World) -> Result<Vec<Manifest>, Trouble> {
        let fault = |fault: String| Trouble::States { faults: vec![fault] };
        let cluster = self.cluster(world)?;
        let facts = world.facts.as_ref().ok_or_else(|| fault("the host's facts were not seen".to_owned()))?;
        let given = ClusterInputs { cluster: &cluster, spec: &self.spec, join_token: "" };
        let values = values_of(&values(&self.goal, facts, world, &Layer::Base, given));
        let mut objects = Vec::new();
        for template in OBJECTS {
            let text =
                self.setting.library.template(template, &values).map_err(|error| fault(error.to_string()))?;
            objects.extend(manifests::parse(&text)?);
        }
        Ok(objects)
    }
}
