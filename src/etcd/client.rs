//! Observing a cluster.
//!
//! Each question goes to one member by its own connection, so that who answered is known, and has a deadline,
//! so that a dead member delays nobody.

use std::error::Error as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use etcd_client::{AlarmAction, AlarmType, Certificate, Client, ConnectOptions, Identity, TlsOptions};
use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use tokio::time::{Instant, timeout};

use crate::model::error_chain::{error_chain, with_sources};

use super::member::{Alarm, AlarmKind, Health, Member, Membership, Status};

/// How long one member may take for one answer when nothing else is said.
pub const DEADLINE: Duration = Duration::from_secs(2);

/// How to reach a cluster.
#[derive(Clone)]
pub struct Access {
    /// Client URLs, of voters preferably: `https://192.0.2.10:2379`. At least one.
    pub endpoints: Vec<String>,
    /// For both directions of TLS.
    pub credentials: Credentials,
    /// For one answer of one member.
    pub deadline: Duration,
}

/// A client certificate and the authority of the servers, all PEM.
#[derive(Clone)]
pub struct Credentials {
    ca: Vec<u8>,
    certificate: Vec<u8>,
    key: Vec<u8>,
}

/// Why the cluster could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A PEM file could not be read.
    #[error("{}", path.display())]
    Unreadable {
        /// Its path.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// There is nobody to ask.
    #[error("no etcd endpoint is known")]
    NoEndpoint,
    /// Nobody gave an answer that quorum stands behind.
    #[error("etcd does not answer: {}", tried.join("; "))]
    NoAnswer {
        /// `https://192.0.2.10:2379: what came back`, for each.
        tried: Vec<String>,
    },
}

/// One question to one member that got no good answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The member, or the way to it, said no.
    #[error("{}", whole(.0))]
    Failed(etcd_client::Error),
    /// It said nothing.
    #[error("no answer in {} ms", .0.as_millis())]
    Silent(Duration),
}

impl Credentials {
    /// Takes PEM text as it is.
    pub fn from_pem(
        ca: impl Into<Vec<u8>>,
        certificate: impl Into<Vec<u8>>,
        key: impl Into<Vec<u8>>,
    ) -> Self {
        Self { ca: ca.into(), certificate: certificate.into(), key: key.into() }
    }

    /// Reads the three files.
    ///
    /// # Errors
    /// [`ClientError::Unreadable`] names the first that cannot be read.
    pub fn read(ca: &Path, certificate: &Path, key: &Path) -> Result<Self, ClientError> {
        let read = |path: &Path| {
            std::fs::read(path).map_err(|source| ClientError::Unreadable { path: path.to_owned(), source })
        };
        Ok(Self { ca: read(ca)?, certificate: read(certificate)?, key: read(key)? })
    }
}

impl Access {
    /// The members as the quorum has them now, and what each says of itself. All are asked at once.
    ///
    /// # Errors
    /// When no endpoint can answer with quorum behind it before the deadline.
    pub async fn observe(&self) -> Result<Membership, ClientError> {
        if self.endpoints.is_empty() {
            return Err(ClientError::NoEndpoint);
        }
        let mut observed = self.list().await?;
        let answers = join_all(observed.members.iter().map(|member| self.health(member))).await;
        for (member, health) in observed.members.iter_mut().zip(answers) {
            member.health = health;
        }
        Ok(observed)
    }

    /// The first list that an endpoint vouches for.
    async fn list(&self) -> Result<Membership, ClientError> {
        let mut asked: FuturesUnordered<_> = self
            .endpoints
            .iter()
            .map(|endpoint| async move { (endpoint, self.ask(&[endpoint], list).await) })
            .collect();
        let mut tried = Vec::new();
        while let Some((endpoint, answer)) = asked.next().await {
            match answer {
                Ok(membership) => return Ok(membership),
                Err(error) => tried.push(format!("{endpoint}: {error}")),
            }
        }
        Err(ClientError::NoAnswer { tried })
    }

