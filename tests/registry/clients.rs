//! Clients that are not ours pull through metalform's HTTPS server, with its CA.

use std::fs;

use metalform::bundle::digest::Sha256;
use serde_json::Value;

use crate::made_image::{Layout, digest};
use crate::real_registry::{RealRegistry, program};

struct Served {
    registry: RealRegistry,
    /// Digests of the index and of its image for amd64.
    index: String,
    amd64: String,
}

async fn served() -> Option<Served> {
    let registry = RealRegistry::start().await?;
    let mut layout = Layout::default();
    let index = layout.index(&["amd64", "arm64"], "of two architectures");
    layout.name("registry.example.org/team/app:1", index.clone());
    let body: Value =
        serde_json::from_slice(&layout.blobs[digest(&index).trim_start_matches("sha256:")]).unwrap();
    registry.add(&layout.write(&registry.path("app.tar"))).await;
    let (index, amd64) = (digest(&index), digest(&body["manifests"][0]));
    Some(Served { registry, index, amd64 })
}

#[tokio::test(flavor = "multi_thread")]
async fn skopeo_pulls_by_tag_by_digest_and_an_index_whole() {
    let (Some(skopeo), Some(Served { registry, index, amd64 })) = (program("skopeo"), served().await) else {
        return;
    };
    fs::create_dir(registry.path("certs")).unwrap();
    fs::copy(registry.ca(), registry.path("certs/ca.crt")).unwrap();
    let source = format!("docker://{}/registry.example.org/team/app", registry.address);
    let raw = |reference: String| {
        let arguments = ["inspect", "--raw", "--cert-dir", "certs", "--no-creds", &reference];
        format!("sha256:{}", Sha256::of(registry.succeed(&skopeo, &arguments).as_bytes()))
    };
    assert_eq!(raw(format!("{source}:1")), index);
    assert_eq!(raw(format!("{source}@{index}")), index);
    assert_eq!(raw(format!("{source}@{amd64}")), amd64);

    let copy = |options: &[&str], reference: &str, to: &str| {
        let mut arguments = vec!["--insecure-policy", "copy", "--src-cert-dir", "certs", "--src-no-creds"];
        arguments.extend(options);
        arguments.extend([reference, to]);
        registry.succeed(&skopeo, &arguments)
    };
    copy(&["--all"], &format!("{source}:1"), "dir:all");
    let manifest = fs::read(registry.path("all/manifest.json")).unwrap();
    assert_eq!(format!("sha256:{}", Sha256::of(&manifest)), index);
    copy(&[], &format!("{source}@{amd64}"), "dir:one");
    let manifest = fs::read(registry.path("one/manifest.json")).unwrap();
    assert_eq!(format!("sha256:{}", Sha256::of(&manifest)), amd64);

    let list = registry.succeed(&skopeo, &["list-tags", "--cert-dir", "certs", "--no-creds", &source]);
    assert_eq!(serde_json::from_str::<Value>(&list).unwrap()["Tags"], serde_json::json!(["1"]));

    let pushed = registry.run(
        &skopeo,
        &[
            "--insecure-policy",
            "copy",
            "--dest-cert-dir",
            "certs",
            "--dest-no-creds",
            "dir:one",
            &format!("{source}:2"),
        ],
    );
    assert!(!pushed.status.success(), "the read-only server accepts a push");
}

#[tokio::test(flavor = "multi_thread")]
async fn crane_pulls_by_tag_by_digest_and_an_index_whole() {
    let (Some(crane), Some(Served { registry, index, amd64 })) = (program("crane"), served().await) else {
        return;
    };
    let image = format!("{}/registry.example.org/team/app", registry.address);
    let of = |arguments: &[&str]| registry.succeed(&crane, arguments).trim().to_owned();
    assert_eq!(of(&["digest", &format!("{image}:1")]), index);
    assert_eq!(of(&["digest", "--platform", "linux/amd64", &format!("{image}:1")]), amd64);
    assert_eq!(
        format!("sha256:{}", Sha256::of(of(&["manifest", &format!("{image}@{index}")]).as_bytes())),
        index
    );
    assert_eq!(of(&["ls", &image]), "1");
    registry.succeed(&crane, &["pull", "--format", "oci", &format!("{image}:1"), "whole"]);
    let layout: Value =
        serde_json::from_slice(&fs::read(registry.path("whole/index.json")).unwrap()).unwrap();
    assert_eq!(digest(&layout["manifests"][0]), index);
    // Its layers are no archives: their content was pulled above.
    registry.succeed(&crane, &["validate", "--fast", "--remote", &format!("{image}:1")]);
    registry.succeed(&crane, &["pull", &format!("{image}@{amd64}"), "one.tar"]);
    let pushed = registry.run(&crane, &["push", "one.tar", &format!("{image}:2")]);
    assert!(!pushed.status.success(), "the read-only server accepts a push");
    let missing = registry.run(&crane, &["digest", &format!("{image}:none")]);
    assert!(String::from_utf8_lossy(&missing.stderr).contains("MANIFEST_UNKNOWN"), "{missing:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn blobs_are_served_in_ranges_and_resumed() {
    let Some(Served { registry, amd64, .. }) = served().await else { return };
    let ca = reqwest::Certificate::from_pem(&fs::read(registry.ca()).unwrap()).unwrap();
    metalform::pki::tls_provider::install_tls_provider();
    let client = reqwest::Client::builder().tls_certs_only([ca]).no_proxy().build().unwrap();
    // As containerd requests it from a mirror.
    let url = |path: &str| format!("https://{}/v2/team/app/{path}?ns=registry.example.org", registry.address);
    let manifest = client
        .get(url(&format!("manifests/{amd64}")))
        .header("accept", "application/vnd.oci.image.manifest.v1+json");
    let manifest: Value =
        serde_json::from_slice(&manifest.send().await.unwrap().bytes().await.unwrap()).unwrap();
    let layer = url(&format!("blobs/{}", digest(&manifest["layers"][0])));
    let whole = client.get(&layer).send().await.unwrap();
    assert_eq!(whole.status(), 200);
    assert_eq!(whole.headers()["accept-ranges"], "bytes");
    let whole = whole.bytes().await.unwrap();
    let last = whole.len() - 1;
    for (range, expected) in [
        ("bytes=0-99".to_owned(), 0..100),
        ("bytes=1000-1999".to_owned(), 1000..2000),
        // Of a client that has the first half.
        (format!("bytes={}-", whole.len() / 2), whole.len() / 2..whole.len()),
        ("bytes=-10".to_owned(), whole.len() - 10..whole.len()),
    ] {
        let part = client.get(&layer).header("range", &range).send().await.unwrap();
        assert_eq!(part.status(), 206, "{range}");
        let content_range = format!("bytes {}-{}/{}", expected.start, expected.end - 1, whole.len());
        assert_eq!(part.headers()["content-range"], content_range.as_str());
        assert!(part.bytes().await.unwrap() == whole[expected], "{range}");
    }
    let beyond = client.get(&layer).header("range", format!("bytes={}-", last + 2)).send().await.unwrap();
    assert_eq!(beyond.status(), 416);
    for path in [
        format!("https://{}/v2/..%2f..%2fetc/manifests/passwd", registry.address),
        format!("https://{}/v2/a/manifests/..%2f..%2fb", registry.address),
        url("manifests/..%2F..%2F..%2Fsecret"),
    ] {
        let answer = client.get(&path).send().await.unwrap();
        assert!(answer.status().is_client_error(), "{path}: {}", answer.status());
    }
}
