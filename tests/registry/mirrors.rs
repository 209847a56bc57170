//! A mirror: what a sync copies and removes, and what its server answers.

use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use jiff::Timestamp;
use metalform::bundle::download::DownloadLimits;
use metalform::cli::clock;
use metalform::mirror::contents::MirrorContents;
use metalform::mirror::directory::MirrorDirectory;
use metalform::mirror::origin::Origin;
use metalform::mirror::sync::{SyncRequest, Synced, sync};
use metalform::pki::https_client::{authorities_in, https_client};
use metalform::registry::{collection, user_images};
use metalform::serve::http::{Content, HttpConfig, HttpServer};
use metalform::serve::secure_listener::ListenConfig;
use serde_json::Value;

use crate::files_below::files_below;
use crate::made_image::{Layout, digest};
use crate::real_registry::RealRegistry;

/// An origin, and a mirror with a registry of its own.
struct Pair {
    origin: RealRegistry,
    mirror: RealRegistry,
}

impl Pair {
    async fn new() -> Option<Self> {
        let origin = RealRegistry::with_bundles(&["1.34.4", "1.35.4"]).await?;
        Some(Self { origin, mirror: RealRegistry::start().await? })
    }

    fn directory(&self) -> MirrorDirectory {
        MirrorDirectory::at(self.mirror.path("mirror"))
    }

    fn url(&self) -> String {
        format!("https://{}", self.origin.address)
    }

    fn authority(&self) -> Vec<u8> {
        fs::read(self.origin.ca()).unwrap()
    }

    async fn sync(&self) -> Result<Synced, String> {
        self.sync_at(|| Timestamp::UNIX_EPOCH).await
    }

    async fn sync_at(&self, clock: fn() -> Timestamp) -> Result<Synced, String> {
        let request = SyncRequest {
            origin: self.url(),
            authority: self.authority(),
            directory: self.directory(),
            registry: self.mirror.socket(),
            downloads: DownloadLimits::new(NonZeroUsize::new(2).unwrap()),
            clock,
        };
        sync(&request, &|_| {}).await.map_err(|error| metalform::model::error_chain::error_chain(&error))
    }

    /// What a sync copies, and what it removes.
    async fn changed(&self) -> (Vec<String>, Vec<String>) {
        self.changed_at(|| Timestamp::UNIX_EPOCH).await
    }

    async fn changed_at(&self, clock: fn() -> Timestamp) -> (Vec<String>, Vec<String>) {
        let Synced { copied, removed, failed } = self.sync_at(clock).await.unwrap();
        assert_eq!(failed, [""; 0]);
        let names = |items: Vec<_>| items.iter().map(ToString::to_string).collect();
        (names(copied), names(removed))
    }

    async fn wanted(&self) -> MirrorContents {
        Origin::new(&self.url(), &self.authority()).unwrap().contents().await.unwrap()
    }

    fn recorded(&self) -> MirrorContents {
        serde_json::from_slice(&fs::read(self.directory().contents()).unwrap()).unwrap()
    }

    /// That the mirror is whole, and says so.
    async fn assert_whole(&self) {
        let recorded = self.recorded();
        assert_eq!(recorded.synced, Some(Timestamp::UNIX_EPOCH));
        assert_eq!(MirrorContents { synced: None, ..recorded }, self.wanted().await);
    }

    /// Adds an image to the origin, under this name.
    async fn add(&self, name: &str, text: &str) -> String {
        let mut layout = Layout::default();
        let image = layout.image("amd64", text, 50_000);
        layout.name(name, image.clone());
        self.origin.add(&layout.write(&self.origin.path("image.tar"))).await;
        digest(&image)
    }

    /// The file of the layer of an image of the origin.
    fn layer(&self, image: &str) -> PathBuf {
        let blob = |digest: &str| {
            let hex = digest.trim_start_matches("sha256:");
            self.origin.path(&format!("data/docker/registry/v2/blobs/sha256/{}/{hex}/data", &hex[..2]))
        };
        let manifest: Value = serde_json::from_slice(&fs::read(blob(image)).unwrap()).unwrap();
        blob(&digest(&manifest["layers"][0]))
    }

    async fn remove(&self, name: &str, digest: &str) {
        let unwanted = (name.parse().unwrap(), digest.trim_start_matches("sha256:").parse().unwrap());
        collection::remove(&self.origin.client(), &[unwanted].into()).await.unwrap();
    }
}

