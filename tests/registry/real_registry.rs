//! The two processes of the distribution registry, as the units run them, and metalform's own servers before them.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use metalform::bundle::digest::Sha256;
use metalform::cli::clock;
use metalform::registry::archive::ImageArchive;
use metalform::registry::client::RegistryClient;
use metalform::registry::image_name::ImageName;
use metalform::registry::user_images::AddedImages;
use metalform::serve::http::{Content, HttpConfig, HttpServer};
use metalform::serve::secure_listener::ListenConfig;
use metalform::workspace::layout::Layout;
use metalform::workspace::trust::{self, Subject};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::component_binary;

/// A registry of its own. Its processes end with it.
pub struct RealRegistry {
    pub directory: TempDir,
    binary: PathBuf,
    writer: Option<Child>,
    reader: Child,
    /// Of the reader.
    pub loopback: SocketAddr,
    /// Of metalform's read-only HTTPS server.
    pub address: SocketAddr,
    server: JoinHandle<()>,
}

/// A program, or none where it is missing and not required.
pub fn program(name: &str) -> Option<PathBuf> {
    component_binary::find(name).map_err(missing).ok()
}

fn missing(reason: String) {
    assert!(std::env::var_os("METALFORM_REQUIRE_REGISTRY").is_none(), "{reason}");
}

impl RealRegistry {
    /// Started; `None` where there is no binary, as before the first bundle of a machine.
    pub async fn start() -> Option<Self> {
        Self::with_bundles(&[]).await
    }

    /// The same, whose server has bundles of these versions too, each with one package and a signed index.
    pub async fn with_bundles(versions: &[&str]) -> Option<Self> {
        let binary = program("registry")?;
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("data")).unwrap();
        let loopback = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        for (name, delete, http) in [
            (
                "writer",
                "delete: { enabled: true }",
                format!("net: unix\n  addr: {}", at("writer.sock").display()),
            ),
            ("reader", "maintenance: { readonly: { enabled: true } }", format!("addr: {loopback}")),
        ] {
            let data = at("data").display().to_string();
            let config = format!(
                "version: 0.1\nlog: {{ level: warn }}\nstorage:\n  filesystem: {{ rootdirectory: {data} }}\n  {delete}\nhttp:\n  {http}\n"
            );
            fs::write(at(name), config).unwrap();
        }
        let layout = Layout::below(directory.path());
        let address = loopback.ip();
        let subject = Subject { name: "bootstrap".parse().unwrap(), address, indexes: Vec::new() };
        trust::create(&layout, &subject, clock::now(), &mut rand::rng()).unwrap();
        let reader = serve(&binary, &at("reader"));
        let (certificate, key) = layout.serve();
        let listen =
            ListenConfig { listen: "127.0.0.1:0".parse().unwrap(), certificate, key, clock: clock::now };
        let mut bundles = Vec::new();
        for version in versions {
            write_bundle(&at(version), version);
            let index = at(&format!("overlay/bundles/{version}/apt/dists/debian-13"));
            fs::create_dir_all(&index).unwrap();
            fs::write(index.join("InRelease"), format!("signed {version}")).unwrap();
            bundles.push(format!("{version}={}", at(version).display()).parse().unwrap());
        }
        let content = Content::Origin { bundles, overlay: at("overlay"), program: at("metalform") };
        let config = HttpConfig { listen, content, registry: loopback };
        let server = HttpServer::bind(&config).await.unwrap();
        let address = server.address();
        let server = tokio::spawn(server.run(std::future::pending()));
        let mut registry = Self { directory, binary, writer: None, reader, loopback, address, server };
        until(|| std::net::TcpStream::connect(loopback).is_ok());
        registry.start_writer();
        Some(registry)
    }

    fn start_writer(&mut self) {
        self.writer = Some(serve(&self.binary, &self.path("writer")));
        let socket = self.socket();
        until(|| std::os::unix::net::UnixStream::connect(&socket).is_ok());
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn socket(&self) -> PathBuf {
        self.path("writer.sock")
    }

    pub fn client(&self) -> RegistryClient {
        RegistryClient::at(&self.socket()).unwrap()
    }

    pub fn layout(&self) -> Layout {
        Layout::below(self.directory.path())
    }

    /// What clients trust.
    pub fn ca(&self) -> PathBuf {
        self.layout().pki().join("ca.crt")
    }

    /// What the unit of the writer does when it is restarted: garbage collection, when nothing can be written.
    pub fn restart_writer(&mut self) {
        end(&mut self.writer.take().unwrap());
        fs::remove_file(self.socket()).unwrap();
        let collected = Command::new(&self.binary)
            .args(["garbage-collect", "--quiet"])
            .arg(self.path("writer"))
            .output()
            .unwrap();
        assert!(collected.status.success(), "{collected:?}");
        self.start_writer();
    }

    /// The digests of all blobs on the disk.
    pub fn blobs(&self) -> Vec<String> {
        let found = crate::files_below::files_below(&self.path("data/docker/registry/v2/blobs"));
        found.keys().map(|path| path.split('/').nth(2).unwrap().to_owned()).collect()
    }

    /// Adds the images of an archive under their own names.
    pub async fn add(&self, archive: &Path) -> Vec<ImageName> {
        let images = AddedImages::Archive(Box::new(ImageArchive::open(archive.to_owned()).await.unwrap()));
        let names: Vec<ImageName> = images.names().into_iter().map(|name| name.unwrap().clone()).collect();
        images.add(&self.client(), &names).await.unwrap();
        names
    }

    /// Runs a client that trusts the CA. What it writes is below the registry's directory.
    pub fn run(&self, program: &Path, arguments: &[&str]) -> Output {
        Command::new(program)
            .args(arguments)
            .env("SSL_CERT_FILE", self.ca())
            .env("DOCKER_CONFIG", self.path("docker"))
            .env("HOME", self.directory.path())
            .current_dir(self.directory.path())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// metalform's server ends.
    pub async fn stop_server(&mut self) {
        self.server.abort();
        let _ = (&mut self.server).await;
    }

    /// The process that is read from ends.
    pub fn stop_reader(&mut self) {
        end(&mut self.reader);
    }

    /// The output of a client that succeeds.
    pub fn succeed(&self, program: &Path, arguments: &[&str]) -> String {
        let output = self.run(program, arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for RealRegistry {
    fn drop(&mut self) {
        end(&mut self.reader);
        if let Some(writer) = &mut self.writer {
            end(writer);
        }
    }
}

/// A bundle with one package.
fn write_bundle(directory: &Path, version: &str) {
    let package = format!("package of {version}");
    fs::create_dir_all(directory.join("apt")).unwrap();
    fs::write(directory.join("apt/tool.deb"), &package).unwrap();
    let digest = Sha256::of(package.as_bytes());
    let text = format!(
        "apiVersion: metalform.dev/v1alpha1\nkind: Bundle\ninputs: {digest}\narchitectures: []\nplatforms: []\n\
         versions: {{ kubernetes: {version} }}\nprovenance: {{}}\nimages: {{}}\npackages: []\n\
         files: {{ apt/tool.deb: {{ sha256: {digest}, size: {} }} }}\n",
        package.len()
    );
    fs::write(directory.join("bundle.yaml"), text).unwrap();
}

fn serve(binary: &Path, config: &Path) -> Child {
    let mut command = Command::new(binary);
    command.arg("serve").arg(config).env("OTEL_TRACES_EXPORTER", "none");
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn end(child: &mut Child) {
    // It has ended already in some tests.
    let _ = child.kill();
    let _ = child.wait();
}

fn until(mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < end, "the registry does not accept connections");
        std::thread::yield_now();
    }
}
