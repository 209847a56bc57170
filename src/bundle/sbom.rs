//! What a bundle is made of, as a CycloneDX 1.5 document (ECMA-424): components, images and packages, with digests and
//! package URLs. The same bundle gives the same bytes.

use cyclonedx_bom::errors::JsonWriteError;
use cyclonedx_bom::external_models::uri::Purl;
use cyclonedx_bom::models::bom::{Bom, SpecVersion, UrnUuid};
use cyclonedx_bom::models::component::{Classification, Component, Components};
use cyclonedx_bom::models::hash::{Hash, HashAlgorithm, HashValue, Hashes};
use cyclonedx_bom::models::metadata::Metadata;
use cyclonedx_bom::models::property::{Properties, Property};
use purl::{GenericPurl, GenericPurlBuilder};

use super::content::BundledPackage;
use super::digest::Sha256;
use super::image_name::name_and_tag;
use super::manifest::Bundle;

/// The file name in the bundle's directory.
pub const FILE_NAME: &str = "sbom.cdx.json";

/// Where a component, or a platform's packages, come from.
const PROVENANCE: &str = "metalform:provenance";

/// Why the document could not be written.
#[derive(Debug, thiserror::Error)]
pub enum SbomError {
    /// A name that is not part of any package URL.
    #[error("{name:?} has no package URL")]
    PackageUrl {
        /// Of the component, package or image.
        name: String,
        /// From the library.
        source: purl::ParseError,
    },
    /// The document itself.
    #[error("cannot write {FILE_NAME}")]
    Write(#[from] JsonWriteError),
}

/// The document for a bundle, in the order of its manifest.
///
/// # Errors
/// When a name of it has no package URL.
pub(super) fn text(bundle: &Bundle) -> Result<Vec<u8>, SbomError> {
    let mut components = Vec::new();
    for (name, version) in &bundle.versions {
        components.push(upstream(bundle, name, version)?);
    }
    for (reference, digest) in &bundle.images {
        components.push(image(reference, digest)?);
    }
    for package in &bundle.packages {
        components.push(of_package(bundle, package)?);
    }
    let version = bundle.kubernetes_version().unwrap_or_default();
    let subject =
        Component::new(Classification::Platform, "metalform bundle", version, Some("bundle".to_owned()));
    let document = Bom {
        version: 1,
        serial_number: Some(serial_number(&bundle.inputs)),
        metadata: Some(Metadata { component: Some(subject), ..Metadata::default() }),
        components: Some(Components(components)),
        services: None,
        external_references: None,
        dependencies: None,
        compositions: None,
        properties: None,
        vulnerabilities: None,
        signature: None,
        annotations: None,
        formulation: None,
        spec_version: SpecVersion::V1_5,
    };
    let mut text = Vec::new();
    document.output_as_json_v1_5(&mut text)?;
    Ok(text)
}

fn upstream(bundle: &Bundle, name: &str, version: &str) -> Result<Component, SbomError> {
    let url = url(name, GenericPurlBuilder::new("generic".to_owned(), name).with_version(version))?;
    let mut made = component(Classification::Application, (name, version), url);
    // With several architectures, a component has a part for each: `etcd (arm64)`.
    let is_of =
        |part: &str| part.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(" ("));
    let parts = bundle.provenance.iter().filter(|(part, _)| is_of(part));
    let properties: Vec<_> = parts.map(|(_, provenance)| Property::new(PROVENANCE, provenance)).collect();
    made.properties = (!properties.is_empty()).then_some(Properties(properties));
    Ok(made)
}

/// As purl-spec has it for `oci`: the digest is the version, and the repository a qualifier.
fn image(reference: &str, digest: &Sha256) -> Result<Component, SbomError> {
    let (repository, tag) = name_and_tag(reference);
    let name = repository.rsplit('/').next().unwrap_or(&repository);
    let failed = failed(reference);
    let builder = GenericPurlBuilder::new("oci".to_owned(), name)
        .with_version(format!("sha256:{digest}"))
        .with_qualifier("repository_url", repository.as_str())
        .and_then(|builder| builder.with_qualifier("tag", tag.as_str()))
        .map_err(failed)?;
    let url = url(reference, builder)?;
    let mut made = component(Classification::Container, (&repository, &tag), url);
    made.hashes = Some(hashes(digest));
    Ok(made)
}

/// As purl-spec has it for `deb` and `rpm`. A package of ours is for several releases, and names none.
fn of_package(bundle: &Bundle, package: &BundledPackage) -> Result<Component, SbomError> {
    let name = &package.name;
    let mut builder = match package.platforms.first() {
        Some(platform) => {
            let kind = platform.distribution.package_format().map_or("generic", |format| format.as_str());
            GenericPurlBuilder::new(kind.to_owned(), name.as_str())
                .with_namespace(platform.distribution.to_string())
        }
        None => GenericPurlBuilder::new("generic".to_owned(), name.as_str()),
    };
    builder = builder
        .with_version(package.version.as_str())
        .with_qualifier("arch", package.architecture.as_str())
        .map_err(failed(name))?;
    if let [platform] = &package.platforms[..] {
        let release = format!("{}-{}", platform.distribution, platform.release);
        builder = builder.with_qualifier("distro", release).map_err(failed(name))?;
    }
    let mut made = component(Classification::Library, (name, &package.version), url(name, builder)?);
    made.hashes = bundle.files.get(&package.path).map(|record| hashes(&record.sha256));
    Ok(made)
}

fn component(kind: Classification, (name, version): (&str, &str), url: GenericPurl<String>) -> Component {
    let url = url.to_string();
    let mut made = Component::new(kind, name, version, Some(url.clone()));
    made.purl = url.parse::<Purl>().ok();
    made
}

fn url(name: &str, builder: GenericPurlBuilder<String>) -> Result<GenericPurl<String>, SbomError> {
    builder.build().map_err(failed(name))
}

fn failed(name: &str) -> impl Fn(purl::ParseError) -> SbomError {
    move |source| SbomError::PackageUrl { name: name.to_owned(), source }
}

fn hashes(digest: &Sha256) -> Hashes {
    Hashes(vec![Hash { alg: HashAlgorithm::SHA_256, content: HashValue(digest.to_string()) }])
}

/// A UUID of version 8, whose content is the writer's choice (RFC 9562, section 5.8): here of the bundle's inputs.
fn serial_number(inputs: &Sha256) -> UrnUuid {
    let digits = inputs.as_str();
    let (first, second, third) = (&digits[..8], &digits[8..12], &digits[13..16]);
    let (fourth, last) = (&digits[17..20], &digits[20..32]);
    UrnUuid(format!("urn:uuid:{first}-{second}-8{third}-8{fourth}-{last}"))
}
