//! The host over its connection: what metalform asks and does, with what a connection can do wrong.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard};

use metalform::engine::Desired;
use metalform::engine::host::HostError;
use metalform::engine::plan::Plan;
use metalform::model::facts::Facts;
use metalform::resource::contract::change::Verdict;
use metalform::resource::contract::probe::{Observed, Probe};
use metalform::resource::contract::step::Step;
use metalform::transport::error::TransportError;

use super::perform::Sign;
use super::{Link, ScriptedHost};

/// A connection to a host that others may see too.
#[derive(Clone)]
pub struct HostSession {
    pub name: String,
    pub host: Arc<Mutex<ScriptedHost>>,
}

impl HostSession {
    pub fn new(name: &str, host: ScriptedHost) -> Self {
        Self { name: name.to_owned(), host: Arc::new(Mutex::new(host)) }
    }

    pub fn lock(&self) -> MutexGuard<'_, ScriptedHost> {
        self.host.lock().unwrap()
    }

    /// # Errors
    /// When the host has no power or is not reached; a silent one gives no answer at all.
    pub async fn reach(&self) -> Result<(), HostError> {
        let reason = {
            let host = self.lock();
            match &host.link {
                Link::Silent => None,
                _ if !host.on => Some("no route to host".to_owned()),
                Link::Unreachable(reason) => Some(reason.clone()),
                Link::Up | Link::BreaksAfter(_) => return Ok(()),
            }
        };
        match reason {
            Some(reason) => {
                let host = self.name.clone();
                Err(HostError::Transport(TransportError::Unreachable { host, reason }))
            }
            None => pending().await,
        }
    }

    /// # Errors
    /// As [`Self::reach`].
    pub async fn facts(&self) -> Result<Facts, HostError> {
        self.reach().await?;
        let host = self.lock();
        let clock = i64::try_from(host.clock).unwrap_or(0);
        Ok(Facts { clock, swap: host.swap, ..host.facts.clone() })
    }

    /// # Errors
    /// As [`Self::reach`].
    pub async fn observe(&self, probes: &BTreeSet<Probe>) -> Result<Observed, HostError> {
        self.reach().await?;
        Ok(self.lock().answers(probes))
    }

    /// # Errors
    /// As [`Self::reach`].
    pub async fn plan(&self, desired: &dyn Desired) -> Result<Plan, HostError> {
        let probes = desired.items().into_iter().flat_map(|item| item.probes).collect();
        Ok(Plan { verdicts: desired.verdicts(&self.observe(&probes).await?) })
    }

    /// Performs a plan, one resource after the other.
    ///
    /// # Errors
    /// When the plan has refusals, at the first step that fails, and where the connection breaks.
    pub async fn apply(&self, plan: &Plan, sign: Sign<'_>) -> Result<(), HostError> {
        let refusals = plan.refusals();
        if !refusals.is_empty() {
            return Err(HostError::Refused { refusals });
        }
        for (id, verdict) in &plan.verdicts {
            if let Verdict::Change(change) = verdict {
                self.perform(id, &change.steps, sign).await?;
            }
        }
        Ok(())
    }

    /// Performs the steps of one resource.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub async fn perform(&self, id: &str, steps: &[Step], sign: Sign<'_>) -> Result<(), HostError> {
        self.reach().await?;
        for step in steps {
            let mut host = self.lock();
            if !host.on {
                return Err(self.lost(id));
            }
            if let Link::BreaksAfter(left) = &mut host.link {
                match left.checked_sub(1) {
                    Some(fewer) => *left = fewer,
                    None => {
                        host.link = Link::Unreachable("no route to host".to_owned());
                        return Err(self.lost(id));
                    }
                }
            }
            host.perform(step, sign).map_err(|failing| HostError::Failed {
                resources: vec![id.to_owned()],
                status: failing.status,
                output: failing.output,
            })?;
        }
        Ok(())
    }

    fn lost(&self, id: &str) -> HostError {
        let reason = "the connection was closed".to_owned();
        let error = TransportError::Lost { host: self.name.clone(), reason };
        HostError::LostDuring { resources: vec![id.to_owned()], error }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use std::collections::BTreeMap;

    use metalform::engine::Item;
    use metalform::resource::Resource;
    use metalform::resource::contract::context::Context;
    use metalform::resource::contract::ensure::Ensure;
    use metalform::resource::contract::pending::Pending;
    use metalform::resource::contract::step::CertificateRequest;
    use serde_json::json;

    use super::*;
    use crate::host::Failing;
    use crate::host::tree::of_root;

    fn plan() -> Plan {
        let write = |path: &str| Step::WriteFile {
            path: path.to_owned(),
            content: b"x".to_vec(),
            access: of_root(0o644),
            sensitive: false,
        };
        let change = metalform::resource::contract::change::Change {
            differences: Vec::new(),
            steps: vec![write("/a"), write("/b")],
        };
        Plan { verdicts: vec![("file:/a".to_owned(), Verdict::Change(change))] }
    }

    async fn applied(prepare: impl FnOnce(&mut ScriptedHost)) -> (String, usize) {
        let session = HostSession::new("n1", ScriptedHost::new(Facts::examples()[0].clone()));
        prepare(&mut session.lock());
        let unsigned = |_: &CertificateRequest, _: &str| Err("no CA".to_owned());
        let plan = plan();
        let applied = session.apply(&plan, &unsigned);
        let outcome = match tokio::time::timeout(Duration::from_secs(3600), applied).await {
            Ok(applied) => applied.map_or_else(|error| error.to_string(), |()| "applied".to_owned()),
            Err(_) => "no answer".to_owned(),
        };
        let performed = session.lock().performed.len();
        (outcome, performed)
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_fails_as_a_script_has_it() {
        assert_eq!(applied(|_| {}).await, ("applied".to_owned(), 2));
        assert_eq!(applied(|host| host.link = Link::Silent).await, ("no answer".to_owned(), 0));
        let (outcome, performed) = applied(|host| host.on = false).await;
        assert_eq!((outcome.as_str(), performed), ("n1: no SSH connection: no route to host", 0));
        let refused = Link::Unreachable("connection refused".to_owned());
        let (outcome, performed) = applied(|host| host.link = refused).await;
        assert_eq!((outcome.as_str(), performed), ("n1: no SSH connection: connection refused", 0));
        let (outcome, performed) = applied(|host| host.link = Link::BreaksAfter(1)).await;
        assert_eq!(performed, 1);
        assert!(outcome.contains("the connection was closed") && outcome.contains("file:/a"), "{outcome}");
        let full = Failing { status: 1, output: "No space left on device".to_owned() };
        let (outcome, performed) =
            applied(|host| drop(host.failing.insert("write /b".to_owned(), full))).await;
        assert_eq!(
            (outcome.as_str(), performed),
            ("file:/a failed with status 1: No space left on device", 1)
        );
    }

    /// Resources with nothing between them.
    struct Resources(Vec<(String, Resource)>);

    impl Desired for Resources {
        fn items(&self) -> Vec<Item> {
            self.0.iter().map(|(id, one)| Item { id: id.clone(), probes: one.probes() }).collect()
        }

        fn verdicts(&self, observed: &Observed) -> Vec<(String, Verdict)> {
            let mut pending = Pending::default();
            let now = jiff::Timestamp::UNIX_EPOCH;
            let verdict = |(id, one): &(String, Resource)| {
                let (authorities, pending_now) = (BTreeMap::new(), pending.clone());
                let context =
                    Context { now, authorities: &authorities, own_boot_id: None, pending: &pending_now };
                let verdict = one.diff(observed, &context);
                if let Verdict::Change(change) = &verdict {
                    pending.record(id.parse().unwrap(), Ensure::Present, change);
                }
                (id.clone(), verdict)
            };
            self.0.iter().map(verdict).collect()
        }
    }

    #[tokio::test]
    async fn resources_that_build_on_each_other_converge_in_one_pass() {
        let resource = |kind: &str, name: &str, fields: serde_json::Value| {
            let fields = fields.as_object().unwrap().clone();
            let resource =
                Resource::parse(kind.parse().unwrap(), name, fields, Ensure::Present, false).unwrap();
            (format!("{kind}:{name}"), resource)
        };
        let desired = Resources(vec![
            resource("group", "etcd", json!({})),
            resource("user", "etcd", json!({ "group": "etcd", "home": "/var/lib/etcd" })),
            resource("kmod", "br_netfilter", json!({})),
            resource("sysctl", "net.bridge.bridge-nf-call-iptables", json!({ "value": 0 })),
            resource("package", "haproxy", json!({})),
            resource("file", "/etc/haproxy/haproxy.cfg", json!({ "content": "x" })),
            resource("file", "/etc/systemd/system/a.service", json!({ "content": "[Service]" })),
            resource("service", "a", json!({ "restart_when_changed": ["file:/etc/haproxy/haproxy.cfg"] })),
        ]);
        let session = HostSession::new("n1", ScriptedHost::new(Facts::examples()[0].clone()));
        let unsigned = |_: &CertificateRequest, _: &str| Err("no CA".to_owned());
        let plan = session.plan(&desired).await.unwrap();
        assert_eq!((plan.unchanged(), plan.refusals()), (0, Vec::new()));
        session.apply(&plan, &unsigned).await.unwrap();
        assert_eq!(session.plan(&desired).await.unwrap().works(), Vec::new());
        session.lock().boot();
        assert_eq!(session.plan(&desired).await.unwrap().works(), Vec::new());
        assert!(session.lock().runs("a.service"));
    }

    #[tokio::test]
    async fn looking_changes_nothing() {
        let session = HostSession::new("n1", ScriptedHost::new(Facts::examples()[0].clone()));
        let before = session.lock().tree.clone();
        session.facts().await.unwrap();
        session.observe(&metalform::operation::survey::probes()).await.unwrap();
        assert_eq!(session.lock().tree, before);
        assert!(session.lock().performed.is_empty());
    }
}
