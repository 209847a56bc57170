//! A `metalform serve` with a bundle of one package.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::pinned_tls::trusting;

/// Size of its package: more than the socket buffers of a connection.
pub const LARGE: usize = 16 << 20;
/// As a service that sets no limit has (systemd.exec(5), LimitNOFILE).
const OPEN_FILES: usize = 1024;

pub struct Server {
    child: Child,
    _directory: TempDir,
    address: SocketAddr,
    tls: ClientConfig,
}

impl Server {
    /// Started, and listening.
    pub async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir_all(at("bundle/apt/pool")).unwrap();
        fs::create_dir(at("indexes")).unwrap();
        File::create(at("bundle/apt/pool/large.deb")).unwrap().set_len(LARGE as u64).unwrap();
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        fs::write(at("tls.crt"), made.cert.pem()).unwrap();
        fs::write(at("tls.key"), made.signing_key.serialize_pem()).unwrap();

        let ready = UnixDatagram::bind(at("notify")).unwrap();
        ready.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let address = free_port();
        let child = Command::new("sh")
            .args(["-euc", &format!("ulimit -n {OPEN_FILES}; exec \"$0\" \"$@\"")])
            .arg(env!("CARGO_BIN_EXE_metalform"))
            .args(["serve", "--listen", &address.to_string()])
            .arg("--bundle")
            .arg(format!("1.35.4={}", at("bundle").display()))
            .arg("--indexes")
            .arg(at("indexes"))
            .arg("--certificate")
            .arg(at("tls.crt"))
            .arg("--key")
            .arg(at("tls.key"))
            .env("NOTIFY_SOCKET", at("notify"))
            .spawn()
            .unwrap();
        let mut message = [0; 16];
        let length = ready.recv(&mut message).expect("metalform serve is not ready");
        assert_eq!(&message[..length], b"READY=1");

        let tls = trusting(&made.cert);
        Self { child, _directory: directory, address, tls }
    }

    pub fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// A client with this address, and a new connection for each request.
    pub fn client(&self, from: &str) -> reqwest::Client {
        reqwest::Client::builder()
            .tls_backend_preconfigured(self.tls.clone())
            .local_address(Some(from.parse().unwrap()))
            .pool_max_idle_per_host(0)
            .no_proxy()
            .build()
            .unwrap()
    }

    /// How to connect from this address.
    pub fn dialer(&self, from: &str) -> Dialer {
        Dialer {
            from: SocketAddr::new(from.parse().unwrap(), 0),
            to: self.address,
            tls: TlsConnector::from(Arc::new(self.tls.clone())),
        }
    }

    pub async fn connect(&self, from: &str) -> std::io::Result<TlsStream<TcpStream>> {
        self.dialer(from).connect().await
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    }

    /// Waits for its end.
    pub fn ended(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    pub fn open_files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    /// The largest resident set so far, in bytes.
    pub fn peak_memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended already in some tests.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Connections from one address to a server.
#[derive(Clone)]
pub struct Dialer {
    from: SocketAddr,
    to: SocketAddr,
    tls: TlsConnector,
}

impl Dialer {
    /// With a completed handshake, and the smallest receive buffer: what the client does not read is not sent.
    pub async fn connect(&self) -> std::io::Result<TlsStream<TcpStream>> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(4096)?;
        socket.bind(self.from)?;
        let stream = socket.connect(self.to).await?;
        self.tls.connect(ServerName::IpAddress(self.to.ip().into()), stream).await
    }
}

fn free_port() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}
