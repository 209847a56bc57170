//! The host itself: what it is, what would change on it, and changing it.

use std::collections::BTreeMap;

use super::ClusterSite;
use crate::bundle::format::{self, RepositoryLocation};
use crate::engine::apply::PackageManager;
use crate::engine::host::HostSession;
use crate::engine::plan::Plan;
use crate::engine::states::{HostStates, own_boot_id};
use crate::model::cluster::{Cluster, Repository, SERVE_PORT, Secrets};
use crate::model::event::Event;
use crate::model::facts::Facts;
use crate::model::platform::{PackageFormat, Platform};
use crate::operation::layer::Layer;
use crate::operation::site::{Done, Trouble};
use crate::operation::survey;
use crate::operation::values::{ClusterInputs, values};
use crate::operation::world::{LayerPlan, Seen, World};
use crate::pki::authority::Authority;
use crate::pki::certificate_request::ParsedCsr;
use crate::pki::leaf::{Leaf, Usage};
use crate::pki::serial::Serial;
use crate::render::values_of;
use crate::resource;
use crate::resource::contract::change::{Change, Verdict};
use crate::resource::contract::step::{CertificateRequest, KeyUsage, Step, UnitVerb};
use crate::state::{Compiled, StateName, compile};
use crate::workspace::trust::{IssueError, TrustError};

impl ClusterSite {
    fn host(&self) -> HostSession<'_> {
        HostSession::new(self.goal.name.clone(), self.transport.as_ref(), Self::nonce())
    }

    pub(super) async fn facts(&mut self) -> Result<Seen, Trouble> {
        Ok(Seen::Facts(self.host().facts().await?))
    }

    pub(super) async fn survey(&mut self) -> Result<Seen, Trouble> {
        Ok(Seen::Survey(survey::read(&self.host().observe(&survey::probes()).await?)))
    }

    pub(super) async fn make_plan(&mut self, layer: &Layer, world: &World) -> Result<Seen, Trouble> {
        let desired = self.desired(layer, world)?;
        let plan = self.host().plan(&desired).await?;
        let seen = summary(&plan);
        self.plan = Some((layer.clone(), plan));
        Ok(Seen::Plan(layer.clone(), seen))
    }

    /// Applies exactly what was planned last; a plan of another layer was never shown and is not applied.
    pub(super) async fn apply(&mut self, layer: &Layer, world: &World) -> Result<Done, Trouble> {
        let Some((planned, plan)) = self.plan.take() else { return Ok(Done::default()) };
        if planned != *layer {
            return Ok(Done::default());
        }
        let changes: Vec<String> = plan.works().into_iter().map(|work| work.id).collect();
        let changed = changes.len();
        (self.setting.report)(Event::Planned {
            host: self.goal.name.clone(),
            changes,
            unchanged: plan.unchanged(),
        });
        let packages = PackageManager::of_host(world.facts.as_ref());
        let (now, report) = ((self.setting.now)(), self.setting.report.clone());
        self.trust()?;
        let authorities = self.trust.as_ref().map(|trust| &trust.authorities);
        let sign = |request: &CertificateRequest, csr: &str| {
            let authority = authorities
                .and_then(|all| match request.authority.as_str() {
                    "kubernetes" => Some(&all.kubernetes),
                    "etcd" => Some(&all.etcd),
                    "front-proxy" => Some(&all.front_proxy),
                    _ => None,
                })
                .ok_or_else(|| format!("there is no authority {}", request.authority))?;
            sign(authority, request, csr, now)
        };
        self.host().apply(&plan, packages, &sign, &|event| report(event)).await?;
        Ok(Done { changed })
    }

    pub(super) async fn set_aside_member_data(&mut self) -> Result<Done, Trouble> {
        let script = "rm -f /etc/kubernetes/manifests/etcd.yaml && if test -d /var/lib/etcd/member; then mv -T /var/lib/etcd/member \"/var/lib/etcd/removed-$(date +%s)\"; fi";
        self.run("etcd-data:set aside", vec![Step::Run { script: script.to_owned() }]).await
    }

    pub(super) async fn restart_kubelet(&mut self) -> Result<Done, Trouble> {
        let step = Step::Unit { name: "kubelet.service".to_owned(), verb: UnitVerb::Restart };
        self.run("service:kubelet", vec![step]).await
    }

    async fn run(&mut self, id: &str, steps: Vec<Step>) -> Result<Done, Trouble> {
        let change = Verdict::Change(Change { differences: Vec::new(), steps });
        let plan = Plan { verdicts: vec![(id.to_owned(), change)] };
        let report = self.setting.report.clone();
        let nothing = |_: &CertificateRequest, _: &str| Err("no certificate is part of this".to_owned());
        self.host().apply(&plan, PackageManager::Apt, &nothing, &|event| report(event)).await?;
        Ok(Done { changed: 1 })
    }

    /// The states of a layer for this host, compiled.
    fn desired(&mut self, layer: &Layer, world: &World) -> Result<HostStates, Trouble> {
        let faults = |faults: Vec<String>| Trouble::States { faults };
        let cluster = self.cluster(world)?;
        let roles: Vec<&str> = self.goal.roles.iter().map(|role| role.as_str()).collect();
        let all = self.setting.library.states_of(&roles).map_err(|errors| faults(lines(&errors)))?;
        let all: Vec<String> = all.iter().map(ToString::to_string).collect();
        let states = layer
            .states(&all)
            .iter()
            .map(|name| name.parse::<StateName>())
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| faults(vec![error.to_string()]))?;
        let token = self.token.bearer();
        let given = ClusterInputs { cluster: &cluster, spec: &self.spec, join_token: &token };
        let facts =
            world.facts.as_ref().ok_or_else(|| faults(vec!["the host's facts were not seen".to_owned()]))?;
        let values = values(&self.goal, facts, world, layer, given);
        let compiled: Vec<Compiled> =
            compile(&self.setting.library, &states, resource::kinds(), &values_of(&values))
                .map_err(|errors| faults(lines(&errors)))?;
        HostStates::new(compiled, cluster.authorities.clone(), (self.setting.now)())
            .map(|states| states.seen_from(own_boot_id()))
            .map_err(|errors| faults(lines(&errors)))
    }

    /// The cluster as templates see it.
    pub(super) fn cluster(&mut self, world: &World) -> Result<Cluster, Trouble> {
        let setting = self.setting.clone();
        let trust = self.trust()?;
        let authorities = &trust.authorities;
        let address = format!("https://{}:{}", setting.subject.address, SERVE_PORT);
        let platform = platform(world.facts.as_ref())?;
        let (format, location) = repository(&platform)?;
        Ok(Cluster {
            name: "metalform".to_owned(),
            networks: setting.configuration.networks.clone(),
            versions: setting.bundle.versions.clone(),
            packages: setting.bundle.packages_of(&platform),
            images: images(setting.bundle.images.keys()),
            kubernetes: setting.configuration.kubernetes.clone(),
            repository: Repository {
                format,
                uri: format!("{address}/{}", location.path),
                suite: location.suite,
                key: authorities.repository.public_armor().map_err(|source| {
                    TrustError::from(IssueError::Index { index: platform.to_string(), source })
                })?,
            },
            registry: address,
            authorities: BTreeMap::from([
                ("kubernetes".to_owned(), authorities.kubernetes.certificate().to_owned()),
                ("etcd".to_owned(), authorities.etcd.certificate().to_owned()),
                ("front-proxy".to_owned(), authorities.front_proxy.certificate().to_owned()),
            ]),
            service_account_public_key: authorities.service_account.public().to_owned(),
            secrets: Secrets {
                service_account_key: authorities.service_account.private().to_owned(),
                encryption_key: trust.encryption_key.clone(),
            },
            metalform: setting.metalform.display().to_string(),
        })
    }
}

