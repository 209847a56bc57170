//! Pushes through metalform's push server, with tokens that an API server reviews.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use axum::Router;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use metalform::bundle::digest::Sha256;
use metalform::cli::clock;
use metalform::kube_api::token_access::ReviewServer;
use metalform::registry::user_images;
use metalform::serve::push_server::{PushConfig, PushServer};
use metalform::serve::secure_listener::ListenConfig;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::made_image::{Layout, digest};
use crate::real_registry::{RealRegistry, program};

/// Largest blob.
const LIMIT: u64 = 1 << 20;

/// An API server with two users: one that may push, and one that may not.
async fn api() -> Uri {
    let review = |uri: Uri, headers: HeaderMap| async move {
        let token =
            headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
        let user = match token.as_str() {
            "Bearer allowed" => "system:serviceaccount:default:ci",
            "Bearer forbidden" => "system:serviceaccount:default:other",
            _ => return failed(),
        };
        let document = match uri.path() {
            "/apis/authentication.k8s.io/v1/selfsubjectreviews" => json!({
                "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {},
                "status": { "userInfo": { "username": user } },
            }),
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" => json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "metadata": {}, "spec": {},
                "status": { "allowed": token == "Bearer allowed" },
            }),
            other => panic!("{other}"),
        };
        (StatusCode::CREATED, axum::Json(document)).into_response()
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(review)).await });
    format!("http://{address}").parse().unwrap()
}

fn failed() -> Response {
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "message": "Unauthorized",
        "reason": "Unauthorized", "code": 401,
    });
    (StatusCode::UNAUTHORIZED, axum::Json(status)).into_response()
}

/// A push server before the registry.
async fn push_server(registry: &RealRegistry) -> SocketAddr {
    let (certificate, key) = registry.layout().push_server();
    let listen = ListenConfig { listen: "127.0.0.1:0".parse().unwrap(), certificate, key, clock: clock::now };
    let images = [("registry.k8s.io/pause:3.10".to_owned(), "1.35.4".to_owned())].into();
    let api = ReviewServer { url: api().await, ca: None };
    let config = PushConfig { listen, registry: registry.socket(), images, blob_limit: LIMIT, api };
    let server = PushServer::bind(config).await.unwrap();
    let address = server.address();
    tokio::spawn(server.run(std::future::pending()));
    address
}

fn https(registry: &RealRegistry) -> reqwest::Client {
    metalform::pki::tls_provider::install_tls_provider();
    let ca = reqwest::Certificate::from_pem(&fs::read(registry.ca()).unwrap()).unwrap();
    // A connection that the server closes after a refusal is not used for the next request.
    reqwest::Client::builder().tls_certs_only([ca]).no_proxy().pool_max_idle_per_host(0).build().unwrap()
}

/// An archive with an index, one with an image that is too large, and their digests.
fn archives(registry: &RealRegistry) -> (Value, Value) {
    let (mut small, mut large) = (Layout::default(), Layout::default());
    let index = small.index(&["amd64", "arm64"], "pushed");
    small.name("app:1", index.clone());
    small.write(&registry.path("small.tar"));
    let image = large.image("amd64", "large", 2 << 20);
    large.name("app:1", image.clone());
    large.write(&registry.path("large.tar"));
    (index, image)
}

/// What `skopeo copy` of an archive prints when it fails, with this password; empty when it succeeds.
fn skopeo_push(
    skopeo: &Path,
    registry: &RealRegistry,
    archive: &str,
    (to, password): (&str, Option<&str>),
    preserved: bool,
) -> String {
    // Without it skopeo compresses the layers; with it, its error of a refused index is about a conversion.
    let preserved: &[&str] = if preserved { &["--preserve-digests"] } else { &[] };
    let credentials = password.map(|password| format!("--dest-creds=anyone:{password}"));
    let credentials = credentials.unwrap_or_else(|| "--dest-no-creds".to_owned());
    let (from, to) = (format!("oci-archive:{archive}"), format!("docker://{to}"));
    let fixed = ["--insecure-policy", "copy", "--all", "--dest-cert-dir", "certs", &credentials];
    let output = registry.run(skopeo, &[&fixed[..], preserved, &[&from, &to]].concat());
    if output.status.success() { String::new() } else { String::from_utf8_lossy(&output.stderr).into_owned() }
}

