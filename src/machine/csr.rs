//! Whether the token of a Machine may be used for a client certificate of its kubelet.
//!
//! A token is good for one Machine, for one node name, from the claim of the host until the Node has joined. This verdict
//! is about the Machine; subject, usages and alternative names are judged by `crate::controller::csr_verdict`, which must
//! sign as well. Neither trusts what a kubelet has written.

use jiff::{SignedDuration, Timestamp};

use crate::model::name::HostName;

/// Signs the certificate of a kubelet as a client of the API.
const SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";

/// The user name of a bootstrap token, without its id
/// (<https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/>).
const TOKEN_USER: &str = "system:bootstrap:";

/// Clocks of two API servers may differ.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_secs(10);

/// A CertificateSigningRequest, as far as it concerns a Machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineCsr<'a> {
    /// `spec.signerName`.
    pub signer: &'a str,
    /// `spec.username`, which the API server sets.
    pub username: &'a str,
    /// The node that its common name claims, if that has the form `system:node:NAME`.
    pub claimed_node: Option<&'a HostName>,
    /// `metadata.creationTimestamp`.
    pub created: Timestamp,
}

impl MachineCsr<'_> {
    /// The id of the bootstrap token that it was made with.
    pub fn token_id(&self) -> Option<&str> {
        self.username.strip_prefix(TOKEN_USER).filter(|id| !id.is_empty())
    }
}

/// The Machine that a token was created for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenMachine {
    /// Its name.
    pub machine: String,
    /// The name of its node.
    pub node: HostName,
    /// When it claimed its host; `None` without a host.
    pub claimed: Option<Timestamp>,
    /// It is being deleted.
    pub deleting: bool,
    /// Its Node has joined: a kubelet has a certificate, and renews it without a token.
    pub joined: bool,
    /// A Node of this name exists that metalform has not prepared for this Machine.
    pub foreign_node: bool,
}

/// What to do with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MachineCsrVerdict {
    /// It is that of the Machine.
    Approve,
    /// The token is used for something else than it was created for.
    Deny(MachineCsrDenial),
    /// It is not made with the token of a Machine, or is for the signer of another controller.
    Ignore,
}

/// Why a request is denied; the message of its condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MachineCsrDenial {
    /// Another subject.
    #[error("the token of machine {machine} is for node {node}, not for {claimed}")]
    WrongNode {
        /// Of the token.
        machine: String,
        /// Of the Machine.
        node: HostName,
        /// The node in the request, or `another subject`.
        claimed: String,
    },
    /// Nothing should run with this token yet.
    #[error("machine {0} has no host")]
    NoHost(String),
    /// It goes.
    #[error("machine {0} is being deleted")]
    Deleting(String),
    /// A token that leaked.
    #[error("node {node} of machine {machine} has joined already")]
    Joined {
        /// Of the token.
        machine: String,
        /// Of the Machine.
        node: HostName,
    },
    /// The name is in use.
    #[error("node {node} exists and does not belong to machine {machine}")]
    ForeignNode {
        /// Of the token.
        machine: String,
        /// Of the Machine.
        node: HostName,
    },
    /// Too early or too late.
    #[error("the request is from {created}, and machine {machine} may join from {from} to {until}")]
    OutsideWindow {
        /// Of the token.
        machine: String,
        /// Of the request.
        created: Timestamp,
        /// When the host was claimed, with a tolerance for clocks.
        from: Timestamp,
        /// The end of the join timeout.
        until: Timestamp,
    },
}

/// Judges a request. `machine` is the Machine of [`MachineCsr::token_id`], if there is one; `timeout` that of joins, from
/// the claim on.
pub fn judge(
    request: &MachineCsr<'_>,
    machine: Option<&TokenMachine>,
    timeout: SignedDuration,
) -> MachineCsrVerdict {
    let Some(machine) = machine.filter(|_| request.signer == SIGNER && request.token_id().is_some()) else {
        return MachineCsrVerdict::Ignore;
    };
    match denial(request, machine, timeout) {
        Some(denial) => MachineCsrVerdict::Deny(denial),
        None => MachineCsrVerdict::Approve,
    }
}

