//! The transport against OpenSSH's own sshd: a private one, on loopback, with a configuration of the test.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use metalform::model::ssh_target::{HostKeyPolicy, SshTarget};
use metalform::transport::Transport;
use metalform::transport::error::TransportError;
use metalform::transport::ssh::SshTransport;
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};

use crate::site::Site;
use crate::{printed, program, run};

const SSHD: &str = "/usr/sbin/sshd";

pub struct Sshd {
    process: Child,
    pub port: u16,
    pub user: String,
    log: PathBuf,
}

impl Drop for Sshd {
    fn drop(&mut self) {
        // It has no more to do; a failure to end it shows as a process left behind.
        let _killed = self.process.kill();
        let _reaped = self.process.wait();
    }
}

/// Makes a key pair; the public key's text is returned.
pub fn keygen(path: &Path, arguments: &[&str]) -> String {
    let passphrase: &[&str] = if arguments.contains(&"-N") { &[] } else { &["-N", ""] };
    let made = Command::new("ssh-keygen")
        .args(["-q", "-C", "", "-f"])
        .arg(path)
        .args(passphrase)
        .args(arguments)
        .status();
    assert!(made.unwrap().success());
    std::fs::read_to_string(path.with_extension("pub")).unwrap().trim().to_owned()
}

impl Sshd {
    /// Has an ed25519 and an ecdsa host key; lets the site's identity in, and the keys given. Start-up files of
    /// shells are the site's, not those of whoever runs the tests.
    pub async fn start(site: &Site, more_keys: &[String]) -> Self {
        assert!(
            Path::new(SSHD).exists(),
            "{SSHD} is missing: install openssh-server, which these tests need"
        );
        let at = |name: &str| site.directory.path().join(name);
        keygen(&at("host_ed25519"), &["-t", "ed25519"]);
        keygen(&at("host_ecdsa"), &["-t", "ecdsa"]);
        let ours =
            Command::new("ssh-keygen").arg("-y").arg("-f").arg(&site.identity).output().unwrap().stdout;
        let keys = [String::from_utf8(ours).unwrap(), more_keys.join("\n"), String::new()].join("\n");
        std::fs::write(at("authorized_keys"), keys).unwrap();
        Self::run(site, "").await
    }

    /// Another one with the same keys, and more configuration.
    pub async fn again(&self, site: &Site, more: &str) -> Self {
        Self::run(site, more).await
    }

    async fn run(site: &Site, more: &str) -> Self {
        let at = |name: &str| site.directory.path().join(name);
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let directory = site.directory.path().display();
        let configuration = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {directory}/host_ed25519\nHostKey {directory}/host_ecdsa\n\
             AuthorizedKeysFile {directory}/authorized_keys\nPidFile none\nStrictModes no\nUsePAM no\n\
             PermitRootLogin yes\nPasswordAuthentication no\nAllowTcpForwarding yes\n\
             SetEnv HOME={directory}\n{more}"
        );
        std::fs::write(at("sshd_config"), configuration).unwrap();
        let user = String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout)
            .unwrap()
            .trim()
            .to_owned();
        if user == "root" {
            // sshd does not start without it, and only the init system makes it.
            std::fs::create_dir_all("/run/sshd").unwrap();
        }
        let log = at(&format!("sshd.{port}.log"));
        let process = Command::new(SSHD)
            .args(["-D", "-e", "-f"])
            .arg(at("sshd_config"))
            .stderr(Stdio::from(std::fs::File::create(&log).unwrap()))
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            assert!(Instant::now() < deadline, "{}", std::fs::read_to_string(&log).unwrap());
            sleep(Duration::from_millis(20)).await;
        }
        Self { process, port, user, log }
    }

    /// How often somebody logged in.
    fn logins(&self) -> usize {
        std::fs::read_to_string(&self.log).unwrap().matches("Accepted publickey").count()
    }

    pub fn target(&self, site: &Site) -> SshTarget {
        SshTarget { user: self.user.clone(), ..site.target(self.port) }
    }
}

