//! The HTTPS server of the bootstrap node and of the mirrors: the bundles (`/bundles/1.35.4/`) with their package repositories
//! (`/bundles/1.35.4/apt/`), `/v2/` from the registry and, for blobs that a bundle has, from the bundles, `/healthz`, and
//! what there is, for mirrors (`/mirror/contents`). What a mirror lacks, it asks the bootstrap node for.
//!
//! It accepts GET and HEAD only: no host can change what the next host receives.

use std::fs;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::{Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::Mutex;
use tower_http::services::ServeFile;

use super::cached_files::files;
use super::connection_limit::ConnectionLimit;
use super::connections::{IN_ALL, PER_PEER};
use super::image_blobs::{self, ImageBlobs};
use super::mirrored_contents;
use super::origin_contents::{self, OriginContents};
use super::origin_front;
use super::registry_front::Upstream;
use super::secure_listener::{ListenConfig, ListenError, SecureListener};
use crate::bundle::format::{self, RepositoryFormat};
use crate::bundle::served_bundle::ServedBundle;
use crate::mirror::contents;
use crate::mirror::directory::MirrorDirectory;
use crate::mirror::origin::{Origin, OriginError};
use crate::registry::client::RegistryClient;
use crate::registry::error::RegistryError;

/// Configuration of the server.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// Address and certificate.
    pub listen: ListenConfig,
    /// What is served.
    pub content: Content,
    /// The distribution registry on the loopback interface, which accepts no writes.
    pub registry: SocketAddr,
}

/// What a server serves besides the registry.
#[derive(Debug, Clone)]
pub enum Content {
    /// On the bootstrap node.
    Origin {
        /// The bundles, each served below [`ServedBundle::path`], and the blobs of their images.
        bundles: Vec<ServedBundle>,
        /// A directory whose files take precedence over those of the bundles: indexes signed on this node
        /// (`bundles/1.35.4/apt/dists/debian-13/InRelease`).
        overlay: PathBuf,
        /// The metalform binary, which mirrors run.
        program: PathBuf,
    },
    /// On a mirror.
    Mirror {
        /// What it has.
        directory: MirrorDirectory,
        /// URL of the bootstrap node's server, which has what it lacks.
        origin: String,
        /// The certificate authority that this one is verified with, PEM.
        authority: Vec<u8>,
    },
}

/// Why the server does not start.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The address or the certificate.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// No client of the registry.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// No client of the bootstrap node.
    #[error(transparent)]
    Origin(#[from] OriginError),
    /// The server's user cannot read the bundle.
    #[error("cannot read the bundle in {}", path.display())]
    Bundle {
        /// The bundle, or a directory in it.
        path: PathBuf,
        /// From the operating system.
        source: io::Error,
    },
}

/// A server that is listening.
pub struct HttpServer {
    listener: SecureListener,
    router: Router,
}

impl HttpServer {
    /// Reads the certificate and listens.
    ///
    /// # Errors
    /// When the certificate, the bundle or the address cannot be used.
    pub async fn bind(config: &HttpConfig) -> Result<Self, HttpError> {
        let mut origin = None;
        let (content, blobs) = match &config.content {
            Content::Origin { bundles, overlay, program } => {
                for bundle in bundles {
                    check_bundle(&bundle.directory)?;
                }
                let registry = RegistryClient::read_only(config.registry)?;
                let contents = OriginContents {
                    bundles: bundles.clone(),
                    overlay: overlay.clone(),
                    registry,
                    turn: Mutex::default(),
                };
                let program = ServeFile::new(program);
                let router = repositories(bundles, overlay)
                    .route(contents::PATH, get(origin_contents::respond).with_state(Arc::new(contents)))
                    .route_service("/metalform", program);
                (router, bundles.iter().map(|bundle| files(bundle.blobs())).collect())
            }
            Content::Mirror { directory, origin: url, authority } => {
                origin = Some(Arc::new(Origin::new(url, authority)?));
                (mirrored(directory), Vec::new())
            }
        };
        let mut router = content
            .route("/healthz", get(|| async { "ok\n" }))
            .merge(images(ImageBlobs::new(blobs), Upstream::new(config.registry)));
        if let Some(origin) = origin {
            router = router.layer(middleware::from_fn_with_state(origin, origin_front::fall_back));
        }
        let listener = SecureListener::bind(&config.listen).await?;
        Ok(Self { listener, router: router.layer(middleware::from_fn(read_only)) })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Serves until `shutdown` is ready, within the limits of [`super::connections`]; responses in progress are completed.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) {
        self.listener.serve(self.router, ConnectionLimit::new(PER_PEER, IN_ALL), shutdown).await;
    }
}

