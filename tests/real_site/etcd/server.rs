//! A member of the simulated etcd that answers over gRPC what metalform asks: members, status, alarms, a linearizable
//! read. All else is unimplemented.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use etcd_client::proto::*;
use etcd_client::{Channel, Client};
use futures::stream::Empty;
use metalform::etcd::act::ActError;
use metalform::etcd::member::{Member, Membership};
use metalform::etcd::membership::MembershipChange;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};
use tonic::{Request, Response, Status, async_trait};
use tower::util::BoxCloneSyncService;

use super::certificates::{EtcdCa, Pair};
use crate::simulated_etcd::Etcd;

/// All members' common state.
pub type SharedEtcd = Arc<Mutex<Etcd>>;

/// One member, as its clients see it.
#[derive(Clone)]
pub struct MemberServer {
    /// `https://192.0.2.11:2380`.
    peer_url: String,
    etcd: SharedEtcd,
}

type Answer<T> = Result<Response<T>, Status>;

impl MemberServer {
    pub fn new(etcd: &SharedEtcd, peer_url: &str) -> Self {
        Self { peer_url: peer_url.to_owned(), etcd: etcd.clone() }
    }

    /// A client of this member, with no socket between.
    ///
    /// # Errors
    /// When the member does not run.
    pub async fn client(&self) -> Result<Client, etcd_client::Error> {
        self.observed().map_err(|_| etcd_client::Error::ElectError("connection refused".to_owned()))?;
        let (kv, cluster) = (PbKvServer::new(self.clone()), PbClusterServer::new(self.clone()));
        let maintenance = PbMaintenanceServer::new(self.clone());
        let service = tower::service_fn(move |request: axum::http::Request<tonic::body::Body>| {
            let (mut kv, mut cluster, mut maintenance) = (kv.clone(), cluster.clone(), maintenance.clone());
            async move {
                use tower::Service;
                let path = request.uri().path();
                let answered = if path.starts_with("/etcdserverpb.KV/") {
                    kv.call(request).await
                } else if path.starts_with("/etcdserverpb.Cluster/") {
                    cluster.call(request).await
                } else {
                    maintenance.call(request).await
                };
                answered.map_err(tower::BoxError::from)
            }
        });
        Client::from_channel(Channel::Custom(BoxCloneSyncService::new(service)), None).await
    }

    /// Serves it over TLS until it is aborted.
    pub async fn listen(&self, address: SocketAddr, ca: &EtcdCa) -> JoinHandle<()> {
        let Pair { certificate, key } = ca.member(address.ip());
        let tls = ServerTlsConfig::new()
            .identity(Identity::from_pem(certificate, key))
            .client_ca_root(Certificate::from_pem(&ca.certificate));
        let server = Server::builder()
            .tls_config(tls)
            .unwrap()
            .add_service(PbKvServer::new(self.clone()))
            .add_service(PbClusterServer::new(self.clone()))
            .add_service(PbMaintenanceServer::new(self.clone()));
        let incoming = TcpIncoming::bind(address).unwrap();
        tokio::spawn(async move { server.serve_with_incoming(incoming).await.unwrap() })
    }

    /// The members as this one has them; an error where it does not run or no quorum stands behind it.
    fn observed(&self) -> Result<Membership, Status> {
        let mut etcd = self.etcd.lock().unwrap();
        etcd.copy(Instant::now());
        let runs = etcd.members.iter().any(|member| member.peer_url == self.peer_url && member.running);
        if !runs {
            return Err(Status::unavailable("connection refused"));
        }
        etcd.observe().map_err(|_| Status::unavailable("etcdserver: no leader"))
    }

    fn own<'a>(&self, observed: &'a Membership) -> Result<&'a Member, Status> {
        let own = observed.members.iter().find(|member| member.peer_urls.contains(&self.peer_url));
        own.ok_or_else(|| Status::unavailable("connection refused"))
    }

    fn header(&self, observed: &Membership) -> Result<Option<PbResponseHeader>, Status> {
        let own = self.own(observed)?;
        Ok(Some(PbResponseHeader {
            cluster_id: observed.cluster_id,
            member_id: own.id,
            revision: own.status().map_or(0, |status| status.revision),
            raft_term: 2,
        }))
    }

    fn change(&self, change: &MembershipChange) -> Result<Membership, Status> {
        self.observed()?;
        let changed = self.etcd.lock().unwrap().change(change, Instant::now());
        changed.map_err(|error| match error {
            ActError::NotYet { message } | ActError::Overtaken { message } => {
                Status::failed_precondition(message)
            }
            other => Status::internal(other.to_string()),
        })?;
        self.observed()
    }
}

fn members(observed: &Membership) -> Vec<PbMember> {
    let member = |member: &Member| PbMember {
        id: member.id,
        name: member.name.clone(),
        peer_ur_ls: member.peer_urls.clone(),
        client_ur_ls: member.client_urls.clone(),
        is_learner: member.is_learner,
    };
    observed.members.iter().map(member).collect()
}

fn unimplemented<T>() -> Answer<T> {
    Err(Status::unimplemented("not part of the scripted etcd"))
}

#[async_trait]
impl PbClusterService for MemberServer {
    async fn member_list(&self, _: Request<PbMemberListRequest>) -> Answer<PbMemberListResponse> {
        let observed = self.observed()?;
        let header = self.header(&observed)?;
        Ok(Response::new(PbMemberListResponse { header, members: members(&observed) }))
    }

