//! All Hosts by name, each with what a choice depends on, which is derived once for each version of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::ResourceExt;

use super::api::host::HostObject;
use super::host_choice::PoolHost;
use super::host_observation::pool_host;

/// A Host.
#[derive(Debug)]
pub struct IndexedHost {
    /// As caches show it.
    pub object: Arc<HostObject>,
    /// `None` for a name that no host can have.
    pub for_choice: Option<PoolHost>,
}

/// All Hosts. To change one takes the logarithm of their number; a decision then reads little of each.
#[derive(Debug, Default)]
pub struct HostIndex(BTreeMap<String, Arc<IndexedHost>>);

impl HostIndex {
    /// Replaces the Host of this name; `None` where it is deleted.
    pub fn set(&mut self, name: &str, object: Option<Arc<HostObject>>) {
        match object {
            Some(object) => {
                let for_choice = pool_host(&object);
                self.0.insert(name.to_owned(), Arc::new(IndexedHost { object, for_choice }));
            }
            None => {
                self.0.remove(name);
            }
        }
    }

    /// Those of a name that no host can have, too; by name.
    pub fn all(&self) -> Vec<Arc<IndexedHost>> {
        self.0.values().cloned().collect()
    }
}

impl FromIterator<Arc<HostObject>> for HostIndex {
    fn from_iter<T: IntoIterator<Item = Arc<HostObject>>>(hosts: T) -> Self {
        let mut index = Self::default();
        hosts.into_iter().for_each(|host| index.set(&host.name_any(), Some(host)));
        index
    }
}

impl IndexedHost {
    /// Of the object.
    pub fn name(&self) -> &str {
        self.object.metadata.name.as_deref().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn host(name: &str, zone: &str) -> Arc<HostObject> {
        let spec = json!({ "address": "192.0.2.1", "failureDomain": zone });
        Arc::new(serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec })).unwrap())
    }

    #[test]
    fn each_host_is_there_once_as_it_was_seen_last() {
        let mut index: HostIndex = [host("h2", "a"), host("h1", "a"), host("NO", "a")].into_iter().collect();
        let shown = |index: &HostIndex| -> Vec<String> {
            let zone = |host: &IndexedHost| host.for_choice.as_ref()?.failure_domain.clone();
            let all = index.all();
            all.iter().map(|host| format!("{} {}", host.name(), zone(host).unwrap_or_default())).collect()
        };
        assert_eq!(shown(&index), ["NO ", "h1 a", "h2 a"]);
        index.set("h2", Some(host("h2", "b")));
        index.set("h1", None);
        index.set("h1", None);
        assert_eq!(shown(&index), ["NO ", "h2 b"]);
    }
}
