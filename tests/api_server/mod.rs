//! A real kube-apiserver over a real etcd on a loopback address, with the flags and files of our static pod.
//!
//! Both end with the process that started them, whatever ends that: a shell waits for the end of its standard input,
//! then kills them by their process ids and removes their directory.

mod certificates;
mod flags;

use std::fs::{self, File};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use kube::Client;
use metalform::kube_api::client::connect;
use metalform::kube_api::{manifests, node_policy};
use metalform::operation::cluster_site::OBJECTS;
use metalform::render::values_of;
use metalform::state::{Library, Tree};
use serde_json::json;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use self::certificates::Certificates;
use crate::{component_binary, loopback};

/// How long both may take until they are ready, on a machine that does other work too.
const START: Duration = Duration::from_secs(90);
/// Between two looks at whether something holds.
const PAUSE: Duration = Duration::from_millis(50);
/// The version of the API server, as policies read it.
pub const KUBERNETES: &str = "1.36.1";
/// Those of Kubernetes in the bundles.
pub const BUNDLES: [&str; 2] = [KUBERNETES, "1.35.4"];
/// So many of the templates that `bootstrap` applies come first, and read nothing but these versions.
const OF_VERSIONS: usize = 5;
/// Runs both until its standard input ends. `wait` makes sure that nothing writes to the directory any more.
const GUARD: &str = r#"
cd "$1" || exit
sh ./etcd.sh >etcd.log 2>&1 </dev/null & etcd=$!
sh ./kube-apiserver.sh >kube-apiserver.log 2>&1 </dev/null & server=$!
read -r _
kill -9 "$server" "$etcd"
wait
rm -rf "$1"
"#;

/// An API server of its own. It ends when it is dropped, and at the latest with this process.
pub struct ApiServer {
    directory: PathBuf,
    address: IpAddr,
    certificates: Certificates,
    guard: Child,
}

impl ApiServer {
    /// One that is ready and has no objects but Kubernetes' own.
    ///
    /// # Errors
    /// When kube-apiserver or etcd is not on this machine.
    pub async fn start() -> Result<Self, String> {
        let (etcd, kube_apiserver) =
            (component_binary::find("etcd")?, component_binary::find("kube-apiserver")?);
        let address = address();
        let certificates = Certificates::generate();
        let directory = tempfile::Builder::new().prefix("metalform-api-").tempdir().unwrap();
        certificates.write(directory.path(), address);
        flags::write_files(directory.path());
        let script = |name: &str, program: &Path, flags: Vec<String>| {
            let words = [vec![program.display().to_string()], flags].concat();
            let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
            fs::write(directory.path().join(name), format!("exec {}\n", quoted.join(" "))).unwrap();
        };
        script("etcd.sh", &etcd, flags::of_etcd(directory.path(), address));
        script("kube-apiserver.sh", &kube_apiserver, flags::of_api_server(directory.path(), address));
        let guard = guard(directory);
        let server = Self { directory: guard.1, address, certificates, guard: guard.0 };
        server.wait_until_ready().await;
        Ok(server)
    }

    /// A kubeconfig of a user of this name, in this group.
    pub fn kubeconfig(&self, user: &str, group: Option<&str>) -> PathBuf {
        let path = self.directory.join(format!("{}.conf", user.replace([':', '/'], "-")));
        let text = self.certificates.kubeconfig(&flags::url(self.address), user, group);
        fs::write(&path, text).unwrap();
        path
    }

    /// A client of this user. It belongs to the runtime that it was made in.
    pub async fn client(&self, user: &str, group: Option<&str>) -> Client {
        connect(&self.kubeconfig(user, group)).await.unwrap()
    }

    /// As the administrator.
    pub async fn admin(&self) -> Client {
        self.client("kubernetes-admin", Some("system:masters")).await
    }

    /// Applies what `bootstrap` applies, and waits until definitions are served and policies enforced.
    pub async fn install(&self) -> Result<(), manifests::ManifestApplyError> {
        let client = self.admin().await;
        let bundles = BUNDLES.map(|version| json!({ "kubernetes": version }));
        let cluster = json!({ "versions": { "kubernetes": KUBERNETES }, "bundles": bundles });
        let values = values_of(&json!({ "cluster": cluster }));
        let library = Library::read(&Tree::embedded()).unwrap();
        for template in &OBJECTS[..OF_VERSIONS] {
            let text = library.template(template, &values).unwrap();
            manifests::apply(&client, &manifests::parse(&text)?).await?;
        }
        let node = "probe".parse().unwrap();
        let manifest = "{apiVersion: v1, kind: Node, metadata: {name: probe}}";
        manifests::apply(&client, &manifests::parse(manifest)?).await?;
        let began = Instant::now();
        while !node_policy::is_enforced(&client, &node).await.unwrap() {
            assert!(began.elapsed() < START, "the policy is not enforced");
            sleep(PAUSE).await;
        }
        Ok(())
    }

    /// etcd, with the API server's certificate.
    pub async fn etcd(&self) -> etcd_client::Client {
        self.certificates.etcd_client(&flags::etcd_url(self.address)).await
    }

    async fn wait_until_ready(&self) {
        let client = self.admin().await;
        let began = Instant::now();
        loop {
            let request = axum::http::Request::get("/readyz").body(Vec::new()).unwrap();
            match client.request_text(request).await {
                Ok(text) if text == "ok" => return,
                answer => assert!(began.elapsed() < START, "{answer:?}\n{}", self.logs()),
            }
            sleep(PAUSE).await;
        }
    }

    fn logs(&self) -> String {
        let tail = |name: &str| {
            let text = fs::read_to_string(self.directory.join(name)).unwrap_or_default();
            let lines: Vec<&str> = text.lines().rev().take(10).collect();
            format!("{name}:\n{}\n", lines.into_iter().rev().collect::<Vec<_>>().join("\n"))
        };
        [tail("etcd.log"), tail("kube-apiserver.log")].concat()
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

/// Another one at each call.
fn address() -> IpAddr {
    static STARTED: AtomicU8 = AtomicU8::new(200);
    loopback::own(STARTED.fetch_add(1, Ordering::Relaxed))
}

/// Its directory, which it removes.
fn guard(directory: TempDir) -> (Child, PathBuf) {
    let directory = directory.keep();
    let child = Command::new("sh")
        .args(["-c", GUARD, "guard"])
        .arg(&directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(File::create(directory.join("guard.log")).unwrap())
        .spawn();
    (child.unwrap(), directory)
}

fn template_text(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("templates").join(name)).unwrap()
}
