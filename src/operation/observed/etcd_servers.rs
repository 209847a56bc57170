//! Which members of etcd an API server uses.

use std::collections::BTreeSet;

use crate::etcd::member::Member;
use crate::operation::static_pod::flags;
use crate::operation::survey::APISERVER_MANIFEST;
use crate::resource::contract::probe::{Answer, Observed, Probe};

/// The members of etcd that the API server of another node uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EtcdServers {
    /// The client URLs in its static pod; none where there is no static pod.
    Listed(BTreeSet<String>),
    /// The host cannot be reached, or the static pod not read, and why.
    Unknown(String),
}

impl EtcdServers {
    /// Whether it was seen to use this member.
    pub fn lists(&self, member: &Member) -> bool {
        matches!(self, Self::Listed(urls) if member.client_urls.iter().any(|url| urls.contains(url)))
    }

    /// What a host is asked.
    pub fn probe() -> Probe {
        Probe::Content { path: APISERVER_MANIFEST.to_owned() }
    }

    /// Interprets the answer.
    pub fn read(observed: &Observed) -> Self {
        let manifest = match observed.get(&Self::probe()) {
            Some(Answer::Content(Some(manifest))) => manifest,
            Some(Answer::Content(None)) => return Self::Listed(BTreeSet::new()),
            _ => return Self::Unknown(format!("{APISERVER_MANIFEST} cannot be read")),
        };
        let flags = flags(&String::from_utf8_lossy(manifest));
        let urls = flags.get("etcd-servers").into_iter().flat_map(|urls| urls.split(','));
        Self::Listed(urls.map(str::to_owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_members_are_those_of_the_static_pod() {
        let read = |manifest: Option<&str>| {
            let content = manifest.map(|manifest| manifest.as_bytes().to_vec());
            EtcdServers::read(&Observed([(EtcdServers::probe(), Answer::Content(content))].into()))
        };
        let listed = |urls: &[&str]| EtcdServers::Listed(urls.iter().map(|&url| url.to_owned()).collect());
        let (a, b) = ("https://192.0.2.1:2379", "https://[2001:db8::1]:2379");
        let manifest = format!("    - command:\n        - --etcd-servers={a},{b}\n        - --v=2\n");
        assert_eq!(read(Some(&manifest)), listed(&[a, b]));
        assert_eq!(read(None), listed(&[]));
        assert!(matches!(EtcdServers::read(&Observed::default()), EtcdServers::Unknown(_)));
    }
}
