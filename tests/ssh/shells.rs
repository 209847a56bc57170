//! Login shells that are no POSIX shell, and start-up files that do what they should not: with a real sshd.

use std::path::Path;

use metalform::model::ssh_target::SshTarget;
use metalform::transport::Transport;
use metalform::transport::error::TransportError;

use crate::openssh::{Sshd, keygen};
use crate::program;
use crate::site::Site;

/// Lets `key` run everything by `shell`, as sshd does with a login shell: `SHELL -c COMMAND`.
fn by_shell(key: &str, shell: &str) -> String {
    format!("command=\"{shell} -c \\\"$SSH_ORIGINAL_COMMAND\\\"\" {key}")
}

async fn run(site: &Site, sshd: &Sshd, key: &str) -> Result<(String, String), TransportError> {
    let identity_files = vec![site.directory.path().join(key)];
    let transport = site.connect(SshTarget { identity_files, ..sshd.target(site) });
    let script = "echo \"it's \\\\ ! $((1 + 1)) $#\"; cat; echo 'err\\' >&2";
    let output = transport.run(&program(script, b"payload $x `y` \\ !"), &mut |_| ()).await?;
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ok((text(output.stdout), text(output.stderr)))
}

#[tokio::test]
async fn every_usual_login_shell_runs_programs() {
    let shells: Vec<&str> = ["bash", "dash", "zsh", "fish", "tcsh", "busybox sh"]
        .into_iter()
        .filter(|shell| {
            let name = shell.split(' ').next().unwrap();
            let there = ["/bin", "/usr/bin"].iter().any(|path| Path::new(path).join(name).exists());
            // Those that every machine has are no matter of choice.
            assert!(there || !["bash", "dash"].contains(shell), "{shell} is missing");
            there
        })
        .collect();
    let site = Site::new();
    let public: Vec<String> = shells
        .iter()
        .enumerate()
        .map(|(n, shell)| {
            by_shell(&keygen(&site.directory.path().join(format!("id{n}")), &["-t", "ed25519"]), shell)
        })
        .collect();
    let sshd = Sshd::start(&site, &public).await;
    for (number, shell) in shells.iter().enumerate() {
        let output = run(&site, &sshd, &format!("id{number}")).await.unwrap();
        let expected = "it's \\ ! 2 0\npayload $x `y` \\ !";
        assert_eq!((output.0.as_str(), output.1.as_str()), (expected, "err\\\n"), "{shell}");
    }
}

#[tokio::test]
async fn start_up_files_do_not_disturb_and_one_that_exits_is_named() {
    let site = Site::new();
    let files = [
        ("noisy", "echo welcome; echo oops >&2; printf 'no line break'", true),
        ("strict", "set -eu", true),
        ("tracing", "set -x", true),
        ("slow", "sleep 1", true),
        ("greedy", "read -t 1 line < /dev/null", true),
        ("exiting", "exit 0", false),
    ];
    let home = |name: &str| site.directory.path().join(format!("home.{name}"));
    let public: Vec<String> = files
        .iter()
        .map(|(name, text, _)| {
            std::fs::create_dir(home(name)).unwrap();
            std::fs::write(home(name).join(".bashrc"), format!(": > ~/read\n{text}\n")).unwrap();
            let key = keygen(&site.directory.path().join(name), &["-t", "ed25519"]);
            // Below sshd, bash reads it for a command too, but not in a shell of a shell.
            by_shell(&key, &format!("env -u SHLVL HOME={} bash", home(name).display()))
        })
        .collect();
    let sshd = Sshd::start(&site, &public).await;
    for (name, _, runs) in files {
        let result = run(&site, &sshd, name).await;
        assert!(home(name).join("read").exists(), "{name}: this bash reads no .bashrc");
        if runs {
            let expected = ("it's \\ ! 2 0\npayload $x `y` \\ !".to_owned(), "err\\\n".to_owned());
            assert_eq!(result.unwrap(), expected, "{name}");
            continue;
        }
        let error = result.unwrap_err();
        assert!(
            matches!(&error, TransportError::NoShell { reason, .. } if reason.contains("start-up file")),
            "{error}"
        );
    }
}
