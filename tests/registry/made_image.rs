//! Images made for tests, as archives.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use metalform::bundle::digest::Sha256;
use serde_json::{Value, json};

const KIND: &str = "application/vnd.oci.image";

/// A blob, its digest and its descriptor.
pub fn descriptor(media_type: &str, content: &[u8]) -> Value {
    json!({
        "mediaType": format!("{KIND}.{media_type}"),
        "digest": format!("sha256:{}", Sha256::of(content)),
        "size": content.len(),
    })
}

pub fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

/// An OCI image layout.
#[derive(Default)]
pub struct Layout {
    pub blobs: BTreeMap<String, Vec<u8>>,
    manifests: Vec<Value>,
}

impl Layout {
    fn add(&mut self, media_type: &str, content: Vec<u8>) -> Value {
        let descriptor = descriptor(media_type, &content);
        self.blobs.insert(Sha256::of(&content).to_string(), content);
        descriptor
    }

    /// An image for one architecture, with one layer of about `size` bytes. Returns its descriptor.
    pub fn image(&mut self, architecture: &str, text: &str, size: usize) -> Value {
        let mut content = text.as_bytes().to_vec();
        content.resize(size.max(text.len()), b'.');
        let layer = tar(&[("content", &content)]);
        let diff_id = format!("sha256:{}", Sha256::of(&layer));
        let config = json!({
            "architecture": architecture, "os": "linux", "config": {},
            "rootfs": { "type": "layers", "diff_ids": [diff_id] },
        });
        let config = self.add("config.v1+json", config.to_string().into());
        let layer = self.add("layer.v1.tar", layer);
        let manifest = json!({
            "schemaVersion": 2, "mediaType": format!("{KIND}.manifest.v1+json"), "config": config, "layers": [layer],
        });
        let mut manifest = self.add("manifest.v1+json", manifest.to_string().into());
        manifest["platform"] = json!({ "architecture": architecture, "os": "linux" });
        manifest
    }

    /// An index of images for these architectures. Returns its descriptor.
    pub fn index(&mut self, architectures: &[&str], text: &str) -> Value {
        let manifests: Vec<Value> =
            architectures.iter().map(|architecture| self.image(architecture, text, 200_000)).collect();
        let index = json!({
            "schemaVersion": 2, "mediaType": format!("{KIND}.index.v1+json"), "manifests": manifests,
        });
        self.add("index.v1+json", index.to_string().into())
    }

    /// Gives an image a name in the archive.
    pub fn name(&mut self, name: &str, mut image: Value) {
        image["annotations"] = json!({ "io.containerd.image.name": name });
        self.manifests.push(image);
    }

    /// Writes the archive.
    pub fn write(&self, path: &Path) -> PathBuf {
        let index = json!({ "schemaVersion": 2, "manifests": self.manifests }).to_string();
        let version = json!({ "imageLayoutVersion": "1.0.0" }).to_string();
        let mut files: Vec<(String, &[u8])> =
            vec![("oci-layout".to_owned(), version.as_bytes()), ("index.json".to_owned(), index.as_bytes())];
        files.extend(
            self.blobs.iter().map(|(digest, blob)| (format!("blobs/sha256/{digest}"), blob.as_slice())),
        );
        let files: Vec<(&str, &[u8])> =
            files.iter().map(|(name, content)| (name.as_str(), *content)).collect();
        fs::write(path, tar(&files)).unwrap();
        path.to_owned()
    }
}

/// The digest in a descriptor, `sha256:...`.
pub fn digest(descriptor: &Value) -> String {
    descriptor["digest"].as_str().unwrap().to_owned()
}
