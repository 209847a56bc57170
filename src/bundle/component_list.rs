//! Parses a component list, strictly and completely before anything is built.

use std::collections::BTreeSet;

use super::component::{Component, ComponentList, ReleaseArtefact};
use super::format;
use crate::model::api_contract::API_VERSION;
use crate::model::platform::Architecture;

/// The file name in a bundle: the list that it was built from.
pub const FILE_NAME: &str = "components.yaml";

/// The list compiled into metalform.
pub const SHIPPED: &str = include_str!("components.yaml");

/// Why a component list was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ComponentListError {
    /// Not YAML, an unknown or missing field, a wrong type.
    #[error("{file}:{line}:{column}: {reason}")]
    Syntax {
        /// As given by the operator.
        file: String,
        /// From 1.
        line: u64,
        /// From 1.
        column: u64,
        /// One line.
        reason: String,
    },
    /// A document of another kind.
    #[error("{file}: expected ComponentList of {API_VERSION}, found {kind} of {api_version}")]
    OtherDocument {
        /// As given by the operator.
        file: String,
        /// As written.
        kind: String,
        /// As written.
        api_version: String,
    },
    /// A list for no host.
    #[error("{file}: architectures is empty; supported are amd64 and arm64")]
    NoArchitecture {
        /// As given by the operator.
        file: String,
    },
    /// An architecture that is listed twice.
    #[error("{file}: duplicate architecture {architecture}")]
    DuplicateArchitecture {
        /// As given by the operator.
        file: String,
        /// The second one.
        architecture: Architecture,
    },
    /// An operating system whose packages cannot be bundled.
    #[error(
        "{file}: packages of {distribution} cannot be bundled; supported are almalinux, centos, debian, rhel, rocky and ubuntu"
    )]
    Distribution {
        /// As given by the operator.
        file: String,
        /// As written.
        distribution: String,
    },
    /// A component that cannot be built.
    #[error("{file}: component {component}: {fault}")]
    Component {
        /// As given by the operator.
        file: String,
        /// Name of the component.
        component: String,
        /// The first fault.
        fault: ComponentFault,
    },
}

/// A fault of a component.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ComponentFault {
    /// Two components with one name.
    #[error("duplicate component")]
    Duplicate,
    /// Neither `release` nor `go` nor `program`.
    #[error("no source")]
    NoSource,
    /// metalform, and something else.
    #[error("the program source excludes others")]
    Program,
    /// A source without a binary that an image or a package contains.
    #[error("the {from} source does not provide {binary}")]
    MissingBinary {
        /// `release`, `go` or `program`.
        from: &'static str,
        /// Name of the binary.
        binary: String,
    },
    /// An artefact that cannot be verified.
    #[error("{url} has neither sha256 nor sha256_url")]
    NoDigest {
        /// The artefact.
        url: String,
    },
    /// A digest that can be altered in transit together with the artefact.
    #[error("the digest at {url} is not protected by HTTPS; set sha256, or use an https URL")]
    DigestOverHttp {
        /// URL of the digest.
        url: String,
    },
    /// Both or neither of `binary` and `members`.
    #[error("{url} requires either binary or members")]
    Shape {
        /// The artefact.
        url: String,
    },
    /// `replace_staging` with no or several required modules.
    #[error("replace_staging requires exactly one required module")]
    Staging,
    /// Not a full reference with a tag.
    #[error("{reference:?} is not an image reference with registry and tag")]
    Reference {
        /// As written.
        reference: String,
    },
    /// A path or name that could leave its directory.
    #[error("{name:?} is not {what}")]
    Name {
        /// As written.
        name: String,
        /// `a package name`.
        what: &'static str,
    },
}