#[tokio::test]
async fn a_real_sshd_runs_programs_and_tells_how_they_ended() {
    let site = Site::new();
    let sshd = Sshd::start(&site, &[]).await;
    let transport = site.connect(sshd.target(&site));
    for (script, status, stdout) in [
        ("true", 0, ""),
        ("exit 42", 42, ""),
        ("kill -TERM $$", 143, ""),
        ("kill -KILL $$", 137, ""),
        ("cat", 0, "payload"),
    ] {
        let output = transport.run(&program(script, b"payload"), &mut |_| ()).await.unwrap();
        assert_eq!(
            (output.status, String::from_utf8_lossy(&output.stdout).as_ref()),
            (status, stdout),
            "{script}"
        );
    }
}

#[tokio::test]
async fn a_program_is_answered_on_its_own_channel() {
    let site = Site::new();
    let sshd = Sshd::start(&site, &[]).await;
    let transport = site.connect(sshd.target(&site));
    for (rest, said) in [("cat", "asked\nanswer"), ("head -c 3", "asked\nans"), ("exit 3", "asked\n")] {
        let (sender, replies) = tokio::sync::mpsc::unbounded_channel();
        let mut sender = Some(sender);
        let mut answer = |line: &str| {
            if let ("asked", Some(sender)) = (line, sender.take()) {
                sender.send(b"answer".to_vec()).unwrap();
            }
        };
        let program = program(&format!("echo asked; {rest}"), b"");
        let output = transport.converse(&program, replies, &mut answer).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), said, "{rest}");
    }
}

#[tokio::test]
async fn large_scripts_payloads_and_outputs_pass_a_real_sshd() {
    let site = Site::new();
    let sshd = Sshd::start(&site, &[]).await;
    let transport = site.connect(sshd.target(&site));
    let payload: Vec<u8> = (0..=255).cycle().take(20 << 20).collect();
    let script = format!(": '{}'; cat; sha256sum - </dev/null >/dev/null", "x\n".repeat(2_500_000));
    let output = transport.run(&program(&script, &payload), &mut |_| ()).await.unwrap();
    assert_eq!(Sha256::digest(&output.stdout), Sha256::digest(&payload));
}

#[tokio::test]
async fn more_programs_than_sshd_allows_sessions_wait_for_their_turn() {
    let site = Site::new();
    let sshd = Sshd::start(&site, &[]).await;
    let transport = site.connect(sshd.target(&site));
    let results =
        futures::future::join_all((0..24).map(|_| run(&transport, "cat /proc/uptime >/dev/null; echo ok")))
            .await;
    for result in results {
        assert_eq!(printed(result), "ok\n");
    }
}

