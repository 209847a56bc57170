//! What binaries were made of, by digest. A component list that has these digests accepts nothing else. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::component::Sources;
use super::digest::Sha256;
use crate::model::platform::Architecture;

/// The official artefacts, or the Go modules, of a component's binaries.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Origins {
    /// URL, with placeholders → digests of the artefacts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) artefacts: BTreeMap<String, BTreeMap<Architecture, Sha256>>,
    /// Digest of the wrapper module's go.sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) go_sum: Option<Sha256>,
}

impl Origins {
    /// Whether no digest differs from one of the list.
    pub(super) fn agree_with(&self, sources: &Sources) -> bool {
        let of_go = |known: &Sha256| self.go_sum.as_ref().is_none_or(|found| found == known);
        let of_release = |url: &str, architecture: &Architecture, known: &Sha256| {
            let found = self.artefacts.get(url).and_then(|found| found.get(architecture));
            found.is_none_or(|found| found == known)
        };
        let artefacts = sources.release.iter();
        let mut pinned =
            artefacts.flat_map(|one| one.sha256.iter().map(move |(of, known)| (&one.url, of, known)));
        pinned.all(|(url, architecture, known)| of_release(url, architecture, known))
            && sources.go.as_ref().and_then(|go| go.sum.as_ref()).is_none_or(of_go)
    }

    /// Adds the digests to the list where it has none.
    pub(super) fn pin(&self, sources: &mut Sources) {
        for artefact in &mut sources.release {
            for (architecture, found) in self.artefacts.get(&artefact.url).into_iter().flatten() {
                artefact.sha256.entry(*architecture).or_insert_with(|| found.clone());
            }
        }
        if let Some(go) = &mut sources.go {
            go.sum = go.sum.take().or_else(|| self.go_sum.clone());
        }
    }
}

/// The sources without digests, which alter no binary: they only refuse others.
pub(super) fn unpinned(sources: &Sources) -> Sources {
    let mut sources = sources.clone();
    sources.release.iter_mut().for_each(|artefact| artefact.sha256.clear());
    sources.go.iter_mut().for_each(|go| go.sum = None);
    sources
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::component::Component;

    const DIGITS: [&str; 2] = [
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
    ];

    fn tool(sha256: &str, sum: &str) -> Component {
        let text = format!(
            "{{ name: tool, version: 1.0.0, sources: {{ release: [{{ url: u, binary: tool{sha256} }}], \
             go: {{ requires: {{ m: v1 }}, packages: {{ tool: m }}{sum} }} }} }}"
        );
        serde_saphyr::from_str(&text).unwrap()
    }

    #[test]
    fn binaries_agree_with_a_list_that_has_their_digests_or_none() {
        let [a, b] = DIGITS;
        let (release, go) =
            (|of: &str| format!(", sha256: {{ amd64: {of} }}"), |of: &str| format!(", sum: {of}"));
        let downloaded = Origins {
            artefacts: [("u".to_owned(), [(Architecture::Amd64, a.parse().unwrap())].into())].into(),
            go_sum: None,
        };
        let compiled = Origins { artefacts: BTreeMap::new(), go_sum: Some(a.parse().unwrap()) };
        let cases = [
            (&downloaded, String::new(), String::new(), true),
            (&downloaded, release(a), go(b), true),
            (&downloaded, release(b), String::new(), false),
            (&compiled, release(b), go(a), true),
            (&compiled, String::new(), go(b), false),
        ];
        for (origins, sha256, sum, expected) in cases {
            let component = tool(&sha256, &sum);
            assert_eq!(origins.agree_with(&component.sources), expected, "{sha256} {sum}");
            assert_eq!(unpinned(&component.sources), tool("", "").sources);
        }
        for (origins, found) in [(&downloaded, (1, None)), (&compiled, (0, Some(a)))] {
            let mut sources = tool("", "").sources;
            origins.pin(&mut sources);
            let sum = sources.go.unwrap().sum;
            assert_eq!((sources.release[0].sha256.len(), sum.as_ref().map(Sha256::as_str)), found);
        }
    }
}
