//! Bundles from a local HTTP server, and from Go source: built, built again, verified, loaded.

#![expect(clippy::unwrap_used, reason = "a test may panic, and so may what it is made from")]

#[path = "bundle/deb_tools.rs"]
mod deb_tools;
#[path = "bundle/dnf.rs"]
mod dnf;
#[path = "bundle/dnf_host.rs"]
mod dnf_host;
#[path = "bundle/dnf_reset.rs"]
mod dnf_reset;
#[path = "bundle/own_package.rs"]
mod own_package;
#[path = "bundle/rpm_bundle.rs"]
mod rpm_bundle;
#[path = "bundle/rpm_tools.rs"]
mod rpm_tools;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use metalform::bundle::build::{self, BuildRequest};
use metalform::bundle::component_build::SourceMode;
use metalform::bundle::component_list;
use metalform::bundle::digest::Sha256;
use metalform::bundle::download::DownloadLimits;
use metalform::bundle::manifest::Bundle;
use metalform::bundle::own_program::OwnProgram;
use metalform::bundle::signature;
use metalform::bundle::verify;
use metalform::model::bundle_key::BundleKey;
use metalform::pki::bundle_signature::BundleSigningKey;
use metalform::pki::openpgp::RepositoryKey;
use metalform::registry::bundle_images::{self, Loaded};

#[path = "bundle/architectures.rs"]
mod architectures;
#[path = "bundle/carried.rs"]
mod carried;
#[path = "support/files_below.rs"]
mod files_below;
#[path = "bundle/imported.rs"]
mod imported;

/// What a server has, by path.
type Shelf = Arc<Mutex<BTreeMap<String, Bytes>>>;

/// A web server on the loopback interface, and one build at a time from it.
struct TestRun {
    directory: tempfile::TempDir,
    shelf: Shelf,
    server: SocketAddr,
    /// Entries of `architectures`.
    architectures: &'static str,
    /// Entries of `operating_systems`.
    systems: &'static str,
    /// Signs RPM packages.
    package_key: Option<RepositoryKey>,
}

impl TestRun {
    async fn new() -> Self {
        Self::of_systems("{distribution: debian, release: '13', suite: trixie, packages: []}").await
    }

    async fn of_systems(systems: &'static str) -> Self {
        let shelf = Shelf::default();
        let kept = shelf.clone();
        let answer = move |uri: Uri| {
            let found = kept.lock().unwrap().get(uri.path()).cloned();
            async move { found.map_or(StatusCode::NOT_FOUND.into_response(), IntoResponse::into_response) }
        };
        let server = serve(Router::new().fallback(answer)).await;
        let directory = tempfile::tempdir().unwrap();
        let run = Self { directory, shelf, server, architectures: "amd64", systems, package_key: None };
        run.put("/tool", "tool of version one");
        run.put("/tool.sha256", format!("{}  tool\n", Sha256::of(b"tool of version one")));
        run
    }

    fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        self.shelf.lock().unwrap().insert(path.to_owned(), Bytes::copy_from_slice(content.as_ref()));
    }

    fn remove(&self, path: &str) {
        self.shelf.lock().unwrap().remove(path).unwrap();
    }

    fn alter(&self, path: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut shelf = self.shelf.lock().unwrap();
        let mut content = shelf[path].to_vec();
        change(&mut content);
        shelf.insert(path.to_owned(), content.into());
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.server)
    }

    fn output(&self) -> PathBuf {
        self.directory.path().join("out")
    }

    fn list(&self, components: &str) -> String {
        let components = components.replace("SERVER", &format!("http://{}", self.server));
        format!(
            "apiVersion: metalform.dev/v1alpha1\nkind: ComponentList\narchitectures: [{}]\n\
             operating_systems: [{}]\ncomponents:\n{components}",
            self.architectures, self.systems
        )
    }

    /// The events of a build, one a line, those of one component together, and its errors.
    async fn build(&self, components: &str, source: SourceMode) -> String {
        let request = BuildRequest {
            list: component_list::parse("list", &self.list(components)).unwrap(),
            output: self.output(),
            cache: self.directory.path().join("cache"),
            source,
            program: OwnProgram::default(),
            package_key: self.package_key.clone(),
            archive: None,
            pinned: false,
            refresh: false,
            downloads: DownloadLimits::new(NonZeroUsize::MIN),
            now: jiff::Timestamp::from_second(1_800_000_000).unwrap(),
        };
        let said = Mutex::new(Vec::new());
        let outcome = build::build(&request, &|event| said.lock().unwrap().push(event.to_string())).await;
        let mut said: Vec<String> = said.into_inner().unwrap();
        let part = |line: &String| line.split_once(':').map(|(part, _)| part.to_owned());
        let parts: Vec<_> = said.iter().map(part).collect();
        said.sort_by_key(|line| parts.iter().position(|found| *found == part(line)));
        let mut error = outcome.as_ref().err().map(|error| error as &dyn std::error::Error);
        while let Some(cause) = error {
            said.push(format!("error: {cause}"));
            error = cause.source();
        }
        let text = said.join("\n").replace(&self.directory.path().display().to_string(), "TMP");
        text.replace(&self.server.to_string(), "SERVER")
    }

    fn verify(&self, components: &str) -> Vec<String> {
        let list = component_list::parse("list", &self.list(components)).unwrap();
        verify::verify(&self.output(), Some(&list), &BTreeMap::new(), None)
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect()
    }
}

async fn serve(router: Router) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// An official binary as image and package.
const TOOL: &str = r#"
  - name: tool
    version: 1.0.0
    sources:
      release: [{ url: "SERVER/tool", sha256_url: "{url}.sha256", binary: tool }]
    images:
      - { reference: "example.org/a/tool:v{version}", files: { /usr/bin/tool: tool }, entrypoint: [/usr/bin/tool] }
    packages:
      - { name: tool, description: A tool, files: { /usr/bin/tool: tool } }
"#;

/// An artefact that is there only when a test puts it there, and a Go program of the same name.
const HELLO: &str = r#"
  - name: hello
    version: 2.0.0
    sources:
      release: [{ url: "SERVER/hello", sha256_url: "{url}.sha256", binary: hello }]
      go: { mains: { hello: "package main\n\nfunc main() { println(\"hello\") }\n" } }
    images:
      - { reference: "example.org/hello:v{version}", files: { /hello: hello }, entrypoint: [/hello] }
"#;

#[tokio::test]
async fn a_signed_bundle_is_one_that_nobody_else_has_made() {
    let run = TestRun::new().await;
    run.build(TOOL, SourceMode::Auto).await;
    let (own, other) = (BundleSigningKey::generate().unwrap(), BundleSigningKey::generate().unwrap());
    let key: BundleKey = own.public_text().unwrap().parse().unwrap();
    let read = || {
        let found = Bundle::read_signed(&run.output(), Some(&key));
        let error = found.err().map(|error| error.to_string()).unwrap_or_default();
        error.replace(&run.directory.path().display().to_string(), "TMP")
    };
    let unsigned = read();
    assert!(unsigned.ends_with("bundle.yaml.minisig does not exist: the bundle is not signed"), "{unsigned}");
    signature::sign(&run.output().join("bundle.yaml"), &other, "").unwrap();
    assert!(read().contains("bundle.yaml.minisig: signed with the key "), "{}", read());
    signature::sign(&run.output().join("bundle.yaml"), &own, "").unwrap();
    assert_eq!(read(), "");
    // The signature is part of no list.
    assert_eq!(run.verify(TOOL), Vec::<String>::new());
    let manifest = run.output().join("bundle.yaml");
    let altered = fs::read_to_string(&manifest).unwrap().replace("tool:v1.0.0", "tool:v1.0.1");
    fs::write(&manifest, altered).unwrap();
    assert!(read().ends_with("bundle.yaml.minisig: the signature is of another content"), "{}", read());
}

