//! The packages of a distribution's archive, with their dependency closure.
//!
//! dnf resolves them in a root of its own without packages, and verifies each package with the keys that this machine
//! trusts for RPM packages. Packages that a host is likely to have (glibc) are included: those of the host may be older.

use std::fs;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::package::architecture;
use super::{DIRECTORY, RpmError, keys, pool};
use crate::bundle::entry::Draft;
use crate::bundle::format::CollectionRequest;
use crate::bundle::format::archive_uri::without_credentials;
use crate::bundle::program;

/// Where distributions and administrators put the keys of package archives.
const KEYS: &str = "/etc/pki/rpm-gpg";

/// Returns the provenance.
///
/// # Errors
/// Without an archive or keys, and the first failure of dnf or of a write.
pub(super) async fn collect(request: &CollectionRequest<'_>, draft: &Draft) -> Result<String, RpmError> {
    let root = draft.scratch(DIRECTORY)?;
    let pool = draft.content(&format!("{DIRECTORY}/{}", pool(&request.platform.to_string())))?;
    let provenance = download(request, Path::new(KEYS), (&root, &pool)).await?;
    let kept = draft.content(&format!("{DIRECTORY}/{}", keys(request.platform)))?;
    copy_keys(Path::new(KEYS), &kept)?;
    Ok(provenance)
}

/// Hosts verify the same packages with the same keys.
fn copy_keys(from: &Path, to: &Path) -> Result<(), RpmError> {
    for file in key_files(from)? {
        let copy = to.join(file.file_name().unwrap_or_default());
        fs::copy(&file, &copy).map_err(RpmError::write(&copy))?;
    }
    Ok(())
}

/// Downloads into `pool`; `root` is an empty directory.
async fn download(
    request: &CollectionRequest<'_>,
    keys: &Path,
    (root, pool): (&Path, &Path),
) -> Result<String, RpmError> {
    let CollectionRequest { system, platform, archive } = *request;
    let no_archive = || RpmError::NoArchive { platform: platform.clone() };
    let repositories = repositories(archive, &system.suite).ok_or_else(no_archive)?;
    let keys = key_files(keys)?;
    let configuration = root.join("dnf.conf");
    let text = configuration_text(root, &repositories, &keys);
    fs::write(&configuration, text).map_err(RpmError::write(&configuration))?;
    let mut command = dnf();
    command.env("LC_ALL", "C").args(["--quiet", "--assumeyes", "--noplugins"]);
    command.arg("--config").arg(&configuration).arg("--installroot").arg(root);
    command.args(["--releasever", system.release.as_str()]);
    command.args(["--forcearch", architecture(platform.architecture)]);
    command.args(["--downloadonly", "--downloaddir"]).arg(pool).arg("install").args(&system.packages);
    program::run(&mut command).await?;
    Ok(provenance(&repositories))
}

fn provenance(repositories: &[String]) -> String {
    let repositories: Vec<String> = repositories.iter().map(|uri| without_credentials(uri)).collect();
    format!("archive: {}", repositories.join(" "))
}

/// dnf changes its root directory, for which any other user than root needs a user namespace.
fn dnf() -> Command {
    if rustix::process::geteuid().is_root() {
        return Command::new("dnf");
    }
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "dnf"]);
    command
}

/// The repositories of a suite; `None` when one of them is a path, and there is no archive.
fn repositories(archive: Option<&str>, suite: &str) -> Option<Vec<String>> {
    let repository = |word: &str| match archive {
        _ if word.contains("://") => Some(word.to_owned()),
        Some(archive) => Some(format!("{}/{word}", archive.trim_end_matches('/'))),
        None => None,
    };
    suite.split_whitespace().map(repository).collect()
}

/// The keys in a directory, in the order of their names.
fn key_files(directory: &Path) -> Result<Vec<PathBuf>, RpmError> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    if files.is_empty() {
        Err(RpmError::NoKeys { directory: directory.display().to_string() })
    } else {
        Ok(files)
    }
}

