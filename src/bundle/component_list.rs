//! Reads a component list: strict, and whole before anything is built.

use std::collections::BTreeSet;

use super::component::{API_VERSION, Component, ComponentList, Download};

/// The list that metalform ships.
pub const SHIPPED: &str = include_str!("components.yaml");

/// Why a text is not a component list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ComponentListError {
    /// Not YAML, an unknown or missing field, a wrong type.
    #[error("{file}:{line}:{column}: {reason}")]
    Syntax {
        /// As the operator named it.
        file: String,
        /// From 1.
        line: u64,
        /// From 1.
        column: u64,
        /// One line.
        reason: String,
    },
    /// Another document.
    #[error("{file}: this is {kind} of {api_version}, not ComponentList of {API_VERSION}")]
    OtherDocument {
        /// As the operator named it.
        file: String,
        /// What it says.
        kind: String,
        /// What it says.
        api_version: String,
    },
    /// It can be read, but cannot be built.
    #[error("{file}: component {component}: {fault}")]
    Component {
        /// As the operator named it.
        file: String,
        /// Its name.
        component: String,
        /// What is wrong.
        fault: ComponentFault,
    },
}

/// What is wrong with one component.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ComponentFault {
    /// Two have the same name.
    #[error("it is listed twice")]
    Duplicate,
    /// Neither `release` nor `go`.
    #[error("it has no source")]
    NoSource,
    /// A source lacks a binary that an image or a package takes.
    #[error("its {from} source does not give {binary}")]
    MissingBinary {
        /// `release` or `go`.
        from: &'static str,
        /// Its name.
        binary: String,
    },
    /// Nothing says what the bytes must be.
    #[error("{url} has neither sha256 nor sha256_url")]
    NoDigest {
        /// The artefact.
        url: String,
    },
    /// Whoever alters the artefact on its way can alter the digest too.
    #[error("the digest at {url} would travel over plain HTTP; give sha256, or an https URL")]
    DigestOverHttp {
        /// The digest's URL.
        url: String,
    },
    /// Both or neither of `binary` and `members`.
    #[error("{url} needs either binary or members")]
    Shape {
        /// The artefact.
        url: String,
    },
    /// `replace_staging` with another number of required modules than one.
    #[error("replace_staging needs exactly one required module")]
    Staging,
    /// Not a full reference with a tag.
    #[error("{reference:?} is not an image reference with registry and tag")]
    Reference {
        /// As written.
        reference: String,
    },
    /// A path or name that would leave its directory.
    #[error("{name:?} is not {what}")]
    Name {
        /// As written.
        name: String,
        /// What it should be.
        what: &'static str,
    },
}

/// Parses and checks a list; `file` is for messages only.
///
/// # Errors
/// The first fault of the text, with its line and column, or of a component, with its name.
pub fn parse(file: &str, text: &str) -> Result<ComponentList, ComponentListError> {
    let list: ComponentList = serde_saphyr::from_str(text).map_err(|error| syntax(file, &error))?;
    if list.kind != "ComponentList" || list.api_version != API_VERSION {
        return Err(ComponentListError::OtherDocument {
            file: file.to_owned(),
            kind: list.kind,
            api_version: list.api_version,
        });
    }
    let mut seen = BTreeSet::new();
    for component in &list.components {
        let unique = if seen.insert(&component.name) { Ok(()) } else { Err(ComponentFault::Duplicate) };
        unique.and_then(|()| check(&list, component)).map_err(|fault| ComponentListError::Component {
            file: file.to_owned(),
            component: component.name.clone(),
            fault,
        })?;
    }
    Ok(list)
}

/// Where and why a YAML text is refused, in one line.
pub(super) fn syntax(file: &str, error: &serde_saphyr::Error) -> ComponentListError {
    let (line, column) = error.location().map_or((0, 0), |at| (at.line(), at.column()));
    let reason = error.without_snippet().render_with_formatter(&serde_saphyr::UserMessageFormatter);
    // The location is said in front already.
    let reason = reason.split(&format!(" at line {line}")).next().unwrap_or_default().to_owned();
    ComponentListError::Syntax { file: file.to_owned(), line, column, reason }
}

