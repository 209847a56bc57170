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

/// Label of a Node that serves copies of the packages and images of the bootstrap node.
pub const MIRROR: &str = "metalform.dev/mirror";
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

/// Label of an object: the program that manages it (kubernetes.io/docs/concepts/overview/working-with-objects/common-labels).
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// Label of a Node: the architecture of its processors (kubernetes.io/docs/reference/labels-annotations-taints).
pub const ARCHITECTURE: &str = "kubernetes.io/arch";

/// Label of a Node or Host: its failure domain (kubernetes.io/docs/reference/labels-annotations-taints).
pub const ZONE: &str = "topology.kubernetes.io/zone";

/// Prefixes of taints that Kubernetes and kubelets add to a Node and remove again, such as `not-ready` and
/// `uninitialized`: not part of the manifest
/// (kubernetes.io/docs/reference/labels-annotations-taints).
pub const TRANSIENT_TAINT_PREFIXES: [&str; 2] = ["node.kubernetes.io/", "node.cloudprovider.kubernetes.io/"];
/// Taint of a Node that a kubelet with `--cloud-provider=external` created itself. metalform is what initialises such
/// a Node, and removes it.
pub const UNINITIALIZED_TAINT: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// `apiVersion` of MachineDeployment, MachineSet and Machine: that of machine-controller, so that its clients work
/// unchanged.
pub const MACHINE_API_VERSION: &str = "cluster.k8s.io/v1alpha1";
/// Annotation that the API server requires of a CustomResourceDefinition in a group below `k8s.io`
/// (apiextensions, `KubeAPIApprovedAnnotation`).
pub const API_APPROVED: &str = "api-approved.kubernetes.io";
/// Value of [`API_APPROVED`]: the group is that of an API which its maintainers have given up.
pub const API_UNAPPROVED: &str = "unapproved, the legacy cluster.k8s.io API";

/// Label of MachineSets and Machines: the hash of the template that they were made from. Never part of a template of
/// a MachineDeployment.
pub const MACHINE_TEMPLATE_HASH: &str = "machine-template-hash";
/// Annotation of MachineDeployments and MachineSets: the number of the revision, from 1.
pub const REVISION: &str = "machinedeployment.clusters.k8s.io/revision";
/// Annotation of a MachineSet: its earlier revisions, separated by commas, where a rollback has revived it.
pub const REVISION_HISTORY: &str = "machinedeployment.clusters.k8s.io/revision-history";
/// Annotation of a MachineSet: `replicas` of its MachineDeployment when it was last scaled.
pub const DESIRED_REPLICAS: &str = "machinedeployment.clusters.k8s.io/desired-replicas";
/// Annotation of a MachineSet: `replicas` and surge of its MachineDeployment when it was last scaled.
pub const MAX_REPLICAS: &str = "machinedeployment.clusters.k8s.io/max-replicas";

/// Annotation of a template: when a restart was requested (kubectl, `rollout restart`). Its value has no meaning.
pub const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";