/// `registry.k8s.io/coredns/coredns:v1.14.7` is known as `coredns`.
fn images<'a>(references: impl Iterator<Item = &'a String>) -> BTreeMap<String, String> {
    references
        .filter_map(|reference| {
            let last = reference.rsplit('/').next()?;
            let name = last.split([':', '@']).next()?;
            Some((name.to_owned(), reference.clone()))
        })
        .collect()
}

fn lines<E: ToString>(errors: &[E]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn platform(facts: Option<&Facts>) -> Result<Platform, Trouble> {
    let fault = |fault: String| Trouble::States { faults: vec![fault] };
    let facts = facts.ok_or_else(|| fault("the host's facts were not observed".to_owned()))?;
    Platform::of(facts).map_err(|error| fault(error.to_string()))
}

fn repository(platform: &Platform) -> Result<(PackageFormat, RepositoryLocation), Trouble> {
    let found = || {
        let format = platform.distribution.package_format()?;
        Some((format, format::of(format)?.location(platform)))
    };
    found()
        .ok_or_else(|| Trouble::States { faults: vec![format!("no packages for {platform} in the bundle")] })
}

fn sign(
    authority: &Authority,
    request: &CertificateRequest,
    csr: &str,
    now: jiff::Timestamp,
) -> Result<String, String> {
    if request.organizations.len() > 1 {
        return Err("a certificate has one organization at most".to_owned());
    }
    let leaf = Leaf {
        common_name: request.common_name.clone(),
        organization: request.organizations.first().cloned(),
        names: request.names.clone(),
        usages: request
            .usages
            .iter()
            .map(|usage| match usage {
                KeyUsage::Server => Usage::Server,
                KeyUsage::Client => Usage::Client,
            })
            .collect(),
        days: request.days,
    };
    let csr = ParsedCsr::from_pem(csr.as_bytes()).map_err(|error| error.to_string())?;
    authority.issue(&leaf, &csr, now, Serial::random(&mut rand::rng())).map_err(|error| error.to_string())
}

fn summary(plan: &Plan) -> LayerPlan {
    LayerPlan {
        changes: plan
            .verdicts
            .iter()
            .filter_map(|(id, verdict)| match verdict {
                Verdict::Change(change) => Some((id.clone(), change.differences.clone())),
                _ => None,
            })
            .collect(),
        refused: plan.refusals(),
        unchanged: plan.unchanged(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_known_by_the_last_part_of_their_name() {
        let references =
            ["registry.k8s.io/coredns/coredns:v1.14.7".to_owned(), "registry.k8s.io/pause:3.10.1".to_owned()];
        let images = images(references.iter());
        assert_eq!(images["coredns"], references[0]);
        assert_eq!(images["pause"], references[1]);
    }
}
