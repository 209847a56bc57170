//! An sshd of the test's own, on loopback, and a roster that reaches this machine through it.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::sandbox::Sandbox;

const SSHD: &str = "/usr/sbin/sshd";

pub struct Sshd(Child);

impl Drop for Sshd {
    fn drop(&mut self) {
        // It has no more to do; a failure to end it shows as a process left behind.
        let _killed = self.0.kill();
        let _reaped = self.0.wait();
    }
}

fn keygen(path: &Path) -> String {
    let arguments = ["-q", "-N", "", "-C", "", "-t", "ed25519", "-f"];
    let made = Command::new("ssh-keygen").args(arguments).arg(path).status();
    assert!(made.unwrap().success());
    std::fs::read_to_string(path.with_extension("pub")).unwrap().trim().to_owned()
}

impl Sshd {
    /// Writes `roster.yaml` with the host `node-1`.
    pub fn start(sandbox: &Sandbox) -> Self {
        assert!(
            Path::new(SSHD).exists(),
            "{SSHD} is missing: install openssh-server, which these tests need"
        );
        let host_key = keygen(&sandbox.path("host_key"));
        let key = keygen(&sandbox.path("id"));
        sandbox.write("authorized_keys", &(key + "\n"));
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        sandbox.write(
            "sshd_config",
            &format!(
                "ListenAddress 127.0.0.1:{port}\nHostKey $DIR/host_key\nAuthorizedKeysFile $DIR/authorized_keys\n\
                 PidFile none\nStrictModes no\nUsePAM no\nPermitRootLogin yes\nPasswordAuthentication no\n"
            ),
        );
        let user = String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout).unwrap();
        let user = user.trim();
        if user == "root" {
            // sshd does not start without it, and only the init system makes it.
            std::fs::create_dir_all("/run/sshd").unwrap();
        }
        sandbox.write(
            "roster.yaml",
            &format!(
                "hosts:\n  node-1:\n    address: 127.0.0.1\n    port: {port}\n    user: {user}\n    key: $DIR/id\n    \
                 host_key: {host_key}\n"
            ),
        );
        let log = std::fs::File::create(sandbox.path("sshd.log")).unwrap();
        let sshd = Command::new(SSHD)
            .args(["-D", "-e", "-f"])
            .arg(sandbox.path("sshd_config"))
            .stdin(Stdio::null())
            .stderr(Stdio::from(log))
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "sshd does not answer");
            std::thread::yield_now();
        }
        Self(sshd)
    }
}
