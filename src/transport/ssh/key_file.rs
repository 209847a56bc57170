//! Private key files, with the `KEY.pub` and `KEY-cert.pub` beside them, and keys that are held in memory alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use russh::keys::{Certificate, Error, HashAlg, PrivateKey, PublicKey};
use tokio::sync::OnceCell;

use super::offer::NamedIdentity;
use super::short_scalar;
use crate::transport::error::TransportError;
use crate::transport::held_key::HeldKeyError;
use crate::transport::secret::{Prompter, Secret};

/// One identity, as far as it is known without a passphrase.
pub(super) struct KeyFile {
    /// As written in the target, `~/` included.
    pub(super) path: PathBuf,
    /// Unknown only for an encrypted key in an old format without its `.pub`.
    pub(super) public: Option<PublicKey>,
    /// An OpenSSH user certificate for it.
    pub(super) certificate: Option<Certificate>,
    private: Private,
    unlocked: OnceCell<Result<Arc<PrivateKey>, TransportError>>,
}

enum Private {
    Ready(Arc<PrivateKey>),
    /// The content of an encrypted file.
    Locked(Secret),
    /// Only the public key is here, or the private half is in a hardware token: an agent may have it.
    Elsewhere,
}

impl KeyFile {
    /// What the order of offers depends on.
    pub(super) fn identity(&self) -> NamedIdentity<'_> {
        NamedIdentity {
            public: self.public.as_ref(),
            certificate: self.certificate.as_ref(),
            signs: self.ready().is_some() || self.is_locked(),
        }
    }

    /// The private key, when it needs no passphrase or is unlocked.
    pub(super) fn ready(&self) -> Option<Arc<PrivateKey>> {
        match (&self.private, self.unlocked.get()) {
            (Private::Ready(key), _) | (_, Some(Ok(key))) => Some(Arc::clone(key)),
            _ => None,
        }
    }

    /// Whether a passphrase makes it usable.
    pub(super) fn is_locked(&self) -> bool {
        matches!(self.private, Private::Locked(_))
    }

    /// The private key. Prompts at most once for each file, however many hosts need it.
    ///
    /// # Errors
    /// `PassphraseMissing` when none is given; `IdentityUnreadable` when it is wrong.
    pub(super) async fn unlock(&self, prompter: &dyn Prompter) -> Result<Arc<PrivateKey>, TransportError> {
        let text = match &self.private {
            Private::Ready(key) => return Ok(Arc::clone(key)),
            Private::Locked(text) => text,
            Private::Elsewhere => {
                return Err(
                    self.unreadable("the private key is neither in the file nor in an agent".to_owned())
                );
            }
        };
        let unlock = || async {
            let path = self.path.display().to_string();
            let answer = prompter.ask(&format!("passphrase of {path}")).await;
            let passphrase = answer.map_err(|error| TransportError::PassphraseMissing { path, error })?;
            let text = text.clone();
            // Key derivation is slow by design.
            let decoding = tokio::task::spawn_blocking(move || {
                short_scalar::decode(text.expose(), Some(passphrase.expose()))
            });
            match decoding.await {
                Ok(Ok(key)) => Ok(Arc::new(key)),
                Ok(Err(_)) => Err(self.unreadable("wrong passphrase".to_owned())),
                Err(error) => Err(self.unreadable(error.to_string())),
            }
        };
        self.unlocked.get_or_init(unlock).await.clone()
    }

    fn unreadable(&self, reason: String) -> TransportError {
        unreadable(&self.path, reason)
    }
}

/// Key files of one run, each read once.
#[derive(Default)]
pub(super) struct KeyFiles {
    read: Mutex<BTreeMap<PathBuf, Arc<OnceCell<Read>>>>,
}

type Read = Result<Arc<KeyFile>, TransportError>;

impl KeyFiles {
    /// The file at `path`; `~/` is below `home`.
    ///
    /// # Errors
    /// `IdentityUnreadable`; the same on every later call.
    pub(super) async fn get(&self, path: &Path, home: Option<&Path>) -> Read {
        let cell = {
            let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(read.entry(path.to_owned()).or_default())
        };
        let at = match (path.strip_prefix("~"), home) {
            (Ok(below), Some(home)) => home.join(below),
            _ => path.to_owned(),
        };
        cell.get_or_init(|| async { read(path, &at).await.map(Arc::new) }).await.clone()
    }

