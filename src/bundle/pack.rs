//! A bundle as one file: a tar archive, uncompressed, since what is in it is compressed.
//!
//! `bundle.yaml` and its signature come first, so that [`super::unpack`] knows each file before it arrives. The same bundle
//! gives the same bytes.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::SOURCE_DATE_EPOCH;
use super::manifest::{self, Bundle, BundleManifestError};
use super::problem::BundleProblem;
use super::signature;
use super::verify;
use crate::model::parent_directory::parent_directory;

/// Why no archive was written.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// The manifest, or its signature.
    #[error(transparent)]
    Manifest(#[from] BundleManifestError),
    /// The bundle is not what its manifest says.
    #[error("the bundle is damaged")]
    Damaged(BTreeSet<BundleProblem>),
    /// A file of the bundle could not be read.
    #[error("cannot read {path}")]
    Read {
        /// In the bundle.
        path: String,
        /// From the operating system.
        source: io::Error,
    },
    /// The archive could not be written.
    #[error("cannot write {path}")]
    Write {
        /// Of the archive.
        path: String,
        /// From the operating system.
        source: io::Error,
    },
}

/// Writes the bundle in `directory` to `archive`, in place of an existing file. It is verified first.
///
/// # Errors
/// When it is damaged, or a file cannot be read or written: an existing archive is as before then.
pub fn pack(directory: &Path, archive: &Path) -> Result<(), PackError> {
    let bundle = Bundle::read(directory)?;
    let problems = verify::files(directory, &bundle)?;
    if !problems.is_empty() {
        return Err(PackError::Damaged(problems));
    }
    let write = |source| PackError::Write { path: archive.display().to_string(), source };
    let mut file = tempfile::NamedTempFile::new_in(parent_directory(archive)).map_err(write)?;
    let mut tar = tar::Builder::new(BufWriter::with_capacity(1 << 20, file.as_file_mut()));
    let own = [signature::FILE_NAME, manifest::FILE_NAME];
    let own = own.into_iter().filter(|name| directory.join(name).exists());
    for path in own.chain(bundle.files.keys().map(String::as_str)) {
        add(&mut tar, directory, path).map_err(|source| PackError::Read { path: path.to_owned(), source })?;
    }
    tar.into_inner().and_then(|mut buffered| buffered.flush()).map_err(write)?;
    file.as_file().sync_all().map_err(write)?;
    file.persist(archive).map_err(|error| write(error.error))?;
    Ok(())
}

fn add(tar: &mut tar::Builder<impl Write>, directory: &Path, path: &str) -> io::Result<()> {
    let mut file = File::open(directory.join(path))?;
    let mut header = tar::Header::new_ustar();
    header.set_size(file.metadata()?.len());
    header.set_mode(0o644);
    header.set_mtime(SOURCE_DATE_EPOCH);
    tar.append_data(&mut header, path, &mut file)
}