const EVERYTHING: [&str; 5] = [
    "bundle 1.34.4",
    "bundle 1.35.4",
    "index bundles/1.34.4/apt/dists/debian-13/InRelease",
    "index bundles/1.35.4/apt/dists/debian-13/InRelease",
    "image registry.example.org/app:1",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_copies_what_is_lacking_and_removes_what_the_origin_has_no_more() {
    let Some(pair) = Pair::new().await else { return };
    let first = pair.add("registry.example.org/app:1", "first").await;
    assert_eq!(pair.changed().await, (EVERYTHING.map(str::to_owned).into(), vec![]));
    pair.assert_whole().await;
    let package = pair.directory().bundles().join("1.35.4/apt/tool.deb");
    assert_eq!(fs::read_to_string(&package).unwrap(), "package of 1.35.4");
    assert_eq!(pair.changed().await, (vec![], vec![]));

    // Another image under the tag, another index, and a bundle that lost bytes on the mirror.
    let second = pair.add("registry.example.org/app:1", "second").await;
    assert_ne!(first, second);
    let index = "bundles/1.35.4/apt/dists/debian-13/InRelease";
    fs::write(pair.origin.path("overlay").join(index), "signed again").unwrap();
    fs::write(&package, "package").unwrap();
    let again =
        ["bundle 1.35.4", &format!("index {index}"), "image registry.example.org/app:1"].map(str::to_owned);
    assert_eq!(pair.changed().await, (again.into(), vec![]));
    pair.assert_whole().await;
    assert_eq!(fs::read_to_string(&package).unwrap(), "package of 1.35.4");

    pair.remove("registry.example.org/app:1", &second).await;
    fs::remove_file(pair.origin.path("overlay").join(index)).unwrap();
    fs::create_dir(pair.directory().bundles().join("1.33.4")).unwrap();
    let gone = [&format!("index {index}"), "bundle 1.33.4"].map(str::to_owned);
    assert_eq!(pair.changed().await, (vec![], gone.into()));
    // Its registry may have been lost there.
    assert_eq!(pair.recorded().lacks_of(&pair.wanted().await), []);
    assert!(pair.recorded().images.contains_key("registry.example.org/app:1"));
    let next_day = || Timestamp::from_second(24 * 3600 - 1).unwrap();
    assert_eq!(pair.changed_at(next_day).await, (vec![], vec![]));
    let a_day_later = || Timestamp::from_second(24 * 3600).unwrap();
    let gone = vec!["image registry.example.org/app:1".to_owned()];
    assert_eq!(pair.changed_at(a_day_later).await, (vec![], gone));
    assert_eq!(user_images::list(&pair.mirror.client()).await.unwrap(), []);
    assert_eq!(pair.recorded().images, pair.wanted().await.images);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_what_the_origin_vouches_for_is_not_served() {
    let Some(mut pair) = Pair::new().await else { return };
    fs::write(pair.origin.path("1.35.4/apt/tool.deb"), "PACKAGE OF 1.35.4").unwrap();
    let error = pair.sync().await.unwrap_err();
    assert!(error.contains("apt/tool.deb has SHA-256"), "{error}");
    assert!(!pair.directory().contents().exists());
    assert!(!pair.directory().bundles().join("1.35.4").exists());

    fs::write(pair.origin.path("1.35.4/apt/tool.deb"), "package of 1.35.4").unwrap();
    pair.sync().await.unwrap();
    pair.assert_whole().await;
    pair.origin.stop_server().await;
    let error = pair.sync().await.unwrap_err();
    assert!(error.contains("/mirror/contents: no response"), "{error}");
    assert_eq!(pair.recorded().bundles.len(), 2, "what it has is still there");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_cannot_be_copied_keeps_no_other_and_no_space() {
    let Some(pair) = Pair::new().await else { return };
    let name = |tag: u32| format!("registry.example.org/app:{tag}");
    let flipped = pair.layer(&pair.add(&name(1), "first").await);
    let cut = pair.layer(&pair.add(&name(2), "second").await);
    pair.add(&name(3), "third").await;
    let [before_flip, before_cut] = [&flipped, &cut].map(|path| fs::read(path).unwrap());
    let mut content = before_flip.clone();
    content[1000] ^= 1;
    fs::write(&flipped, content).unwrap();
    fs::write(&cut, &before_cut[..20_000]).unwrap();

    let Synced { copied, removed, failed } = pair.sync().await.unwrap();
    assert_eq!(failed.len(), 2, "{failed:?}");
    for (error, tag) in failed.iter().zip([1, 2]) {
        assert!(error.starts_with(&format!("image {}: ", name(tag))), "{error}");
    }
    let copied: Vec<String> = copied.iter().map(ToString::to_string).collect();
    assert_eq!((copied.len(), copied.last()), (5, Some(&format!("image {}", name(3)))));
    assert_eq!(removed, []);
    let lacking = pair.recorded().lacks_of(&pair.wanted().await);
    let lacking: Vec<String> = lacking.iter().map(ToString::to_string).collect();
    assert_eq!(lacking, [1, 2].map(|tag| format!("image {}", name(tag))));
    let on_disk = files_below(&pair.mirror.path("data"));
    let left: Vec<&String> =
        on_disk.keys().filter(|path| path.contains("/_uploads/") && path.ends_with("/data")).collect();
    assert_eq!(left, [""; 0]);

    fs::write(&flipped, before_flip).unwrap();
    fs::write(&cut, before_cut).unwrap();
    let rest = [1, 2].map(|tag| format!("image {}", name(tag)));
    assert_eq!(pair.changed().await, (rest.into(), vec![]));
    pair.assert_whole().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_answers_by_itself_and_for_what_it_lacks_as_its_origin() {
    let Some(mut pair) = Pair::new().await else { return };
    let copied = pair.add("registry.example.org/app:1", "copied").await;
    let (certificate, key) = pair.mirror.layout().serve();
    let listen = ListenConfig { listen: "127.0.0.1:0".parse().unwrap(), certificate, key, clock: clock::now };
    let content =
        Content::Mirror { directory: pair.directory(), origin: pair.url(), authority: pair.authority() };
    let config = HttpConfig { listen, content, registry: pair.mirror.loopback };
    let server = HttpServer::bind(&config).await.unwrap();
    let base = format!("https://{}", server.address());
    tokio::spawn(server.run(std::future::pending()));
    let roots = authorities_in(&fs::read(pair.mirror.ca()).unwrap()).unwrap();
    let client = https_client(roots).unwrap().no_proxy().build().unwrap();
    let ask = async |path: &str| {
        let accept = "application/vnd.oci.image.manifest.v1+json";
        let response = client.get(format!("{base}{path}")).header("Accept", accept).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    let manifest = |digest: &str| format!("/v2/app/manifests/{digest}?ns=registry.example.org");
    let package = "/bundles/1.35.4/apt/tool.deb";
    let index = "/bundles/1.35.4/apt/dists/debian-13/InRelease";

    // Before its first sync it has nothing.
    assert_eq!(ask("/mirror/contents").await, (200, r#"{"bundles":{},"indexes":{},"images":{}}"#.to_owned()));
    assert_eq!(ask(package).await, (200, "package of 1.35.4".to_owned()));
    assert_eq!(ask(index).await, (200, "signed 1.35.4".to_owned()));
    assert_eq!(ask(&manifest(&copied)).await.0, 200);
    assert_eq!(ask("/bundles/1.33.4/apt/tool.deb").await.0, 404);
    let part = client.get(format!("{base}{package}")).header("Range", "bytes=0-6").send().await.unwrap();
    assert_eq!((part.status().as_u16(), part.text().await.unwrap()), (206, "package".to_owned()));

    pair.sync().await.unwrap();
    let later = pair.add("registry.example.org/app:2", "later").await;
    pair.mirror.stop_reader();
    assert_eq!(ask(&manifest(&copied)).await.0, 200, "its registry is down");
    pair.origin.stop_server().await;
    assert_eq!(ask(package).await, (200, "package of 1.35.4".to_owned()));
    assert_eq!(ask(index).await, (200, "signed 1.35.4".to_owned()));
    assert_eq!(ask(&manifest(&later)).await.0, 502, "neither answers");
    assert_eq!(ask("/bundles/1.33.4/apt/tool.deb").await.0, 404);
    assert!(ask("/mirror/contents").await.1.contains("registry.example.org/app:1"));
    let refused = client.put(format!("{base}{package}")).send().await.unwrap();
    assert_eq!(refused.status().as_u16(), 405);
}
