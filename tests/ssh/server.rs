//! An SSH server in this process, on loopback, that runs commands with the real `sh`.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use russh::keys::ssh_key::private::Ed25519Keypair;
use russh::keys::{PrivateKey, PublicKey};
use russh::server::{Auth, ChannelOpenHandle, Config, Handler, Msg, Session, VerifiedPublicKey, run_stream};
use russh::{Channel, ChannelId, ChannelMsg, ChannelReadHalf, ChannelWriteHalf, Error};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A host name that only these servers resolve: to this machine. It is reserved (RFC 6761), so no DNS server does.
pub const RESOLVED_BY_BASTION: &str = "behind-the-bastion.invalid";

/// What a server does otherwise than it should.
#[derive(Default)]
pub struct Behaviour {
    /// Shown before the login.
    pub banner: Option<String>,
    /// Shell text that runs before every command, as a `.bashrc` does.
    pub login_prints: String,
    pub refuses_keys: bool,
    pub refuses_commands: bool,
    pub sudo: Sudo,
}

#[derive(Default, Clone, Copy)]
pub enum Sudo {
    #[default]
    Missing,
    Works,
    AsksForPassword,
    NotInSudoers,
    /// Reads the password from its standard input, up to three times, as `sudo -S` does.
    AsksOnInput,
    /// As `requiretty` in sudoers has it.
    WantsTerminal,
    /// As `passwd_tries=1` in sudoers has it.
    GivesUp,
}

const ASKS_ON_INPUT: &str = r#"
test "$1" = -n && { echo 'sudo: a password is required' >&2; exit 1; }
test "$1 $2 $4" = '-S -p --' || exit 9
prompt=$3
shift 4
for try in 1 2 3; do
    printf %s "$prompt" >&2
    IFS= read -r answer || { echo 'sudo: no password was provided' >&2; exit 1; }
    echo "$answer" >> "${0%/*}/answers"
    test "$answer" = 'open sesame' && exec "$@"
    echo 'Sorry, try again.' >&2
done
echo 'sudo: 3 incorrect password attempts' >&2
exit 1
"#;

impl Sudo {
    fn script(self) -> Option<&'static str> {
        match self {
            Self::Missing => None,
            Self::Works => Some(
                "case $1 in -n) shift 2;; -S) shift 4;; *) exit 9;; esac\necho 'sudo: a warning' >&2\nexec \"$@\"",
            ),
            Self::AsksForPassword => Some("echo 'sudo: a password is required' >&2\nexit 1"),
            Self::AsksOnInput => Some(ASKS_ON_INPUT),
            Self::WantsTerminal => Some("echo 'sudo: sorry, you must have a tty to run sudo' >&2\nexit 1"),
            Self::GivesUp => Some(
                "printf %s \"$3\" >&2; read -r answer; echo >&2; echo 'sudo: 1 incorrect password attempt' >&2; exit 1",
            ),
            Self::NotInSudoers => Some("echo 'admin is not in the sudoers file.' >&2\nexit 1"),
        }
    }
}

pub struct Server {
    pub port: u16,
    key: PublicKey,
    shared: Arc<Shared>,
    cut: watch::Sender<usize>,
    freeze: watch::Sender<usize>,
    accepting: JoinHandle<()>,
}

struct Shared {
    behaviour: Behaviour,
    /// The only directory that commands find programs in.
    path: tempfile::TempDir,
    attempts: AtomicUsize,
    logins: AtomicUsize,
    commands: AtomicUsize,
    heard: Mutex<Vec<String>>,
}

impl Server {
    pub async fn start(behaviour: Behaviour) -> Self {
        Self::start_on(0, behaviour).await
    }

    /// Every server has a key of its own.
    pub async fn start_on(port: u16, behaviour: Behaviour) -> Self {
        static NUMBER: AtomicU8 = AtomicU8::new(100);
        let key = PrivateKey::from(Ed25519Keypair::from_seed(&[NUMBER.fetch_add(1, Ordering::SeqCst); 32]));
        let public = key.public_key().clone();
        let config = Arc::new(Config {
            keys: vec![key],
            auth_rejection_time: std::time::Duration::ZERO,
            ..Config::default()
        });
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            path: programs(behaviour.sudo),
            behaviour,
            attempts: AtomicUsize::default(),
            logins: AtomicUsize::default(),
            commands: AtomicUsize::default(),
            heard: Mutex::default(),
        });
        let (cut, watching) = watch::channel(0);
        let (freeze, freezing) = watch::channel(0);
        let for_connections = Arc::clone(&shared);
        let accepting = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let connection = Connection { shared: Arc::clone(&for_connections), waiting: Vec::new() };
                let (config, mut watching) = (Arc::clone(&config), watching.clone());
                let mut freezing = freezing.clone();
                watching.mark_unchanged();
                freezing.mark_unchanged();
                tokio::spawn(async move {
                    // Between the client and russh, so that a connection can be cut without a word.
                    let (mut outside, inside) = tokio::io::duplex(1 << 16);
                    let mut stream: TcpStream = stream;
                    let relay = copy_bidirectional(&mut stream, &mut outside);
                    let serve = async {
                        match run_stream(config, inside, connection).await {
                            Ok(session) => session.await,
                            Err(error) => Err(error),
                        }
                    };
                    tokio::select! {
                        _ = async { tokio::join!(relay, serve) } => (),
                        _ = watching.changed() => (),
                        _ = freezing.changed() => std::future::pending().await,
                    }
                });
            }
        });
        Self { port, key: public, shared, cut, freeze, accepting }
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn public_key(&self) -> String {
        self.key.to_openssh().unwrap()
    }

    /// Keys that were tried.
    pub fn attempts(&self) -> usize {
        self.shared.attempts.load(Ordering::SeqCst)
    }

    pub fn logins(&self) -> usize {
        self.shared.logins.load(Ordering::SeqCst)
    }

    /// What sudo was given, in order.
    pub fn sudo_answers(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.shared.path.path().join("answers")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The commands that were asked for.
    pub fn heard(&self) -> Vec<String> {
        self.shared.heard.lock().unwrap().clone()
    }

    pub fn commands(&self) -> usize {
        self.shared.commands.load(Ordering::SeqCst)
    }

    /// Ends every connection, as a reboot does; new ones are taken.
    pub fn cut_connections(&self) {
        self.cut.send_modify(|number| *number += 1);
    }

    /// Lets every connection hang, as a power cut without a word does; new ones are taken.
    pub fn freeze_connections(&self) {
        self.freeze.send_modify(|number| *number += 1);
    }

    /// Frees the port.
    pub async fn stop(self) {
        self.cut_connections();
        self.accepting.abort();
        let _aborted = self.accepting.await;
    }
}

