//! A bundle that is copied from a node that serves it: whole, resumed, verified; or what was there stays.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use metalform::bundle::component_build::SourceMode;
use metalform::bundle::download::DownloadLimits;
use metalform::bundle::import::{ImportRequest, import};
use metalform::bundle::manifest::Bundle;
use metalform::bundle::signature;
use metalform::model::bundle_key::BundleKey;
use metalform::model::error_chain::error_chain;
use metalform::pki::bundle_signature::BundleSigningKey;
use metalform::serve::http::{Content, HttpConfig, HttpServer};
use metalform::serve::secure_listener::ListenConfig;

use super::files_below::files_below;
use super::{TOOL, TestRun};

const PACKAGE: &str = "apt/pool/all/tool_1.0.0_amd64.deb";

/// A signed bundle, the server that has it, and where it is copied to.
struct Served {
    run: TestRun,
    key: BundleKey,
    url: String,
    authority: Vec<u8>,
}

impl Served {
    async fn new() -> Self {
        let run = TestRun::new().await;
        run.build(TOOL, SourceMode::Release).await;
        let own = BundleSigningKey::generate().unwrap();
        signature::sign(&run.output().join("bundle.yaml"), &own, "").unwrap();
        let key = own.public_text().unwrap().parse().unwrap();
        let at = |name: &str| run.directory.path().join(name);
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        fs::write(at("tls.crt"), made.cert.pem()).unwrap();
        fs::write(at("tls.key"), made.signing_key.serialize_pem()).unwrap();
        fs::create_dir(at("indexes")).unwrap();
        let config = HttpConfig {
            listen: ListenConfig {
                listen: "127.0.0.1:0".parse().unwrap(),
                certificate: at("tls.crt"),
                key: at("tls.key"),
                clock: || jiff::Timestamp::UNIX_EPOCH,
            },
            content: Content::Origin {
                bundles: vec![format!("1.35.4={}", run.output().display()).parse().unwrap()],
                overlay: at("indexes"),
                program: at("metalform"),
            },
            registry: "127.0.0.1:9".parse().unwrap(),
        };
        let server = HttpServer::bind(&config).await.unwrap();
        let url = format!("https://{}/bundles/1.35.4", server.address());
        tokio::spawn(server.run(std::future::pending()));
        Self { run, key, url, authority: made.cert.pem().into_bytes() }
    }

    fn there(&self) -> PathBuf {
        self.run.directory.path().join("there")
    }

    fn request(&self) -> ImportRequest {
        ImportRequest {
            url: self.url.clone(),
            output: self.there(),
            key: Some(self.key.clone()),
            authorities: Some(self.authority.clone()),
            downloads: DownloadLimits::new(NonZeroUsize::new(4).unwrap()),
        }
    }

    /// The error of an import, and its causes.
    async fn import(&self, request: &ImportRequest) -> String {
        let outcome = import(request, &|_| {}).await;
        let text = outcome.err().map(|error| error_chain(&error)).unwrap_or_default();
        text.replace(&self.run.directory.path().display().to_string(), "TMP").replace(&self.url, "URL")
    }
}

/// Path → content of every file below a directory.
fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    files_below(root).into_iter().map(|(name, path)| (name, fs::read(path).unwrap())).collect()
}

#[tokio::test]
async fn a_served_bundle_arrives_as_it_is_and_what_is_there_is_not_downloaded() {
    let served = Served::new().await;
    assert_eq!(served.import(&served.request()).await, "");
    assert_eq!(files(&served.there()), files(&served.run.output()));
    let left: Vec<_> = fs::read_dir(served.run.directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(".there"))
        .collect();
    assert_eq!(left, Vec::<String>::new());

    // The server has lost a file that the copy has, and the copy one that the server has.
    let content = fs::read(served.there().join(PACKAGE)).unwrap();
    fs::remove_file(served.run.output().join(PACKAGE)).unwrap();
    fs::remove_file(served.there().join("sbom.cdx.json")).unwrap();
    assert_eq!(served.import(&served.request()).await, "");
    assert_eq!(fs::read(served.there().join(PACKAGE)).unwrap(), content);
    assert!(served.there().join("sbom.cdx.json").exists());
}

