//! Which part of the API a path addresses.

use std::fmt;

/// A kind that the scripted API serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// Empty for the core group.
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    pub namespaced: bool,
    /// Whether `status` is written through a subresource of its own.
    pub status: bool,
}

const fn kind(
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    namespaced: bool,
    status: bool,
) -> Kind {
    Kind { group, version: "v1", kind, plural, namespaced, status }
}

/// A kind of the API of Machines.
const fn machine_kind(
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    namespaced: bool,
) -> Kind {
    Kind { group, version: "v1alpha1", kind, plural, namespaced, status: true }
}

/// All of them.
pub const KINDS: &[Kind] = &[
    kind("", "Node", "nodes", false, true),
    kind("", "Namespace", "namespaces", false, true),
    kind("", "Pod", "pods", true, true),
    kind("", "Secret", "secrets", true, false),
    kind("", "Event", "events", true, false),
    kind("", "ConfigMap", "configmaps", true, false),
    kind("", "Service", "services", true, true),
    kind("", "ServiceAccount", "serviceaccounts", true, false),
    kind("apps", "Deployment", "deployments", true, true),
    kind("apps", "DaemonSet", "daemonsets", true, true),
    kind("discovery.k8s.io", "EndpointSlice", "endpointslices", true, false),
    kind("coordination.k8s.io", "Lease", "leases", true, false),
    kind("certificates.k8s.io", "CertificateSigningRequest", "certificatesigningrequests", false, true),
    kind("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions", false, true),
    kind("policy", "PodDisruptionBudget", "poddisruptionbudgets", true, true),
    kind("rbac.authorization.k8s.io", "Role", "roles", true, false),
    kind("rbac.authorization.k8s.io", "RoleBinding", "rolebindings", true, false),
    kind("rbac.authorization.k8s.io", "ClusterRole", "clusterroles", false, false),
    kind("rbac.authorization.k8s.io", "ClusterRoleBinding", "clusterrolebindings", false, false),
    kind("authentication.k8s.io", "TokenReview", "tokenreviews", false, false),
    kind("authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews", false, false),
    machine_kind("cluster.k8s.io", "MachineDeployment", "machinedeployments", true),
    machine_kind("cluster.k8s.io", "MachineSet", "machinesets", true),
    machine_kind("cluster.k8s.io", "Machine", "machines", true),
    machine_kind("metalform.dev", "Host", "hosts", false),
    kind(
        "admissionregistration.k8s.io",
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        false,
        false,
    ),
    kind(
        "admissionregistration.k8s.io",
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        false,
        false,
    ),
];

impl Kind {
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Whether it has the subresource `scale`.
    pub fn scale(&self) -> bool {
        ["MachineDeployment", "MachineSet"].contains(&self.kind)
    }

    /// By its plural in the core group or any other.
    pub fn of(plural: &str) -> &'static Self {
        KINDS
            .iter()
            .find(|kind| kind.plural == plural)
            .unwrap_or_else(|| panic!("no kind has plural {plural}"))
    }
}

/// An object, or all of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub kind: &'static Kind,
    pub namespace: Option<String>,
    /// `None` is the collection.
    pub name: Option<String>,
    /// `status`, `approval`, `eviction`, `scale`.
    pub subresource: Option<String>,
}

/// What a path asks about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Object(Address),
    /// `/apis`.
    Groups,
    /// `/api/v1`, `/apis/GROUP/VERSION`: the kinds of a group.
    Discovery {
        group: String,
        version: String,
    },
    /// `/readyz` and its like.
    Health,
    /// `/version`.
    Version,
}

impl Target {
    /// `None` where the API serves nothing.
    pub fn of(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let (group, version, rest) = match parts.as_slice() {
            ["readyz" | "livez" | "healthz"] => return Some(Self::Health),
            ["version"] => return Some(Self::Version),
            ["apis"] => return Some(Self::Groups),
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        if rest.is_empty() {
            return Some(Self::Discovery { group: group.to_owned(), version: version.to_owned() });
        }
        let find = |plural: &str| {
            KINDS.iter().find(|kind| (kind.group, kind.version, kind.plural) == (group, version, plural))
        };
        let own = |text: &&str| (*text).to_owned();
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() && rest != ["status"] => {
                (Some((*namespace).to_owned()), rest)
            }
            rest => (None, rest),
        };
        let address = Address {
            kind: find(rest.first()?)?,
            namespace,
            name: rest.get(1).map(own),
            subresource: rest.get(2).map(own),
        };
        Some(Self::Object(address))
    }
}

impl fmt::Display for Address {
    /// `nodes/n1`, `secrets/kube-system/a`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.plural)?;
        for part in [&self.namespace, &self.name, &self.subresource].into_iter().flatten() {
            write!(f, "/{part}")?;
        }
        Ok(())
    }
}
