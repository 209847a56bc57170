//! Observing a cluster.
//!
//! Each request goes to one member on its own connection, so that the answering member is known, and has a
//! deadline, so that a dead member delays no other request.

use std::error::Error as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use etcd_client::{AlarmAction, AlarmType, Certificate, Client, ConnectOptions, Identity, TlsOptions};
use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use tokio::time::{Instant, timeout};

use crate::model::error_chain::{error_chain, with_sources};

use super::member::{Alarm, AlarmKind, Health, Member, Membership, Status};

/// A key that does not exist: reading or deleting it takes a request through raft and changes nothing.
pub(super) const NO_KEY: &str = "metalform";
/// Default deadline of one request to one member.
pub const DEADLINE: Duration = Duration::from_secs(2);

/// How to reach a cluster.
#[derive(Clone)]
pub struct EtcdAccess {
    /// Client URLs, of voters preferably: `https://192.0.2.10:2379`. At least one.
    pub endpoints: Vec<String>,
    /// Makes each connection.
    pub connector: Arc<dyn EtcdConnector>,
    /// Of one request to one member.
    pub deadline: Duration,
}

/// Makes connections to members.
#[async_trait]
pub trait EtcdConnector: Send + Sync {
    /// A client of the member at these client URLs.
    ///
    /// # Errors
    /// When none of them accepts a connection.
    async fn connect(&self, urls: &[&String], deadline: Duration) -> Result<Client, etcd_client::Error>;
}

/// A client certificate and the CA of the servers, all PEM.
#[derive(Clone)]
pub struct EtcdCredentials {
    ca: Vec<u8>,
    certificate: Vec<u8>,
    key: Vec<u8>,
}

/// Why the cluster was not observed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A PEM file could not be read.
    #[error("{}", path.display())]
    Unreadable {
        path: PathBuf,
        /// From the operating system.
        source: std::io::Error,
    },
    /// No endpoint is configured.
    #[error("no etcd endpoint is known")]
    NoEndpoint,
    /// No endpoint answered with quorum.
    #[error("etcd does not answer: {}", tried.join("; "))]
    NoAnswer {
        /// `https://192.0.2.10:2379: reason`, for each.
        tried: Vec<String>,
    },
}

/// Why one request to one member failed.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The connection failed, or the member returned an error.
    #[error("{}", whole(.0))]
    Failed(etcd_client::Error),
    /// The deadline passed.
    #[error("no answer in {} ms", .0.as_millis())]
    Silent(Duration),
}

impl EtcdCredentials {
    /// From PEM in memory.
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

#[async_trait]
impl EtcdConnector for EtcdCredentials {
    async fn connect(&self, urls: &[&String], deadline: Duration) -> Result<Client, etcd_client::Error> {
        let tls = TlsOptions::new()
            .ca_certificate(Certificate::from_pem(&self.ca))
            .identity(Identity::from_pem(&self.certificate, &self.key));
        let options = ConnectOptions::new().with_tls(tls).with_connect_timeout(deadline);
        Client::connect(urls, Some(options)).await
    }
}

impl EtcdAccess {
    /// The members as quorum lists them now, with the health of each. All are queried at the same time.
    ///
    /// # Errors
    /// When no endpoint answers with quorum before the deadline.
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

    /// The first list that an endpoint returns.
    async fn list(&self) -> Result<Membership, ClientError> {
        let mut requests: FuturesUnordered<_> = self
            .endpoints
            .iter()
            .map(|endpoint| async move { (endpoint, self.call(&[endpoint], list).await) })
            .collect();
        let mut tried = Vec::new();
        while let Some((endpoint, answer)) = requests.next().await {
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
        match self.call(&urls, status).await {
            Ok(health) => health,
            Err(error) => Health::Unknown { reason: format!("{}: {error}", member.client_urls.join(",")) },
        }
    }

    /// Sends one request, connecting included, within the deadline.
    pub(super) async fn call<T>(
        &self,
        urls: &[&String],
        request: impl AsyncFnOnce(Client) -> Result<T, etcd_client::Error>,
    ) -> Result<T, CallError> {
        let answer = async { request(self.connector.connect(urls, self.deadline).await?).await };
        match timeout(self.deadline, answer).await {
            Ok(answer) => answer.map_err(CallError::Failed),
            Err(_) => Err(CallError::Silent(self.deadline)),
        }
    }
}

/// The list and alarms, with no health yet.
///
/// A member returns the list as it has it, which may be old. The read before it is linearizable: it does not return
/// until the member has applied everything that was committed, so the list is as new as the request.
pub(super) async fn list(mut client: Client) -> Result<Membership, etcd_client::Error> {
    client.get(NO_KEY, None).await?;
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
            health: Health::Unknown { reason: "not queried".to_owned() },
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
    let sent = Instant::now();
    let answer = client.status().await?;
    let latency = sent.elapsed();
    let errors: Vec<&str> =
        answer.errors().iter().map(String::as_str).filter(|error| !is_alarm(error)).collect();
    if !errors.is_empty() {
        return Ok(Health::Unhealthy { reason: errors.join("; ") });
    }
    if answer.leader() == 0 {
        return Ok(Health::Unhealthy { reason: "has no leader".to_owned() });
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

/// Whether an error of a status is an alarm, as protobuf prints it: `memberID:42 alarm:NOSPACE `. Every member repeats
/// the alarms of all, which the list has already (`api/v3rpc/maintenance.go`).
fn is_alarm(error: &str) -> bool {
    error.starts_with("memberID:") && error.contains(" alarm:")
}

/// An error with its causes, which the client's own message leaves out: `connection refused` behind `tcp connect
/// error`, `certificate has expired` behind `transport error`.
fn whole(error: &etcd_client::Error) -> String {
    match error {
        etcd_client::Error::GRpcStatus(status) => with_sources(status.message().to_owned(), status.source()),
        etcd_client::Error::TransportError(error) => error_chain(error),
        other => other.to_string(),
    }
}
