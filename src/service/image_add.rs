//! `image add`: images of users in the registry of the cluster.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::image_store::{ImageStore, ImageStoreError, lock};
use crate::bundle::digest::Sha256;
use crate::registry::archive::ImageArchive;
use crate::registry::image_name::ImageName;
use crate::registry::user_images::AddedImages;
use crate::workspace::atomic_file::FileError;
use crate::workspace::bundle_image_record::BundleImageRecord;
use crate::workspace::layout::Layout;

/// What to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageOrigin {
    /// Every image of an archive: an OCI layout, or what `docker save` writes.
    Archive(PathBuf),
    /// An image of another registry, by its reference.
    Reference(String),
}

/// An image that was added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedImage {
    /// Its name in the registry.
    pub name: ImageName,
    /// Of its manifest or index.
    pub digest: Sha256,
    /// Whether the registry had it already.
    pub unchanged: bool,
}

/// Adds images: all of an archive, or one; under their own names, or one under `name`. A tag that a user has given to another
/// image is given to this one.
///
/// # Errors
/// When an image cannot be read, has no name, or its name is that of an image of a bundle. No image is added unless
/// all may be.
pub async fn add(
    (layout, socket): (&Layout, &Path),
    origin: &ImageOrigin,
    name: Option<&str>,
) -> Result<Vec<AddedImage>, ImageStoreError> {
    let store = ImageStore::open(layout, socket)?;
    let name = name.map(|name| name.parse::<ImageName>().map_err(ImageStoreError::Name)).transpose()?;
    let _lock = lock(layout)?;
    let (given, images) = match origin {
        ImageOrigin::Archive(path) => {
            let opened = ImageArchive::open(path.clone()).await;
            let archive = opened
                .map_err(|error| ImageStoreError::Archive { path: path.clone(), error: Box::new(error) })?;
            (path.display().to_string(), AddedImages::Archive(Box::new(archive)))
        }
        ImageOrigin::Reference(reference) => {
            // What cannot be added is not pulled first.
            if name.is_none() {
                store.check_not_of_bundle(&reference.parse().map_err(ImageStoreError::Name)?)?;
            }
            (reference.clone(), AddedImages::remote(reference).await?)
        }
    };
    let names = names(&given, &images.names(), name)?;
    for name in &names {
        store.check_not_of_bundle(name)?;
    }
    adopt(layout, &names)?;
    let added = images.add(&store.registry, &names).await?;
    let added = names.into_iter().zip(added);
    Ok(added.map(|(name, (digest, unchanged))| AddedImage { name, digest, unchanged }).collect())
}

/// What an earlier bundle brought under these names is a user's now, and stays.
fn adopt(layout: &Layout, names: &[ImageName]) -> Result<(), FileError> {
    let before = BundleImageRecord::read(layout)?;
    let forget = |record: BundleImageRecord, name: &ImageName| record.forgetting(&name.to_string());
    let record = names.iter().fold(before.clone(), forget);
    if record == before { Ok(()) } else { record.write(layout) }
}

/// The names to add images under.
fn names(
    given: &str,
    found: &[Option<&ImageName>],
    name: Option<ImageName>,
) -> Result<Vec<ImageName>, ImageStoreError> {
    let given = given.to_owned();
    if let Some(name) = name {
        return match found.len() {
            1 => Ok(vec![name]),
            count => Err(ImageStoreError::Several { given, count }),
        };
    }
    let mut names = Vec::new();
    let mut seen = BTreeSet::new();
    for found in found {
        let Some(name) = found else { return Err(ImageStoreError::Unnamed { given }) };
        if !seen.insert(*name) {
            return Err(ImageStoreError::SameName { given, name: (*name).clone() });
        }
        names.push((*name).clone());
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names in an archive, the name that is given, and the names of the images.
    type Case<'a> =
        (&'a [Option<&'a ImageName>], Option<&'a ImageName>, Result<&'a [&'a ImageName], &'a str>);

    #[test]
    fn images_have_their_own_names_or_one_the_given_one() {
        let (a, b): (ImageName, ImageName) =
            ("example.org/a:1".parse().unwrap(), "example.org/b:1".parse().unwrap());
        let cases: [Case<'_>; 7] = [
            (&[Some(&a)], None, Ok(&[&a])),
            (&[Some(&a), Some(&b)], None, Ok(&[&a, &b])),
            (&[Some(&a)], Some(&b), Ok(&[&b])),
            (&[None], Some(&b), Ok(&[&b])),
            (&[None], None, Err("x.tar: an image in it has no name that the registry can serve")),
            (&[Some(&a), Some(&b)], Some(&b), Err("x.tar: 2 images, but --as names one")),
            (&[Some(&a), Some(&a)], None, Err("x.tar: several images have the name example.org/a:1")),
        ];
        for (found, name, expected) in cases {
            let names = names("x.tar", found, name.cloned()).map_err(|error| error.to_string());
            assert_eq!(
                names.as_ref().map(|names| names.iter().collect::<Vec<_>>()).map_err(String::as_str),
                expected.map(<[_]>::to_vec)
            );
        }
    }
}
