//! What commands on images of the registry begin with: the registry, and the images that the bundles have.

use std::path::{Path, PathBuf};

use super::command_error::{CommandError, ErrorClass};
use super::registry_writer::{self, RegistryWriterError};
use super::workspace::{self, WorkspaceError};
use crate::bundle::cluster_bundles::ClusterBundles;
use crate::model::error_chain::error_chain;
use crate::registry::archived_image::ImageArchiveError;
use crate::registry::client::RegistryClient;
use crate::registry::error::RegistryError;
use crate::registry::image_name::{ImageName, ImageNameError};
use crate::workspace::atomic_file::FileError;
use crate::workspace::image_lock::ImageLock;
use crate::workspace::layout::Layout;

/// Why a command on images failed.
#[derive(Debug, thiserror::Error)]
pub enum ImageStoreError {
    /// This is not the bootstrap node, or its configuration is wrong.
    #[error(transparent)]
    Workspace(Box<WorkspaceError>),
    /// A file of this machine.
    #[error(transparent)]
    File(#[from] FileError),
    /// Another command changes images.
    #[error("another process changes the images of the registry")]
    Locked,
    /// A name that the registry cannot serve.
    #[error("{0}")]
    Name(ImageNameError),
    /// The archive cannot be used.
    #[error("{}: {}", path.display(), error_chain(error.as_ref()))]
    Archive {
        /// The archive.
        path: PathBuf,
        /// Why.
        error: Box<ImageArchiveError>,
    },
    /// An image of the archive has no name.
    #[error("{given}: an image in it has no name that the registry can serve")]
    Unnamed {
        /// The archive or reference.
        given: String,
    },
    /// One name for several images.
    #[error("{given}: {count} images, but --as names one")]
    Several {
        /// The archive.
        given: String,
        /// How many.
        count: usize,
    },
    /// Two images of an archive have one name.
    #[error("{given}: several images have the name {name}")]
    SameName {
        /// The archive.
        given: String,
        /// The name.
        name: ImageName,
    },
    /// A bundle has this image.
    #[error("image {name} is in the bundle of Kubernetes {kubernetes} ({})", directory.display())]
    OfBundle {
        /// The image.
        name: ImageName,
        /// The bundle's version of Kubernetes.
        kubernetes: String,
        /// The bundle.
        directory: PathBuf,
    },
    /// The registry does not have it.
    #[error("image {0} is not in the registry")]
    Absent(ImageName),
    /// The registry, or where the image comes from.
    #[error("{}", error_chain(.0))]
    Registry(#[from] RegistryError),
    /// Blobs were not freed.
    #[error(transparent)]
    Writer(#[from] RegistryWriterError),
}

impl From<WorkspaceError> for ImageStoreError {
    fn from(error: WorkspaceError) -> Self {
        Self::Workspace(Box::new(error))
    }
}

impl CommandError for ImageStoreError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Workspace(error) => error.class(),
            Self::Name(_)
            | Self::Unnamed { .. }
            | Self::Several { .. }
            | Self::SameName { .. }
            | Self::Absent(_) => ErrorClass::Configuration,
            Self::Locked | Self::OfBundle { .. } => ErrorClass::Refused,
            Self::Registry(RegistryError::Name(_)) => ErrorClass::Configuration,
            Self::File(_) | Self::Archive { .. } | Self::Registry(_) | Self::Writer(_) => ErrorClass::Host,
        }
    }

    fn errors(&self) -> Vec<String> {
        match self {
            Self::Workspace(error) => error.errors(),
            other => vec![other.to_string()],
        }
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Workspace(error) => return error.hints(),
            Self::Locked => "wait until it has ended, then run the same command again",
            Self::Unnamed { .. } | Self::Name(ImageNameError::Host(_) | ImageNameError::NoTag(_)) => {
                "name it with --as, for example --as registry.example.org/app:1"
            }
            Self::Several { .. } => "run the command without --as, or add an archive with one image",
            Self::OfBundle { .. } => {
                "add it under another name with --as; an image of a bundle leaves with its bundle"
            }
            Self::Absent(_) => "`metalform image list` lists the images of the registry",
            Self::Archive { error, .. } if matches!(**error, ImageArchiveError::Incomplete { .. }) => {
                "save it again with every platform, or with only one: docker save --platform linux/amd64"
            }
            Self::Registry(RegistryError::Read { .. }) => {
                "an image that cannot be pulled from here is carried as an archive: \
                 skopeo copy docker://REF docker-archive:FILE:REF, then `metalform image add FILE`"
            }
            Self::Registry(
                RegistryError::Push { .. } | RegistryError::Request { .. } | RegistryError::Client { .. },
            )
            | Self::Writer(_) => {
                "systemctl status metalform-registry-writer; `metalform bootstrap` installs and starts it"
            }
            _ => return Vec::new(),
        };
        vec![hint.to_owned()]
    }
}

/// The registry of this machine, and what the bundles have in it.
pub(super) struct ImageStore {
    pub(super) registry: RegistryClient,
    pub(super) bundles: ClusterBundles,
    socket: PathBuf,
}

impl ImageStore {
    /// Opens it, with the registry at this socket.
    pub(super) fn open(layout: &Layout, socket: &Path) -> Result<Self, ImageStoreError> {
        if !rustix::process::geteuid().is_root() {
            return Err(WorkspaceError::NotRoot.into());
        }
        let configuration = workspace::configuration(layout)?;
        let bundles = ClusterBundles::read(&configuration.bundles, configuration.bundle_key.as_ref());
        let bundles = bundles.map_err(WorkspaceError::Bundles)?;
        Ok(Self { registry: RegistryClient::at(socket)?, bundles, socket: socket.to_owned() })
    }

    /// That no bundle has an image of this name.
    pub(super) fn check_not_of_bundle(&self, name: &ImageName) -> Result<(), ImageStoreError> {
        match self.bundles.with_image(&name.to_string()) {
            None => Ok(()),
            Some(bundle) => Err(ImageStoreError::OfBundle {
                name: name.clone(),
                kubernetes: bundle.kubernetes.clone(),
                directory: bundle.path.clone(),
            }),
        }
    }

    /// Frees what no image has any more. The caller has the [`ImageLock`].
    pub(super) async fn free_blobs(&self, _: &ImageLock) -> Result<(), RegistryWriterError> {
        registry_writer::restart(&self.socket).await
    }
}

/// The lock on changes of images.
pub(super) fn lock(layout: &Layout) -> Result<ImageLock, ImageStoreError> {
    ImageLock::try_acquire(layout)?.ok_or(ImageStoreError::Locked)
}