#[tokio::test]
async fn what_a_failed_import_has_received_is_not_downloaded_again() {
    let served = Served::new().await;
    let own = served.run.output();
    let whole = files(&own);
    // One after the other: the last is missing when all others are there.
    let mut request = served.request();
    request.downloads = DownloadLimits::new(NonZeroUsize::MIN);
    let last = Bundle::read(&own).unwrap().files.into_keys().next_back().unwrap();
    assert_ne!(last, PACKAGE);
    fs::remove_file(own.join(&last)).unwrap();
    assert_eq!(served.import(&request).await, format!("URL/{last}: HTTP status 404"));
    assert!(!served.there().exists());

    fs::write(own.join(&last), &whole[&last]).unwrap();
    fs::remove_file(own.join(PACKAGE)).unwrap();
    assert_eq!(served.import(&request).await, "");
    assert!(files(&served.there()) == whole);
    assert!(!served.run.directory.path().join(".there.received").exists());
}

#[tokio::test]
async fn a_file_of_the_copy_that_was_altered_is_downloaded_again() {
    let served = Served::new().await;
    assert_eq!(served.import(&served.request()).await, "");
    fs::write(served.there().join(PACKAGE), "evil").unwrap();
    assert_eq!(served.import(&served.request()).await, "");
    assert_eq!(files(&served.there()), files(&served.run.output()));
}

#[tokio::test]
async fn each_fault_of_a_served_bundle_is_named_and_what_was_there_stays() {
    let served = Served::new().await;
    assert_eq!(served.import(&served.request()).await, "");
    fs::remove_file(served.there().join(PACKAGE)).unwrap();
    let before = files(&served.there());
    let (own, package) = (served.run.output(), served.run.output().join(PACKAGE));
    let other: BundleKey = BundleSigningKey::generate().unwrap().public_text().unwrap().parse().unwrap();
    let with = |change: &dyn Fn(&mut ImportRequest)| {
        let mut request = served.request();
        change(&mut request);
        request
    };
    let insecure = with(&|request| {
        request.key = None;
        request.url = request.url.replace("https:", "http:");
    });
    let requests = [
        (insecure, "http://127.0.0.1:".to_owned()),
        (with(&|request| request.key = Some(other.clone())), "URL/bundle.yaml.minisig: ".to_owned()),
        (with(&|request| request.authorities = None), "cannot reach URL/bundle.yaml: ".to_owned()),
        (with(&|request| request.authorities = Some(b"none".to_vec())), "no certificate in PEM".to_owned()),
        (with(&|request| request.url.push_str(".5")), "URL.5/bundle.yaml: HTTP status 404".to_owned()),
    ];
    for (request, expected) in requests {
        let error = served.import(&request).await;
        assert!(error.starts_with(&expected), "expected {expected:?}, found {error:?}");
        assert!(files(&served.there()) == before, "the bundle before is gone: {expected}");
    }

    let content = fs::read(&package).unwrap();
    let mut altered = content.clone();
    altered[100] ^= 1;
    let changes: [(&Path, Option<&[u8]>, String); 4] = [
        (&package, Some(&altered), format!("URL/{PACKAGE} has SHA-256 ")),
        (&package, None, format!("URL/{PACKAGE}: HTTP status 404")),
        (&own.join("bundle.yaml"), Some(b"kind: Bundle\n"), "URL/bundle.yaml.minisig: ".to_owned()),
        (
            &own.join(signature::FILE_NAME),
            None,
            "URL/bundle.yaml.minisig does not exist: the bundle is not signed".to_owned(),
        ),
    ];
    for (path, content, expected) in changes {
        let present = fs::read(path).unwrap();
        match content {
            Some(content) => fs::write(path, content).unwrap(),
            None => fs::remove_file(path).unwrap(),
        }
        let error = served.import(&served.request()).await;
        fs::write(path, present).unwrap();
        assert!(error.starts_with(&expected), "expected {expected:?}, found {error:?}");
        assert!(files(&served.there()) == before, "the bundle before is gone: {expected}");
    }
    assert_eq!(served.import(&served.request()).await, "");
    assert_eq!(files(&served.there()), files(&own));
}