fn check(list: &ComponentList, component: &Component) -> Result<(), ComponentFault> {
    let sources = &component.sources;
    if sources.release.is_empty() && sources.go.is_none() {
        return Err(ComponentFault::NoSource);
    }
    for binary in component.binaries() {
        let missing = |from| Err(ComponentFault::MissingBinary { from, binary: binary.to_owned() });
        if !is_file_name(binary) {
            return Err(ComponentFault::Name { name: binary.to_owned(), what: "a binary's name" });
        }
        if !sources.release.is_empty() && !sources.release_binaries().contains(binary) {
            return missing("release");
        }
        if sources.go.as_ref().is_some_and(|go| !go.binaries().contains(binary)) {
            return missing("go");
        }
    }
    if sources.go.as_ref().is_some_and(|go| go.replace_staging && go.requires.len() != 1) {
        return Err(ComponentFault::Staging);
    }
    sources.release.iter().try_for_each(|download| check_download(list, download))?;
    for image in &component.images {
        let reference = component.expand(&image.reference, list.architecture);
        let parsed: Result<oci_client::Reference, _> = reference.parse();
        if !parsed.is_ok_and(|parsed| parsed.tag().is_some() && parsed.whole() == reference) {
            return Err(ComponentFault::Reference { reference });
        }
    }
    for package in &component.packages {
        if !is_file_name(&package.name) {
            return Err(ComponentFault::Name { name: package.name.clone(), what: "a package name" });
        }
    }
    let packaged =
        component.packages.iter().flat_map(|package| package.files.keys().chain(package.texts.keys()));
    let paths = component.images.iter().flat_map(|image| image.files.keys()).chain(packaged);
    match paths.into_iter().find(|path| !is_absolute(path)) {
        Some(path) => Err(ComponentFault::Name { name: path.clone(), what: "an absolute path" }),
        None => Ok(()),
    }
}

fn check_download(list: &ComponentList, download: &Download) -> Result<(), ComponentFault> {
    let url = || download.url.clone();
    if download.binary.is_some() != download.members.is_empty() {
        return Err(ComponentFault::Shape { url: url() });
    }
    if let Some(name) = download.binary.iter().chain(download.members.keys()).find(|name| !is_file_name(name))
    {
        return Err(ComponentFault::Name { name: name.clone(), what: "a binary's name" });
    }
    if download.sha256.contains_key(&list.architecture) {
        return Ok(());
    }
    let Some(digest_url) = &download.sha256_url else {
        return Err(ComponentFault::NoDigest { url: url() });
    };
    let digest_url = digest_url.replace("{url}", &download.url);
    let trusted = ["https://", "http://127.0.0.1:"].iter().any(|start| digest_url.starts_with(start));
    if trusted { Ok(()) } else { Err(ComponentFault::DigestOverHttp { url: digest_url }) }
}

fn is_file_name(name: &str) -> bool {
    !name.starts_with(['.', '-'])
        && !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-._".contains(&b))
}

fn is_absolute(path: &str) -> bool {
    path.strip_prefix('/').is_some_and(|rest| rest.split('/').all(is_file_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"
apiVersion: metalform.dev/v1alpha1
kind: ComponentList
architecture: amd64
operating_systems: []
components:
  - name: hello
    version: 1.2.3
    sources:
      release:
        - url: "https://example.org/hello-{version}-{arch}"
          sha256_url: "{url}.sha256"
          binary: hello
    images:
      - reference: "example.org/hello:v{version}"
        files: { /hello: hello }
        entrypoint: [/hello]
"#;

    #[test]
    fn the_shipped_list_is_valid() {
        let list = parse("components.yaml", SHIPPED).unwrap();
        assert_eq!(list.components.iter().filter(|component| component.sources.go.is_none()).count(), 0);
    }

    #[test]
    fn faults_name_the_place_and_the_reason() {
        let cases = [
            ("architecture: amd64", "architecture: vax", "c.yaml:4:15: "),
            ("binary: hello", "binary: hello\n          colour: red", "c.yaml:14:11: "),
            (
                "version: 1.2.3",
                "version: 1.2.3\n    version: 4",
                "c.yaml:9:5: duplicate mapping key: version",
            ),
            ("kind: ComponentList", "kind: Bundle", "c.yaml: this is Bundle of "),
            ("          sha256_url: \"{url}.sha256\"\n", "", "has neither sha256 nor sha256_url"),
            ("https://example.org/hello-", "http://example.org/hello-", "would travel over plain HTTP"),
            ("          binary: hello\n", "", "its release source does not give hello"),
            ("/hello: hello", "/../hello: hello", "\"/../hello\" is not an absolute path"),
            ("example.org/hello:v{version}", "hello", "\"hello\" is not an image reference"),
        ];
        for (good, bad, expected) in cases {
            assert!(SMALL.contains(good), "{good}");
            let error = parse("c.yaml", &SMALL.replace(good, bad)).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains('\n'), "{bad}: {error}");
        }
    }
}
