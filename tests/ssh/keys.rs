//! Agents, passphrases, certificates: with OpenSSH's own sshd, ssh-agent and ssh-keygen.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use metalform::model::ssh_target::SshTarget;
use metalform::transport::error::TransportError;
use metalform::transport::secret::{FixedPrompter, PromptError, Prompter, Secret};

use crate::openssh::{Sshd, keygen};
use crate::site::Site;
use crate::{printed, run};

/// An ssh-agent of this test's own.
struct Agent {
    process: Child,
    socket: PathBuf,
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It has no more to do; a failure to end it shows as a process left behind.
        let _killed = self.process.kill();
        let _reaped = self.process.wait();
    }
}

impl Agent {
    async fn start(site: &Site) -> Self {
        let socket = site.directory.path().join("agent.sock");
        let process =
            Command::new("ssh-agent").arg("-D").arg("-a").arg(&socket).stdout(Stdio::null()).spawn().unwrap();
        let agent = Self { process, socket };
        while tokio::net::UnixStream::connect(&agent.socket).await.is_err() {
            tokio::task::yield_now().await;
        }
        agent
    }

    fn add(&self, key: &Path) {
        let added = Command::new("ssh-add").arg("-q").arg(key).env("SSH_AUTH_SOCK", &self.socket).status();
        assert!(added.unwrap().success());
    }
}

fn at(site: &Site, name: &str) -> PathBuf {
    site.directory.path().join(name)
}

#[tokio::test]
async fn keys_of_the_agent_log_in() {
    let site = Site::new();
    let sorts = [&["-t", "ed25519"][..], &["-t", "ecdsa", "-b", "521"], &["-t", "rsa", "-b", "2048"]];
    let public: Vec<String> =
        sorts.iter().enumerate().map(|(n, sort)| keygen(&at(&site, &format!("id{n}")), sort)).collect();
    let sshd = Sshd::start(&site, &public).await;
    for number in 0..sorts.len() {
        let agent = Agent::start(&site).await;
        let key = at(&site, &format!("id{number}"));
        agent.add(&key);
        let client = || site.client().with_agent(Some(agent.socket.clone()));
        // Not named at all, and named by its public half.
        let unnamed = SshTarget { identity_files: Vec::new(), identities_only: false, ..sshd.target(&site) };
        let named = SshTarget { identity_files: vec![key.with_extension("pub")], ..sshd.target(&site) };
        for target in [unnamed.clone(), named] {
            assert_eq!(
                printed(run(&site.connect_with(client(), target), "echo in").await),
                "in\n",
                "{number}"
            );
        }
        let only = SshTarget { identities_only: true, ..unnamed };
        let error = run(&site.connect_with(client(), only), "true").await.unwrap_err();
        assert!(
            matches!(&error, TransportError::AuthenticationRefused { keys, .. } if keys == "none"),
            "{error}"
        );
        drop(agent);
        std::fs::remove_file(at(&site, "agent.sock")).unwrap();
    }
}

#[tokio::test]
async fn no_more_keys_of_the_agent_are_shown_than_a_host_bears() {
    let site = Site::new();
    let sshd = Sshd::start(&site, &[]).await;
    let agent = Agent::start(&site).await;
    for number in 0..9 {
        let key = at(&site, &format!("stranger{number}"));
        keygen(&key, &["-t", "ed25519"]);
        agent.add(&key);
    }
    let target = |files: Vec<PathBuf>| SshTarget {
        identity_files: files,
        identities_only: false,
        ..sshd.target(&site)
    };
    let client = || site.client().with_agent(Some(agent.socket.clone()));
    let error = run(&site.connect_with(client(), target(Vec::new())), "true").await.unwrap_err();
    let TransportError::AuthenticationRefused { keys, .. } = &error else { panic!("{error}") };
    assert!(keys.contains("in the agent") && keys.contains("Too many authentication failures"), "{error}");
    // The key that is named comes before them.
    let named = target(vec![site.identity.clone()]);
    assert_eq!(printed(run(&site.connect_with(client(), named), "echo in").await), "in\n");
}

#[tokio::test]
async fn an_agent_that_is_gone_leaves_the_files() {
    let site = Site::new();
    let sshd = Sshd::start(&site, &[]).await;
    let client = site.client().with_agent(Some(at(&site, "no.sock")));
    let target = SshTarget { identities_only: false, ..sshd.target(&site) };
    assert_eq!(printed(run(&site.connect_with(client, target), "echo in").await), "in\n");
}

