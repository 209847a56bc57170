//! The private key of a Host whose `spec.ssh.keySecretRef` names a Secret.

use std::path::PathBuf;

use super::PoolPerformer;
use super::fault::JobFault;
use crate::kube_api::secrets;
use crate::machine::api::host::HostObject;
use crate::transport::secret::Secret;

/// Type of a Secret with a private key (core/v1, `SecretTypeSSHAuth`).
const SSH_AUTH: &str = "kubernetes.io/ssh-auth";

impl PoolPerformer {
    /// What its `SshTarget` names the key by; `None`: that of the bootstrap node. The Secret is read for each job, so that
    /// a new key is used by the next one; the key is held in memory, and written nowhere.
    pub(super) async fn login_key(&self, host: &HostObject) -> Result<Option<PathBuf>, JobFault> {
        let Some(reference) = &host.spec.ssh.key_secret_ref else { return Ok(None) };
        let at = (reference.namespace.as_str(), reference.name.as_str());
        let name = format!("{}/{}", reference.namespace, reference.name);
        let data = secrets::read(&self.client, at, SSH_AUTH).await?;
        let key = Secret::new(data.text(&name, &reference.key)?);
        let held = self.workspace.pool.hold_key(&format!("Secret {name}"), &key);
        held.map(Some).map_err(|source| JobFault::LoginKey { name, source })
    }
}