/// dnf.conf(5). Nothing of this machine's configuration applies, but for the proxy in its environment.
fn configuration_text(root: &Path, repositories: &[String], keys: &[PathBuf]) -> String {
    let root = root.display();
    let mut text = format!(
        "[main]\nreposdir=/dev/null\ncachedir={root}/cache\nlogdir={root}/log\npersistdir={root}/state\n\
         gpgcheck=1\ninstall_weak_deps=0\nbest=1\n"
    );
    let keys: Vec<String> = keys.iter().map(|key| format!("file://{}", key.display())).collect();
    for (number, repository) in repositories.iter().enumerate() {
        text.push_str(&format!(
            "[archive-{number}]\nname=archive-{number}\nbaseurl={repository}\ngpgkey={}\n",
            keys.join(" ")
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::super::repodata;
    use super::*;
    use crate::bundle::component::OperatingSystem;
    use crate::pki::openpgp::RepositoryKey;

    fn key(seed: u64) -> RepositoryKey {
        let created = jiff::Timestamp::from_second(1_767_225_600).unwrap();
        RepositoryKey::create("archive", created, &mut StdRng::seed_from_u64(seed)).unwrap()
    }

    /// A program of the test that must succeed.
    async fn run(command: &mut Command) {
        program::run(command).await.unwrap();
    }

    /// An archive with signed packages, of which the first needs the second.
    async fn archive(directory: &Path, key: &RepositoryKey) {
        let (pool, gpg) = (directory.join("pool"), directory.join("gpg"));
        fs::create_dir_all(&pool).unwrap();
        fs::create_dir(&gpg).unwrap();
        fs::write(gpg.join("secret.asc"), key.to_armor().unwrap()).unwrap();
        let import = ["--batch", "--quiet", "--import"];
        run(Command::new("gpg").env("GNUPGHOME", &gpg).args(import).arg(gpg.join("secret.asc"))).await;
        let mut entries = Vec::new();
        for (name, requires) in [("socat", Some("glibc")), ("glibc", None), ("unrelated", None)] {
            let mut builder = rpm::PackageBuilder::new(name, "1.0", "MIT", "aarch64", name);
            if let Some(needed) = requires {
                builder.requires(rpm::Dependency::any(needed));
            }
            let file = pool.join(format!("{name}.rpm"));
            builder.build().unwrap().write_file(&file).unwrap();
            let mut sign = Command::new("rpmsign");
            sign.arg("--define").arg(format!("_gpg_path {}", gpg.display()));
            sign.arg("--define").arg(format!("_gpg_name {}", key.fingerprint()));
            // Debian's rpm expects gpg2, which Debian's gnupg does not have.
            sign.args(["--define", "__gpg /usr/bin/gpg"]);
            run(sign.arg("--addsign").arg(file)).await;
            entries.push(repodata::describe(directory, &format!("pool/{name}.rpm")).unwrap().1);
        }
        repodata::write(&directory.join("os"), &entries, jiff::Timestamp::UNIX_EPOCH).unwrap();
        run(Command::new("gpgconf").arg("--homedir").arg(&gpg).args(["--kill", "all"])).await;
    }

    /// The collected files, or the error with its causes.
    async fn collected(archive: Option<&str>, keys: &Path, package: &str) -> Result<Vec<String>, String> {
        let directory = tempfile::tempdir().unwrap();
        let (root, pool) = (directory.path().join("root"), directory.path().join("pool"));
        fs::create_dir(&root).unwrap();
        fs::create_dir(&pool).unwrap();
        let system = OperatingSystem {
            distribution: "rocky".parse().unwrap(),
            release: "9".parse().unwrap(),
            suite: "os".to_owned(),
            packages: vec![package.to_owned()],
        };
        let platform = "rocky-9-arm64".parse().unwrap();
        let request = CollectionRequest { system: &system, platform: &platform, archive };
        download(&request, keys, (&root, &pool)).await.map_err(|error| error.to_string())?;
        let files = fs::read_dir(&pool).unwrap();
        let mut names: Vec<String> =
            files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        Ok(names)
    }

    #[test]
    fn repositories_are_below_the_archive_or_have_a_url_of_their_own() {
        let found =
            |archive: Option<&str>, suite: &str| repositories(archive, suite).map(|all| all.join(" "));
        let expected = |text: &str| Some(text.to_owned());
        let (archive, epel) = (Some("https://a.example/rocky/"), "https://a.example/epel/9/$basearch");
        assert_eq!(found(archive, "9/os"), expected("https://a.example/rocky/9/os"));
        assert_eq!(
            found(archive, &format!("9/os {epel}")),
            expected(&format!("https://a.example/rocky/9/os {epel}"))
        );
        assert_eq!(found(None, epel), expected(epel));
        assert_eq!(found(None, &format!("9/os {epel}")), None);
    }

    #[test]
    fn the_provenance_has_no_password() {
        let repositories = ["https://me:secret@a.example/9/os", "https://b.example/9"].map(str::to_owned);
        assert_eq!(provenance(&repositories), "archive: https://a.example/9/os https://b.example/9");
    }

    #[tokio::test]
    async fn packages_are_collected_with_what_they_need_and_verified() {
        let directory = tempfile::tempdir().unwrap();
        archive(directory.path(), &key(1)).await;
        let uri = format!("file://{}/", directory.path().display());
        let keys = |name: &str, key: Option<RepositoryKey>| {
            let keys = directory.path().join(name);
            fs::create_dir(&keys).unwrap();
            if let Some(key) = key {
                fs::write(keys.join("RPM-GPG-KEY"), key.public_armor().unwrap()).unwrap();
            }
            keys
        };
        let (own, other, none) = (keys("own", Some(key(1))), keys("other", Some(key(2))), keys("none", None));
        let found = collected(Some(&uri), &own, "socat").await;
        assert_eq!(found, Ok(vec!["glibc.rpm".to_owned(), "socat.rpm".to_owned()]));
        let unknown = collected(Some(&uri), &own, "conntrack-tools").await.unwrap_err();
        assert!(unknown.contains("conntrack-tools"), "{unknown}");
        let untrusted = collected(Some(&uri), &other, "socat").await.unwrap_err();
        assert!(untrusted.contains("GPG"), "{untrusted}");
        let without = collected(Some(&uri), &none, "socat").await.unwrap_err();
        assert!(without.starts_with("no keys of the distribution's packages in "), "{without}");
        let nowhere = collected(None, &own, "socat").await.unwrap_err();
        assert_eq!(
            nowhere,
            "no archive for the packages of rocky-9-arm64: set --archive, or URLs in the suite"
        );
    }
}