fn denial(
    request: &MachineCsr<'_>,
    machine: &TokenMachine,
    timeout: SignedDuration,
) -> Option<MachineCsrDenial> {
    let (name, node) = (machine.machine.clone(), machine.node.clone());
    if request.claimed_node != Some(&machine.node) {
        let claimed = request.claimed_node.map_or("another subject".to_owned(), ToString::to_string);
        return Some(MachineCsrDenial::WrongNode { machine: name, node, claimed });
    }
    if machine.deleting {
        return Some(MachineCsrDenial::Deleting(name));
    }
    let Some(claimed) = machine.claimed else {
        return Some(MachineCsrDenial::NoHost(name));
    };
    if machine.joined {
        return Some(MachineCsrDenial::Joined { machine: name, node });
    }
    if machine.foreign_node {
        return Some(MachineCsrDenial::ForeignNode { machine: name, node });
    }
    let from = claimed.checked_sub(CLOCK_TOLERANCE).unwrap_or(Timestamp::MIN);
    let until = claimed.checked_add(timeout).unwrap_or(Timestamp::MAX);
    if request.created < from || request.created > until {
        let created = request.created;
        return Some(MachineCsrDenial::OutsideWindow { machine: name, created, from, until });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::join_deadline::JOIN_TIMEOUT;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_token_is_good_for_one_node_while_it_joins() {
        let node: HostName = "n1".parse().unwrap();
        let other: HostName = "n2".parse().unwrap();
        let request = MachineCsr {
            signer: SIGNER,
            username: "system:bootstrap:abcdef",
            claimed_node: Some(&node),
            created: at(1_500),
        };
        let machine = TokenMachine {
            machine: "md-1-x".to_owned(),
            node: node.clone(),
            claimed: Some(at(1_000)),
            deleting: false,
            joined: false,
            foreign_node: false,
        };
        let at_time = |second| MachineCsr { created: at(second), ..request };
        let window = "1970-01-01T00:16:30Z to 1970-01-01T02:16:40Z";
        let late =
            format!("the request is from 1970-01-01T02:16:41Z, and machine md-1-x may join from {window}");
        let early =
            format!("the request is from 1970-01-01T00:16:29Z, and machine md-1-x may join from {window}");
        for (request, machine, expected) in [
            (request, machine.clone(), "approve"),
            (at_time(990), machine.clone(), "approve"),
            (at_time(8_200), machine.clone(), "approve"),
            (at_time(989), machine.clone(), &early),
            (at_time(8_201), machine.clone(), &late),
            (
                MachineCsr { claimed_node: Some(&other), ..request },
                machine.clone(),
                "the token of machine md-1-x is for node n1, not for n2",
            ),
            (
                MachineCsr { claimed_node: None, ..request },
                machine.clone(),
                "the token of machine md-1-x is for node n1, not for another subject",
            ),
            // A wrong name is denied even where nothing may join.
            (
                MachineCsr { claimed_node: Some(&other), ..request },
                TokenMachine { claimed: None, deleting: true, ..machine.clone() },
                "the token of machine md-1-x is for node n1, not for n2",
            ),
            (request, TokenMachine { claimed: None, ..machine.clone() }, "machine md-1-x has no host"),
            (request, TokenMachine { deleting: true, ..machine.clone() }, "machine md-1-x is being deleted"),
            (
                request,
                TokenMachine { joined: true, ..machine.clone() },
                "node n1 of machine md-1-x has joined already",
            ),
            (
                request,
                TokenMachine { foreign_node: true, ..machine.clone() },
                "node n1 exists and does not belong to machine md-1-x",
            ),
            (MachineCsr { signer: "kubernetes.io/kubelet-serving", ..request }, machine.clone(), "ignore"),
            (MachineCsr { signer: "example.com/signer", ..request }, machine.clone(), "ignore"),
            // A renewal, and others.
            (MachineCsr { username: "system:node:n1", ..request }, machine.clone(), "ignore"),
            (MachineCsr { username: "admin", ..request }, machine.clone(), "ignore"),
            (MachineCsr { username: "system:bootstrap:", ..request }, machine.clone(), "ignore"),
        ] {
            let got = match judge(&request, Some(&machine), JOIN_TIMEOUT) {
                MachineCsrVerdict::Approve => "approve".to_owned(),
                MachineCsrVerdict::Deny(denial) => denial.to_string(),
                MachineCsrVerdict::Ignore => "ignore".to_owned(),
            };
            assert_eq!(got, expected, "{request:?} {machine:?}");
        }
        // A token that is not of a Machine.
        assert_eq!(judge(&request, None, JOIN_TIMEOUT), MachineCsrVerdict::Ignore);
    }

    #[test]
    fn no_time_overflows() {
        let node: HostName = "n1".parse().unwrap();
        let request = MachineCsr {
            signer: SIGNER,
            username: "system:bootstrap:a",
            claimed_node: Some(&node),
            created: at(0),
        };
        for claimed in [Timestamp::MIN, Timestamp::MAX] {
            let machine = TokenMachine {
                machine: "m".to_owned(),
                node: node.clone(),
                claimed: Some(claimed),
                deleting: false,
                joined: false,
                foreign_node: false,
            };
            for timeout in [SignedDuration::MAX, SignedDuration::ZERO] {
                judge(&request, Some(&machine), timeout);
            }
        }
    }
}
