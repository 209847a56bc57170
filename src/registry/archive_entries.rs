//! The files of a tar archive, by their paths: where each begins in the archive, and how long it is.
//!
//! # Guarantees
//! - Nothing is written under a name of the archive: an entry with `..` or an absolute path is refused all the same, as are
//!   links that lead out of it.
//! - A compressed archive is uncompressed to a file without a name in `/var/tmp`, which ends with the process.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Component, Path};
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use tar::{Archive, EntryType};

use super::error::SourceError;
use super::manifest::LIMIT;

/// Where an archive is uncompressed: not in `/tmp`, which may be in memory.
const SCRATCH: &str = "/var/tmp";
/// How many links lead to a file.
const LINKS: usize = 8;

/// An archive that is open.
pub(super) struct ArchiveEntries {
    pub(super) file: Arc<File>,
    files: BTreeMap<String, Extent>,
    links: BTreeMap<String, String>,
}

/// A file in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) offset: u64,
    /// In bytes.
    pub(super) size: u64,
}

impl ArchiveEntries {
    /// Reads the headers of all entries.
    ///
    /// # Errors
    /// When it is no whole tar archive, compressed with gzip or zstd or not.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = uncompressed(File::open(path)?)?;
        let (mut files, mut links) = (BTreeMap::new(), BTreeMap::new());
        let mut archive = Archive::new(&file);
        for entry in archive.entries_with_seek()? {
            let entry = entry?;
            let path = entry.path()?.into_owned();
            let name = inside(Path::new(""), &path).ok_or_else(|| outside(&path))?;
            match entry.header().entry_type() {
                EntryType::Regular | EntryType::Continuous => {
                    files.insert(name, Extent { offset: entry.raw_file_position(), size: entry.size() });
                }
                kind @ (EntryType::Symlink | EntryType::Link) => {
                    let target = entry.link_name()?.unwrap_or_default().into_owned();
                    // A symbolic link is relative to its directory, a hard link to the archive.
                    let base = if kind == EntryType::Symlink { path.parent() } else { None };
                    let target =
                        inside(base.unwrap_or(Path::new("")), &target).ok_or_else(|| outside(&target))?;
                    links.insert(name, target);
                }
                EntryType::Directory => {}
                other => {
                    let reason = format!("{}: an entry of type {other:?}", path.display());
                    return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
                }
            }
        }
        let length = file.metadata()?.len();
        if let Some((name, _)) = files.iter().find(|(_, one)| one.offset.saturating_add(one.size) > length) {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!("{name}: the archive ends before it"),
            ));
        }
        Ok(Self { file: Arc::new(file), files, links })
    }

    /// Where a file is; links are followed.
    pub(super) fn find(&self, path: &str) -> Option<Extent> {
        let mut name = inside(Path::new(""), Path::new(path))?;
        for _ in 0..LINKS {
            match self.links.get(&name) {
                Some(target) => name.clone_from(target),
                None => return self.files.get(&name).copied(),
            }
        }
        None
    }

    /// The files of a directory.
    pub(super) fn below<'a>(&'a self, directory: &'a str) -> impl Iterator<Item = (&'a str, Extent)> {
        self.files.iter().filter_map(move |(name, extent)| Some((name.strip_prefix(directory)?, *extent)))
    }

    /// A file of at most [`LIMIT`] bytes; `None` when there is none.
    pub(super) fn read(&self, path: &str) -> Result<Option<Vec<u8>>, SourceError> {
        let Some(extent) = self.find(path) else { return Ok(None) };
        if extent.size > LIMIT {
            return Err(SourceError::TooLarge { limit: LIMIT });
        }
        let mut content = vec![0; usize::try_from(extent.size).map_err(io::Error::other)?];
        self.file.read_exact_at(&mut content, extent.offset)?;
        Ok(Some(content))
    }

    /// A file, from its beginning.
    pub(super) fn reader(&self, extent: Extent) -> impl Read {
        ExtentReader { file: self.file.clone(), extent }
    }
}

struct ExtentReader {
    file: Arc<File>,
    extent: Extent,
}

impl Read for ExtentReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(usize::try_from(self.extent.size).unwrap_or(usize::MAX));
        let read = self.file.read_at(&mut buffer[..length], self.extent.offset)?;
        if read == 0 && length > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.extent.offset += read as u64;
        self.extent.size -= read as u64;
        Ok(read)
    }
}

