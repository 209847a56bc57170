//! The API contract: the keys and versions that operators, nodes and other programs read and write. Each is defined
//! here and nowhere else; `tests/api_contract.rs` enforces it.

/// `apiVersion` of every document that metalform defines.
pub const API_VERSION: &str = "metalform.dev/v1alpha1";
/// `apiVersion`s of MetalK8s that a `BootstrapConfiguration` may have. In v1alpha2 a plane is a bare CIDR.
pub const METALK8S_API_VERSIONS: [&str; 2] =
    ["metalk8s.scality.com/v1alpha3", "metalk8s.scality.com/v1alpha2"];

/// Prefix of metalform's labels and annotations.
pub const PREFIX: &str = "metalform.dev/";
/// Prefix of MetalK8s' labels and annotations, read as an alias of [`PREFIX`].
pub const ALIAS_PREFIX: &str = "metalk8s.scality.com/";
/// Prefix of the labels that assign roles to a Node.
pub const ROLE_LABEL_PREFIX: &str = "node-role.kubernetes.io/";

/// Label of a Node: the Kubernetes version to deploy.
pub const VERSION: &str = "metalform.dev/version";
/// Label of a Node: the MetalK8s release to deploy, which has no meaning for metalform.
pub const METALK8S_VERSION: &str = "metalk8s.scality.com/version";

/// Annotation of a Node: the address or name that SSH connects to.
pub const SSH_HOST: &str = "metalform.dev/ssh-host";
/// Annotation of a Node: the public host key to accept.
pub const SSH_HOST_KEY: &str = "metalform.dev/ssh-host-key";
/// The SSH annotations of a Node, without the prefix.
pub const SSH_SETTINGS: [&str; 7] =
    ["ssh-host", "ssh-port", "ssh-user", "ssh-key-path", "ssh-sudo", "ssh-host-key", "ssh-bastion"];

/// Annotation that metalform records on a Node: its address on the control plane.
pub const CONTROL_PLANE_IP: &str = "metalform.dev/control-plane-ip";
/// Annotation that metalform records on a Node: its address on the workload plane.
pub const WORKLOAD_PLANE_IP: &str = "metalform.dev/workload-plane-ip";
/// Annotation that metalform records on a Node: its API server was ready once, so proxies may use it.
pub const API_SERVER: &str = "metalform.dev/api-server";

/// Annotation that metalform records on a Node that it has cordoned: it uncordons no other.
pub const CORDONED: &str = "metalform.dev/cordoned";

/// Annotation that metalform records on a Node: every address that its kubelet may serve at, separated by commas.
pub const ADDRESSES: &str = "metalform.dev/addresses";
/// Annotations with addresses that metalform found on the host itself. No operator writes them, and the admission
/// policy `templates/cluster/node-policy.yaml.j2` refuses them to node identities.
pub const RECORDED_ADDRESSES: [&str; 3] = [CONTROL_PLANE_IP, WORKLOAD_PLANE_IP, ADDRESSES];
/// Annotation that no Node has: setting it, in a dry run, tests whether the admission policy is enforced.
pub const POLICY_PROBE: &str = "metalform.dev/policy-probe";
/// Annotation of a static pod: the digest of its manifest and of the files that it reads.
pub const CONFIG_DIGEST: &str = "metalform.dev/config-digest";

/// Label of the ConfigMap with the record of an operation; its value is how far the operation is.
pub const OPERATION: &str = "metalform.dev/operation";

/// Annotation of an object that metalform applies: with the value [`EDITS_KEPT`], what another client changed in it
/// stays.
pub const EDITS: &str = "metalform.dev/edits";
/// Value of [`EDITS`].
pub const EDITS_KEPT: &str = "keep";

/// Prefixes of taints that Kubernetes and kubelets add to a Node and remove again, such as `not-ready` and
/// `uninitialized`: not part of the manifest
/// (kubernetes.io/docs/reference/labels-annotations-taints).
pub const TRANSIENT_TAINT_PREFIXES: [&str; 2] = ["node.kubernetes.io/", "node.cloudprovider.kubernetes.io/"];
/// Taint of a Node that a kubelet with `--cloud-provider=external` created itself. metalform is what initialises such
/// a Node, and removes it.
pub const UNINITIALIZED_TAINT: &str = "node.cloudprovider.kubernetes.io/uninitialized";
