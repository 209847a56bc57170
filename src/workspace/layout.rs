//! Paths on the bootstrap node.

use std::path::PathBuf;

use crate::model::name::HostName;

/// The paths, below a root that is `/` except in tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    root: PathBuf,
}

impl Default for Layout {
    fn default() -> Self {
        Self::below("/")
    }
}

impl Layout {
    /// With another root.
    pub fn below(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// The operator's `BootstrapConfiguration`.
    pub fn configuration(&self) -> PathBuf {
        self.path("etc/metalform/bootstrap.yaml")
    }

    /// Directory of the CAs.
    pub fn pki(&self) -> PathBuf {
        self.path("etc/kubernetes/pki")
    }

    /// Exists from the creation of the CAs of a new cluster until its first etcd member has begun.
    pub fn new_cluster_mark(&self) -> PathBuf {
        self.pki().join("etcd/new-cluster")
    }

    /// Private key that signs the package repositories.
    pub fn repository_key(&self) -> PathBuf {
        self.path("var/lib/metalform/repository.key")
    }

    /// Key that encrypts secrets at rest.
    pub fn encryption_key(&self) -> PathBuf {
        self.pki().join("encryption.key")
    }

    /// Key that authenticates routing messages between nodes.
    pub fn routing_key(&self) -> PathBuf {
        self.pki().join("routing.key")
    }

    /// Locked while an operation runs on this host.
    pub fn host_lock(&self, host: &HostName) -> PathBuf {
        self.path(&format!("run/metalform/hosts/{host}.lock"))
    }

    /// Locked while a plan is carried out on this host.
    pub fn change_lock(&self, host: &HostName) -> PathBuf {
        self.path(&format!("run/metalform/hosts/{host}.changes.lock"))
    }

    /// Locked while images of the registry are changed.
    pub fn image_lock(&self) -> PathBuf {
        self.path("run/metalform/images.lock")
    }

    /// Which images bundles have brought to the registry.
    pub fn bundle_image_record(&self) -> PathBuf {
        self.path("var/lib/metalform/bundle-images.json")
    }

    /// The manifests of all Nodes as they were last read.
    pub fn node_records(&self) -> PathBuf {
        self.path("var/lib/metalform/nodes.json")
    }

    /// Directory of the records of operations.
    pub fn operations(&self) -> PathBuf {
        self.path("var/lib/metalform/operations")
    }

    /// Directory of the snapshots of etcd that `etcd save-snapshots` keeps; the same on every node that has copies.
    pub fn etcd_snapshots(&self) -> PathBuf {
        self.path("var/lib/metalform/etcd-snapshots")
    }

    /// Default private key for SSH to hosts.
    pub fn ssh_key(&self) -> PathBuf {
        self.path("etc/metalform/pki/ssh")
    }

    /// Directory of the power hooks: programs that a Host can name.
    pub fn power_hooks(&self) -> PathBuf {
        self.path("etc/metalform/power.d")
    }

    /// The manifest of a static pod.
    pub fn static_pod(&self, name: &str) -> PathBuf {
        self.path(&format!("etc/kubernetes/manifests/{name}.yaml"))
    }

    /// Kubeconfig of the administrator.
    pub fn admin_conf(&self) -> PathBuf {
        self.path("etc/kubernetes/admin.conf")
    }

    /// Kubeconfig of the machine controllers.
    pub fn machine_controller_conf(&self) -> PathBuf {
        self.path("etc/metalform/pki/machine-controller.conf")
    }

    /// Their client certificate on a master, whose kubeconfig names it; that of the bootstrap node contains its own.
    pub fn machine_controller_certificate(&self) -> PathBuf {
        self.path("etc/metalform/pki/machine-controller.crt")
    }

    /// Certificate and key of the metrics of the machine controllers.
    pub fn machine_metrics(&self) -> (PathBuf, PathBuf) {
        let directory = self.path("etc/metalform/pki");
        (directory.join("machine-metrics.crt"), directory.join("machine-metrics.key"))
    }

    /// Certificate and key of metalform as a client of etcd.
    pub fn etcd_client(&self) -> (PathBuf, PathBuf) {
        (self.pki().join("etcd/metalform.crt"), self.pki().join("etcd/metalform.key"))
    }

    /// Certificate and key of `metalform serve`. The state `serve` gives their directory the group of the server and
    /// the set-group-ID bit, so that files written into it later have that group.
    pub fn serve(&self) -> (PathBuf, PathBuf) {
        let directory = self.path("var/lib/metalform/serve");
        (directory.join("tls.crt"), directory.join("tls.key"))
    }

    /// Certificate and key of `metalform push-server`, in a directory like that of [`Self::serve`].
    pub fn push_server(&self) -> (PathBuf, PathBuf) {
        let directory = self.path("var/lib/metalform/push");
        (directory.join("tls.crt"), directory.join("tls.key"))
    }

    /// Signed indexes of the package repositories, by their path in the bundle. They take precedence over the bundle's
    /// files.
    pub fn signed_indexes(&self) -> PathBuf {
        self.path("var/lib/metalform/repository")
    }
}