    async fn member_add(&self, request: Request<PbMemberAddRequest>) -> Answer<PbMemberAddResponse> {
        let PbMemberAddRequest { peer_ur_ls, is_learner } = request.into_inner();
        let [peer_url] = peer_ur_ls.as_slice() else {
            return Err(Status::invalid_argument("etcdserver: given member URLs are invalid"));
        };
        if !is_learner {
            return Err(Status::failed_precondition("a member begins as a learner"));
        }
        let observed = self.change(&MembershipChange::AddLearner { peer_url: peer_url.clone() })?;
        let (header, members) = (self.header(&observed)?, members(&observed));
        let member = members.iter().find(|member| member.peer_ur_ls.contains(peer_url)).cloned();
        Ok(Response::new(PbMemberAddResponse { header, member, members }))
    }

    async fn member_promote(
        &self,
        request: Request<PbMemberPromoteRequest>,
    ) -> Answer<PbMemberPromoteResponse> {
        let observed = self.change(&MembershipChange::Promote { id: request.into_inner().id })?;
        let header = self.header(&observed)?;
        Ok(Response::new(PbMemberPromoteResponse { header, members: members(&observed) }))
    }

    async fn member_remove(&self, request: Request<PbMemberRemoveRequest>) -> Answer<PbMemberRemoveResponse> {
        let id = request.into_inner().id;
        // etcd removes any member.
        let observed = self.change(&MembershipChange::Replace { id, voter: true })?;
        let header = self.header(&observed)?;
        Ok(Response::new(PbMemberRemoveResponse { header, members: members(&observed) }))
    }

    async fn member_update(&self, _: Request<PbMemberUpdateRequest>) -> Answer<PbMemberUpdateResponse> {
        unimplemented()
    }
}

#[async_trait]
impl PbKvService for MemberServer {
    type RangeStreamStream = Empty<Result<PbRangeStreamResponse, Status>>;

    async fn range(&self, _: Request<PbRangeRequest>) -> Answer<PbRangeResponse> {
        let observed = self.observed()?;
        if self.own(&observed)?.is_learner {
            return Err(Status::unavailable("etcdserver: rpc not supported for learner"));
        }
        Ok(Response::new(PbRangeResponse { header: self.header(&observed)?, ..PbRangeResponse::default() }))
    }

    async fn range_stream(&self, _: Request<PbRangeRequest>) -> Answer<Self::RangeStreamStream> {
        unimplemented()
    }

    async fn put(&self, _: Request<PbPutRequest>) -> Answer<PbPutResponse> {
        unimplemented()
    }

    async fn delete_range(&self, _: Request<PbDeleteRequest>) -> Answer<PbDeleteResponse> {
        let header = self.header(&self.observed()?)?;
        Ok(Response::new(PbDeleteResponse { header, ..PbDeleteResponse::default() }))
    }

    async fn txn(&self, _: Request<PbTxnRequest>) -> Answer<PbTxnResponse> {
        unimplemented()
    }

    async fn compact(&self, _: Request<PbCompactionRequest>) -> Answer<PbCompactionResponse> {
        unimplemented()
    }
}

#[async_trait]
impl PbMaintenanceService for MemberServer {
    type SnapshotStream = Empty<Result<PbSnapshotResponse, Status>>;

    async fn alarm(&self, _: Request<PbAlarmRequest>) -> Answer<PbAlarmResponse> {
        let observed = self.observed()?;
        let alarms = observed.alarms.iter().map(|alarm| PbAlarmMember {
            member_id: alarm.member,
            alarm: match alarm.kind {
                metalform::etcd::member::AlarmKind::NoSpace => 1,
                metalform::etcd::member::AlarmKind::Corrupt => 2,
            },
        });
        Ok(Response::new(PbAlarmResponse { header: self.header(&observed)?, alarms: alarms.collect() }))
    }

    async fn status(&self, _: Request<PbStatusRequest>) -> Answer<PbStatusResponse> {
        let observed = self.observed()?;
        let header = self.header(&observed)?;
        let own = self.own(&observed)?;
        let status = own.status().ok_or_else(|| Status::unavailable("connection refused"))?;
        Ok(Response::new(PbStatusResponse {
            header,
            version: status.version.clone(),
            db_size: i64::try_from(status.db_size).unwrap_or(0),
            leader: observed.leader().map_or(0, |(leader, _)| leader.id),
            raft_index: status.raft_index,
            raft_term: 2,
            raft_applied_index: status.raft_applied,
            is_learner: own.is_learner,
            ..PbStatusResponse::default()
        }))
    }

    async fn defragment(&self, _: Request<PbDefragmentRequest>) -> Answer<PbDefragmentResponse> {
        unimplemented()
    }

    async fn hash(&self, _: Request<PbHashRequest>) -> Answer<PbHashResponse> {
        unimplemented()
    }

    async fn hash_kv(&self, _: Request<PbHashKvRequest>) -> Answer<PbHashKvResponse> {
        unimplemented()
    }

    async fn snapshot(&self, _: Request<PbSnapshotRequest>) -> Answer<Self::SnapshotStream> {
        unimplemented()
    }

    async fn move_leader(&self, request: Request<PbMoveLeaderRequest>) -> Answer<PbMoveLeaderResponse> {
        let observed = self.observed()?;
        let moved = self.etcd.lock().unwrap().move_leader(request.into_inner().target_id);
        moved.map_err(|error| Status::failed_precondition(error.to_string()))?;
        Ok(Response::new(PbMoveLeaderResponse { header: self.header(&observed)? }))
    }

    async fn downgrade(&self, _: Request<PbDowngradeRequest>) -> Answer<PbDowngradeResponse> {
        unimplemented()
    }
}