/// Answers with a passphrase, and counts.
struct Person(&'static str, AtomicUsize);

#[async_trait]
impl Prompter for Person {
    async fn ask(&self, _: &str) -> Result<Secret, PromptError> {
        self.1.fetch_add(1, Ordering::SeqCst);
        Ok(Secret::new(self.0))
    }
}

#[tokio::test]
async fn a_passphrase_is_asked_for_once_and_only_when_the_host_would_take_the_key() {
    let site = Site::new();
    let (key, stranger, old) = (at(&site, "locked"), at(&site, "stranger"), at(&site, "old"));
    let locked = ["-t", "ed25519", "-N", "open sesame"];
    let mut public = vec![keygen(&key, &locked)];
    keygen(&stranger, &locked);
    // In the format of old, which hides the public key too.
    public.push(keygen(&old, &["-t", "rsa", "-b", "2048", "-m", "PEM", "-N", "open sesame"]));
    std::fs::remove_file(old.with_extension("pub")).unwrap();
    let sshd = Sshd::start(&site, &public).await;
    let target = |files: &[&PathBuf]| SshTarget {
        identity_files: files.iter().map(|path| (*path).clone()).collect(),
        ..sshd.target(&site)
    };
    let person = Arc::new(Person("open sesame", AtomicUsize::new(0)));
    let client = Arc::new(site.client().with_prompter(Arc::clone(&person) as Arc<dyn Prompter>));
    let connect =
        |files: &[&PathBuf]| metalform::transport::ssh::SshTransport::of(Arc::clone(&client), target(files));
    let many: Vec<_> = (0..4).map(|_| connect(&[&stranger, &key])).collect();
    for result in futures::future::join_all(many.iter().map(|host| run(host, "echo in"))).await {
        assert_eq!(printed(result), "in\n");
    }
    assert_eq!(person.1.load(Ordering::SeqCst), 1);
    assert_eq!(printed(run(&connect(&[&old]), "echo in").await), "in\n");
    assert_eq!(person.1.load(Ordering::SeqCst), 2);

    let nobody = run(&site.connect(target(&[&key])), "true").await.unwrap_err();
    assert!(nobody.is_permanent());
    assert_eq!(
        nobody.to_string(),
        format!("private key {} requires a passphrase: no terminal to prompt on", key.display())
    );
    let wrong = site.client().with_prompter(Arc::new(FixedPrompter(Secret::new("wrong"))));
    let error = run(&site.connect_with(wrong, target(&[&key])), "true").await.unwrap_err();
    assert!(error.to_string().contains("wrong passphrase"), "{error}");
    // An agent that has it needs no passphrase.
    let agent = Agent::start(&site).await;
    let plain = at(&site, "plain");
    std::fs::copy(&key, &plain).unwrap();
    let opened = Command::new("ssh-keygen")
        .args(["-q", "-p", "-P", "open sesame", "-N", "", "-f"])
        .arg(&plain)
        .stdout(Stdio::null())
        .status();
    assert!(opened.unwrap().success());
    agent.add(&plain);
    let client = site.client().with_agent(Some(agent.socket.clone()));
    assert_eq!(printed(run(&site.connect_with(client, target(&[&key])), "echo in").await), "in\n");
}

/// Signs a user certificate for `key`, valid for the site's user.
fn certify(site: &Site, key: &Path, authority: &Path, user: &str) {
    let public = key.with_extension("pub");
    let signed = Command::new("ssh-keygen")
        .args(["-q", "-I", "ops", "-n", user, "-V", "+1h", "-s"])
        .arg(authority)
        .arg(public)
        .status();
    assert!(signed.unwrap().success(), "{}", site.directory.path().display());
}

#[tokio::test]
async fn user_certificates_log_in_from_a_file_and_from_the_agent() {
    let site = Site::new();
    let authority = at(&site, "authority");
    let trusted = keygen(&authority, &["-t", "ed25519"]);
    let sshd = Sshd::start(&site, &[format!("cert-authority {trusted}")]).await;
    for (number, sort) in
        [&["-t", "ed25519"][..], &["-t", "rsa", "-b", "2048"], &["-t", "ecdsa"]].iter().enumerate()
    {
        let key = at(&site, &format!("id{number}"));
        keygen(&key, sort);
        let target = SshTarget { identity_files: vec![key.clone()], ..sshd.target(&site) };
        // The bare key is nobody's.
        let error = run(&site.connect(target.clone()), "true").await.unwrap_err();
        assert!(matches!(error, TransportError::AuthenticationRefused { .. }), "{error}");
        certify(&site, &key, &authority, &sshd.user);
        assert_eq!(printed(run(&site.connect(target.clone()), "echo in").await), "in\n", "{sort:?}");

        // ssh-add takes the certificate that lies beside the key.
        let agent = Agent::start(&site).await;
        agent.add(&key);
        let client = || site.client().with_agent(Some(agent.socket.clone()));
        let unnamed = SshTarget { identity_files: Vec::new(), identities_only: false, ..target.clone() };
        assert_eq!(printed(run(&site.connect_with(client(), unnamed), "echo in").await), "in\n", "{sort:?}");
        // The certificate in a file, the key in the agent alone.
        std::fs::remove_file(&key).unwrap();
        assert_eq!(printed(run(&site.connect_with(client(), target), "echo in").await), "in\n", "{sort:?}");
        drop(agent);
        std::fs::remove_file(at(&site, "agent.sock")).unwrap();
    }
}
