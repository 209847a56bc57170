//! A node that is removed, and the Services that send requests to its pods.

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use crate::host::guards::ENDS_CONTAINERS;
use crate::scripts::Play;

/// How long the controller manager is waited for.
const LIMIT: Duration = Duration::from_secs(30);
const PATIENCE: Duration = Duration::from_secs(300);

#[tokio::test(start_paused = true)]
async fn its_containers_end_when_no_service_sends_requests_to_them() {
    // At once, and not as long as the controller manager is waited for.
    for noticed in [Duration::from_secs(8), LIMIT + Duration::from_secs(5)] {
        let mut play = Play::new();
        for line in [
            "host bootstrap bootstrap master etcd infra",
            "host worker node infra",
            "deployed bootstrap worker",
        ] {
            play.prepare(line).await.unwrap();
        }
        let session = play.stage.session("worker").unwrap();
        let api = play.stage.api.clone();
        let owner = json!([{ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "dns", "uid": "1" }]);
        let metadata = json!({ "name": "dns-1", "namespace": "kube-system", "ownerReferences": owner });
        let pod = json!({ "metadata": metadata, "spec": { "nodeName": "worker", "containers": [] } });
        api.lock().store.insert("pods", "kube-system", pod);
        let target = json!({ "kind": "Pod", "namespace": "kube-system", "name": "dns-1" });
        let slice = json!({
            "metadata": { "name": "dns-1", "namespace": "kube-system" },
            "addressType": "IPv4",
            "endpoints": [{ "addresses": ["10.233.4.2"], "conditions": { "ready": true }, "targetRef": target }],
        });
        api.lock().store.insert("endpointslices", "kube-system", slice);
        let has_ended = || session.lock().performed.iter().any(|title| title == ENDS_CONTAINERS);
        let until = async |holds: &dyn Fn() -> bool| {
            while !holds() {
                sleep(Duration::from_millis(100)).await;
            }
        };
        let observed = async {
            until(&|| !session.lock().runs("kubelet.service")).await;
            let began = Instant::now();
            sleep(noticed).await;
            assert!(has_ended() == (noticed > LIMIT), "{noticed:?}");
            api.lock().store.change("endpointslices", "kube-system", "dns-1", |slice| {
                slice["endpoints"][0]["conditions"]["ready"] = json!(false);
            });
            until(&has_ended).await;
            began.elapsed()
        };
        let (lines, lasted) = tokio::join!(play.play("remove worker"), timeout(PATIENCE, observed));
        let lines = lines.unwrap();
        assert!(lines.last().is_some_and(|last| last.starts_with("all hold")), "{}", lines.join("\n"));
        assert!(lasted.is_ok_and(|lasted| lasted <= noticed + Duration::from_secs(2)), "{noticed:?}");
        assert!(api.lock().store.in_namespace("pods", "kube-system", "dns-1").is_none());
    }
}