    /// Holds a private key under a path that is no file's; the path, which contains the fingerprint of the key, so that
    /// another key of the same name is another one.
    ///
    /// # Errors
    /// When it is no private key, or is encrypted: nothing prompts for the passphrase of a key that is in no file.
    pub(super) fn hold(&self, name: &str, text: &Secret) -> Result<PathBuf, HeldKeyError> {
        let (public, private) = parse(text).map_err(HeldKeyError::Invalid)?;
        let public = match (public, &private) {
            (Some(public), Private::Ready(_)) => public,
            (_, Private::Locked(_)) => return Err(HeldKeyError::Encrypted),
            _ => return Err(HeldKeyError::NotPrivate),
        };
        let path = PathBuf::from(format!("{name} ({})", public.fingerprint(HashAlg::Sha256)));
        let (public, unlocked) = (Some(public), OnceCell::new());
        let key = KeyFile { path: path.clone(), public, certificate: None, private, unlocked };
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.insert(path.clone(), Arc::new(OnceCell::new_with(Some(Ok(Arc::new(key))))));
        Ok(path)
    }
}

async fn read(named: &Path, at: &Path) -> Result<KeyFile, TransportError> {
    let beside = |suffix: &str| {
        let mut name = at.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let text = tokio::fs::read_to_string(at).await.map(Secret::new);
    // Both files are optional.
    let public_text = tokio::fs::read_to_string(beside(".pub")).await.ok();
    let beside_it = public_text.and_then(|text| PublicKey::from_openssh(text.trim()).ok());
    let certificate = tokio::fs::read_to_string(beside("-cert.pub")).await.ok();
    let certificate = certificate.and_then(|text| Certificate::from_openssh(text.trim()).ok());
    let (public, private) = match (text, beside_it) {
        (Ok(text), beside_it) => {
            let (public, private) = parse(&text).map_err(|reason| unreadable(named, reason))?;
            (public.or(beside_it), private)
        }
        (Err(_), Some(public)) => (Some(public), Private::Elsewhere),
        (Err(error), None) => return Err(unreadable(named, error.to_string())),
    };
    let certificate = certificate.filter(|certificate| {
        public.as_ref().is_none_or(|public| public.key_data() == certificate.public_key())
    });
    Ok(KeyFile { path: named.to_owned(), public, certificate, private, unlocked: OnceCell::new() })
}

/// Accepts OpenSSH's format, PEM, and a public key alone.
fn parse(text: &Secret) -> Result<(Option<PublicKey>, Private), String> {
    if let Ok(public) = PublicKey::from_openssh(text.expose().trim()) {
        return Ok((Some(public), Private::Elsewhere));
    }
    // In OpenSSH's format the public key is not encrypted.
    let public = PrivateKey::from_openssh(text.expose()).ok().map(|key| key.public_key().clone());
    match short_scalar::decode(text.expose(), None) {
        Ok(key) if is_on_hardware(&key) => Ok((Some(key.public_key().clone()), Private::Elsewhere)),
        Ok(key) => Ok((Some(key.public_key().clone()), Private::Ready(Arc::new(key)))),
        Err(Error::KeyIsEncrypted) => Ok((public, Private::Locked(text.clone()))),
        Err(error) => Err(error.to_string()),
    }
}

/// Such a file contains a key handle; the private key never leaves the token.
fn is_on_hardware(key: &PrivateKey) -> bool {
    key.algorithm().as_str().starts_with("sk-")
}

fn unreadable(path: &Path, reason: String) -> TransportError {
    TransportError::IdentityUnreadable { path: path.display().to_string(), reason }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;

    use super::*;
    use crate::transport::secret::{FixedPrompter, NoPrompter, PromptError};

    fn keygen(path: &Path, passphrase: &str) {
        let made = std::process::Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-C", "", "-N", passphrase, "-f"])
            .arg(path)
            .status();
        assert!(made.unwrap().success());
    }

    async fn get(path: &Path) -> Result<Arc<KeyFile>, TransportError> {
        KeyFiles::default().get(path, None).await
    }

    #[tokio::test]
    async fn an_unreadable_key_is_an_error_with_its_reason() {
        let directory = tempfile::tempdir().unwrap();
        let garbage = directory.path().join("garbage");
        std::fs::write(&garbage, "no key").unwrap();
        for (path, part) in
            [(garbage, "ould not read key"), (directory.path().join("missing"), "No such file")]
        {
            match get(&path).await {
                Err(TransportError::IdentityUnreadable { reason, .. }) => {
                    assert!(reason.contains(part), "{reason}");
                }
                other => panic!("{:?}", other.err()),
            }
        }
    }

    #[tokio::test]
    async fn a_locked_key_has_its_public_half_and_is_unlocked_only_by_its_passphrase() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("id");
        keygen(&path, "secret");
        std::fs::remove_file(path.with_extension("pub")).unwrap();
        let file = get(&path).await.unwrap();
        assert!(file.is_locked() && file.public.is_some() && file.ready().is_none());
        let error = file.unlock(&NoPrompter).await.unwrap_err();
        assert!(
            matches!(error, TransportError::PassphraseMissing { error: PromptError::NoTerminal, .. }),
            "{error}"
        );
        let error = get(&path).await.unwrap().unlock(&FixedPrompter(Secret::new("wrong"))).await.unwrap_err();
        assert!(error.to_string().contains("wrong passphrase"), "{error}");
        let file = get(&path).await.unwrap();
        let key = file.unlock(&FixedPrompter(Secret::new("secret"))).await.unwrap();
        assert_eq!(Some(key.public_key().key_data()), file.public.as_ref().map(PublicKey::key_data));
        assert!(file.ready().is_some());
    }

    #[tokio::test]
    async fn a_key_in_memory_has_its_fingerprint_in_its_name_and_needs_no_passphrase() {
        let directory = tempfile::tempdir().unwrap();
        let key = |name: &str, passphrase: &str| {
            let path = directory.path().join(name);
            keygen(&path, passphrase);
            let read = |path: &Path| Secret::new(std::fs::read_to_string(path).unwrap());
            (read(&path), read(&path.with_extension("pub")))
        };
        let (files, (first, public), (second, _), (locked, _)) =
            (KeyFiles::default(), key("a", ""), key("b", ""), key("c", "secret"));
        let paths = [&first, &second].map(|text| files.hold("Secret kube-system/ops", text).unwrap());
        assert_ne!(paths[0], paths[1]);
        for path in &paths {
            assert!(path.to_string_lossy().starts_with("Secret kube-system/ops (SHA256:"), "{path:?}");
            assert!(files.get(path, None).await.unwrap().ready().is_some());
        }
        assert_eq!(files.hold("Secret kube-system/ops", &first), Ok(paths[0].clone()));
        assert_eq!(files.hold("k", &locked), Err(HeldKeyError::Encrypted));
        assert_eq!(files.hold("k", &public), Err(HeldKeyError::NotPrivate));
        assert!(matches!(files.hold("k", &Secret::new("no key")), Err(HeldKeyError::Invalid(_))));
    }

    struct Counting(AtomicUsize);

    #[async_trait]
    impl Prompter for Counting {
        async fn ask(&self, question: &str) -> Result<Secret, PromptError> {
            assert!(question.starts_with("passphrase of /"), "{question}");
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(Secret::new("secret"))
        }
    }

    #[tokio::test]
    async fn a_passphrase_is_prompted_for_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("id");
        keygen(&path, "secret");
        let (files, prompter) = (KeyFiles::default(), Counting(AtomicUsize::new(0)));
        let unlocking = (0..8).map(|_| async {
            let file = files.get(&path, None).await.unwrap();
            file.unlock(&prompter).await.unwrap();
        });
        futures::future::join_all(unlocking).await;
        assert_eq!(prompter.0.into_inner(), 1);
    }

    #[tokio::test]
    async fn a_key_below_home_is_found_and_may_be_public_alone() {
        let directory = tempfile::tempdir().unwrap();
        keygen(&directory.path().join("id"), "");
        let files = KeyFiles::default();
        let home = Some(directory.path());
        assert!(files.get(Path::new("~/id"), home).await.unwrap().ready().is_some());
        assert!(files.get(Path::new("~/id.pub"), home).await.unwrap().public.is_some());
        std::fs::rename(directory.path().join("id.pub"), directory.path().join("token.pub")).unwrap();
        let token = files.get(Path::new("~/token"), home).await.unwrap();
        assert!(token.public.is_some() && token.ready().is_none() && !token.is_locked());
    }
}