/// Every request would be answered with "not found" otherwise.
fn check_bundle(bundle: &Path) -> Result<(), HttpError> {
    let failed = |path: &Path, source| HttpError::Bundle { path: path.to_owned(), source };
    fs::read_dir(bundle).map_err(|source| failed(bundle, source))?;
    for directory in format::all().map(|format| bundle.join(format.directory())) {
        match fs::read_dir(&directory) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(failed(&directory, source));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The bundles, and in place of some of their files those of the overlay.
fn repositories(bundles: &[ServedBundle], overlay: &Path) -> Router {
    let packages = |router: Router, (bundle, format): (&ServedBundle, &dyn RepositoryFormat)| {
        let (directory, path) = (format.directory(), bundle.path());
        let bundled = files(bundle.directory.join(directory));
        let signed = files(overlay.join(&path).join(directory));
        router.nest_service(&format!("/{path}/{directory}"), signed.fallback(bundled))
    };
    let whole = |router: Router, bundle: &ServedBundle| {
        router.nest_service(&format!("/{}", bundle.path()), files(bundle.directory.clone()))
    };
    let each = bundles.iter().flat_map(|bundle| format::all().map(move |format| (bundle, format)));
    each.fold(bundles.iter().fold(Router::new(), whole), packages)
}

/// The same of a mirror, whatever bundles it has by now.
fn mirrored(directory: &MirrorDirectory) -> Router {
    let signed = files(directory.indexes().join("bundles"));
    Router::new()
        .nest_service("/bundles", signed.fallback(files(directory.bundles())))
        .route(contents::PATH, get(mirrored_contents::respond).with_state(directory.contents()))
}

fn images(blobs: ImageBlobs, registry: Upstream) -> Router {
    Router::new()
        .route("/v2/", get(image_blobs::respond))
        .route("/v2/{*path}", get(image_blobs::respond))
        .with_state((blobs, registry))
}

async fn read_only(request: Request, next: Next) -> Response {
    if [Method::GET, Method::HEAD].contains(request.method()) {
        return next.run(request).await;
    }
    (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "GET, HEAD")], "this server is read-only\n")
        .into_response()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use tokio::net::TcpListener;
    use tokio::sync::oneshot;
    use tokio_rustls::rustls;

    use super::*;
    use crate::bundle::digest::Sha256;
    use crate::pki::tls_provider::tls_provider;

    /// A server with a bundle in a directory, and a client that trusts it.
    struct Fixture {
        directory: tempfile::TempDir,
        base: String,
        client: reqwest::Client,
        stop: oneshot::Sender<()>,
        ended: tokio::task::JoinHandle<()>,
    }

    fn served(version: &str, directory: &Path) -> ServedBundle {
        format!("{version}={}", directory.display()).parse().unwrap()
    }

    /// A client that trusts one certificate.
    fn client(certificate: &rcgen::Certificate) -> reqwest::Client {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate.der().clone()).unwrap();
        let tls = rustls::ClientConfig::builder_with_provider(tls_provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        reqwest::Client::builder().tls_backend_preconfigured(tls).no_proxy().build().unwrap()
    }

    impl Fixture {
        async fn new(registry: SocketAddr) -> Self {
            let directory = tempfile::tempdir().unwrap();
            let at = |name: &str| directory.path().join(name);
            for (name, content) in [
                ("bundle/apt/dists/trixie/Release", "unsigned"),
                ("bundle/apt/dists/trixie/InRelease", "stale"),
                ("bundle/apt/pool/tool.deb", "0123456789"),
                ("bundle/rpm/pool/all/tool.rpm", "of all platforms"),
                ("bundle/rpm/rocky-9-amd64/repodata/repomd.xml", "unsigned"),
                ("overlay/bundles/1.35.4/rpm/rocky-9-amd64/repodata/repomd.xml.asc", "signature"),
                ("bundle/bundle.yaml", "manifest"),
                ("bundle/images/index.json", "images"),
                ("overlay/bundles/1.35.4/apt/dists/trixie/InRelease", "signed"),
                ("older/apt/pool/tool.deb", "older"),
                ("older/apt/dists/trixie/InRelease", "of another bundle"),
            ] {
                fs::create_dir_all(at(name).parent().unwrap()).unwrap();
                fs::write(at(name), content).unwrap();
            }
            let blob = at("older/images/blobs/sha256").join(Sha256::of(b"a layer").as_str());
            fs::create_dir_all(blob.parent().unwrap()).unwrap();
            fs::write(blob, "a layer").unwrap();
            let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
            fs::write(at("tls.crt"), made.cert.pem()).unwrap();
            fs::write(at("tls.key"), made.signing_key.serialize_pem()).unwrap();
            let listen = ListenConfig {
                listen: "127.0.0.1:0".parse().unwrap(),
                certificate: at("tls.crt"),
                key: at("tls.key"),
                clock: || Timestamp::UNIX_EPOCH,
            };
            let bundles = [("1.35.4", "bundle"), ("1.34.4", "older")]
                .map(|(version, name)| served(version, &at(name)))
                .into();
            fs::write(at("metalform"), "program").unwrap();
            let content = Content::Origin { bundles, overlay: at("overlay"), program: at("metalform") };
            let config = HttpConfig { listen, content, registry };
            let server = HttpServer::bind(&config).await.unwrap();
            let client = client(&made.cert);
            let base = format!("https://{}", server.address());
            let (stop, stopped) = oneshot::channel();
            let ended = tokio::spawn(server.run(async { stopped.await.unwrap() }));
            Self { directory, base, client, stop, ended }
        }

        async fn ask(&self, method: Method, path: &str) -> (u16, String) {
            let response = self.client.request(method, format!("{}{path}", self.base)).send().await.unwrap();
            (response.status().as_u16(), response.text().await.unwrap())
        }
    }

    /// Responds with the request line.
    async fn fake_registry() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let echo = |request: Request| async move { format!("{} {}", request.method(), request.uri()) };
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(echo)).await });
        address
    }

    #[tokio::test]
    async fn hosts_get_packages_and_images_and_can_change_nothing() {
        let fixture = Fixture::new(fake_registry().await).await;
        let blob = |digest: &Sha256| format!("/v2/a/blobs/sha256:{digest}?ns=registry.k8s.io");
        let (bundled, other) = (blob(&Sha256::of(b"a layer")), blob(&Sha256::of(b"another layer")));
        let forwarded =
            format!("GET {}", other.replace("/a/", "/registry.k8s.io/a/").replace("?ns=registry.k8s.io", ""));
        let cases = [
            (Method::GET, "/healthz", 200, "ok\n"),
            (Method::GET, "/bundles/1.35.4/apt/dists/trixie/InRelease", 200, "signed"),
            (Method::GET, "/bundles/1.35.4/apt/dists/trixie/Release", 200, "unsigned"),
            (Method::GET, "/bundles/1.35.4/rpm/rocky-9-amd64/repodata/repomd.xml", 200, "unsigned"),
            (Method::GET, "/bundles/1.35.4/rpm/rocky-9-amd64/repodata/repomd.xml.asc", 200, "signature"),
            (Method::GET, "/bundles/1.35.4/rpm/rocky-9-amd64/../pool/all/tool.rpm", 200, "of all platforms"),
            (Method::GET, "/bundles/1.34.4/apt/pool/tool.deb", 200, "older"),
            (Method::GET, "/bundles/1.34.4/apt/dists/trixie/InRelease", 200, "of another bundle"),
            (Method::GET, "/bundles/1.33.4/apt/pool/tool.deb", 404, ""),
            (Method::GET, "/apt/pool/tool.deb", 404, ""),
            (Method::GET, "/bundles/1.35.4/apt/pool/tool.deb", 200, "0123456789"),
            (Method::HEAD, "/bundles/1.35.4/apt/pool/tool.deb", 200, ""),
            (Method::GET, "/bundles/1.35.4/apt/dists/bookworm/InRelease", 404, ""),
            (Method::GET, "/bundles/1.35.4/bundle.yaml", 200, "manifest"),
            (Method::GET, "/bundles/1.35.4/images/index.json", 200, "images"),
            // A client resolves "..", but not with an encoded slash.
            (Method::GET, "/bundles/1.35.4/apt/..%2f..%2ftls.key", 404, ""),
            (Method::GET, "/bundles/1.35.4/..%2ftls.key", 404, ""),
            (Method::GET, "/bundles/1.34.4/bundle.yaml", 404, ""),
            (Method::GET, "/bundle.yaml", 404, ""),
            (Method::GET, "/metalform", 200, "program"),
            (Method::GET, "/v2/", 200, "GET /v2/"),
            (
                Method::GET,
                "/v2/pause/manifests/3?ns=registry.k8s.io",
                200,
                "GET /v2/registry.k8s.io/pause/manifests/3",
            ),
            (Method::HEAD, "/v2/a/blobs/sha256:0", 200, ""),
            (Method::GET, &bundled, 200, "a layer"),
            (Method::HEAD, &bundled, 200, ""),
            (Method::DELETE, &bundled, 405, "this server is read-only\n"),
            (Method::GET, &other, 200, &forwarded),
            (
                Method::GET,
                "/v2/a/blobs/b?ns=../..",
                400,
                "the ns parameter is not a host name of a registry\n",
            ),
            (Method::PUT, "/v2/a/manifests/b", 405, "this server is read-only\n"),
            (Method::POST, "/v2/a/blobs/uploads/", 405, "this server is read-only\n"),
            (Method::DELETE, "/bundles/1.35.4/apt/pool/tool.deb", 405, "this server is read-only\n"),
        ];
        for (method, path, status, body) in cases {
            let answer = fixture.ask(method.clone(), path).await;
            assert_eq!(answer, (status, body.to_owned()), "{method} {path}");
        }
        fixture.stop.send(()).unwrap();
        fixture.ended.await.unwrap();
        assert!(fixture.directory.path().join("bundle/apt/pool/tool.deb").exists());
    }

    #[tokio::test]
    async fn a_registry_that_is_down_is_a_bad_gateway_and_packages_are_still_served() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let closed = listener.local_addr().unwrap();
        drop(listener);
        let fixture = Fixture::new(closed).await;
        let (status, body) = fixture.ask(Method::GET, "/v2/").await;
        assert_eq!((status, body), (502, format!("cannot reach the registry on {closed}\n")));
        assert_eq!(fixture.ask(Method::GET, "/bundles/1.35.4/apt/pool/tool.deb").await.0, 200);
    }

    #[tokio::test]
    async fn a_renewed_certificate_is_served_and_open_connections_stay() {
        let fixture = Fixture::new(fake_registry().await).await;
        assert_eq!(fixture.ask(Method::GET, "/healthz").await.0, 200);
        let renewed = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        for (name, content) in
            [("tls.key", renewed.signing_key.serialize_pem()), ("tls.crt", renewed.cert.pem())]
        {
            let new = fixture.directory.path().join("new");
            fs::write(&new, content).unwrap();
            fs::rename(new, fixture.directory.path().join(name)).unwrap();
        }
        let fresh = client(&renewed.cert).get(format!("{}/healthz", fixture.base)).send().await.unwrap();
        assert_eq!(fresh.status().as_u16(), 200);
        // The first client trusts the former certificate only: it still has its connection.
        assert_eq!(fixture.ask(Method::GET, "/healthz").await.0, 200);
    }
}