/// Parses and checks a list; `file` is used in messages only.
///
/// # Errors
/// The first syntax error with its line and column, or the first fault of a component.
pub fn parse(file: &str, text: &str) -> Result<ComponentList, ComponentListError> {
    let list: ComponentList = serde_saphyr::from_str(text).map_err(|error| syntax(file, &error))?;
    if list.kind != "ComponentList" || list.api_version != API_VERSION {
        return Err(ComponentListError::OtherDocument {
            file: file.to_owned(),
            kind: list.kind,
            api_version: list.api_version,
        });
    }
    if list.architectures.is_empty() {
        return Err(ComponentListError::NoArchitecture { file: file.to_owned() });
    }
    let mut architectures = BTreeSet::new();
    if let Some(&architecture) = list.architectures.iter().find(|one| !architectures.insert(**one)) {
        return Err(ComponentListError::DuplicateArchitecture { file: file.to_owned(), architecture });
    }
    if let Some(platform) = list.platforms().iter().find(|platform| format::of_platform(platform).is_none()) {
        let distribution = platform.distribution.to_string();
        return Err(ComponentListError::Distribution { file: file.to_owned(), distribution });
    }
    let mut seen = BTreeSet::new();
    for component in &list.components {
        let unique = if seen.insert(&component.name) { Ok(()) } else { Err(ComponentFault::Duplicate) };
        let mut architectures = list.architectures.iter();
        let checked = unique.and_then(|()| architectures.try_for_each(|one| check(*one, component)));
        checked.map_err(|fault| ComponentListError::Component {
            file: file.to_owned(),
            component: component.name.clone(),
            fault,
        })?;
    }
    Ok(list)
}

/// A YAML error with its location, in one line.
pub(super) fn syntax(file: &str, error: &serde_saphyr::Error) -> ComponentListError {
    let (line, column) = error.location().map_or((0, 0), |at| (at.line(), at.column()));
    let reason = error.without_snippet().render_with_formatter(&serde_saphyr::UserMessageFormatter);
    // The location is already at the start of the message.
    let reason = reason.split(&format!(" at line {line}")).next().unwrap_or_default().to_owned();
    ComponentListError::Syntax { file: file.to_owned(), line, column, reason }
}

