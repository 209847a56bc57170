//! Validation of the networks.

use ipnet::IpNet;
use serde_saphyr::{Location, Spanned};

use super::syntax;
use crate::model::cluster_networks::{Networks, WorkloadPlane, nth_address, overlap};
use crate::model::document::{Document, Problem};
use crate::model::near::Near;
use crate::model::one_or_many::OneOrMany;

const DEFAULT_PODS: &str = "10.233.0.0/16";
const DEFAULT_SERVICES: &str = "10.96.0.0/12";
/// MetalK8s' default: 1500 less the overhead of common providers' overlays.
const DEFAULT_MTU: u32 = 1460;

/// A network with its field and location.
struct Placed {
    field: &'static str,
    network: IpNet,
    at: Location,
}

/// Adds every problem to `problems`; `None` when there is one.
pub(super) fn validate(
    document: &Document<'_>,
    networks: syntax::Networks,
    problems: &mut Vec<Problem>,
) -> Option<Networks> {
    let before = problems.len();
    let control = plane(document, "networks.controlPlane.cidr", networks.control_plane.cidr, problems);
    // Addresses of nodes are written without brackets in the URLs of etcd and of the servers.
    for Placed { field, network, at } in control.iter().filter(|placed| placed.network.addr().is_ipv6()) {
        let message = format!("{field} {network} is of IPv6, which the control plane does not support");
        problems.push(document.problem(*at, message));
    }
    let workload = plane(document, "networks.workloadPlane.cidr", networks.workload_plane.cidr, problems);
    // An address of it is the router ID of a node.
    if let Some(first) = workload.first()
        && workload.iter().all(|placed| placed.network.addr().is_ipv6())
    {
        let message = format!("{} has no network of IPv4, which the pod network needs", first.field);
        problems.push(document.problem(first.at, message));
    }
    let mut one = |field, given: Option<Spanned<String>>, default: &str| {
        let unknown = Location::UNKNOWN;
        let given = given.unwrap_or_else(|| Spanned::new(default.to_owned(), unknown, unknown));
        network(document, field, &given, problems)
    };
    let pods = one("networks.pods", networks.pods, DEFAULT_PODS);
    let services = one("networks.services", networks.services, DEFAULT_SERVICES);

    let node_ports = match (networks.node_ports, networks.node_port_cidr) {
        (Some(planes), _) => node_port_planes(document, &planes, [&control, &workload], problems),
        (None, Some(cidr)) => cidrs(&plane(document, "networks.nodeport.cidr", cidr, problems)),
        (None, None) => cidrs(&workload),
    };

    let mtu = networks.workload_plane.mtu;
    if let Some(mtu) = mtu.as_ref().filter(|mtu| !(1280..=9216).contains(&mtu.value)) {
        let message = format!(
            "networks.workloadPlane.mtu {} is not between 1280 (the minimum of IPv6) and 9216",
            mtu.value
        );
        problems.push(document.problem(mtu.referenced, message));
    }
    if let Some(pods) = &pods {
        // Each node gets a /24, of which kube-controller-manager manages at most 2^16.
        ipv4_of_size(document, pods, (8, 24), problems);
    }
    if let Some(services) = &services {
        // kube-apiserver keeps a bitmap of at most 2^20 addresses; less than a /24 is soon exhausted.
        ipv4_of_size(document, services, (12, 24), problems);
    }
    let placed: Vec<&Placed> = control.iter().chain(&workload).chain(&pods).chain(&services).collect();
    overlaps(document, &placed, problems);

    match (pods, services) {
        (Some(pods), Some(services)) if problems.len() == before => Some(Networks {
            control_plane: cidrs(&control),
            workload_plane: WorkloadPlane {
                cidrs: cidrs(&workload),
                mtu: mtu.map_or(DEFAULT_MTU, |mtu| mtu.value),
            },
            node_ports,
            pods: pods.network,
            services: services.network,
            api_service_ip: nth_address(services.network, 1),
            dns_ip: nth_address(services.network, 10),
        }),
        _ => None,
    }
}

