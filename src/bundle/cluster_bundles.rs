//! The bundles of a cluster, by the version of Kubernetes that each contains.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::content::BundledPackage;
use super::digest::Sha256;
use super::manifest::{Bundle, BundleManifestError};
use super::served_bundle::served_path;
use crate::model::bundle_key::BundleKey;
use crate::model::error_chain::error_chain;
use crate::model::platform::Platform;

/// The package of the program that has built a bundle. No node installs it, and its version changes with releases of
/// metalform only.
const OWN_PACKAGE: &str = "metalform";

/// A bundle and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleDirectory {
    /// The directory, absolute.
    pub path: PathBuf,
    /// Its version of Kubernetes, without a leading `v`.
    pub kubernetes: String,
    /// Its manifest.
    pub manifest: Bundle,
}

impl BundleDirectory {
    /// As [`served_path`].
    pub fn served_path(&self) -> String {
        served_path(&self.kubernetes)
    }
}

/// The bundles of a cluster, of different versions of Kubernetes. The first one is what its control plane is made of,
/// and each node that names no version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterBundles {
    first: Arc<BundleDirectory>,
    others: Vec<Arc<BundleDirectory>>,
}

/// Why the bundles cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClusterBundlesError {
    /// No directory.
    #[error("no bundle specified")]
    Empty,
    /// A manifest cannot be read.
    #[error("{}", error_chain(error))]
    Manifest {
        /// The bundle.
        directory: PathBuf,
        /// What is wrong.
        error: BundleManifestError,
    },
    /// A bundle without Kubernetes.
    #[error("the bundle {} does not contain Kubernetes", directory.display())]
    NoKubernetes {
        /// The bundle.
        directory: PathBuf,
    },
    /// Nothing would tell which one a node is made of.
    #[error("the bundles {} and {} both contain Kubernetes {kubernetes}", first.display(), second.display())]
    SameVersion {
        /// The version.
        kubernetes: String,
        /// The one that is specified first.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
    /// One registry serves them all.
    #[error("the bundles {} and {} have different images {reference}", first.display(), second.display())]
    ImageDiffers {
        /// The image.
        reference: String,
        /// The one that is specified first.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
    /// A host that goes from one bundle to the other has the one package, and is offered the other.
    #[error("the bundles {} and {} have different packages {package}", first.display(), second.display())]
    PackageDiffers {
        /// Its name, its version and a platform: `runc 1.3.4 for debian-13-amd64`.
        package: String,
        /// The bundle that is specified first.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
}

impl ClusterBundles {
    /// Reads the manifests of the bundles in these directories. With a key, each must be signed with it.
    ///
    /// # Errors
    /// When one cannot be read or is not signed with the key, or two contradict each other.
    pub fn read(directories: &[PathBuf], key: Option<&BundleKey>) -> Result<Self, ClusterBundlesError> {
        let manifests = directories.iter().map(|directory| match Bundle::read_signed(directory, key) {
            Ok(manifest) => Ok((directory.clone(), manifest)),
            Err(error) => Err(ClusterBundlesError::Manifest { directory: directory.clone(), error }),
        });
        Self::new(manifests.collect::<Result<_, _>>()?)
    }

    /// Of manifests that were read.
    ///
    /// # Errors
    /// When there is none, or two contradict each other.
    pub fn new(manifests: Vec<(PathBuf, Bundle)>) -> Result<Self, ClusterBundlesError> {
        let mut bundles: Vec<Arc<BundleDirectory>> = Vec::new();
        for (path, manifest) in manifests {
            let Some(kubernetes) = manifest.kubernetes_version().map(str::to_owned) else {
                return Err(ClusterBundlesError::NoKubernetes { directory: path });
            };
            if let Some(same) = bundles.iter().find(|bundle| bundle.kubernetes == kubernetes) {
                let first = same.path.clone();
                return Err(ClusterBundlesError::SameVersion { kubernetes, first, second: path });
            }
            for bundle in &bundles {
                if let Some(reference) = differing(&bundle.manifest.images, &manifest.images) {
                    let first = bundle.path.clone();
                    return Err(ClusterBundlesError::ImageDiffers { reference, first, second: path });
                }
                if let Some(package) = differing_package(&bundle.manifest, &manifest) {
                    let first = bundle.path.clone();
                    return Err(ClusterBundlesError::PackageDiffers { package, first, second: path });
                }
            }
            bundles.push(Arc::new(BundleDirectory { path, kubernetes, manifest }));
        }
        let mut bundles = bundles.into_iter();
        let first = bundles.next().ok_or(ClusterBundlesError::Empty)?;
        Ok(Self { first, others: bundles.collect() })
    }

    /// What the control plane is made of, and each node that names no version.
    pub fn first(&self) -> &Arc<BundleDirectory> {
        &self.first
    }

    /// All of them, the first one first.
    pub fn all(&self) -> impl Iterator<Item = &Arc<BundleDirectory>> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// The one with this version of Kubernetes, with or without a leading `v`.
    pub fn of_version(&self, kubernetes: &str) -> Option<&Arc<BundleDirectory>> {
        let kubernetes = kubernetes.trim_start_matches('v');
        self.all().find(|bundle| bundle.kubernetes == kubernetes)
    }

    /// One that has an image of this name.
    pub fn with_image(&self, reference: &str) -> Option<&Arc<BundleDirectory>> {
        self.all().find(|bundle| bundle.manifest.images.contains_key(reference))
    }

    /// The versions of Kubernetes, that of the first one first.
    pub fn versions(&self) -> Vec<&str> {
        self.all().map(|bundle| bundle.kubernetes.as_str()).collect()
    }
}

fn differing(ours: &BTreeMap<String, Sha256>, theirs: &BTreeMap<String, Sha256>) -> Option<String> {
    let differs = |(reference, digest): &(&String, &Sha256)| {
        theirs.get(*reference).is_some_and(|other| other != *digest)
    };
    ours.iter().find(differs).map(|(reference, _)| reference.clone())
}

/// A package of the one that nodes install, and that the other has in the same version for the same platform, with
/// other content.
fn differing_package(ours: &Bundle, theirs: &Bundle) -> Option<String> {
    fn each(bundle: &Bundle) -> impl Iterator<Item = ((&str, &str, &Platform), &BundledPackage)> {
        let packages = bundle.packages.iter();
        packages.flat_map(|package| {
            let of = move |platform| ((package.name.as_str(), package.version.as_str(), platform), package);
            package.platforms.iter().map(of)
        })
    }
    let theirs_by_name: BTreeMap<_, _> = each(theirs).collect();
    let differs = |(name, package): &((&str, &str, &Platform), &BundledPackage)| {
        theirs_by_name
            .get(name)
            .is_some_and(|other| theirs.files.get(&other.path) != ours.files.get(&package.path))
    };
    let mut installed = each(ours).filter(|((name, ..), _)| *name != OWN_PACKAGE);
    let ((name, version, platform), _) = installed.find(differs)?;
    Some(format!("{name} {version} for {platform}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(kubernetes: Option<&str>, images: &[(&str, &str)]) -> Bundle {
        let versions = kubernetes.map(|version| ("kubernetes".to_owned(), version.to_owned()));
        Bundle {
            api_version: String::new(),
            kind: String::new(),
            inputs: Sha256::of(b""),
            architectures: Vec::new(),
            platforms: std::collections::BTreeSet::new(),
            versions: versions.into_iter().collect(),
            provenance: BTreeMap::new(),
            images: images
                .iter()
                .map(|(reference, content)| ((*reference).to_owned(), Sha256::of(content.as_bytes())))
                .collect(),
            packages: Vec::new(),
            files: BTreeMap::new(),
        }
    }

    #[test]
    fn bundles_of_different_versions_are_used_together_and_others_are_refused() {
        type Expected<'a> = Result<&'a [&'a str], &'a str>;
        type Given<'a> = (&'a str, Option<&'a str>, &'a [(&'a str, &'a str)]);
        let cases: [(&[Given<'_>], Expected<'_>); 6] = [
            (&[("/a", Some("1.35.4"), &[])], Ok(&["1.35.4"])),
            (
                &[
                    ("/a", Some("1.35.4"), &[("pause:3", "p"), ("proxy:1.35", "new")]),
                    ("/b", Some("1.34.4"), &[("pause:3", "p"), ("proxy:1.34", "old")]),
                ],
                Ok(&["1.35.4", "1.34.4"]),
            ),
            (&[], Err("no bundle specified")),
            (&[("/a", None, &[])], Err("the bundle /a does not contain Kubernetes")),
            (
                &[("/a", Some("1.35.4"), &[]), ("/b", Some("1.34.4"), &[]), ("/c", Some("1.35.4"), &[])],
                Err("the bundles /a and /c both contain Kubernetes 1.35.4"),
            ),
            (
                &[("/a", Some("1.35.4"), &[("pause:3", "p")]), ("/b", Some("1.34.4"), &[("pause:3", "q")])],
                Err("the bundles /a and /b have different images pause:3"),
            ),
        ];
        for (given, expected) in cases {
            let manifests = given
                .iter()
                .map(|(path, kubernetes, images)| (PathBuf::from(path), bundle(*kubernetes, images)));
            let found = ClusterBundles::new(manifests.collect());
            let versions = found.as_ref().map(ClusterBundles::versions).map_err(ToString::to_string);
            assert_eq!(versions, expected.map(<[_]>::to_vec).map_err(str::to_owned), "{given:?}");
        }
    }

    #[test]
    fn one_package_of_one_version_has_one_content_on_a_platform() {
        use super::super::content::FileRecord;
        type Given<'a> = [(&'a str, &'a str, &'a str, &'a str)];
        let of = |kubernetes: &str, packages: &Given<'_>| {
            let mut bundle = bundle(Some(kubernetes), &[]);
            for (name, version, platforms, content) in packages {
                let path = format!("apt/pool/{name}_{version}_{platforms}.deb");
                let sha256 = Sha256::of(content.as_bytes());
                bundle.files.insert(path.clone(), FileRecord { sha256, size: 1 });
                bundle.packages.push(BundledPackage {
                    name: (*name).to_owned(),
                    platforms: platforms.split(' ').map(|platform| platform.parse().unwrap()).collect(),
                    version: (*version).to_owned(),
                    architecture: "amd64".to_owned(),
                    path,
                });
            }
            bundle
        };
        let cases: [(&Given<'_>, &Given<'_>, Option<&str>); 5] = [
            (
                &[("metalform", "0.1.0", "debian-12-amd64", "a")],
                &[("metalform", "0.1.0", "debian-12-amd64", "b")],
                None,
            ),
            (
                &[("runc", "1", "debian-12-amd64", "a")],
                &[
                    ("runc", "1", "debian-12-amd64 debian-13-amd64", "a"),
                    ("runc", "2", "debian-13-amd64", "b"),
                ],
                None,
            ),
            (&[("runc", "1", "debian-12-amd64", "a")], &[("runc", "1", "debian-13-amd64", "b")], None),
            (&[("runc", "1", "debian-12-amd64", "a")], &[("runc", "2", "debian-12-amd64", "b")], None),
            (
                &[("cni", "1", "debian-12-amd64", "c"), ("runc", "1", "debian-13-amd64", "a")],
                &[
                    ("cni", "1", "debian-12-amd64", "c"),
                    ("runc", "1", "debian-12-amd64 debian-13-amd64", "b"),
                ],
                Some("the bundles /a and /b have different packages runc 1 for debian-13-amd64"),
            ),
        ];
        for (one, other, expected) in cases {
            let found = ClusterBundles::new(vec![
                ("/a".into(), of("1.35.4", one)),
                ("/b".into(), of("1.34.4", other)),
            ]);
            assert_eq!(found.err().map(|error| error.to_string()).as_deref(), expected, "{one:?} {other:?}");
        }
    }

    #[test]
    fn a_bundle_is_found_by_its_version() {
        let manifests = [("/a", "1.35.4"), ("/b", "1.34.4")]
            .map(|(path, version)| (PathBuf::from(path), bundle(Some(version), &[])));
        let bundles = ClusterBundles::new(manifests.into()).unwrap();
        let found = |version| bundles.of_version(version).map(|found| found.path.display().to_string());
        assert_eq!(found("1.34.4").as_deref(), Some("/b"));
        assert_eq!(found("v1.35.4").as_deref(), Some("/a"));
        assert_eq!(found("1.34.5"), None);
        assert_eq!(bundles.first().served_path(), "bundles/1.35.4");
    }
}
