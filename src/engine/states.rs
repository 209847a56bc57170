//! Compiled states as the desired state of a host.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use super::{Desired, Item};
use crate::resource::contract::change::{Difference, Verdict};
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::kind::Kind;
use crate::resource::contract::owed::Owed;
use crate::resource::contract::pending::Pending;
use crate::resource::contract::probe::{Answer, Observed, Probe};
use crate::resource::contract::resource_id::ResourceId;
use crate::resource::fields::field_error::FieldError;
use crate::resource::{Resource, has_field};
use crate::state::{Compiled, Location};

/// The resources of one host, in the order of execution.
#[derive(Debug, Clone)]
pub struct HostStates {
    resources: Vec<Declared>,
    authorities: BTreeMap<String, String>,
    now: Timestamp,
    own_boot_id: Option<String>,
}

#[derive(Debug, Clone)]
struct Declared {
    id: ResourceId,
    resource: Resource,
    ensure: Ensure,
    only_if_changed: Vec<ResourceId>,
}

impl Declared {
    /// Its reactions to other resources.
    fn reactions(&self) -> Vec<Owed> {
        let until_boot = self.resource.causes_until_boot();
        let lasting = self.only_if_changed.iter().filter(|id| !until_boot.contains(id));
        let owed = |cause: &ResourceId, until_boot| Owed {
            reaction: self.id.clone(),
            cause: cause.clone(),
            until_boot,
        };
        let until_boot = until_boot.iter().map(|cause| owed(cause, true));
        lasting.map(|cause| owed(cause, false)).chain(until_boot).collect()
    }

    /// The resources that an earlier run changed, and that it has not reacted to.
    fn owed(&self, observed: &Observed) -> BTreeSet<ResourceId> {
        let reactions = self.reactions().into_iter();
        let is_owed = |owed: &Owed| observed.get(&Probe::Owed(owed.clone())) == Some(&Answer::Owed(true));
        reactions.filter(is_owed).map(|owed| owed.cause).collect()
    }
}

/// A resource with values that its kind does not accept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {fault}")]
pub struct DeclareError {
    /// Its place in a file.
    pub at: Location,
    /// From the kind.
    pub fault: Box<FieldError>,
}

impl HostStates {
    /// From the compiled states of one host. `authorities` are the certificates (PEM) of the CAs, by name; the expiry of
    /// certificates is measured from `now`.
    ///
    /// # Errors
    /// Every resource that its kind does not accept.
    pub fn new(
        compiled: Vec<Compiled>,
        authorities: BTreeMap<String, String>,
        now: Timestamp,
    ) -> Result<Self, Vec<DeclareError>> {
        let mut faults = Vec::new();
        let mut resources = Vec::new();
        for one in compiled {
            match declare(one) {
                Ok(declared) => resources.push(declared),
                Err(fault) => faults.push(fault),
            }
        }
        if faults.is_empty() {
            Ok(Self { resources, authorities, now, own_boot_id: None })
        } else {
            Err(faults)
        }
    }
}

impl HostStates {
    /// Sets the boot id of the machine that metalform runs on, which must not reboot itself.
    #[must_use]
    pub fn seen_from(self, own_boot_id: Option<String>) -> Self {
        Self { own_boot_id, ..self }
    }
}

/// The boot id of this machine (random(4)).
pub fn own_boot_id() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
}

fn declare(compiled: Compiled) -> Result<Declared, DeclareError> {
    let only_if_changed = compiled.only_if_changed;
    let mut fields = compiled.fields;
    // A guard of these kinds.
    if has_field(compiled.id.kind, "only_if_changed") && !only_if_changed.is_empty() {
        let ids = only_if_changed.iter().map(|id| Value::from(id.to_string())).collect();
        fields.insert("only_if_changed".to_owned(), ids);
    }
    let resource =
        Resource::parse(compiled.id.kind, &compiled.id.name, fields, compiled.ensure, compiled.sensitive)
            .map_err(|fault| {
                let field = fault.field().and_then(|field| compiled.places.get(field));
                let at = field
                    .map_or(compiled.source.clone(), |at| Location::new(compiled.source.file.clone(), *at));
                DeclareError { at, fault: Box::new(fault) }
            })?;
    Ok(Declared { id: compiled.id, resource, ensure: compiled.ensure, only_if_changed })
}

