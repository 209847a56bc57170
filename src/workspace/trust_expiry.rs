//! Which certificates of the bootstrap node's own end soon. Only `metalform bootstrap` renews them, and every other command
//! on this node depends on them.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::atomic_file;
use super::issued::RENEW_BEFORE;
use super::layout::Layout;
use super::trust::{self, Subject};
use crate::pki::kubeconfig::{Credentials, KubeconfigFile};
use crate::pki::validity;

/// A certificate that ends soon, or has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expiring {
    /// The file that contains it.
    pub path: PathBuf,
    /// Its last second.
    pub not_after: Timestamp,
}

/// The first to end of the certificates that are due for renewal because they end soon. While there is none, a few small
/// files are read and nothing is verified. What cannot be read is left out: the commands that need it report it.
pub fn first_expiring(layout: &Layout, subject: &Subject, now: Timestamp) -> Option<Expiring> {
    let needed_until = now.saturating_add(RENEW_BEFORE).unwrap_or(Timestamp::MAX);
    let mut soon = ends(layout);
    soon.retain(|one| one.not_after <= needed_until);
    if soon.is_empty() {
        return None;
    }
    // One that ends with its CA is not renewed.
    let pending = trust::pending(layout, subject, now).ok()?;
    soon.retain(|one| pending.iter().any(|pending| pending.file.path == one.path));
    soon.into_iter().min_by_key(|one| one.not_after)
}

/// Those that can be read.
fn ends(layout: &Layout) -> Vec<Expiring> {
    let pairs = [layout.etcd_client(), layout.serve(), layout.machine_metrics(), layout.push_server()];
    let certificates = pairs.into_iter().map(|(path, _)| end(path, Some));
    let kubeconfigs = [layout.admin_conf(), layout.machine_controller_conf()];
    let in_kubeconfigs = kubeconfigs.into_iter().map(|path| end(path, |yaml| embedded(&yaml)));
    certificates.chain(in_kubeconfigs).flatten().collect()
}

fn end(path: PathBuf, certificate: impl Fn(String) -> Option<String>) -> Option<Expiring> {
    let not_after = not_after(&path, certificate)?;
    Some(Expiring { path, not_after })
}

fn not_after(path: &Path, certificate: impl Fn(String) -> Option<String>) -> Option<Timestamp> {
    let pem = certificate(atomic_file::read(path).ok()??)?;
    validity::not_after(pem::parse(pem).ok()?.contents())
}

fn embedded(kubeconfig: &str) -> Option<String> {
    match KubeconfigFile::from_embedded_yaml(kubeconfig)?.credentials {
        Credentials::Embedded { certificate, .. } => Some(certificate),
        Credentials::Files { .. } | Credentials::Token(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    fn day(days: i64) -> Timestamp {
        Timestamp::constant(1_800_000_000, 0) + SignedDuration::from_hours(24 * days)
    }

    #[test]
    fn a_certificate_is_reported_from_when_it_is_due_for_renewal() {
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::below(root.path());
        let subject = Subject {
            name: "bootstrap".parse().unwrap(),
            address: "192.0.2.1".parse().unwrap(),
            indexes: Vec::new(),
        };
        let mut rng = StdRng::seed_from_u64(1);
        let mut create = |days| trust::create(&layout, &subject, day(days), &mut rng).map(drop).unwrap();
        let found = |days| first_expiring(&layout, &subject, day(days));
        assert_eq!(found(0), None, "without any file");

        create(0);
        for (days, expected) in [(0, None), (274, None), (275, Some(365)), (365, Some(365)), (400, Some(365))]
        {
            assert_eq!(found(days).map(|one| one.not_after), expected.map(day), "after {days} days");
        }

        let first = std::fs::read(layout.admin_conf()).unwrap();
        create(300);
        assert_eq!(found(300), None, "renewed");
        std::fs::write(layout.admin_conf(), first).unwrap();
        assert_eq!(found(300), Some(Expiring { path: layout.admin_conf(), not_after: day(365) }));

        // The CA ends ten years after its creation, and what it issues ends with it.
        create(3640);
        assert_eq!(found(3640), None, "as long as the CA");
    }
}