fn check(architecture: Architecture, component: &Component) -> Result<(), ComponentFault> {
    let sources = &component.sources;
    let is_of_others = !sources.release.is_empty() || sources.go.is_some();
    if sources.program.is_some() && is_of_others {
        return Err(ComponentFault::Program);
    }
    if sources.program.is_none() && !is_of_others {
        return Err(ComponentFault::NoSource);
    }
    for binary in component.binaries() {
        let missing = |from| Err(ComponentFault::MissingBinary { from, binary: binary.to_owned() });
        if !is_file_name(binary) {
            return Err(ComponentFault::Name { name: binary.to_owned(), what: "a file name" });
        }
        if !sources.release.is_empty() && !sources.release_binaries().contains(binary) {
            return missing("release");
        }
        if sources.go.as_ref().is_some_and(|go| !go.binaries().contains(binary)) {
            return missing("go");
        }
        if sources.program.as_ref().is_some_and(|program| program.binary != binary) {
            return missing("program");
        }
    }
    if sources.go.as_ref().is_some_and(|go| go.replace_staging && go.requires.len() != 1) {
        return Err(ComponentFault::Staging);
    }
    sources.release.iter().try_for_each(|artefact| check_artefact(architecture, artefact))?;
    for image in &component.images {
        let reference = component.expand(&image.reference, architecture);
        let parsed: Result<oci_spec::distribution::Reference, _> = reference.parse();
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

fn check_artefact(architecture: Architecture, artefact: &ReleaseArtefact) -> Result<(), ComponentFault> {
    let url = || artefact.url.clone();
    if artefact.binary.is_some() != artefact.members.is_empty() {
        return Err(ComponentFault::Shape { url: url() });
    }
    if let Some(name) = artefact.binary.iter().chain(artefact.members.keys()).find(|name| !is_file_name(name))
    {
        return Err(ComponentFault::Name { name: name.clone(), what: "a file name" });
    }
    if artefact.sha256.contains_key(&architecture) {
        return Ok(());
    }
    let Some(digest_url) = &artefact.sha256_url else {
        return Err(ComponentFault::NoDigest { url: url() });
    };
    let digest_url = digest_url.replace("{url}", &artefact.url);
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
architectures: [amd64]
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
        let is_of_go_or_ours = |one: &Component| one.sources.go.is_some() || one.sources.program.is_some();
        assert!(list.components.iter().all(is_of_go_or_ours));
        for component in &list.components {
            let described = [&component.license, &component.copyright, &component.homepage];
            assert!(described.iter().all(|field| field.is_some()), "{}", component.name);
            let modules = component.sources.go.as_ref().filter(|go| !go.requires.is_empty());
            assert!(modules.is_none_or(|go| go.sum.is_some()), "{}", component.name);
            for package in &component.packages {
                let lines = package.details.lines();
                assert!(
                    lines.clone().count() > 0 && lines.into_iter().all(|line| line.len() < 80),
                    "{}",
                    package.name
                );
                assert!(
                    package.description.len() < 80 && !package.description.ends_with('.'),
                    "{}",
                    package.name
                );
            }
        }
    }

    #[test]
    fn every_architecture_needs_a_digest_of_what_it_downloads() {
        let both = SMALL.replace("[amd64]", "[amd64, arm64]");
        assert_eq!(parse("c.yaml", &both).unwrap().architectures, Architecture::ALL);
        let digest = |architectures: &[&str]| {
            let entries = architectures.iter().map(|one| format!("{one}: {}", "a".repeat(64)));
            let pinned = format!("sha256: {{ {} }}", entries.collect::<Vec<_>>().join(", "));
            parse("c.yaml", &both.replace("sha256_url: \"{url}.sha256\"", &pinned))
        };
        assert!(digest(&["amd64", "arm64"]).is_ok());
        let error = digest(&["amd64"]).unwrap_err().to_string();
        assert!(error.ends_with("hello-{version}-{arch} has neither sha256 nor sha256_url"), "{error}");
    }

    #[test]
    fn what_a_bundle_records_has_no_password() {
        let given = SMALL
            .replace("operating_systems: []", "operating_systems: [{distribution: rocky, release: '9', suite: 'https://me:secret@a.example/os 9/x', packages: []}]")
            .replace("https://example.org/", "https://me:secret@example.org/");
        let list = parse("c.yaml", &given).unwrap().without_credentials();
        assert_eq!(list.operating_systems[0].suite, "https://a.example/os 9/x");
        assert_eq!(list.components[0].sources.release[0].url, "https://example.org/hello-{version}-{arch}");
    }

    #[test]
    fn faults_have_a_location_or_a_component_and_a_reason() {
        let cases = [
            ("architectures: [amd64]", "architectures: [vax]", "c.yaml:4:17: "),
            ("architectures: [amd64]", "architectures: []", "architectures is empty; supported are "),
            ("architectures: [amd64]", "architectures: [amd64, amd64]", "duplicate architecture amd64"),
            (
                "operating_systems: []",
                "operating_systems: [{distribution: arch, release: '9', suite: '9', packages: []}]",
                "packages of arch cannot be bundled; supported are almalinux, centos, debian, rhel, rocky and ubuntu",
            ),
            (
                "operating_systems: []",
                "operating_systems: [{distribution: debian, release: 'a-b', suite: x, packages: []}]",
                "is not a release of a distribution",
            ),
            ("binary: hello", "binary: hello\n          colour: red", "c.yaml:14:11: "),
            (
                "version: 1.2.3",
                "version: 1.2.3\n    version: 4",
                "c.yaml:9:5: duplicate mapping key: version",
            ),
            (
                "kind: ComponentList",
                "kind: Bundle",
                "c.yaml: expected ComponentList of metalform.dev/v1alpha1, found Bundle of ",
            ),
            ("          sha256_url: \"{url}.sha256\"\n", "", "has neither sha256 nor sha256_url"),
            ("https://example.org/hello-", "http://example.org/hello-", "is not protected by HTTPS"),
            ("          binary: hello\n", "", "the release source does not provide hello"),
            (
                "    sources:\n",
                "    sources:\n      program: { binary: hello }\n",
                "the program source excludes others",
            ),
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
