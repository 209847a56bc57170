//! A server, a cache and a place for bundles.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use metalform::bundle::build::{self, BuildRequest};
use metalform::bundle::component_build::SourceMode;
use metalform::bundle::component_list;
use metalform::bundle::digest::Sha256;
use metalform::bundle::download::DownloadLimits;
use metalform::bundle::own_program::OwnProgram;
use metalform::bundle::verify;
use metalform::model::error_chain::error_chain;

use crate::dice::Dice;
use crate::files_below::files_below;
use crate::source_server::{Artefact, SourceServer};

/// Of an artefact, in bytes.
pub const SIZE: usize = 300 << 10;

pub struct Workshop {
    pub directory: tempfile::TempDir,
    pub server: SourceServer,
    pub limits: DownloadLimits,
}

/// A component that is one binary at one version, with a pinned digest.
pub struct Pinned<'a> {
    pub name: &'a str,
    pub version: &'a str,
    pub digest: Sha256,
}

impl Workshop {
    pub async fn new() -> Self {
        Self::with(SourceServer::start(None).await)
    }

    pub fn with(server: SourceServer) -> Self {
        let limits = DownloadLimits {
            side_by_side: NonZeroUsize::new(4).unwrap(),
            silence: Duration::from_secs(30),
            pause: Duration::ZERO,
        };
        Self { directory: tempfile::tempdir().unwrap(), server, limits }
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Serves a binary of this version, and returns its component.
    pub fn offer<'a>(&self, name: &'a str, version: &'a str) -> Pinned<'a> {
        let content = content(&format!("{name} {version}"));
        let digest = Sha256::of(&content);
        self.server.put(&format!("/{version}/{name}"), Artefact::new(content));
        Pinned { name, version, digest }
    }

    pub fn list(&self, components: &[&Pinned<'_>]) -> String {
        let components = components.iter().map(|component| component.text(&self.server.address.to_string()));
        format!(
            "apiVersion: metalform.dev/v1alpha1\nkind: ComponentList\narchitectures: [amd64]\n\
             operating_systems: [{{distribution: debian, release: '13', suite: trixie, packages: []}}]\ncomponents:\n{}",
            components.collect::<String>()
        )
    }

    /// The events of a build, one a line, and its error.
    pub async fn build(&self, components: &[&Pinned<'_>]) -> String {
        self.build_to("out", components).await
    }

    pub async fn build_to(&self, output: &str, components: &[&Pinned<'_>]) -> String {
        self.build_list(output, &self.list(components)).await
    }

    pub async fn build_list(&self, output: &str, list: &str) -> String {
        let request = BuildRequest {
            list: component_list::parse("list", list).unwrap(),
            output: self.at(output),
            cache: self.at("cache"),
            source: SourceMode::Release,
            program: OwnProgram::default(),
            package_key: None,
            archive: None,
            pinned: false,
            refresh: false,
            downloads: self.limits,
            now: jiff::Timestamp::from_second(1_800_000_000).unwrap(),
        };
        let events = Mutex::new(Vec::new());
        let outcome = build::build(&request, &|event| events.lock().unwrap().push(event.to_string())).await;
        let mut lines = events.into_inner().unwrap();
        lines.extend(outcome.err().map(|error| format!("error: {}", error_chain(&error))));
        self.anonymous(&lines.join("\n"))
    }

    /// Without what differs from run to run.
    pub fn anonymous(&self, text: &str) -> String {
        let text = text.replace(&self.directory.path().display().to_string(), "TMP");
        text.replace(&self.server.address.to_string(), "SERVER")
    }

    /// The problems of the bundle at `output`.
    pub fn verify(&self, output: &str, components: &[&Pinned<'_>]) -> Vec<String> {
        let list = component_list::parse("list", &self.list(components)).unwrap();
        verify::verify(&self.at(output), Some(&list), &BTreeMap::new(), None)
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    /// Names in the cache that begin with this.
    pub fn leftovers(&self, cache: &str, prefix: &str) -> Vec<String> {
        let entries = fs::read_dir(self.at(cache)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with(prefix)).collect()
    }
}

impl Pinned<'_> {
    fn text(&self, server: &str) -> String {
        let Self { name, version, digest } = self;
        format!(
            "  - name: {name}\n    version: {version}\n    sources:\n      release:\n        \
             - {{ url: \"http://{server}/{{version}}/{name}\", sha256: {{ amd64: {digest} }}, binary: {name} }}\n    \
             images:\n      - {{ reference: \"example.org/{name}:v{{version}}\", files: {{ /{name}: {name} }}, entrypoint: [/{name}] }}\n    \
             packages:\n      - {{ name: {name}, description: A tool, files: {{ /usr/bin/{name}: {name} }} }}\n"
        )
    }

    /// The path at the server.
    pub fn path(&self) -> String {
        format!("/{}/{}", self.version, self.name)
    }
}

/// Bytes that cannot be compressed.
pub fn content(seed: &str) -> Vec<u8> {
    let digest = Sha256::of(seed.as_bytes());
    let dice = Dice::new(u64::from_str_radix(&digest.as_str()[..16], 16).unwrap());
    (0..SIZE / 8).flat_map(|_| dice.roll(u64::MAX).to_le_bytes()).collect()
}

/// The digest of every file below a directory.
pub fn digests(root: &Path) -> BTreeMap<String, Sha256> {
    files_below(root).into_iter().map(|(name, path)| (name, Sha256::of_file(&path).unwrap().0)).collect()
}