#[tokio::test]
async fn every_usual_sort_of_key_logs_in() {
    let site = Site::new();
    let sorts = [["-t", "ed25519"], ["-t", "ecdsa"], ["-t", "rsa"]];
    let path = |sort: &[&str; 2]| site.directory.path().join(format!("id_{}", sort[1]));
    let public: Vec<String> = sorts.iter().map(|sort| keygen(&path(sort), sort)).collect();
    let refused = site.directory.path().join("id_refused");
    keygen(&refused, &["-t", "ed25519"]);
    let sshd = Sshd::start(&site, &public).await;
    for sort in &sorts {
        let target = SshTarget { identity_files: vec![path(sort)], ..sshd.target(&site) };
        assert_eq!(printed(run(&site.connect(target), "echo in").await), "in\n", "{sort:?}");
    }
    let missing = site.directory.path().join("id_missing");
    let target = SshTarget {
        identity_files: vec![missing.clone(), refused.clone(), path(&sorts[0])],
        ..sshd.target(&site)
    };
    assert_eq!(printed(run(&site.connect(target), "echo in").await), "in\n");
    // sshd hangs up after six refusals (MaxAuthTries).
    for offered in [vec![refused.clone()], vec![missing, refused.clone()], vec![refused.clone(); 9]] {
        let target = SshTarget { identity_files: offered, ..sshd.target(&site) };
        let error = run(&site.connect(target), "true").await.unwrap_err();
        assert!(matches!(error, TransportError::AuthenticationRefused { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_host_with_several_keys_shows_the_one_it_is_known_by() {
    let site = Site::new();
    let sshd = Sshd::start(&site, &[]).await;
    let known = std::fs::read_to_string(site.directory.path().join("host_ecdsa.pub")).unwrap();
    std::fs::create_dir_all(site.known_hosts.parent().unwrap()).unwrap();
    std::fs::write(&site.known_hosts, format!("[127.0.0.1]:{} {known}", sshd.port)).unwrap();
    let target = SshTarget { host_key: HostKeyPolicy::Known, ..sshd.target(&site) };
    assert_eq!(printed(run(&site.connect(target), "echo ok").await), "ok\n");
}

#[tokio::test]
async fn a_host_certificate_is_enough_where_its_authority_is_known() {
    let site = Site::new();
    let at = |name: &str| site.directory.path().join(name);
    let authority = keygen(&at("authority"), &["-t", "ed25519"]);
    let sshd = Sshd::start(&site, &[]).await;
    for (names, valid, accepted) in [
        ("127.0.0.1,other", "20200101:20400101", true),
        ("other", "20200101:20400101", false),
        ("127.0.0.1", "20200101:20200201", false),
    ] {
        let signed = Command::new("ssh-keygen")
            .args(["-q", "-h", "-I", "host", "-n", names, "-V", valid, "-s"])
            .args([at("authority"), at("host_ed25519.pub")])
            .status();
        assert!(signed.unwrap().success());
        std::fs::create_dir_all(site.known_hosts.parent().unwrap()).unwrap();
        std::fs::write(&site.known_hosts, format!("@cert-authority [127.0.0.*]:* {authority}\n")).unwrap();
        // A configuration is read at the start alone.
        let more = format!("HostCertificate {}\n", at("host_ed25519-cert.pub").display());
        let certified = sshd.again(&site, &more).await;
        let target = SshTarget { host_key: HostKeyPolicy::Known, ..certified.target(&site) };
        let client = site.client().with_clock(|| jiff::Timestamp::constant(1_800_000_000, 0));
        let result = run(&site.connect_with(client, target.clone()), "echo ok").await;
        if accepted {
            assert_eq!(printed(result), "ok\n");
            // Without a clock it is not asked for, and then the bare key is that of nobody.
            let error = run(&site.connect(target), "true").await.unwrap_err();
            assert!(matches!(error, TransportError::HostKeyUnknown { .. }), "{error}");
        } else {
            let error = result.unwrap_err();
            assert!(matches!(error, TransportError::HostKeyMismatch { .. }), "{error}");
        }
    }
}

#[tokio::test]
async fn ssh_itself_reads_what_was_remembered() {
    let site = Site::new();
    let sshd = Sshd::start(&site, &[]).await;
    run(&site.connect(sshd.target(&site)), "true").await.unwrap();
    let found = Command::new("ssh-keygen")
        .args(["-F", &format!("[127.0.0.1]:{}", sshd.port), "-f"])
        .arg(&site.known_hosts)
        .output()
        .unwrap();
    assert!(found.status.success());
    // Hashed by OpenSSH, it is still the same host to us.
    assert!(
        Command::new("ssh-keygen")
            .args(["-H", "-f"])
            .arg(&site.known_hosts)
            .output()
            .unwrap()
            .status
            .success()
    );
    assert!(site.remembered().starts_with("|1|"));
    let target = SshTarget { host_key: HostKeyPolicy::Known, ..sshd.target(&site) };
    run(&site.connect(target), "true").await.unwrap();
}

#[tokio::test]
async fn a_real_sshd_is_a_bastion_for_more_hosts_than_it_allows_sessions() {
    let site = Site::new();
    let bastion = Sshd::start(&site, &[]).await;
    // It drops those that come while more than ten are not logged in yet (MaxStartups).
    let host = bastion.again(&site, "MaxStartups 100\n").await;
    let client = Arc::new(site.client());
    let target = SshTarget { bastion: Some(Box::new(bastion.target(&site))), ..host.target(&site) };
    let transports: Vec<_> = (0..15).map(|_| SshTransport::of(Arc::clone(&client), target.clone())).collect();
    // All at the same time.
    let runs = transports.iter().map(|host| run(host, "echo through; exec sleep 1"));
    for result in futures::future::join_all(runs).await {
        assert_eq!(printed(result), "through\n");
    }
    assert_eq!((bastion.logins(), host.logins()), (1, 15));
}
