//! What the cluster gets of an operation while it runs: its record, and Events on its Nodes.
//!
//! # Guarantees
//! - The operation waits for nothing here; its end takes at most [`LIMIT`] longer.
//! - What the API does not answer fails nothing: it is tried again later, at the end for the last time, and reported once.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::record_sync::{Summarise, sync};
use crate::kube_api::client::{self, ApiError};
use crate::kube_api::node_events::{self, NodeEvent};
use crate::model::error_chain::error_chain;
use crate::model::event::Event;
use crate::model::node_notice::{NodeNotice, NodeNotices};
use crate::model::operation_record::OperationBegun;
use crate::operation::cluster_site::ApiPort;
use crate::workspace::layout::Layout;

/// How long the end of an operation may take.
pub const LIMIT: Duration = Duration::from_secs(2);

/// The copy of an operation that runs.
pub struct ClusterCopy {
    notices: Mutex<NodeNotices>,
    outgoing: mpsc::UnboundedSender<(Timestamp, NodeNotice)>,
    worker: Mutex<Option<(oneshot::Sender<()>, JoinHandle<()>)>>,
}

impl ClusterCopy {
    /// Begins to copy an operation, whose record this machine has already. Needs a tokio runtime.
    pub fn begin(layout: Layout, api: ApiPort, begun: OperationBegun, summarise: Summarise) -> Self {
        let (outgoing, incoming) = mpsc::unbounded_channel();
        let (end, ended) = oneshot::channel();
        let worker = Worker {
            layout,
            api,
            operation: begun.id.clone(),
            summarise,
            client: None,
            incoming,
            received: 0,
            pending: VecDeque::new(),
        };
        let worker = tokio::spawn(worker.run(ended));
        Self {
            notices: Mutex::new(NodeNotices::new(begun)),
            outgoing,
            worker: Mutex::new(Some((end, worker))),
        }
    }

    /// Something happened.
    pub fn event(&self, time: Timestamp, event: &Event) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(notice) = notices.take(event) {
            // There is no receiver only after the end.
            let _ = self.outgoing.send((time, notice));
        }
    }

    /// The operation has ended, and this machine has its whole record.
    pub async fn end(&self) {
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((end, mut worker)) = worker else { return };
        // There is no receiver only if the worker panicked.
        let _ = end.send(());
        if timeout(LIMIT, &mut worker).await.is_err() {
            worker.abort();
            incomplete("the API server does not answer in time");
        }
    }
}

fn incomplete(reason: &str) {
    tracing::warn!("{reason}: the record of this operation in the cluster is not complete");
}

struct Worker {
    layout: Layout,
    api: ApiPort,
    operation: String,
    summarise: Summarise,
    client: Option<Client>,
    incoming: mpsc::UnboundedReceiver<(Timestamp, NodeNotice)>,
    received: usize,
    pending: VecDeque<NodeEvent>,
}

impl Worker {
    async fn run(mut self, ended: oneshot::Receiver<()>) {
        // What is dropped at the end is done again then: all of it may be done twice.
        tokio::select! {
            _ = ended => {}
            () = self.follow() => {}
        }
        while let Ok(notice) = self.incoming.try_recv() {
            self.take_in(notice);
        }
        // Without a kubeconfig there is no cluster yet.
        if matches!(&self.api, ApiPort::Kubeconfig(path) if !path.exists()) {
            return;
        }
        let sent = self.send().await;
        if let Err(error) = self.sync().await.and(sent) {
            incomplete(&error_chain(&error));
        }
    }

    /// While the operation runs: what fails is done at its end.
    async fn follow(&mut self) {
        let synced = timeout(LIMIT, self.sync()).await;
        tracing::debug!("records of operations in the cluster: {synced:?}");
        while let Some(notice) = self.incoming.recv().await {
            self.take_in(notice);
            let sent = timeout(LIMIT, self.send()).await;
            tracing::debug!("Events in the cluster: {sent:?}");
        }
    }

    fn take_in(&mut self, (time, notice): (Timestamp, NodeNotice)) {
        self.received += 1;
        let (operation, number) = (self.operation.clone(), self.received);
        self.pending.push_back(NodeEvent { operation, number, time, notice });
    }

    async fn sync(&mut self) -> Result<(), ApiError> {
        sync(&self.client().await?, &self.layout, self.summarise).await
    }

    /// Sends what is pending, in order. What the API refuses is not sent again.
    async fn send(&mut self) -> Result<(), ApiError> {
        let mut refused = Ok(());
        while let Some(event) = self.pending.front().cloned() {
            match node_events::create(&self.client().await?, &event).await {
                Err(error @ ApiError::Refused { .. }) => refused = Err(error),
                created => created?,
            }
            self.pending.pop_front();
        }
        refused
    }

    async fn client(&mut self) -> Result<Client, ApiError> {
        let path = match &self.api {
            ApiPort::Client(client) => return Ok(client.clone()),
            ApiPort::Kubeconfig(path) => path,
        };
        if let Some(client) = &self.client {
            return Ok(client.clone());
        }
        Ok(self.client.insert(client::connect_without_retry(path).await?).clone())
    }
}
