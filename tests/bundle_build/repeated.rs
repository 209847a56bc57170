//! Builds of the same inputs, and of the next version.

use std::fs;
use std::os::unix::fs::MetadataExt;

use metalform::bundle::manifest::Bundle;

use crate::command::run;
use crate::workshop::{Workshop, digests};

#[tokio::test]
async fn builds_of_the_same_inputs_are_equal() {
    let workshop = Workshop::new().await;
    let components = ["one", "two", "three"].map(|name| workshop.offer(name, "1.0.0"));
    for (names, quiet) in [(("cache-1", "out-1"), false), (("cache-2", "out-2"), true)] {
        let mut command = workshop.command("", names, &components.each_ref());
        command.args(quiet.then_some("--quiet"));
        let (code, lines) = run(command).await;
        assert_eq!((code, lines.is_empty()), (Some(0), quiet), "{lines}");
    }
    let first = digests(&workshop.at("out-1"));
    assert!(first.contains_key("bundle.yaml") && first.contains_key("apt/dists/debian-13/Release"));
    assert_eq!(first, digests(&workshop.at("out-2")));
    let release = fs::read_to_string(workshop.at("out-1/apt/dists/debian-13/Release")).unwrap();
    assert!(release.contains("\nDate: Tue, 24 Nov 2026 00:00:00 UTC\n"), "{release}");
}

#[tokio::test]
async fn the_date_is_a_number_of_seconds() {
    let workshop = Workshop::new().await;
    let tool = workshop.offer("tool", "1.0.0");
    for date in ["tomorrow", "9999999999999"] {
        let mut command = workshop.command("", ("cache", "out"), &[&tool]);
        command.env("SOURCE_DATE_EPOCH", date);
        let (code, lines) = run(command).await;
        assert_eq!(code, Some(1), "{lines}");
        assert!(lines.contains("--date <SECONDS>"), "{lines}");
    }
}

#[tokio::test]
async fn a_second_version_costs_only_what_differs() {
    let workshop = Workshop::new().await;
    let (old, new) = (workshop.offer("tool", "1.0.0"), workshop.offer("tool", "2.0.0"));
    let same = workshop.offer("same", "1.0.0");
    workshop.build_to("old", &[&same, &old]).await;
    workshop.server.requests();
    assert!(workshop.build_to("new", &[&same, &new]).await.contains("same: unchanged\n"));
    assert_eq!(workshop.server.requests(), ["/2.0.0/tool"]);
    let inodes = |bundle: &str| {
        let root = workshop.at(bundle);
        let files =
            digests(&root).into_keys().filter(|path| path.contains("/blobs/") || path.contains("/pool/"));
        files
            .map(|path| fs::metadata(root.join(path)).unwrap().ino())
            .collect::<std::collections::BTreeSet<_>>()
    };
    let (old, new) = (inodes("old"), inodes("new"));
    // Layer, configuration, manifest and package of the component that is the same.
    assert_eq!((old.len(), new.len(), old.intersection(&new).count()), (8, 8, 4));
}

#[tokio::test]
async fn what_describes_a_package_costs_no_source_again() {
    let workshop = Workshop::new().await;
    let tool = workshop.offer("tool", "1.0.0");
    workshop.build_to("old", &[&tool]).await;
    workshop.server.requests();
    let list = workshop.list(&[&tool]);
    let described = list
        .replace("description: A tool", "description: A better tool, depends: [runc]")
        .replace("    sources:", "    license: Apache-2.0\n    sources:");
    let lines = workshop.build_list("new", &described).await;
    assert!(lines.starts_with("tool: from cached binaries\ntool: done\n"), "{lines}");
    assert_eq!(workshop.server.requests(), [""; 0]);
    let images = |bundle: &str| Bundle::read(&workshop.at(bundle)).unwrap().images;
    assert_eq!(images("new"), images("old"));

    // As with an empty cache, and as before without the description.
    fs::rename(workshop.at("cache"), workshop.at("kept")).unwrap();
    workshop.build_list("again", &described).await;
    assert_eq!(workshop.server.requests(), [tool.path()]);
    assert_eq!(digests(&workshop.at("again")), digests(&workshop.at("new")));
    fs::remove_dir_all(workshop.at("cache")).unwrap();
    fs::rename(workshop.at("kept"), workshop.at("cache")).unwrap();
    assert!(workshop.build_to("before", &[&tool]).await.starts_with("tool: unchanged\n"));
    assert_eq!(digests(&workshop.at("before")), digests(&workshop.at("old")));
}

#[tokio::test]
async fn a_damaged_binary_in_the_cache_is_packaged_by_no_build() {
    let workshop = Workshop::new().await;
    let tool = workshop.offer("tool", "1.0.0");
    workshop.build_to("old", &[&tool]).await;
    workshop.server.requests();
    let cached = fs::read_dir(workshop.at("cache")).unwrap().map(|entry| entry.unwrap().path());
    let [binary] =
        &cached.map(|entry| entry.join("content/tool")).filter(|file| file.exists()).collect::<Vec<_>>()[..]
    else {
        panic!("one binary")
    };
    fs::write(binary, "damaged").unwrap();
    assert!(workshop.build_to("same", &[&tool]).await.starts_with("tool: unchanged\n"));
    let described = workshop.list(&[&tool]).replace("description: A tool", "description: A better tool");
    let lines = workshop.build_list("new", &described).await;
    assert!(lines.starts_with("tool: from official artefacts\ntool: done\n"), "{lines}");
    assert_eq!(workshop.server.requests(), [tool.path()]);
}
