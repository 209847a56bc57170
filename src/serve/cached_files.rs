//! Files for tower-http's `ServeDir` that are read on the calling thread where the kernel has them in memory.
//!
//! tokio's own hands every call to another thread, and the answer back: that costs more than the read of 64 KiB of a file that
//! is in the page cache, as nearly all are that several hosts receive. Here only what would wait for the disk goes to another
//! thread: `openat2` with `RESOLVE_CACHED` and `preadv2` with `RWF_NOWAIT` answer which.

use std::fs::{self, File};
use std::future::Future;
use std::io::{self, IoSliceMut, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use tokio::io::{AsyncRead, AsyncSeek, ReadBuf};
use tokio::task::{JoinHandle, spawn_blocking};
use tower_http::services::ServeDir;
use tower_http::services::fs::{Backend, DefaultServeDirFallback, File as BackendFile};

/// A directory as it is served.
pub(super) type Files = ServeDir<DefaultServeDirFallback, CachedFiles>;

/// The files of a directory, and no lists of them.
pub(super) fn files(root: PathBuf) -> Files {
    ServeDir::with_backend(root, CachedFiles).append_index_html_on_directories(false)
}

/// The file system, as `ServeDir` uses it.
#[derive(Debug, Clone, Copy)]
pub(super) struct CachedFiles;

/// A file and the position of the next byte.
#[derive(Debug)]
pub(super) struct CachedFile {
    file: Arc<File>,
    position: u64,
    /// A read that waits for the disk.
    read: Option<JoinHandle<io::Result<Vec<u8>>>>,
}

type Answer<T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send>>;

impl Backend for CachedFiles {
    type File = CachedFile;
    type Metadata = fs::Metadata;
    type OpenFuture = Answer<CachedFile>;
    type MetadataFuture = Answer<fs::Metadata>;

    fn open(&self, path: PathBuf) -> Self::OpenFuture {
        Box::pin(async move {
            let file = match open_cached(&path, OFlags::RDONLY) {
                Some(answer) => answer?,
                None => spawn_blocking(move || File::open(path)).await??,
            };
            Ok(CachedFile { file: Arc::new(file), position: 0, read: None })
        })
    }

    fn metadata(&self, path: PathBuf) -> Self::MetadataFuture {
        Box::pin(async move {
            match open_cached(&path, OFlags::PATH) {
                Some(answer) => answer?.metadata(),
                None => spawn_blocking(move || fs::metadata(path)).await?,
            }
        })
    }
}

/// `None` where the disk may have to be read, and where the kernel does not know the call: the ordinary one answers then.
fn open_cached(path: &Path, access: OFlags) -> Option<io::Result<File>> {
    match openat2(CWD, path, access | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::CACHED) {
        Ok(opened) => Some(Ok(opened.into())),
        Err(Errno::NOENT) => Some(Err(Errno::NOENT.into())),
        Err(_) => None,
    }
}

impl BackendFile for CachedFile {
    type Metadata = fs::Metadata;
    type MetadataFuture<'a> = std::future::Ready<io::Result<fs::Metadata>>;

    fn metadata(&self) -> Self::MetadataFuture<'_> {
        std::future::ready(self.file.metadata())
    }
}

impl AsyncRead for CachedFile {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.read.is_none() {
            let unfilled = &mut [IoSliceMut::new(buffer.initialize_unfilled())];
            if let Ok(read) = preadv2(&self.file, unfilled, self.position, ReadWriteFlags::NOWAIT) {
                buffer.advance(read);
                self.position += read as u64;
                return Poll::Ready(Ok(()));
            }
        }
        let (file, position, wanted) = (Arc::clone(&self.file), self.position, buffer.remaining());
        let read = self.read.get_or_insert_with(|| {
            spawn_blocking(move || {
                let mut bytes = vec![0; wanted];
                let read = file.read_at(&mut bytes, position)?;
                bytes.truncate(read);
                Ok(bytes)
            })
        });
        let read = ready!(Pin::new(read).poll(context));
        self.read = None;
        let bytes = read??;
        let fitting = bytes.len().min(buffer.remaining());
        buffer.put_slice(&bytes[..fitting]);
        self.position += fitting as u64;
        Poll::Ready(Ok(()))
    }
}

impl AsyncSeek for CachedFile {
    fn start_seek(mut self: Pin<&mut Self>, to: SeekFrom) -> io::Result<()> {
        let target = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
            SeekFrom::End(offset) => self.file.metadata()?.len().checked_add_signed(offset),
        };
        self.position = target.ok_or(io::ErrorKind::InvalidInput)?;
        self.read = None;
        Ok(())
    }

    fn poll_complete(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<u64>> {
        Poll::Ready(Ok(self.position))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncSeekExt};

    use super::*;

    #[tokio::test]
    async fn a_file_is_read_from_memory_and_from_the_disk() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let content: Vec<u8> = (0..300_000_u32).map(|number| (number % 251) as u8).collect();
        fs::write(&path, &content).unwrap();
        for from_disk in [false, true] {
            if from_disk {
                let file = File::open(&path).unwrap();
                file.sync_all().unwrap();
                rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
            }
            let mut file = CachedFiles.open(path.clone()).await.unwrap();
            assert_eq!(BackendFile::metadata(&file).await.unwrap().len(), 300_000);
            let mut read = Vec::new();
            file.read_to_end(&mut read).await.unwrap();
            assert_eq!(read, content);
            assert_eq!(file.seek(SeekFrom::Start(299_990)).await.unwrap(), 299_990);
            read.clear();
            file.read_to_end(&mut read).await.unwrap();
            assert_eq!(read, content[299_990..]);
            assert!(file.seek(SeekFrom::Current(-300_001)).await.is_err());
        }
    }

    #[tokio::test]
    async fn what_is_not_there_is_not_found() {
        let directory = tempfile::tempdir().unwrap();
        assert!(CachedFiles.metadata(directory.path().to_owned()).await.unwrap().is_dir());
        let absent = directory.path().join("absent");
        for error in [
            CachedFiles.open(absent.clone()).await.unwrap_err(),
            CachedFiles.metadata(absent.clone()).await.unwrap_err(),
            CachedFiles.open(absent.join("below")).await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
        }
    }
}
