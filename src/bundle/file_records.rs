//! The digests of all files below a directory.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::content::FileRecord;
use super::digest::Sha256;

/// Digests and sizes by relative path. All processors take part.
///
/// # Errors
/// From the operating system.
pub(super) fn file_records(root: &Path) -> io::Result<BTreeMap<String, FileRecord>> {
    file_records_with(root, BTreeMap::new())
}

/// The same where some files are known: these are not read.
///
/// # Errors
/// From the operating system.
pub(super) fn file_records_with(
    root: &Path,
    known: BTreeMap<String, FileRecord>,
) -> io::Result<BTreeMap<String, FileRecord>> {
    let mut files = files(root)?;
    files.retain(|file| !known.contains_key(&relative(root, file)));
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(files.len().max(1));
    let next = AtomicUsize::new(0);
    let hash = || {
        let mut found = Vec::new();
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            found.push(record(root, file)?);
        }
        Ok(found)
    };
    let mut records = known;
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(hash)).collect();
        for worker in workers {
            let found: io::Result<Vec<_>> =
                worker.join().unwrap_or_else(|_| Err(io::Error::other("a thread has panicked")));
            records.extend(found?);
        }
        Ok(records)
    })
}

/// The largest first: no thread ends long after the others.
fn files(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                directories.push(entry.path());
            } else {
                files.push((entry.metadata()?.len(), entry.path()));
            }
        }
    }
    files.sort_by(|one, other| other.cmp(one));
    Ok(files.into_iter().map(|(_, path)| path).collect())
}

fn record(root: &Path, file: &Path) -> io::Result<(String, FileRecord)> {
    let (sha256, size) = Sha256::of_file(file)?;
    Ok((relative(root, file), FileRecord { sha256, size }))
}

fn relative(root: &Path, file: &Path) -> String {
    file.strip_prefix(root).unwrap_or(file).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_recorded_and_an_unreadable_one_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(file_records(root.path()).unwrap(), BTreeMap::new());
        for number in 0..50 {
            let directory = root.path().join(format!("d{}", number % 7));
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join(format!("f{number}")), number.to_string()).unwrap();
        }
        let found = file_records(root.path()).unwrap();
        assert_eq!(found.len(), 50);
        assert_eq!(found["d3/f10"], FileRecord { sha256: Sha256::of(b"10"), size: 2 });
        let known = FileRecord { sha256: Sha256::of(b"known"), size: 5 };
        let with = file_records_with(root.path(), [("d3/f10".to_owned(), known.clone())].into()).unwrap();
        assert_eq!((with.len(), &with["d3/f10"], &with["d4/f4"]), (50, &known, &found["d4/f4"]));
        std::os::unix::fs::symlink("nowhere", root.path().join("d3/dangling")).unwrap();
        assert!(file_records(root.path()).is_err());
    }
}