#[tokio::test(flavor = "multi_thread")]
async fn skopeo_pushes_with_a_token_that_has_the_right_and_with_no_other() {
    let (Some(skopeo), Some(registry)) = (program("skopeo"), RealRegistry::start().await) else { return };
    let server = push_server(&registry).await;
    fs::create_dir(registry.path("certs")).unwrap();
    fs::copy(registry.ca(), registry.path("certs/ca.crt")).unwrap();
    let (index, _) = archives(&registry);
    let image = format!("{server}/registry.example.org/team/app:1");
    for (archive, to, password, expected) in [
        ("small.tar", image.clone(), None, "a token of the cluster is required"),
        ("small.tar", image.clone(), Some("expired"), "a token of the cluster is required"),
        ("small.tar", image.clone(), Some("forbidden"), "cannot put path"),
        (
            "small.tar",
            format!("{server}/registry.k8s.io/pause:3.10"),
            Some("allowed"),
            "is in the bundle of Kubernetes 1.35.4",
        ),
        ("small.tar", format!("{server}/team/app:1"), Some("allowed"), "begins with its registry here"),
        ("large.tar", image.clone(), Some("allowed"), "more than"),
    ] {
        let error = skopeo_push(&skopeo, &registry, archive, (&to, password), archive == "large.tar");
        assert!(!error.is_empty(), "{archive} {to} {password:?} was pushed");
        // Old versions of skopeo print the status in place of the message. The response to a body that is too large can be
        // lost with the connection, which is closed while the client sends.
        let words = ["unauthorized", "denied", "Forbidden", "413", "400", "broken pipe", "reset by peer"];
        let code = words.iter().any(|word| error.contains(word));
        assert!(error.contains(expected) || code, "{archive} {to} {password:?}: {error}");
    }
    assert_eq!(user_images::list(&registry.client()).await.unwrap(), []);

    assert_eq!(skopeo_push(&skopeo, &registry, "small.tar", (&image, Some("allowed")), true), "");
    let listed = user_images::list(&registry.client()).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].0.to_string(), "registry.example.org/team/app:1");
    assert_eq!(format!("sha256:{}", listed[0].1), digest(&index));
    // And it is pulled where every host pulls.
    let raw = registry.succeed(
        &skopeo,
        &[
            "inspect",
            "--raw",
            "--cert-dir",
            "certs",
            "--no-creds",
            &format!("docker://{}/registry.example.org/team/app:1", registry.address),
        ],
    );
    assert_eq!(format!("sha256:{}", Sha256::of(raw.as_bytes())), digest(&index));
}

