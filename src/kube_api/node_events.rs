//! Events about Nodes, as `kubectl describe node` shows them.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time};
use kube::Client;
use kube::api::{Api, PostParams};

use super::FIELD_MANAGER;
use super::client::ApiError;
use crate::model::node_notice::NodeNotice;

/// The component that reports them.
const COMPONENT: &str = "metalform";
/// Where the API keeps Events about objects without a namespace.
const NAMESPACE: &str = "default";

/// A notice of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeEvent {
    /// The operation.
    pub operation: String,
    /// Its place among the notices of the operation.
    pub number: usize,
    /// When.
    pub time: Timestamp,
    /// What.
    pub notice: NodeNotice,
}

/// Creates the Event. Created twice, it is there once.
///
/// # Errors
/// When the API does not answer or refuses.
pub async fn create(client: &Client, event: &NodeEvent) -> Result<(), ApiError> {
    let event = object(event);
    let api: Api<Event> = Api::namespaced(client.clone(), NAMESPACE);
    let parameters = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    let created = api.create(&parameters, &event).await;
    let title = || format!("event/{NAMESPACE}/{}", event.metadata.name.as_deref().unwrap_or_default());
    match created.map_err(|error| ApiError::new("create", title(), error)) {
        Ok(_) | Err(ApiError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// `eventTime` requires an action and an instance; older programs read the timestamps and the source.
fn object(NodeEvent { operation, number, time, notice }: &NodeEvent) -> Event {
    let kind = if notice.warning { "Warning" } else { "Normal" };
    Event {
        metadata: ObjectMeta {
            name: Some(format!("metalform-{}-{number}", operation.to_lowercase())),
            namespace: Some(NAMESPACE.to_owned()),
            ..ObjectMeta::default()
        },
        // The UID is the name, as in the kubelet's Events: it is known before there is a Node, and `kubectl describe`
        // looks for both.
        involved_object: ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Node".to_owned()),
            name: Some(notice.node.to_string()),
            uid: Some(notice.node.to_string()),
            ..ObjectReference::default()
        },
        type_: Some(kind.to_owned()),
        reason: Some(notice.reason.to_owned()),
        action: Some(notice.reason.to_owned()),
        message: Some(notice.message.clone()),
        event_time: Some(MicroTime(*time)),
        first_timestamp: Some(Time(*time)),
        last_timestamp: Some(Time(*time)),
        count: Some(1),
        reporting_component: Some(COMPONENT.to_owned()),
        reporting_instance: Some(operation.clone()),
        source: Some(EventSource { component: Some(COMPONENT.to_owned()), host: None }),
        ..Event::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_that_the_api_accepts_and_describe_finds() {
        let notice = NodeNotice {
            node: "node-1".parse().unwrap(),
            reason: "DeploymentFailed",
            warning: true,
            message: "no SSH connection".to_owned(),
        };
        let time = Timestamp::from_second(1_800_000_000).unwrap();
        let operation = "20270115T080000Z-4711".to_owned();
        insta::assert_yaml_snapshot!(object(&NodeEvent { operation, number: 2, time, notice }), @r#"
        apiVersion: v1
        kind: Event
        action: DeploymentFailed
        count: 1
        eventTime: "2027-01-15T08:00:00.000000Z"
        firstTimestamp: "2027-01-15T08:00:00Z"
        involvedObject:
          apiVersion: v1
          kind: Node
          name: node-1
          uid: node-1
        lastTimestamp: "2027-01-15T08:00:00Z"
        message: no SSH connection
        metadata:
          name: metalform-20270115t080000z-4711-2
          namespace: default
        reason: DeploymentFailed
        reportingComponent: metalform
        reportingInstance: 20270115T080000Z-4711
        source:
          component: metalform
        type: Warning
        "#);
    }
}
