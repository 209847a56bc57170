//! The server's certificate, read again when its files are replaced.
//!
//! # Guarantees
//! A handshake uses the pair that is on the disk when it begins. Connections that exist are not affected. A pair that
//! cannot be used (the renewal wrote one of the two files so far, or wrote them wrongly) leaves the former one in use.
//! One that is about to expire is reported once a day.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;

use crate::pki::tls_provider::tls_provider;
use crate::pki::validity;
use crate::workspace::file_version::FileVersion;

/// How long before its end a certificate is reported. `metalform bootstrap` issues another from 90 days before.
const EXPIRES_SOON: SignedDuration = SignedDuration::from_hours(24 * 30);
/// How often.
const AGAIN: SignedDuration = SignedDuration::from_hours(24);

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A PEM file does not exist, or does not contain a certificate or key.
    #[error("{}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: pem::Error,
    },
    /// Certificate and key do not belong together, or are of an unsupported type.
    #[error("{}", path.display())]
    Pair {
        /// The certificate.
        path: PathBuf,
        /// The reason.
        source: rustls::Error,
    },
}

/// A certificate and its key in two PEM files.
#[derive(Debug)]
pub(super) struct ReloadingCertificate {
    certificate: PathBuf,
    key: PathBuf,
    clock: fn() -> Timestamp,
    loaded: Mutex<Loaded>,
}

#[derive(Debug)]
struct Loaded {
    /// Of the files when they were last read, whether they could be used or not.
    version: FileVersion,
    pair: Arc<CertifiedKey>,
    /// When it was last reported that the pair is about to expire.
    reported: Option<Timestamp>,
}

impl ReloadingCertificate {
    /// Reads the files.
    ///
    /// # Errors
    /// When they cannot be used.
    pub(super) fn load(
        certificate: &Path,
        key: &Path,
        clock: fn() -> Timestamp,
    ) -> Result<Self, CertificateError> {
        // The version first: files that are replaced while they are read are read again.
        let version = FileVersion::of(&[certificate, key]);
        let pair = Arc::new(read(certificate, key)?);
        Ok(Self {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            clock,
            loaded: Mutex::new(Loaded { version, pair, reported: None }),
        })
    }

    fn current(&self) -> Arc<CertifiedKey> {
        // A panic while the lock was held cannot have left it half changed.
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let version = FileVersion::of(&[&self.certificate, &self.key]);
        if version != loaded.version {
            loaded.version = version;
            match read(&self.certificate, &self.key) {
                Ok(pair) => {
                    loaded.pair = Arc::new(pair);
                    loaded.reported = None;
                    tracing::info!(certificate = %self.certificate.display(), "certificate reloaded");
                }
                Err(error) => tracing::warn!(%error, "certificate not reloaded"),
            }
        }
        let now = (self.clock)();
        if let Some(end) = loaded.pair.cert.first().and_then(|certificate| validity::not_after(certificate))
            && is_due(end, loaded.reported, now)
        {
            loaded.reported = Some(now);
            let path = self.certificate.display();
            tracing::warn!(certificate = %path, expires = %end, "certificate expires; run `metalform bootstrap`");
        }
        Arc::clone(&loaded.pair)
    }
}

impl ResolvesServerCert for ReloadingCertificate {
    fn resolve(&self, _client_hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

/// Whether the end of a certificate is to be reported.
fn is_due(end: Timestamp, reported: Option<Timestamp>, now: Timestamp) -> bool {
    now.duration_until(end) < EXPIRES_SOON && reported.is_none_or(|at| at.duration_until(now) >= AGAIN)
}

fn read(certificate: &Path, key: &Path) -> Result<CertifiedKey, CertificateError> {
    let pem = |path: &Path, source| CertificateError::Pem { path: path.to_owned(), source };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(|source| pem(certificate, source))?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|source| pem(key, source))?;
    CertifiedKey::from_der(chain, private, &tls_provider())
        .map_err(|source| CertificateError::Pair { path: certificate.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Files(tempfile::TempDir);

    impl Files {
        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn replace(&self, name: &str, content: &str) {
            fs::write(self.path("new"), content).unwrap();
            fs::rename(self.path("new"), self.path(name)).unwrap();
        }
    }

    #[test]
    fn a_replaced_pair_is_used_once_both_files_are_there() {
        let pair = || rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let (old, new) = (pair(), pair());
        let files = Files(tempfile::tempdir().unwrap());
        files.replace("crt", &old.cert.pem());
        files.replace("key", &old.signing_key.serialize_pem());
        let served =
            ReloadingCertificate::load(&files.path("crt"), &files.path("key"), || Timestamp::UNIX_EPOCH)
                .unwrap();
        assert_eq!(served.current().cert[0], *old.cert.der());

        files.replace("key", &new.signing_key.serialize_pem());
        assert_eq!(served.current().cert[0], *old.cert.der());
        files.replace("crt", &new.cert.pem());
        assert_eq!(served.current().cert[0], *new.cert.der());

        files.replace("crt", "no certificate");
        assert_eq!(served.current().cert[0], *new.cert.der());
        fs::remove_file(files.path("crt")).unwrap();
        assert_eq!(served.current().cert[0], *new.cert.der());
    }

    #[test]
    fn the_end_of_a_certificate_is_reported_daily_in_its_last_month() {
        let day = |day: i64| Timestamp::from_second(day * 86_400).unwrap();
        for (now, reported, due) in [
            (300, None, false),
            (335, None, false),
            (336, None, true),
            (336, Some(336), false),
            (337, Some(336), true),
            (400, None, true),
        ] {
            assert_eq!(is_due(day(365), reported.map(day), day(now)), due, "{now} {reported:?}");
        }
        let pair = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        assert!(validity::not_after(pair.cert.der()).is_some_and(|end| end > day(365)));
        assert_eq!(validity::not_after(b"none"), None);
    }

    #[test]
    fn a_pair_that_does_not_belong_together_is_refused_at_the_start() {
        let pair = || rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let files = Files(tempfile::tempdir().unwrap());
        files.replace("crt", &pair().cert.pem());
        files.replace("key", &pair().signing_key.serialize_pem());
        let refused =
            ReloadingCertificate::load(&files.path("crt"), &files.path("key"), || Timestamp::UNIX_EPOCH);
        assert!(matches!(refused, Err(CertificateError::Pair { .. })));
    }
}
