//! What the documents of a repository share: how they are written, and the parts of several of them.

use quick_xml::se::{SeError, TextFormat};
use serde::{Deserialize, Serialize};

/// One element, without white space between its parts.
///
/// # Errors
/// For a value that XML cannot express; none of the types here has one.
pub(super) fn element(value: &impl Serialize) -> Result<String, SeError> {
    let mut text = String::new();
    let mut serializer = quick_xml::se::Serializer::new(&mut text);
    // White space at the ends of descriptions is part of them.
    serializer.text_format(TextFormat::Text);
    value.serialize(serializer)?;
    Ok(text)
}

/// A text without the characters that XML does not allow (XML 1.0, section 2.2), which old packages have.
pub(super) fn text(text: &str) -> String {
    let allowed =
        |c: &char| matches!(c, '\t' | '\n' | '\r') || (*c >= ' ' && !matches!(c, '\u{fffe}' | '\u{ffff}'));
    text.chars().filter(allowed).collect()
}

/// The version of a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::bundle::format::rpm) struct PackageVersion {
    #[serde(rename = "@epoch")]
    pub(in crate::bundle::format::rpm) epoch: String,
    #[serde(rename = "@ver")]
    pub(in crate::bundle::format::rpm) version: String,
    #[serde(rename = "@rel")]
    pub(in crate::bundle::format::rpm) release: String,
}

/// A digest of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::bundle::format::rpm) struct Checksum {
    /// `sha256`.
    #[serde(rename = "@type")]
    pub(super) kind: String,
    /// `YES` where the digest identifies a package.
    #[serde(rename = "@pkgid", default, skip_serializing_if = "Option::is_none")]
    pub(super) pkgid: Option<String>,
    #[serde(rename = "$text")]
    pub(super) digest: String,
}

/// Where a file is, relative to the repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::bundle::format::rpm) struct Location {
    #[serde(rename = "@href")]
    pub(super) href: String,
}

/// A file of a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::bundle::format::rpm) struct PackageFile {
    /// `dir` or `ghost`; none for every other file.
    #[serde(rename = "@type", default, skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<String>,
    #[serde(rename = "$text")]
    pub(in crate::bundle::format::rpm) path: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped_and_what_xml_does_not_allow_is_left_out() {
        let file = PackageFile { kind: None, path: text("/a<b>&\u{1}\u{1b}\n é") };
        assert_eq!(element(&file).unwrap(), "<PackageFile>/a&lt;b&gt;&amp;\n é</PackageFile>");
    }
}