/// The path below `base` without `.` and `..`; `None` where it leads out of the archive.
fn inside(base: &Path, path: &Path) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for component in base.components().chain(path.components()) {
        match component {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::CurDir => {}
            Component::ParentDir => drop(parts.pop()?),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

fn outside(path: &Path) -> io::Error {
    let reason = format!("{:?} is not a path in the archive", path.display().to_string());
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

fn uncompressed(mut file: File) -> io::Result<File> {
    let mut magic = [0; 4];
    let read = file.read(&mut magic)?;
    file.seek(SeekFrom::Start(0))?;
    match &magic[..read] {
        [0x1f, 0x8b, ..] => unpacked(&mut MultiGzDecoder::new(file)),
        [0x28, 0xb5, 0x2f, 0xfd] => unpacked(&mut zstd::Decoder::new(file)?),
        _ => Ok(file),
    }
}

fn unpacked(from: &mut dyn Read) -> io::Result<File> {
    let mut to = tempfile::tempfile_in(SCRATCH)?;
    io::copy(from, &mut to)?;
    to.flush()?;
    to.seek(SeekFrom::Start(0))?;
    Ok(to)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_path_stays_in_the_archive() {
        let cases = [
            ("", "a/b", Some("a/b")),
            ("", "./a/./b", Some("a/b")),
            ("x/y", "../z/layer.tar", Some("x/z/layer.tar")),
            ("x", "../../etc/passwd", None),
            ("", "../a", None),
            ("", "/etc/passwd", None),
        ];
        for (base, path, expected) in cases {
            assert_eq!(inside(Path::new(base), Path::new(path)).as_deref(), expected, "{base} {path}");
        }
    }

    fn archive(entries: &[(&str, EntryType, &str)]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (name, kind, content) in entries {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_mode(0o644);
            // `append_data` refuses the names that are tested.
            header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
            let body = if matches!(kind, EntryType::Symlink | EntryType::Link) {
                header.as_mut_bytes()[157..157 + content.len()].copy_from_slice(content.as_bytes());
                ""
            } else {
                content
            };
            header.set_size(body.len() as u64);
            header.set_cksum();
            builder.append(&header, body.as_bytes()).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn open(bytes: &[u8]) -> io::Result<ArchiveEntries> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        ArchiveEntries::open(file.path())
    }

    #[test]
    fn files_are_found_whatever_the_compression() {
        let plain = archive(&[
            ("./manifest.json", EntryType::Regular, "[]"),
            ("a/layer.tar", EntryType::Regular, "content"),
            ("b/layer.tar", EntryType::Symlink, "../a/layer.tar"),
            ("c/layer.tar", EntryType::Link, "b/layer.tar"),
            ("d/layer.tar", EntryType::Symlink, "../d/layer.tar"),
        ]);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&plain).unwrap();
        let zstd = zstd::encode_all(plain.as_slice(), 1).unwrap();
        for bytes in [plain, gzip.finish().unwrap(), zstd] {
            let entries = open(&bytes).unwrap();
            let read = |path| entries.read(path).unwrap();
            assert_eq!(read("manifest.json").as_deref(), Some(b"[]".as_slice()));
            for path in ["a/layer.tar", "b/layer.tar", "./c/layer.tar"] {
                assert_eq!(read(path).as_deref(), Some(b"content".as_slice()), "{path}");
            }
            assert_eq!((read("d/layer.tar"), read("../a"), read("e")), (None, None, None));
            let mut content = String::new();
            let extent = entries.find("c/layer.tar").unwrap();
            entries.reader(extent).read_to_string(&mut content).unwrap();
            assert_eq!(content, "content");
        }
    }

    #[test]
    fn an_archive_that_leads_out_of_itself_or_is_cut_off_is_refused() {
        let whole = archive(&[("a", EntryType::Regular, &"x".repeat(2_000))]);
        let cases = [
            archive(&[("../a", EntryType::Regular, "x")]),
            archive(&[("/etc/passwd", EntryType::Regular, "x")]),
            archive(&[("a/../../b", EntryType::Regular, "x")]),
            archive(&[("a", EntryType::Symlink, "../b")]),
            archive(&[("a", EntryType::Link, "/etc/shadow")]),
            archive(&[("a", EntryType::Fifo, "")]),
            whole[..1_500].to_vec(),
            b"no archive at all, but long enough to be taken for a header of one".repeat(20),
            [0x1f, 0x8b, 8, 0].to_vec(),
        ];
        for (number, bytes) in cases.iter().enumerate() {
            assert!(open(bytes).is_err(), "case {number}");
        }
    }
}
