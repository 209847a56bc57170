//! Validation of the values, independent of the form of the file.

use std::path::PathBuf;

use serde_saphyr::Spanned;

use super::{BootstrapConfiguration, networks, syntax};
use crate::model::bundle_key::BundleKey;
use crate::model::cluster::{EtcdSnapshotOptions, KubernetesOptions};
use crate::model::document::{Document, Problem, Problems};
use crate::model::name::HostName;
use crate::model::one_or_many::OneOrMany;

pub(super) fn validate(
    document: &Document<'_>,
    file: syntax::File,
    warnings: Vec<Problem>,
) -> Result<BootstrapConfiguration, Problems> {
    let mut problems = Vec::new();
    let networks = networks::validate(document, file.networks, &mut problems);
    let ca_node = file.ca.and_then(|ca| host_name(document, &ca.node, &mut problems));
    let bundles = bundles(document, file.bundles, &mut problems);
    let bundle_key = file.bundle_key.and_then(|key| bundle_key(document, &key, &mut problems));
    let kubernetes = kubernetes(document, file.kubernetes, &mut problems);
    let etcd_snapshots = etcd_snapshots(document, file.etcd.snapshots, &mut problems);
    match networks {
        Some(networks) if problems.is_empty() => Ok(BootstrapConfiguration {
            networks,
            ca_node,
            bundles,
            bundle_key,
            kubernetes,
            etcd_snapshots,
            warnings,
        }),
        _ => Err(Problems::in_order(problems)),
    }
}

fn host_name(
    document: &Document<'_>,
    name: &Spanned<String>,
    problems: &mut Vec<Problem>,
) -> Option<HostName> {
    name.value
        .parse()
        .map_err(|error| problems.push(document.problem(name.referenced, format!("ca: {error}"))))
        .ok()
}

fn bundles(
    document: &Document<'_>,
    bundles: Spanned<OneOrMany>,
    problems: &mut Vec<Problem>,
) -> Vec<PathBuf> {
    let paths = bundles.value.0;
    if paths.is_empty() {
        problems.push(document.problem(bundles.referenced, "no bundle specified; specify a directory"));
    }
    for (index, path) in paths.iter().enumerate() {
        if !path.value.starts_with('/') {
            let message = format!("bundle {:?} is not an absolute path", path.value);
            problems.push(document.problem(path.referenced, message));
        }
        if paths[..index].iter().any(|earlier| earlier.value == path.value) {
            let message = format!("bundle {:?} is specified twice", path.value);
            problems.push(document.problem(path.referenced, message));
        }
    }
    paths.into_iter().map(|path| PathBuf::from(path.value)).collect()
}

fn bundle_key(
    document: &Document<'_>,
    key: &Spanned<String>,
    problems: &mut Vec<Problem>,
) -> Option<BundleKey> {
    key.value
        .parse()
        .map_err(|error| problems.push(document.problem(key.referenced, format!("bundleKey: {error}"))))
        .ok()
}

fn kubernetes(
    document: &Document<'_>,
    given: syntax::Kubernetes,
    problems: &mut Vec<Problem>,
) -> KubernetesOptions {
    let defaults = KubernetesOptions::default();
    let mut number = |field: &str, given: Option<Spanned<u32>>, default: u32, allowed: [u32; 2]| {
        let Some(given) = given else { return default };
        let [least, most] = allowed;
        if !(least..=most).contains(&given.value) {
            let message = format!("{field} {} is not between {least} and {most}", given.value);
            problems.push(document.problem(given.referenced, message));
        }
        given.value
    };
    // A node's /24 of pod addresses has 254, some of which belong to pods that are being deleted.
    let max_pods = number("maxPods", given.kubelet.config.max_pods, defaults.max_pods, [1, 250]);
    let terminated_pod_gc_threshold = number(
        "terminatedPodGCThreshold",
        given.controller_manager.config.terminated_pod_gc_threshold,
        defaults.terminated_pod_gc_threshold,
        // Zero would disable the collection.
        [1, 100_000],
    );
    if let Some(replicas) = &given.core_dns.replicas {
        let message = "kubernetes.coreDNS.replicas is not supported: CoreDNS is a DaemonSet, with one pod on each \
                       infra node; remove the field";
        problems.push(document.problem(replicas.referenced, message));
    }
    KubernetesOptions {
        max_pods,
        terminated_pod_gc_threshold,
        dns_host_forward: given.core_dns.host_forward.unwrap_or(defaults.dns_host_forward),
        feature_gates: given.api_server.feature_gates,
    }
}

fn etcd_snapshots(
    document: &Document<'_>,
    given: syntax::Snapshots,
    problems: &mut Vec<Problem>,
) -> EtcdSnapshotOptions {
    let defaults = EtcdSnapshotOptions::default();
    let syntax::Snapshots { interval_hours, keep } = given;
    // A calendar event of systemd has the same hours every day.
    if let Some(given) = interval_hours.as_ref().filter(|given| given.value == 0 || 24 % given.value != 0) {
        let message = format!("intervalHours {} is not 1, 2, 3, 4, 6, 8, 12 or 24", given.value);
        problems.push(document.problem(given.referenced, message));
    }
    if let Some(given) = keep.as_ref().filter(|given| !(1..=1000).contains(&given.value)) {
        let message = format!("keep {} is not between 1 and 1000", given.value);
        problems.push(document.problem(given.referenced, message));
    }
    EtcdSnapshotOptions {
        interval_hours: interval_hours.map_or(defaults.interval_hours, |given| given.value),
        keep: keep.map_or(defaults.keep, |given| given.value),
    }
}
