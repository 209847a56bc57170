//! Removal of images, and what the registry's garbage collection leaves.

use metalform::bundle::digest::Sha256;
use metalform::registry::image_name::ImageName;
use metalform::registry::{collection, user_images};

use crate::made_image::{Layout, digest};
use crate::real_registry::RealRegistry;

fn pair(name: &str, descriptor: &serde_json::Value) -> (ImageName, Sha256) {
    (name.parse().unwrap(), digest(descriptor).trim_start_matches("sha256:").parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_image_has_any_more_is_freed_and_all_else_stays() {
    let Some(mut registry) = RealRegistry::start().await else { return };
    let mut layout = Layout::default();
    let (old, new, mine) = (
        layout.image("amd64", "old", 50_000),
        layout.image("amd64", "new", 50_000),
        layout.image("amd64", "mine", 50_000),
    );
    let index = layout.index(&["amd64", "arm64"], "mine too");
    for (name, image) in [
        ("registry.k8s.io/app:1", &old),
        ("registry.k8s.io/app:2", &new),
        ("registry.k8s.io/app:mine", &mine),
        // The same image as one of a bundle that goes.
        ("registry.k8s.io/app:kept", &new),
        ("registry.example.org/mine:1", &index),
    ] {
        layout.name(name, image.clone());
    }
    registry.add(&layout.write(&registry.path("all.tar"))).await;
    let before = registry.blobs();

    let unwanted = [
        pair("registry.k8s.io/app:1", &old),
        pair("registry.k8s.io/app:2", &new),
        // The tag is of a user by now.
        pair("registry.k8s.io/app:mine", &old),
        pair("registry.k8s.io/gone:1", &old),
    ];
    let removed = collection::remove(&registry.client(), &unwanted.clone().into()).await.unwrap();
    let removed: Vec<String> = removed.iter().map(ToString::to_string).collect();
    assert_eq!(removed, ["registry.k8s.io/app:1", "registry.k8s.io/app:2"]);
    registry.restart_writer();

    let listed = user_images::list(&registry.client()).await.unwrap();
    let expected = [
        pair("registry.example.org/mine:1", &index),
        pair("registry.k8s.io/app:kept", &new),
        pair("registry.k8s.io/app:mine", &mine),
    ];
    assert_eq!(listed, expected);
    let after = registry.blobs();
    // Manifest, configuration and layer of the old image; the configuration is of this image alone, as its layer is.
    assert_eq!(before.len() - after.len(), 3, "{before:?} {after:?}");
    assert!(!after.contains(&digest(&old)[7..].to_owned()));

    // Once more it is nothing, and an index goes with its manifests.
    assert!(collection::remove(&registry.client(), &unwanted.into()).await.unwrap().is_empty());
    let removed =
        collection::remove(&registry.client(), &[pair("registry.example.org/mine:1", &index)].into())
            .await
            .unwrap();
    assert_eq!(removed.len(), 1);
    registry.restart_writer();
    let left = registry.blobs();
    assert_eq!(left.len(), 6, "{left:?}");

    // What was removed is added again: the layers that were freed are uploaded again.
    registry.add(&registry.path("all.tar")).await;
    assert_eq!(registry.blobs(), before);
}