    async fn health(&self, member: &Member) -> Health {
        if member.client_urls.is_empty() {
            return Health::Unknown { reason: "has not started".to_owned() };
        }
        let urls: Vec<&String> = member.client_urls.iter().collect();
        match self.ask(&urls, status).await {
            Ok(health) => health,
            Err(error) => Health::Unknown { reason: format!("{}: {error}", member.client_urls.join(",")) },
        }
    }

    /// Puts one question, connecting included, within the deadline.
    pub(super) async fn ask<T>(
        &self,
        urls: &[&String],
        question: impl AsyncFnOnce(Client) -> Result<T, etcd_client::Error>,
    ) -> Result<T, CallError> {
        let tls = TlsOptions::new()
            .ca_certificate(Certificate::from_pem(&self.credentials.ca))
            .identity(Identity::from_pem(&self.credentials.certificate, &self.credentials.key));
        let options = ConnectOptions::new().with_tls(tls).with_connect_timeout(self.deadline);
        let answer = async { question(Client::connect(urls, Some(options)).await?).await };
        match timeout(self.deadline, answer).await {
            Ok(answer) => answer.map_err(CallError::Failed),
            Err(_) => Err(CallError::Silent(self.deadline)),
        }
    }
}

/// The list, alarms, and nobody's health yet.
///
/// The client asks for the list as this one member has it, which may be old. The read before it does not return
/// until the member has applied everything that the quorum had agreed on, so the list is as new as the question.
async fn list(mut client: Client) -> Result<Membership, etcd_client::Error> {
    client.get("metalform", None).await?;
    let listed = client.member_list().await?;
    let alarms = client.alarm(AlarmAction::Get, AlarmType::None, None).await?;
    let mut members: Vec<Member> = listed
        .members()
        .iter()
        .map(|member| Member {
            id: member.id(),
            name: member.name().to_owned(),
            peer_urls: member.peer_urls().to_vec(),
            client_urls: member.client_urls().to_vec(),
            is_learner: member.is_learner(),
            health: Health::Unknown { reason: "not asked".to_owned() },
        })
        .collect();
    members.sort_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
    let kind = |alarm| match alarm {
        AlarmType::Nospace => Some(AlarmKind::NoSpace),
        AlarmType::Corrupt => Some(AlarmKind::Corrupt),
        AlarmType::None => None,
    };
    let alarms = alarms
        .alarms()
        .iter()
        .filter_map(|alarm| Some(Alarm { member: alarm.member_id(), kind: kind(alarm.alarm())? }))
        .collect();
    Ok(Membership { cluster_id: listed.header().map_or(0, |header| header.cluster_id()), members, alarms })
}

async fn status(mut client: Client) -> Result<Health, etcd_client::Error> {
    let asked = Instant::now();
    let answer = client.status().await?;
    let latency = asked.elapsed();
    if !answer.errors().is_empty() {
        return Ok(Health::Unhealthy { reason: answer.errors().join("; ") });
    }
    if answer.leader() == 0 {
        return Ok(Health::Unhealthy { reason: "knows no leader".to_owned() });
    }
    Ok(Health::Healthy(Status {
        leader: answer.header().is_some_and(|header| header.member_id() == answer.leader()),
        raft_index: answer.raft_index(),
        raft_applied: answer.raft_applied_index(),
        db_size: u64::try_from(answer.db_size()).unwrap_or(0),
        revision: answer.header().map_or(0, |header| header.revision()),
        version: answer.version().to_owned(),
        latency,
    }))
}

/// An error with what caused it, which the client's own message leaves out: `tcp connect error` says less than
/// `connection refused`, and `transport error` less than `certificate has expired`.
fn whole(error: &etcd_client::Error) -> String {
    match error {
        etcd_client::Error::GRpcStatus(status) => with_sources(status.message().to_owned(), status.source()),
        etcd_client::Error::TransportError(error) => error_chain(error),
        other => other.to_string(),
    }
}