#[tokio::test]
async fn only_changed_components_are_built_again() {
    let run = TestRun::new().await;
    let both = format!("{TOOL}{HELLO}");
    insta::assert_snapshot!(run.build(&both, SourceMode::Auto).await, @r"
    tool: from official artefacts
    tool: done
    hello: from official artefacts
    hello: official artefacts are unavailable: http://SERVER/hello.sha256: HTTP status 404
    hello: from go: source in the list
    hello: done
    bundle written: TMP/out, 14 files, 0 MiB
    ");
    insta::assert_snapshot!(run.build(&both, SourceMode::Auto).await, @"bundle is up to date: TMP/out");
    let changed = both.replace("A tool", "A better tool");
    insta::assert_snapshot!(run.build(&changed, SourceMode::Auto).await, @r"
    tool: from cached binaries
    tool: done
    hello: unchanged
    bundle written: TMP/out, 14 files, 0 MiB
    ");
    fs::remove_file(run.output().join("apt/pool/all/tool_1.0.0_amd64.deb")).unwrap();
    insta::assert_snapshot!(run.build(&changed, SourceMode::Auto).await, @r"
    tool: unchanged
    hello: unchanged
    bundle written: TMP/out, 14 files, 0 MiB
    ");
    assert_eq!(run.verify(&changed), [""; 0]);

    let bundle = Bundle::read(&run.output()).unwrap();
    assert_eq!(bundle.provenance["tool"], format!("release: http://{}/tool", run.server));
    assert_eq!(bundle.provenance["hello"], "go: source in the list");
    let platform = "debian-13-amd64".parse().unwrap();
    assert_eq!(bundle.packages_of(&platform), BTreeMap::from([("tool".to_owned(), "1.0.0".to_owned())]));
    let [index] = &bundle.indexes().into_iter().collect::<Vec<_>>()[..] else { unreachable!() };
    assert_eq!(index.signed, "apt/dists/debian-13/InRelease");
    assert!(bundle.files.contains_key(&index.unsigned));
}

#[tokio::test]
async fn leftovers_of_a_killed_build_are_removed() {
    let run = TestRun::new().await;
    for leftover in ["cache/.draft-abc/content", ".out.new-abc/apt"] {
        fs::create_dir_all(run.directory.path().join(leftover)).unwrap();
    }
    assert!(run.build(TOOL, SourceMode::Release).await.contains("bundle written"));
    let names = |directory: &Path| {
        let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
        entries.map(|name| name.into_string().unwrap()).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(names(run.directory.path()).into_iter().collect::<Vec<_>>(), ["cache", "out"]);
    assert_eq!(
        names(&run.directory.path().join("cache")).len(),
        3,
        "the lock, the binary, and what is made of it"
    );
}

#[tokio::test]
async fn an_artefact_is_accepted_only_with_its_digest() {
    let digest = |content: &[u8]| format!("{}  tool\n", Sha256::of(content));
    let cases = [
        ("/tool", "altered on the way".to_owned(), "has SHA-256 "),
        ("/tool.sha256", digest(b"something else"), "has SHA-256 "),
        ("/tool.sha256", "<html>".to_owned(), "has no SHA-256 of tool"),
    ];
    for (path, content, expected) in cases {
        for mode in [SourceMode::Release, SourceMode::Auto] {
            let run = TestRun::new().await;
            run.put(path, &content);
            let said = run.build(TOOL, mode).await;
            assert!(said.contains("error: component tool") && said.contains(expected), "{path}: {said}");
            assert!(!run.output().exists());
        }
    }
    for path in ["/tool", "/tool.sha256"] {
        let run = TestRun::new().await;
        run.shelf.lock().unwrap().remove(path);
        let said = run.build(TOOL, SourceMode::Release).await;
        assert!(said.ends_with(&format!("{path}: HTTP status 404")), "{said}");
    }
}

#[tokio::test]
async fn a_wrong_digest_does_not_select_the_other_source() {
    let run = TestRun::new().await;
    run.put("/hello", "not what was published");
    run.put("/hello.sha256", Sha256::of(b"hello").to_string());
    let said = run.build(HELLO, SourceMode::Auto).await;
    assert!(said.contains("has SHA-256 ") && !said.contains("official artefacts are unavailable"), "{said}");
}

#[tokio::test]
async fn a_pinned_digest_replaces_the_published_one_and_archives_are_unpacked() {
    let run = TestRun::new().await;
    let mut archive =
        tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    let mut header = tar::Header::new_gnu();
    header.set_size(4);
    archive.append_data(&mut header, "tool-1.0.0/bin/tool", &b"tool"[..]).unwrap();
    let archive = archive.into_inner().unwrap().finish().unwrap();
    run.put("/tool-1.0.0.tgz", &archive);
    let release = format!(
        "[{{ url: \"SERVER/tool-{{version}}.tgz\", sha256: {{ amd64: {} }},\
          members: {{ tool: \"tool-{{version}}/bin/tool\" }} }}]",
        Sha256::of(&archive)
    );
    let list =
        TOOL.replace(r#"[{ url: "SERVER/tool", sha256_url: "{url}.sha256", binary: tool }]"#, &release);
    assert_ne!(list, TOOL);
    let said = run.build(&list, SourceMode::Release).await;
    assert!(said.contains("bundle written"), "{said}");
    let said = run.build(&list.replace("bin/tool", "sbin/tool"), SourceMode::Release).await;
    assert!(said.ends_with("tool-1.0.0.tgz does not contain tool-1.0.0/sbin/tool"), "{said}");
    assert_eq!(run.verify(&list), [""; 0], "a failed build leaves the old bundle");
}

#[tokio::test]
async fn verify_reports_all_problems_at_once() {
    let run = TestRun::new().await;
    run.build(TOOL, SourceMode::Release).await;
    assert_eq!(run.verify(TOOL), [""; 0]);

    let bundle = Bundle::read(&run.output()).unwrap();
    let manifest = bundle.images["example.org/a/tool:v1.0.0"].to_string();
    let blobs = run.output().join("images/blobs/sha256");
    fs::remove_file(blobs.join(&manifest)).unwrap();
    fs::remove_file(run.output().join("apt/pool/all/tool_1.0.0_amd64.deb")).unwrap();
    fs::write(run.output().join("apt/pool/all/tool_1.0.0_amd64.deb"), "evil").unwrap();
    fs::write(run.output().join("apt/pool/all/extra.deb"), "more").unwrap();
    let newer = TOOL.replace("1.0.0", "1.0.1");
    let more = format!("{newer}{HELLO}");
    let found = run.verify(&more).join("\n").replace(&manifest, "MANIFEST");
    let digits = |text: &str| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let words = found.split(' ').map(|word| if digits(word) { "DIGEST" } else { word });
    let found = words.collect::<Vec<_>>().join(" ");
    let size = bundle.files["apt/pool/all/tool_1.0.0_amd64.deb"].size;
    insta::assert_snapshot!(found.replace(&format!("({size} bytes)"), "(SIZE)"), @r"
    images/blobs/sha256/MANIFEST (image example.org/a/tool:v1.0.0): missing
    apt/pool/all/tool_1.0.0_amd64.deb (package tool 1.0.0): found DIGEST (4 bytes), expected DIGEST (SIZE)
    apt/pool/all/extra.deb: not in bundle.yaml
    component hello: missing, expected 2.0.0
    component tool: found 1.0.0, expected 1.0.1
    image example.org/a/tool:v1.0.1: missing
    image example.org/hello:v2.0.0: missing
    ");
}

#[tokio::test]
async fn only_a_bundle_is_replaced_and_builds_exclude_each_other() {
    let run = TestRun::new().await;
    fs::create_dir(run.output()).unwrap();
    fs::write(run.output().join("thesis.txt"), "years of work").unwrap();
    assert_eq!(run.build(TOOL, SourceMode::Release).await, "error: TMP/out is not empty and not a bundle");
    assert!(run.output().join("thesis.txt").exists());

    fs::remove_file(run.output().join("thesis.txt")).unwrap();
    fs::create_dir(run.directory.path().join("cache")).unwrap();
    let lock = File::create(run.directory.path().join("cache/.lock")).unwrap();
    lock.lock().unwrap();
    assert_eq!(run.build(TOOL, SourceMode::Release).await, "error: another build is running in TMP/cache");
    drop(lock);
    assert!(run.build(TOOL, SourceMode::Release).await.contains("bundle written"));
}

#[tokio::test]
async fn only_missing_images_are_pushed() {
    let run = TestRun::new().await;
    run.build(TOOL, SourceMode::Release).await;
    let bundle = Bundle::read(&run.output()).unwrap();
    let (shelf, socket) = registry_below(run.directory.path());
    for expected in [Loaded::Pushed, Loaded::AlreadyThere] {
        let seen = Mutex::new(Vec::new());
        let progress = |reference: &str, loaded| seen.lock().unwrap().push((reference.to_owned(), loaded));
        bundle_images::load(&run.output(), &bundle, &socket, &progress).await.unwrap();
        assert_eq!(seen.into_inner().unwrap(), [("example.org/a/tool:v1.0.0".to_owned(), expected)]);
    }
    let manifest = shelf.lock().unwrap()["/v2/example.org/a/tool/manifests/v1.0.0"].clone();
    assert_eq!(Sha256::of(&manifest), bundle.images["example.org/a/tool:v1.0.0"]);

    assert_eq!(bundle_images::missing(&bundle, &socket).await.unwrap(), [].into());

    let nowhere = run.directory.path().join("nowhere.sock");
    let refused = bundle_images::load(&run.output(), &bundle, &nowhere, &|_, _| ()).await.unwrap_err();
    let expected =
        format!("image example.org/a/tool:v1.0.0: push to the registry at {} failed", nowhere.display());
    assert_eq!(refused.to_string(), expected);
}

/// A registry that listens on a socket in a directory, and what it has.
fn registry_below(directory: &Path) -> (Shelf, PathBuf) {
    let shelf = Shelf::default();
    let kept = shelf.clone();
    let answer = move |method: Method, uri: Uri, body: Bytes| {
        let answer = registry_answer(&mut kept.lock().unwrap(), &method, &uri, body);
        async move { answer }
    };
    let socket = directory.join("registry.sock");
    let listener = tokio::net::UnixListener::bind(&socket).unwrap();
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
    (shelf, socket)
}

/// The part of the distribution specification that a push of whole blobs needs.
fn registry_answer(shelf: &mut BTreeMap<String, Bytes>, method: &Method, uri: &Uri, body: Bytes) -> Response {
    let path = uri.path().to_owned();
    match (method.as_str(), path.strip_suffix("/uploads/")) {
        ("POST", Some(_)) => (StatusCode::ACCEPTED, [("location", path)]).into_response(),
        ("PUT", blobs) => {
            let digest = uri.query().unwrap_or_default().trim_start_matches("digest=").replace("%3A", ":");
            let stored = blobs.map_or(path.clone(), |blobs| format!("{blobs}/{digest}"));
            shelf.insert(stored.clone(), body);
            (StatusCode::CREATED, [("location", stored)]).into_response()
        }
        _ => match shelf.get(&path) {
            Some(content) => {
                let digest = format!("sha256:{}", Sha256::of(content));
                (StatusCode::OK, [("docker-content-digest", digest)], content.clone()).into_response()
            }
            None => StatusCode::NOT_FOUND.into_response(),
        },
    }
}
