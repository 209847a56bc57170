//! `repomd.xml`: the other documents of a repository with their digests. It is the one that is signed.

use jiff::Timestamp;
use quick_xml::se::SeError;
use serde::{Deserialize, Serialize};

use super::xml::{self, Checksum, Location};
use crate::bundle::digest::Sha256;

pub(super) const FILE_NAME: &str = "repomd.xml";

/// The document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "repomd")]
pub(super) struct RepositoryDocuments {
    #[serde(rename = "@xmlns", skip_deserializing, default)]
    namespace: &'static str,
    /// Grows from one bundle to the next: seconds since 1970.
    revision: i64,
    data: Vec<Data>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Data {
    /// `primary`.
    #[serde(rename = "@type")]
    kind: String,
    /// Of the compressed file.
    checksum: Checksum,
    #[serde(rename = "open-checksum")]
    open_checksum: Checksum,
    location: Location,
    timestamp: i64,
    size: usize,
    #[serde(rename = "open-size")]
    open_size: usize,
}

impl RepositoryDocuments {
    pub(super) fn new(date: Timestamp) -> Self {
        let namespace = "http://linux.duke.edu/metadata/repo";
        Self { namespace, revision: date.as_second(), data: Vec::new() }
    }

    /// Adds a document and returns the path of its file, relative to the repository. The name has the digest, so that a
    /// client that reads during a change finds the documents that its index names.
    pub(super) fn add(&mut self, kind: &str, open: &[u8], compressed: &[u8]) -> String {
        let (digest, timestamp) = (Sha256::of(compressed), self.revision);
        let path = format!("repodata/{digest}-{kind}.xml.gz");
        let checksum =
            |digest: &Sha256| Checksum { kind: "sha256".to_owned(), pkgid: None, digest: digest.to_string() };
        self.data.push(Data {
            kind: kind.to_owned(),
            checksum: checksum(&digest),
            open_checksum: checksum(&Sha256::of(open)),
            location: Location { href: path.clone() },
            timestamp,
            size: compressed.len(),
            open_size: open.len(),
        });
        path
    }

    /// The path of a document, relative to the repository.
    pub(super) fn path(&self, kind: &str) -> Option<&str> {
        self.data.iter().find(|data| data.kind == kind).map(|data| data.location.href.as_str())
    }

    /// The text of the file.
    ///
    /// # Errors
    /// As [`xml::element`].
    pub(super) fn to_xml(&self) -> Result<String, SeError> {
        Ok(format!("{}{}\n", super::DECLARATION, xml::element(self)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_found_by_its_kind_and_has_both_digests() {
        let mut written = RepositoryDocuments::new(Timestamp::constant(1_800_000_000, 0));
        let path = written.add("primary", b"open", b"compressed");
        let text = written.to_xml().unwrap();
        let read: RepositoryDocuments = quick_xml::de::from_str(&text).unwrap();
        assert_eq!(read.path("primary"), Some(path.as_str()));
        assert_eq!(read.path("filelists"), None);
        let text = text.replace(Sha256::of(b"open").as_str(), "OPEN");
        let text = text.replace(Sha256::of(b"compressed").as_str(), "COMPRESSED");
        insta::assert_snapshot!(text.replace("><", ">\n<"), @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <repomd xmlns="http://linux.duke.edu/metadata/repo">
        <revision>1800000000</revision>
        <data type="primary">
        <checksum type="sha256">COMPRESSED</checksum>
        <open-checksum type="sha256">OPEN</open-checksum>
        <location href="repodata/COMPRESSED-primary.xml.gz"/>
        <timestamp>1800000000</timestamp>
        <size>10</size>
        <open-size>4</open-size>
        </data>
        </repomd>
        "#);
    }
}
