//! Images that another registry has.

use std::process::Command;

use metalform::registry::image_name::ImageName;
use metalform::registry::user_images::{self, AddedImages};

use crate::made_image::{Layout, digest};
use crate::real_registry::RealRegistry;

/// Its certificate authorities are those of the system, which the environment names: the test runs itself.
const FROM: &str = "METALFORM_TEST_FROM";
const TO: &str = "METALFORM_TEST_TO";

#[tokio::test(flavor = "multi_thread")]
async fn an_index_is_pulled_whole_from_another_registry() {
    let (Some(from), Some(to)) = (RealRegistry::start().await, RealRegistry::start().await) else { return };
    let mut layout = Layout::default();
    let index = layout.index(&["amd64", "arm64"], "remote");
    layout.name("registry.example.org/app:1", index.clone());
    from.add(&layout.write(&from.path("app.tar"))).await;
    let reference = format!("{}/registry.example.org/app:1", from.address);
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "remote::pull", "--ignored", "--nocapture"]);
    child.env("SSL_CERT_FILE", from.ca()).env(FROM, &reference).env(TO, to.socket());
    let output = child.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let listed = user_images::list(&to.client()).await.unwrap();
    assert_eq!(listed[0].0.to_string(), "registry.example.org/pulled:1");
    assert_eq!(format!("sha256:{}", listed[0].1), digest(&index));
    assert_eq!(to.blobs(), from.blobs());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "the part of a test that runs with another environment"]
async fn pull() {
    let (from, to) = (std::env::var(FROM).unwrap(), std::env::var(TO).unwrap());
    let images = AddedImages::remote(&from).await.unwrap();
    assert_eq!(images.names(), [None], "a name with a port is none that the registry can serve");
    let client = metalform::registry::client::RegistryClient::at(to.as_ref()).unwrap();
    let name: ImageName = "registry.example.org/pulled:1".parse().unwrap();
    images.add(&client, &[name]).await.unwrap();
}