/// Label of a Node that a Machine became: the UID of that Machine. metalform alone writes it; the admission policy
/// `templates/cluster/node-policy.yaml.j2` refuses it to node identities, so that it may decide which Nodes are removed.
pub const MACHINE_UID: &str = "metalform.dev/machine-uid";
/// Label that machine-controller uses for [`MACHINE_UID`]. A kubelet can write it: nothing reads it here, and a template
/// must not contain it.
pub const OWNED_BY: &str = "machine-controller/owned-by";
/// Annotation of a Node: namespace and name of its Machine, for cluster-autoscaler. A kubelet can write it: nothing
/// reads it here.
pub const NODE_MACHINE: &str = "cluster.k8s.io/machine";
/// Annotation of a Machine: it is the first to be deleted when its MachineSet is scaled down, whatever the value.
pub const DELETE_MACHINE: &str = "cluster.k8s.io/delete-machine";
/// Annotation of a Lease: `IDENTITY TIME` of the process that wants it, which its holder may release it for.
pub const LEASE_REQUEST: &str = "metalform.dev/requested-by";
/// Annotation of a Machine: it is not replaced when its node is unhealthy, whatever the value.
pub const SKIP_REMEDIATION: &str = "cluster.k8s.io/skip-remediation";
/// Annotation of a MachineDeployment: the lower bound of cluster-autoscaler.
pub const NODE_GROUP_MIN_SIZE: &str = "cluster.k8s.io/cluster-api-autoscaler-node-group-min-size";
/// Annotation of a MachineDeployment: the upper bound of cluster-autoscaler.
pub const NODE_GROUP_MAX_SIZE: &str = "cluster.k8s.io/cluster-api-autoscaler-node-group-max-size";
/// Prefix of annotations of a MachineDeployment: what cluster-autoscaler expects of a Node where there is none yet.
pub const EXPECTED_CAPACITY_PREFIX: &str = "capacity.cluster-autoscaler.kubernetes.io/";
/// Annotation of a MachineDeployment: the annotations with [`EXPECTED_CAPACITY_PREFIX`] that metalform has written, as a
/// JSON object of their names and values. One with another value is an operator's.
pub const EXPECTED_CAPACITY: &str = "metalform.dev/expected-capacity";
/// Prefix of the keys of machine-controller on Nodes.
pub const MACHINE_CONTROLLER_PREFIX: &str = "machine-controller/";
/// Prefix of the keys of the Machine API on Nodes and Machines.
pub const MACHINE_PREFIX: &str = "cluster.k8s.io/";

/// Finalizer of MachineDeployments and MachineSets: what they control is gone (apimachinery,
/// `FinalizerDeleteDependents`).
pub const FOREGROUND_DELETION: &str = "foregroundDeletion";
/// Annotation that `kubectl apply` writes: the manifest as it was applied. Never copied to another object.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Annotation of a Host by which an operator requests an inspection: the time of the request.
pub const HOST_INSPECT: &str = "metalform.dev/inspect";
/// Annotation of a Host by which an operator keeps it out of the pool: the reason.
pub const HOST_QUARANTINE: &str = "metalform.dev/quarantine";
/// Annotation of a Host by which an operator ends its quarantine: the time of the request.
pub const HOST_RELEASE: &str = "metalform.dev/release";
/// Annotation of a Host by which an operator confirms that it is off, and stays off until its Node is deleted: the time.
pub const HOST_POWERED_OFF: &str = "metalform.dev/powered-off";
/// Annotation of a Host by which an operator declares that it will not return: the reason.
pub const HOST_LOST: &str = "metalform.dev/lost";

/// Type of a Secret whose data a power hook is given.
pub const POWER_SECRET: &str = "metalform.dev/power";

/// Finalizer of a Machine: its Host is reset and free again, or quarantined.
pub const HOST_RELEASED_FINALIZER: &str = "metalform.dev/host-released";
/// Finalizer of a Machine: its Node is deleted.
pub const NODE_DELETED_FINALIZER: &str = "metalform.dev/node-deleted";
/// Finalizer of a Host with a claim: the Machine that claimed it has another host, or is gone.
pub const CLAIM_RELEASED_FINALIZER: &str = "metalform.dev/claim-released";

/// Prefixes that a Machine's template must not use for labels, annotations and taints of its Node: they decide what a
/// node is, or who owns it.
pub const RESERVED_NODE_PREFIXES: [&str; 5] =
    [PREFIX, ALIAS_PREFIX, ROLE_LABEL_PREFIX, MACHINE_CONTROLLER_PREFIX, MACHINE_PREFIX];

/// Taint of the Node of a Machine (`NoSchedule`) from its registration until it is Ready and has a pod network.
pub const NOT_READY_TAINT: &str = "metalform.dev/not-ready";
/// Annotation of the Node of a Machine: the labels, annotations and taints that come from the Machine, so that these
/// alone are removed again.
pub const MACHINE_SETTINGS: &str = "metalform.dev/machine-settings";