fn programs(sudo: Sudo) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for program in ["sh", "head", "cat", "wc", "tr", "sleep"] {
        let real = ["/bin", "/usr/bin"]
            .map(|path| Path::new(path).join(program))
            .into_iter()
            .find(|path| path.exists());
        symlink(real.unwrap(), directory.path().join(program)).unwrap();
    }
    if let Some(script) = sudo.script() {
        let path = directory.path().join("sudo");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    directory
}

struct Connection {
    shared: Arc<Shared>,
    /// Channels on which no command came yet.
    waiting: Vec<Channel<Msg>>,
}

impl Handler for Connection {
    type Error = Error;

    async fn authentication_banner(&mut self) -> Result<Option<String>, Error> {
        Ok(self.shared.behaviour.banner.clone())
    }

    async fn auth_publickey(&mut self, _: &str, _: VerifiedPublicKey<'_>) -> Result<Auth, Error> {
        self.shared.attempts.fetch_add(1, Ordering::SeqCst);
        if self.shared.behaviour.refuses_keys {
            return Ok(Auth::reject());
        }
        self.shared.logins.fetch_add(1, Ordering::SeqCst);
        Ok(Auth::Accept)
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), Error> {
        self.waiting.push(channel);
        reply.accept().await;
        Ok(())
    }

    async fn channel_open_direct_tcpip(
        &mut self,
        channel: Channel<Msg>,
        host: &str,
        port: u32,
        _: &str,
        _: u32,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), Error> {
        let host = if host == RESOLVED_BY_BASTION { "127.0.0.1" } else { host };
        let Ok(mut stream) = TcpStream::connect((host, u16::try_from(port).unwrap())).await else {
            reply.reject(russh::ChannelOpenFailure::ConnectFailed).await;
            return Ok(());
        };
        reply.accept().await;
        tokio::spawn(async move { copy_bidirectional(&mut channel.into_stream(), &mut stream).await });
        Ok(())
    }

    async fn exec_request(
        &mut self,
        id: ChannelId,
        command: &[u8],
        session: &mut Session,
    ) -> Result<(), Error> {
        let at = self.waiting.iter().position(|channel| channel.id() == id).unwrap();
        let channel = self.waiting.remove(at);
        if self.shared.behaviour.refuses_commands {
            return session.channel_failure(id);
        }
        session.channel_success(id)?;
        self.shared.commands.fetch_add(1, Ordering::SeqCst);
        self.shared.heard.lock().unwrap().push(String::from_utf8_lossy(command).into_owned());
        let command = format!("{}{}", self.shared.behaviour.login_prints, String::from_utf8_lossy(command));
        let child = Command::new("/bin/sh")
            .args(["-c", &command])
            .env_clear()
            .env("PATH", self.shared.path.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (incoming, outgoing) = channel.split();
        tokio::spawn(serve(child, incoming, outgoing));
        Ok(())
    }
}

/// Between a command and its channel, as sshd does it.
async fn serve(
    mut child: tokio::process::Child,
    mut incoming: ChannelReadHalf,
    outgoing: ChannelWriteHalf<Msg>,
) {
    let mut stdin = child.stdin.take();
    let (mut stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let input = async {
        loop {
            match incoming.wait().await {
                Some(ChannelMsg::Data { data }) => {
                    let Some(pipe) = &mut stdin else { continue };
                    if pipe.write_all(&data).await.is_err() {
                        stdin = None;
                    }
                }
                Some(ChannelMsg::Eof) => stdin = None,
                Some(ChannelMsg::Close) | None => return,
                Some(_) => (),
            }
        }
    };
    let output = async {
        let forward = |ext: Option<u32>| {
            let outgoing = &outgoing;
            async move |data: &[u8]| match ext {
                None => outgoing.data_bytes(data.to_vec()).await,
                Some(ext) => outgoing.extended_data_bytes(ext, data.to_vec()).await,
            }
        };
        let (to_stdout, to_stderr) = (forward(None), forward(Some(1)));
        let out = async {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(length @ 1..) = stdout.read(&mut buffer).await {
                if to_stdout(&buffer[..length]).await.is_err() {
                    return;
                }
            }
        };
        let err = async {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(length @ 1..) = stderr.read(&mut buffer).await {
                if to_stderr(&buffer[..length]).await.is_err() {
                    return;
                }
            }
        };
        tokio::join!(out, err);
    };
    tokio::select! {
        () = input => return,
        () = output => (),
    }
    let Ok(status) = child.wait().await else { return };
    let code = u32::try_from(status.code().unwrap()).unwrap();
    if outgoing.exit_status(code).await.is_ok() && outgoing.eof().await.is_ok() {
        let _link_may_be_gone = outgoing.close().await;
    }
}
