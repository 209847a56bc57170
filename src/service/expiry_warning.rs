//! The warning that certificates of the bootstrap node end soon.

use jiff::Timestamp;

use crate::operation::cluster_site::Workspace;
use crate::workspace::trust_expiry::{Expiring, first_expiring};

/// Warns where a certificate that commands on the bootstrap node depend on ends soon, or has ended. For commands that do not
/// renew it.
pub(super) fn warn_of_expiry(workspace: &Workspace) {
    let now = (workspace.now)();
    if let Some(expiring) = first_expiring(&workspace.layout, &workspace.subject, now) {
        tracing::warn!("{}", sentence(&expiring, now));
    }
}

fn sentence(Expiring { path, not_after }: &Expiring, now: Timestamp) -> String {
    let expires = if *not_after < now { "expired" } else { "expires" };
    format!("the certificate in {} {expires} {not_after}; `metalform bootstrap` renews it", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_that_has_ended_is_reported_as_such() {
        let not_after: Timestamp = "2027-01-15T08:00:00Z".parse().unwrap();
        let expiring = Expiring { path: "/etc/kubernetes/admin.conf".into(), not_after };
        for (now, expected) in [
            (
                "2027-01-14T08:00:00Z",
                "the certificate in /etc/kubernetes/admin.conf expires 2027-01-15T08:00:00Z; `metalform bootstrap` renews it",
            ),
            (
                "2027-01-16T08:00:00Z",
                "the certificate in /etc/kubernetes/admin.conf expired 2027-01-15T08:00:00Z; `metalform bootstrap` renews it",
            ),
        ] {
            assert_eq!(sentence(&expiring, now.parse().unwrap()), expected);
        }
    }
}
