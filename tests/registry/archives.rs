//! Archives of images: what is added, and what is refused.

use std::fs;

use metalform::bundle::digest::Sha256;
use metalform::model::error_chain::error_chain;
use metalform::registry::archive::ImageArchive;
use metalform::registry::image_name::ImageName;
use metalform::registry::user_images::{self, AddedImages};
use serde_json::json;

use crate::made_image::{Layout, digest, tar};
use crate::real_registry::{RealRegistry, program};

async fn open(path: &std::path::Path) -> Result<AddedImages, String> {
    let opened = ImageArchive::open(path.to_owned()).await;
    opened.map(|archive| AddedImages::Archive(Box::new(archive))).map_err(|error| error_chain(&error))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_is_added_whole_and_the_second_time_nothing_is() {
    let Some(registry) = RealRegistry::start().await else { return };
    let mut layout = Layout::default();
    let index = layout.index(&["amd64", "arm64"], "index");
    let image = layout.image("amd64", "image", 3 << 20);
    layout.name("registry.example.org/app:1", index.clone());
    layout.name("busybox", image.clone());
    let archive = layout.write(&registry.path("two.tar"));
    let images = open(&archive).await.unwrap();
    let names: Vec<ImageName> = images.names().into_iter().map(|name| name.unwrap().clone()).collect();
    for unchanged in [false, true] {
        let added = images.add(&registry.client(), &names).await.unwrap();
        let added: Vec<_> =
            added.iter().map(|(digest, unchanged)| (format!("sha256:{digest}"), *unchanged)).collect();
        assert_eq!(added, [(digest(&index), unchanged), (digest(&image), unchanged)]);
    }
    let listed = user_images::list(&registry.client()).await.unwrap();
    let listed: Vec<_> =
        listed.iter().map(|(name, digest)| (name.to_string(), format!("sha256:{digest}"))).collect();
    let expected = [("docker.io/library/busybox:latest", &image), ("registry.example.org/app:1", &index)];
    assert_eq!(listed, expected.map(|(name, image)| (name.to_owned(), digest(image))));
    // Each blob of the archive is there once: nothing is left out, and nothing is added.
    let mut expected: Vec<String> = layout.blobs.keys().cloned().collect();
    expected.sort();
    assert_eq!(registry.blobs(), expected);
}

/// What `docker save` wrote before it wrote an OCI layout.
fn docker_archive(config: &str, layer: &[u8], diff_id: &str) -> Vec<u8> {
    let configuration = json!({
        "architecture": "amd64", "os": "linux", "rootfs": { "type": "layers", "diff_ids": [diff_id] },
    });
    let configuration = configuration.to_string();
    let config = config.replace("DIGEST", Sha256::of(configuration.as_bytes()).as_str());
    let manifest =
        json!([{ "Config": config, "RepoTags": ["team/app:2", "team/app:3"], "Layers": ["l/layer.tar"] }]);
    tar(&[
        ("l/layer.tar", layer),
        (&config, configuration.as_bytes()),
        ("manifest.json", manifest.to_string().as_bytes()),
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn what_docker_save_writes_is_added() {
    let Some(registry) = RealRegistry::start().await else { return };
    let layer = tar(&[("content", b"of docker")]);
    let diff_id = format!("sha256:{}", Sha256::of(&layer));
    let archive = registry.path("docker.tar");
    fs::write(&archive, docker_archive("DIGEST.json", &layer, &diff_id)).unwrap();
    let names = registry.add(&archive).await;
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["docker.io/team/app:2", "docker.io/team/app:3"]);
    let listed = user_images::list(&registry.client()).await.unwrap();
    assert_eq!(listed[0].1, listed[1].1);
    assert!(registry.blobs().contains(&Sha256::of(&layer).to_string()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_archives_that_skopeo_writes_are_added() {
    let (Some(skopeo), Some(registry)) = (program("skopeo"), RealRegistry::start().await) else { return };
    let mut layout = Layout::default();
    let image = layout.image("amd64", "skopeo", 100_000);
    layout.name("registry.example.org/app:1", image.clone());
    layout.write(&registry.path("made.tar"));
    for (kind, expected) in
        [("oci-archive", "registry.example.org/app:1"), ("docker-archive", "registry.example.org/app:2")]
    {
        let to = format!("{kind}:{kind}.tar:{expected}");
        let mut arguments = vec!["--insecure-policy", "copy"];
        // Else it compresses the layers.
        arguments.extend((kind == "oci-archive").then_some("--preserve-digests"));
        arguments.extend(["oci-archive:made.tar", &to]);
        registry.succeed(&skopeo, &arguments);
        let names = registry.add(&registry.path(&format!("{kind}.tar"))).await;
        assert_eq!(names.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
    }
    let listed = user_images::list(&registry.client()).await.unwrap();
    assert_eq!(listed.len(), 2);
    assert_eq!(format!("sha256:{}", listed[0].1), digest(&image), "an OCI layout keeps its digest");
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_and_incomplete_archives_are_refused_and_leave_no_tag() {
    let Some(mut registry) = RealRegistry::start().await else { return };
    let path = registry.path("bad.tar");
    let name: ImageName = "registry.example.org/bad:1".parse().unwrap();
    let mut whole = Layout::default();
    let index = whole.index(&["amd64", "arm64", "riscv64"], "index");
    whole.name(&name.to_string(), index.clone());
    let manifests: Vec<String> = {
        let body: serde_json::Value =
            serde_json::from_slice(&whole.blobs[digest(&index).trim_start_matches("sha256:")]).unwrap();
        body["manifests"].as_array().unwrap().iter().map(|one| digest(one)[7..].to_owned()).collect()
    };
    let layer = whole.blobs.iter().max_by_key(|(_, content)| content.len()).unwrap().0.clone();
    let without = |names: &[&String]| {
        let mut layout = Layout::default();
        layout.name(&name.to_string(), index.clone());
        layout.blobs = whole.blobs.clone();
        names.iter().for_each(|name| drop(layout.blobs.remove(*name)));
        layout
    };
    without(&[&manifests[1]]).write(&path);
    let error = open(&path).await.err().unwrap();
    assert!(error.ends_with("1 of its 3 manifests are not in the archive"), "{error}");

    // One platform of the index is what was pulled for one platform.
    without(&[&manifests[1], &manifests[2]]).write(&path);
    let images = open(&path).await.unwrap();
    let added = images.add(&registry.client(), std::slice::from_ref(&name)).await.unwrap();
    assert_eq!(added[0].0.to_string(), manifests[0]);
    metalform::registry::collection::remove(&registry.client(), &[(name.clone(), added[0].0.clone())].into())
        .await
        .unwrap();

    // Blobs that the registry has are not uploaded, nor read.
    registry.restart_writer();

    let mut altered = without(&[]);
    altered.blobs.get_mut(&layer).unwrap()[600] ^= 1;
    let mut missing = without(&[&layer]);
    let mut cases = vec![
        (altered.write(&path), "its content has the digest sha256:"),
        (missing.write(&registry.path("b.tar")), "missing"),
    ];
    missing.blobs.insert(layer.clone(), Vec::new());
    cases.push((missing.write(&registry.path("c.tar")), "its content has the digest sha256:"));
    for (path, expected) in cases {
        registry_is_clean(&registry, &name).await;
        let images = open(&path).await.unwrap();
        let error = images.add(&registry.client(), std::slice::from_ref(&name)).await.unwrap_err();
        let text = error_chain(&error);
        assert!(text.contains(expected) || text.contains("push to the registry"), "{text}");
        registry_is_clean(&registry, &name).await;
    }

    let layer = tar(&[("content", b"of docker")]);
    let diff_id = format!("sha256:{}", Sha256::of(&layer));
    let cases: [(Vec<u8>, &str); 6] = [
        (
            docker_archive("DIGEST.json", b"another layer", &diff_id),
            "l/layer.tar: its content has the digest",
        ),
        (docker_archive(&format!("{}.json", "0".repeat(64)), &layer, &diff_id), "its content has the digest"),
        (tar(&[("manifest.json", b"[{\"Config\": \"../../etc/passwd\", \"Layers\": []}]")]), "missing"),
        (tar(&[("manifest.json", b"{}")]), "manifest.json: "),
        (tar(&[("etc/passwd", b"root")]), "no index.json and no manifest.json"),
        (b"no archive".to_vec(), "not a whole tar archive"),
    ];
    for (content, expected) in cases {
        fs::write(&path, content).unwrap();
        let error = open(&path).await.err().unwrap_or_default();
        assert!(error.contains(expected), "{error} does not contain {expected}");
    }
}

async fn registry_is_clean(registry: &RealRegistry, name: &ImageName) {
    assert_eq!(user_images::digest(&registry.client(), name).await.unwrap(), None);
}
