//! Validation of the values, whichever form they came in.

use std::path::PathBuf;

use serde_saphyr::Spanned;

use super::{BootstrapConfiguration, networks, syntax};
use crate::model::cluster::KubernetesOptions;
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
    let kubernetes = kubernetes(document, file.kubernetes, &mut problems);
    match networks {
        Some(networks) if problems.is_empty() => {
            Ok(BootstrapConfiguration { networks, ca_node, bundles, kubernetes, warnings })
        }
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
        problems
            .push(document.problem(bundles.referenced, "no bundle is named; name at least one directory"));
    }
    paths
        .into_iter()
        .map(|path| {
            let directory = PathBuf::from(path.value);
            if !directory.is_absolute() {
                let message = format!("bundle {directory:?} is not an absolute path");
                problems.push(document.problem(path.referenced, message));
            }
            directory
        })
        .collect()
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
    KubernetesOptions {
        // A node's /24 of pod addresses has 254, some of which are always on their way out.
        max_pods: number("maxPods", given.kubelet.config.max_pods, defaults.max_pods, [1, 250]),
        // Zero would switch the collection off.
        terminated_pod_gc_threshold: number(
            "terminatedPodGCThreshold",
            given.controller_manager.config.terminated_pod_gc_threshold,
            defaults.terminated_pod_gc_threshold,
            [1, 100_000],
        ),
        dns_host_forward: given.core_dns.host_forward.unwrap_or(defaults.dns_host_forward),
        feature_gates: given.api_server.feature_gates,
    }
}