#[tokio::test(flavor = "multi_thread")]
async fn crane_pushes_with_a_token_that_has_the_right_and_with_no_other() {
    let (Some(crane), Some(registry)) = (program("crane"), RealRegistry::start().await) else { return };
    let server = push_server(&registry).await;
    let mut layout = Layout::default();
    let image = layout.image("amd64", "crane", 100_000);
    layout.name("registry.example.org/app:1", image.clone());
    registry.add(&layout.write(&registry.path("app.tar"))).await;
    let from = format!("{}/registry.example.org/app:1", registry.address);
    let to = format!("{server}/registry.example.org/copy:1");
    for (password, succeeds) in [("forbidden", false), ("expired", false), ("allowed", true)] {
        let auth = base64::engine::general_purpose::STANDARD.encode(format!("token:{password}"));
        fs::create_dir_all(registry.path("docker")).unwrap();
        let config = json!({ "auths": { server.to_string(): { "auth": auth } } });
        fs::write(registry.path("docker/config.json"), config.to_string()).unwrap();
        let output = registry.run(&crane, &["copy", &from, &to]);
        assert_eq!(
            output.status.success(),
            succeeds,
            "{password}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    assert_eq!(registry.succeed(&crane, &["digest", &to]).trim(), digest(&image));
    let refused = registry.run(&crane, &["delete", &to]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("UNSUPPORTED"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blob_is_limited_in_all_its_parts() {
    let Some(registry) = RealRegistry::start().await else { return };
    let (server, client) = (push_server(&registry).await, https(&registry));
    let base = format!("https://{server}/v2/registry.example.org/app/");
    let of = |request: reqwest::RequestBuilder| request.bearer_auth("allowed");
    let begin = || async {
        let begun = of(client.post(format!("{base}blobs/uploads/"))).send().await.unwrap();
        assert_eq!(begun.status(), 202);
        let location = begun.headers()["location"].to_str().unwrap().to_owned();
        assert!(location.starts_with(&base), "{location}");
        location
    };
    let chunk = vec![0_u8; 600 << 10];
    // Two parts that are allowed alone, and too large together; announced and not.
    for announced in [true, false] {
        let mut location = begin().await;
        for (number, expected) in [(0, 202), (1, 413)] {
            let body = if announced {
                reqwest::Body::from(chunk.clone())
            } else {
                reqwest::Body::wrap_stream(futures::stream::iter([Ok::<_, std::io::Error>(chunk.clone())]))
            };
            let sent =
                of(client.patch(&location)).header("content-type", "application/octet-stream").body(body);
            // A server that refuses a body closes the connection, and the answer may be lost with it.
            match sent.send().await {
                Ok(sent) if expected == 202 => {
                    assert_eq!(sent.status(), 202, "{announced}");
                    location = sent.headers()["location"].to_str().unwrap().to_owned();
                }
                Ok(sent) => {
                    assert_eq!(sent.status(), expected, "{announced}");
                    assert_eq!(sent.json::<Value>().await.unwrap()["errors"][0]["code"], "SIZE_INVALID");
                }
                Err(error) => assert_eq!(expected, 413, "{announced} {number}: {error}"),
            }
        }
        let status = of(client.get(&location)).send().await.unwrap();
        let range = status
            .headers()
            .get("range")
            .and_then(|range| range.to_str().ok()?.split_once('-')?.1.parse::<u64>().ok());
        assert!(range.is_none_or(|last| last < LIMIT), "{status:?}");
    }
    // Of another digest than it has.
    let location = begin().await;
    let digest = format!("sha256:{}", Sha256::of(b"another"));
    let wrong = of(client.put(format!("{location}&digest={digest}"))).body("content").send().await.unwrap();
    assert_eq!(wrong.status(), 400);
    let manifest = of(client.put(format!("{base}manifests/1")))
        .header("content-type", "application/vnd.oci.image.manifest.v1+json");
    let manifest = manifest.body(vec![b' '; (4 << 20) + 1]).send().await;
    assert!(manifest.is_err() || manifest.is_ok_and(|answer| answer.status() == 413));
    let version = of(client.get(format!("https://{server}/v2/"))).send().await.unwrap();
    assert_eq!(version.status(), 200);
    let version = client.get(format!("https://{server}/v2/")).send().await.unwrap();
    assert_eq!(
        (version.status().as_u16(), &version.headers()["www-authenticate"]),
        (401, &"Basic realm=\"metalform\"".parse().unwrap())
    );
    assert_eq!(user_images::list(&registry.client()).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_leads_out_of_a_repository_is_refused() {
    let Some(registry) = RealRegistry::start().await else { return };
    let server = push_server(&registry).await;
    let mut roots = tokio_rustls::rustls::RootCertStore::empty();
    let ca = pem::parse(fs::read(registry.ca()).unwrap()).unwrap();
    roots.add(ca.into_contents().into()).unwrap();
    let tls = tokio_rustls::rustls::ClientConfig::builder_with_provider(
        metalform::pki::tls_provider::tls_provider(),
    )
    .with_safe_default_protocol_versions()
    .unwrap()
    .with_root_certificates(roots)
    .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(tls));
    // Clients of HTTP resolve `..` themselves: written as it is sent.
    for (path, expected) in [
        ("/v2/example.org/../registry.k8s.io/pause/manifests/3.10", "400"),
        ("/v2/example.org/a/../../../../../etc/passwd", "400"),
        ("/v2/example.org/%2e%2e/registry.k8s.io/pause/manifests/3.10", "400"),
        ("/v2/registry.k8s.io/pause/manifests/3.10", "403"),
        ("/v2/registry.k8s.io//pause/manifests/3.10", "400"),
        ("/../v2/registry.k8s.io/pause/manifests/3.10", "404"),
        ("/v2/_catalog", "405"),
    ] {
        let stream = tokio::net::TcpStream::connect(server).await.unwrap();
        let mut stream = connector.connect(server.ip().into(), stream).await.unwrap();
        let request = format!(
            "PUT {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer allowed\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let _end_without_close_notify = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected} ")), "{path}: {answer}");
    }
}
