//! Validation of the networks.

use ipnet::IpNet;
use serde_saphyr::{Location, Spanned};

use super::syntax;
use crate::model::cluster_networks::{Networks, WorkloadPlane, nth_address, overlap};
use crate::model::document::{Document, Problem};
use crate::model::one_or_many::OneOrMany;

const DEFAULT_PODS: &str = "10.233.0.0/16";
const DEFAULT_SERVICES: &str = "10.96.0.0/12";
/// MetalK8s' default: what is left of 1500 on most providers' own overlays.
const DEFAULT_MTU: u32 = 1460;

/// A network, the field it is from and where that stands.
struct Placed {
    field: &'static str,
    network: IpNet,
    at: Location,
}

/// Every problem goes to `problems`; `None` when there is one.
pub(super) fn validate(
    document: &Document<'_>,
    networks: syntax::Networks,
    problems: &mut Vec<Problem>,
) -> Option<Networks> {
    let before = problems.len();
    let control = plane(document, "networks.controlPlane.cidr", networks.control_plane.cidr, problems);
    let workload = plane(document, "networks.workloadPlane.cidr", networks.workload_plane.cidr, problems);
    let mut one = |field, given: Option<Spanned<String>>, default: &str| {
        let unknown = Location::UNKNOWN;
        let given = given.unwrap_or_else(|| Spanned::new(default.to_owned(), unknown, unknown));
        network(document, field, &given, problems)
    };
    let pods = one("networks.pods", networks.pods, DEFAULT_PODS);
    let services = one("networks.services", networks.services, DEFAULT_SERVICES);

    let mtu = networks.workload_plane.mtu;
    if let Some(mtu) = mtu.as_ref().filter(|mtu| !(1280..=9216).contains(&mtu.value)) {
        let message = format!(
            "networks.workloadPlane.mtu {} is not between 1280 (what IPv6 needs) and 9216",
            mtu.value
        );
        problems.push(document.problem(mtu.referenced, message));
    }
    if let Some(pods) = &pods {
        // Each node gets a /24 (IPv4) or /64 (IPv6), and kube-controller-manager manages 2^16 of them at most.
        size(document, pods, [(8, 24), (48, 64)], problems);
    }
    if let Some(services) = &services {
        // kube-apiserver keeps a bitmap of 2^20 addresses at most; fewer than a /24 run out unnoticed.
        size(document, services, [(12, 24), (108, 120)], problems);
    }
    if let (Some(pods), Some(services)) = (&pods, &services)
        && pods.network.addr().is_ipv4() != services.network.addr().is_ipv4()
    {
        let message = format!(
            "networks.pods {} and networks.services {} are of different IP versions",
            pods.network, services.network
        );
        // A default has no place.
        let at = if pods.at == Location::UNKNOWN { services.at } else { pods.at };
        problems.push(document.problem(at, message));
    }
    let placed: Vec<&Placed> = control.iter().chain(&workload).chain(&pods).chain(&services).collect();
    overlaps(document, &placed, problems);

    match (pods, services) {
        (Some(pods), Some(services)) if problems.len() == before => Some(Networks {
            control_plane: control.into_iter().map(|placed| placed.network).collect(),
            workload_plane: WorkloadPlane {
                cidrs: workload.into_iter().map(|placed| placed.network).collect(),
                mtu: mtu.map_or(DEFAULT_MTU, |mtu| mtu.value),
            },
            pods: pods.network,
            services: services.network,
            api_service_ip: nth_address(services.network, 1),
            dns_ip: nth_address(services.network, 10),
        }),
        _ => None,
    }
}

fn plane(
    document: &Document<'_>,
    field: &'static str,
    cidrs: Spanned<OneOrMany>,
    problems: &mut Vec<Problem>,
) -> Vec<Placed> {
    if cidrs.value.0.is_empty() {
        problems
            .push(document.problem(cidrs.referenced, format!("{field} is empty; name at least one network")));
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
            format!("{field} {network} is an address in a network; the network is {}", network.trunc())
        }
        Err(_) => format!("{field} {:?} is not a network in CIDR form, such as 10.0.0.0/24", text.value),
    };
    problems.push(document.problem(text.referenced, message));
    None
}

/// Prefix lengths allowed for IPv4 and for IPv6, both ends included.
fn size(document: &Document<'_>, placed: &Placed, allowed: [(u8, u8); 2], problems: &mut Vec<Problem>) {
    let Placed { field, network, at } = placed;
    let (largest, smallest) = allowed[usize::from(network.addr().is_ipv6())];
    if !(largest..=smallest).contains(&network.prefix_len()) {
        let message = format!("{field} {network} must be between a /{largest} and a /{smallest}");
        problems.push(document.problem(*at, message));
    }
}

/// Each pair once, told at the later one. The planes may be the same network; a plane's own list may not
/// overlap either, for an address must say which network it is in.
fn overlaps(document: &Document<'_>, placed: &[&Placed], problems: &mut Vec<Problem>) {
    for (index, one) in placed.iter().enumerate() {
        for other in &placed[index + 1..] {
            let is_plane = |placed: &Placed| placed.field.ends_with("Plane.cidr");
            let same_plane =
                one.network == other.network && one.field != other.field && is_plane(one) && is_plane(other);
            if overlap(one.network, other.network) && !same_plane {
                // A default has no place; then the given one of the two is what can be changed.
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
