//! The manifests of `seeds/`.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use metalform::machine::api::host::HostObject;
use metalform::machine::api::machine_deployment::MachineDeployment;
use metalform::machine::api::rolling_update::RolloutType;
use metalform::machine::count_or_percent::CountOrPercent;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::definition::Definition;
use crate::sources::read;

/// As the API server stores it, once by its definition and once by our defaults: both are the same.
fn applied<T: DeserializeOwned + PartialEq + std::fmt::Debug>(file: &str) -> T {
    let object: Value = serde_saphyr::from_str(&read(format!("tests/machines/seeds/{file}"))).unwrap();
    let definition = Definition::of(&object);
    assert_eq!(definition.unknown_fields(&object), [""; 0]);
    assert_eq!(definition.refusals(&object, None), [""; 0]);
    let stored: T = serde_json::from_value(definition.defaulted(&object)).unwrap();
    let parsed: T = serde_json::from_value(object).unwrap();
    assert_eq!(stored, parsed);
    stored
}

#[test]
fn the_manifest_of_seed_000_has_the_defaults_of_machine_controller() {
    let deployment: MachineDeployment = applied("000-machine-deployment.yaml");
    let spec = &deployment.spec;
    assert_eq!((deployment.name_any().as_str(), spec.replicas()), ("nodes", 2));
    assert_eq!(
        (spec.min_ready_seconds, spec.revision_history_limit, spec.progress_deadline_seconds),
        (0, 1, 600)
    );
    assert!(!spec.paused);
    assert_eq!(spec.strategy.type_, RolloutType::RollingUpdate);
    assert_eq!(spec.strategy.rolling_update.max_surge, IntOrString::Int(1));
    assert_eq!(spec.strategy.rolling_update.max_unavailable, IntOrString::Int(0));
    assert_eq!(
        spec.strategy.rolling_update.quotas(),
        Ok((CountOrPercent::Count(1), CountOrPercent::Count(0)))
    );
    assert!(spec.selector.matches(&spec.template.metadata.labels));
    assert_eq!(spec.selector.to_string(), "group=nodes");
    let machine = &spec.template.spec;
    assert_eq!(machine.versions.kubelet(), Ok("1.30.3"));
    assert_eq!(machine.node_drain_timeout(), Ok(None));
    let config = machine.provider_spec.decode().unwrap();
    assert_eq!(config.operating_system.as_str(), "ubuntu");
    assert!(!config.operating_system_spec.dist_upgrade_on_boot);
    assert!(config.ssh_public_keys.is_empty());
}

#[test]
fn the_manifest_of_seed_002_is_the_one_with_all_defaults_written_out() {
    let deployment: MachineDeployment = applied("002-machine-deployment.yaml");
    assert_eq!(deployment.name_any(), "kubermatic-92r62cx8j6-xmljg");
    let mut short: MachineDeployment = applied("000-machine-deployment.yaml");
    short.spec.replicas = 1;
    assert_eq!(deployment.spec.strategy, short.spec.strategy);
    let without_names = |deployment: &MachineDeployment| {
        let mut spec = deployment.spec.clone();
        spec.selector = short.spec.selector.clone();
        spec.template = short.spec.template.clone();
        spec
    };
    assert_eq!(without_names(&deployment), short.spec);
    assert_eq!(deployment.spec.template.spec.versions.kubelet(), Ok("1.13.3"));
    assert_eq!(
        deployment.spec.template.spec.provider_spec.decode().unwrap().operating_system.as_str(),
        "ubuntu"
    );
}

#[test]
fn the_machines_of_seed_000_may_claim_the_host() {
    let host: HostObject = applied("host.yaml");
    let deployment: MachineDeployment = applied("000-machine-deployment.yaml");
    let config = deployment.spec.template.spec.provider_spec.decode().unwrap();
    let domain = host.spec.failure_domain.as_deref();
    assert!(config.cloud_provider_spec.match_host(host.labels(), domain));
    assert!(!config.cloud_provider_spec.match_host(host.labels(), None));
    let target = host.spec.ssh_target(Some("/run/ops-key".as_ref())).unwrap();
    assert_eq!((target.address().as_str(), target.user.as_str()), ("192.0.2.21:22", "ops"));
    assert_eq!(target.bastion.unwrap().address(), "gate.example:22");
}