fn cidrs(placed: &[Placed]) -> Vec<IpNet> {
    placed.iter().map(|placed| placed.network).collect()
}

/// The networks of the named planes, each once.
fn node_port_planes(
    document: &Document<'_>,
    planes: &Spanned<OneOrMany>,
    [control, workload]: [&[Placed]; 2],
    problems: &mut Vec<Problem>,
) -> Vec<IpNet> {
    if planes.value.0.is_empty() {
        let message = "networks.nodePorts is empty; specify controlPlane, workloadPlane or both";
        problems.push(document.problem(planes.referenced, message));
    }
    let mut networks = Vec::new();
    for plane in &planes.value.0 {
        match plane.value.as_str() {
            "controlPlane" => networks.extend(cidrs(control)),
            "workloadPlane" => networks.extend(cidrs(workload)),
            other => {
                let near = Near::to(other, ["controlPlane", "workloadPlane"]);
                let message = format!(
                    "networks.nodePorts: {other:?} is not a plane; the planes are controlPlane and workloadPlane{near}"
                );
                problems.push(document.problem(plane.referenced, message));
            }
        }
    }
    networks.sort_unstable();
    networks.dedup();
    networks
}

fn plane(
    document: &Document<'_>,
    field: &'static str,
    cidrs: Spanned<OneOrMany>,
    problems: &mut Vec<Problem>,
) -> Vec<Placed> {
    if cidrs.value.0.is_empty() {
        let message = format!("{field} is empty; specify at least one network");
        problems.push(document.problem(cidrs.referenced, message));
    }
    cidrs.value.0.iter().filter_map(|cidr| network(document, field, cidr, problems)).collect()
}

fn network(
    document: &Document<'_>,
    field: &'static str,
    text: &Spanned<String>,
    problems: &mut Vec<Problem>,
) -> Option<Placed> {
    let message = match text.value.parse::<IpNet>() {
        Ok(network) if network == network.trunc() => {
            return Some(Placed { field, network, at: text.referenced });
        }
        Ok(network) => {
            format!("{field} {network} has host bits set; the network is {}", network.trunc())
        }
        Err(_) => format!("{field} {:?} is not a network in CIDR form, such as 10.0.0.0/24", text.value),
    };
    problems.push(document.problem(text.referenced, message));
    None
}

/// The prefix lengths are inclusive. With Services of IPv6 the API server does not start at an address of IPv4, and
/// nothing changes these networks once a cluster has them.
fn ipv4_of_size(
    document: &Document<'_>,
    placed: &Placed,
    (largest, smallest): (u8, u8),
    problems: &mut Vec<Problem>,
) {
    let Placed { field, network, at } = placed;
    if network.addr().is_ipv6() {
        let message = format!("{field} {network} is of IPv6, which pods and services do not support");
        problems.push(document.problem(*at, message));
    } else if !(largest..=smallest).contains(&network.prefix_len()) {
        let message = format!("{field} {network} must be between a /{largest} and a /{smallest}");
        problems.push(document.problem(*at, message));
    }
}

/// Reports each pair once, at the later one. The planes may be the same network; the networks of one plane may not
/// overlap, because an address must belong to exactly one.
fn overlaps(document: &Document<'_>, placed: &[&Placed], problems: &mut Vec<Problem>) {
    for (index, one) in placed.iter().enumerate() {
        for other in &placed[index + 1..] {
            let is_plane = |placed: &Placed| placed.field.ends_with("Plane.cidr");
            let same_plane =
                one.network == other.network && one.field != other.field && is_plane(one) && is_plane(other);
            if overlap(one.network, other.network) && !same_plane {
                // A default has no location: report at the other one, which can be changed.
                let (default, at) =
                    if other.at == Location::UNKNOWN { (" (the default)", one.at) } else { ("", other.at) };
                let message = format!(
                    "{} {}{default} overlaps {} {}",
                    other.field, other.network, one.field, one.network
                );
                problems.push(document.problem(at, message));
            }
        }
    }
}