impl Desired for HostStates {
    fn items(&self) -> Vec<Item> {
        self.resources
            .iter()
            .map(|one| {
                let owed = one.reactions().into_iter().map(Probe::Owed);
                Item {
                    id: one.id.to_string(),
                    probes: one.resource.probes().into_iter().chain(owed).collect(),
                }
            })
            .collect()
    }

    fn reactions(&self) -> Vec<Owed> {
        self.resources.iter().flat_map(Declared::reactions).collect()
    }

    fn verdicts(&self, observed: &Observed) -> Vec<(String, Verdict)> {
        let mut pending = Pending::hiding(self.resources.iter().filter_map(|one| one.resource.secret_file()));
        self.resources
            .iter()
            .map(|one| {
                pending.owe(one.owed(observed));
                let mut verdict =
                    if !one.only_if_changed.is_empty() && pending.first_of(&one.only_if_changed).is_none() {
                        Verdict::NoChange { reason: "none of its dependencies changes".to_owned() }
                    } else {
                        let context = Context {
                            now: self.now,
                            authorities: &self.authorities,
                            own_boot_id: self.own_boot_id.as_deref(),
                            pending: &pending,
                        };
                        one.resource.diff(observed, &context)
                    };
                if let Verdict::Change(change) = &mut verdict
                    && let Some(cause) = pending.first_of(&one.only_if_changed)
                    && cause.is_earlier()
                    // A reboot shows its reason itself.
                    && one.id.kind != Kind::Reboot
                {
                    let name = "owed".to_owned();
                    let after = Some(cause.to_string());
                    change.differences.insert(0, Difference::Field { name, before: None, after });
                }
                if let Verdict::Change(change) = &verdict {
                    pending.record(one.id.clone(), one.ensure, change);
                }
                (one.id.to_string(), verdict)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::engine::host::{Convergence, EventSink, HostSession};
    use crate::engine::nonce::Nonce;
    use crate::model::event::Event;
    use crate::resource::contract::kind::Kind;
    use crate::transport::local::LocalTransport;

    fn line(name: &str, fields: Value) -> Compiled {
        let fields: Map<String, Value> = fields.as_object().unwrap().clone();
        Compiled {
            id: ResourceId { kind: Kind::Line, name: name.to_owned() },
            fields,
            ensure: Ensure::Present,
            places: BTreeMap::new(),
            sensitive: false,
            only_if_changed: Vec::new(),
            after: Vec::new(),
            source: Location::of_file("states/a.yaml"),
            state: "a".parse().unwrap(),
        }
    }

    #[tokio::test]
    async fn lines_of_one_file_come_in_one_pass_and_keep_what_others_wrote() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("it's a file").to_str().unwrap().to_owned();
        std::fs::write(&path, "# theirs\nb = 0").unwrap();
        let compiled = vec![
            line("a", json!({"path": path, "text": "a = 1"})),
            line("b", json!({"path": path, "text": "b = 1", "match": "b = .*"})),
            line("c", json!({"path": path, "text": "c = 1", "below": "a = .*"})),
        ];
        let states = HostStates::new(compiled, BTreeMap::new(), Timestamp::UNIX_EPOCH).unwrap();
        let passes = std::sync::Mutex::new(0);
        let count = |event: Event| {
            *passes.lock().unwrap() += usize::from(matches!(event, Event::Planned { .. }));
        };
        assert_eq!(converged(&states, &count).await.changed, ["line:a", "line:b", "line:c"]);
        assert_eq!(*passes.lock().unwrap(), 1);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "# theirs\nb = 1\na = 1\nc = 1\n");
        let again = Convergence { changed: Vec::new(), unchanged: 3 };
        assert_eq!(converged(&states, &count).await, again);
    }

    async fn converged(states: &HostStates, events: EventSink<'_>) -> Convergence {
        let host = HostSession::new("here".parse().unwrap(), &LocalTransport, Nonce::new(3));
        let looked = host.look(Some(states.clone()), |_| Err(())).await.unwrap().unwrap();
        let no_signer = |_: &_, _: &str| Err("no signer".to_owned());
        host.converge(looked, &no_signer, events).await.unwrap()
    }
}
