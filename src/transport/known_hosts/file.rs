//! The file of remembered host keys. All runs on a machine share it, so each change is made under a lock, after
//! reading the file again.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use russh::keys::PublicKey;

use super::certificate::KnownName;
use super::pattern::host_field;
use super::{KeyVerdict, KnownHosts, verdict};
use crate::model::ssh_target::HostKeyPolicy;
use crate::transport::error::TransportError;

/// Reads the files as one; a file that does not exist is empty.
///
/// # Errors
/// `KnownHosts` when an existing file cannot be read.
pub fn read_all(paths: &[PathBuf]) -> Result<KnownHosts, TransportError> {
    let mut all = KnownHosts::default();
    for path in paths {
        match std::fs::read(path) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                all.extend(KnownHosts::parse(&path.display().to_string(), &text));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(path, &error)),
        }
    }
    Ok(all)
}

/// Adds a key for a new host and returns the verdict on it, since another process may have added one in the meantime.
/// Creates the file (0600) and its directories (0700) where they are missing.
///
/// # Errors
/// `KnownHosts` when the file cannot be created, locked, read or written.
pub fn remember(path: &Path, host: &str, port: u16, key: &PublicKey) -> Result<KeyVerdict, TransportError> {
    let remember = || -> io::Result<KeyVerdict> {
        if let Some(directory) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        }
        let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
        file.lock()?;
        append(&mut file, path, KnownName { host, port }, key)
    };
    remember().map_err(|error| failed(path, &error))
}

/// Removes the remembered keys of a host, because the operator has verified another one. Lines with patterns or hashed
/// names, which metalform does not write, are kept.
///
/// # Errors
/// `KnownHosts` when the file cannot be locked, read or written.
pub fn forget(path: &Path, host: &str, port: u16) -> Result<(), TransportError> {
    let forget = || -> io::Result<()> {
        let mut file = match OpenOptions::new().read(true).write(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened?,
        };
        file.lock()?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let field = host_field(host, port);
        let kept: String = text
            .split_inclusive('\n')
            .filter(|line| line.split_whitespace().next() != Some(&field))
            .collect();
        file.rewind()?;
        file.write_all(kept.as_bytes())?;
        file.set_len(kept.len() as u64)?;
        file.sync_data()
    };
    forget().map_err(|error| failed(path, &error))
}

fn append(
    file: &mut File,
    path: &Path,
    KnownName { host, port }: KnownName<'_>,
    key: &PublicKey,
) -> io::Result<KeyVerdict> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let known = KnownHosts::parse(&path.display().to_string(), &String::from_utf8_lossy(&bytes));
    let found = verdict(&HostKeyPolicy::AcceptNew, &known, host, port, key);
    if found != KeyVerdict::Remember {
        return Ok(found);
    }
    let bare = PublicKey::new(key.key_data().clone(), "");
    let text = bare.to_openssh().map_err(io::Error::other)?;
    // A file edited by hand may lack its last line break.
    let open_line = if bytes.last().is_some_and(|byte| *byte != b'\n') { "\n" } else { "" };
    file.write_all(format!("{open_line}{} {}\n", host_field(host, port), text.trim_end()).as_bytes())?;
    file.sync_data()?;
    Ok(KeyVerdict::Accept)
}

fn failed(path: &Path, error: &io::Error) -> TransportError {
    TransportError::KnownHosts { path: path.display().to_string(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn key(number: u8) -> PublicKey {
        let seed = russh::keys::ssh_key::private::Ed25519Keypair::from_seed(&[number; 32]);
        PublicKey::from(seed.public)
    }

    #[test]
    fn a_forgotten_host_is_new_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("known_hosts");
        for (host, number) in [("192.0.2.1", 1), ("192.0.2.10", 2)] {
            remember(&path, host, 22, &key(number)).unwrap();
        }
        forget(&path, "192.0.2.1", 22).unwrap();
        assert_eq!(remember(&path, "192.0.2.1", 22, &key(3)).unwrap(), KeyVerdict::Accept);
        assert!(matches!(remember(&path, "192.0.2.10", 22, &key(3)).unwrap(), KeyVerdict::Mismatch { .. }));
    }

    #[test]
    fn a_key_is_remembered_once_and_never_replaced_by_another() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b/known_hosts");
        assert_eq!(read_all(std::slice::from_ref(&path)).unwrap(), KnownHosts::default());
        for _ in 0..2 {
            assert_eq!(remember(&path, "node-1", 2222, &key(1)).unwrap(), KeyVerdict::Accept);
        }
        let second = remember(&path, "node-1", 2222, &key(2)).unwrap();
        assert!(matches!(second, KeyVerdict::Mismatch { .. }), "{second:?}");
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, format!("[node-1]:2222 {}\n", key(1).to_openssh().unwrap()));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
        let name = path.display().to_string();
        assert_eq!(read_all(&[path]).unwrap(), KnownHosts::parse(&name, &text));
    }

    #[test]
    fn a_line_without_line_break_is_not_joined_to_the_next() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("known_hosts");
        std::fs::write(&path, "# by hand").unwrap();
        remember(&path, "node-1", 22, &key(1)).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 2);
    }

    #[test]
    fn concurrent_calls_leave_one_line_a_host() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("known_hosts");
        std::thread::scope(|scope| {
            for number in 0..16 {
                let path = &path;
                scope.spawn(move || remember(path, &format!("node-{}", number % 4), 22, &key(1)).unwrap());
            }
        });
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 4);
    }

    #[test]
    fn an_unreadable_file_is_an_error_and_not_empty() {
        let directory = tempfile::tempdir().unwrap();
        let error = read_all(&[directory.path().to_owned()]).unwrap_err();
        assert!(matches!(error, TransportError::KnownHosts { .. }), "{error}");
    }
}
