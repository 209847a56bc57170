//! An SSH server that stands for any number of hosts, and answers programs as this machine does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use russh::keys::PrivateKey;
use russh::keys::ssh_key::private::Ed25519Keypair;
use russh::server::{Auth, ChannelOpenHandle, Config, Handler, Msg, Session, VerifiedPublicKey, run_stream};
use russh::{Channel, ChannelId, ChannelMsg, Error};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

/// What every random word of a program begins with.
const WORD: &str = "metalform-";

/// What a program left: its output, errors and status.
type Answer = (Vec<u8>, Vec<u8>, u32);

/// Where the hosts are.
pub struct Hosts {
    /// On loopback.
    pub port: u16,
    /// Their key, as a roster pins it.
    pub key: String,
}

impl Hosts {
    /// Takes connections until the process ends.
    pub async fn listen() -> Self {
        let key = PrivateKey::from(Ed25519Keypair::from_seed(&[9; 32]));
        let public = key.public_key().to_openssh().unwrap();
        let config = Arc::new(Config { keys: vec![key], nodelay: true, ..Config::default() });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let answers = Arc::new(Mutex::new(BTreeMap::new()));
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                let host = Host { answers: Arc::clone(&answers), waiting: Vec::new() };
                let config = Arc::clone(&config);
                tokio::spawn(async move {
                    if let Ok(session) = run_stream(config, stream, host).await {
                        // A client that has what it wants goes without a word.
                        let _gone = session.await;
                    }
                });
            }
        });
        Self { port, key: public }
    }
}

struct Host {
    /// By command and input, as they are without their random words.
    answers: Arc<Mutex<BTreeMap<Vec<u8>, Answer>>>,
    waiting: Vec<Channel<Msg>>,
}

impl Handler for Host {
    type Error = Error;

    async fn auth_publickey(&mut self, _: &str, _: VerifiedPublicKey<'_>) -> Result<Auth, Error> {
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

    async fn exec_request(
        &mut self,
        id: ChannelId,
        command: &[u8],
        session: &mut Session,
    ) -> Result<(), Error> {
        let at = self.waiting.iter().position(|channel| channel.id() == id).unwrap();
        let (mut incoming, outgoing) = self.waiting.remove(at).split();
        session.channel_success(id)?;
        let (command, answers) = (command.to_vec(), Arc::clone(&self.answers));
        tokio::spawn(async move {
            let mut input = Vec::new();
            while let Some(message) = incoming.wait().await {
                match message {
                    ChannelMsg::Data { data } => input.extend_from_slice(&data),
                    ChannelMsg::Eof | ChannelMsg::Close => break,
                    _ => {}
                }
            }
            let (stdout, stderr, status) = answer(&answers, &command, &input).await;
            outgoing.extended_data_bytes(1, stderr).await?;
            outgoing.data_bytes(stdout).await?;
            outgoing.exit_status(status).await?;
            outgoing.eof().await?;
            outgoing.close().await
        });
        Ok(())
    }
}

/// Runs a program that was not seen before; the answer to one that was is told again.
async fn answer(answers: &Mutex<BTreeMap<Vec<u8>, Answer>>, command: &[u8], input: &[u8]) -> Answer {
    let words = words(&[command, input].concat());
    let plain =
        |bytes: &[u8]| words.iter().fold(bytes.to_vec(), |bytes, word| replace(&bytes, word, &zeros(word)));
    let (command, input) = (plain(command), plain(input));
    let known = answers.lock().unwrap().get(&[&command[..], &input].concat()).cloned();
    let answer = match known {
        Some(answer) => answer,
        None => {
            let answer = run(&command, &input).await;
            answers.lock().unwrap().insert([&command[..], &input].concat(), answer.clone());
            answer
        }
    };
    let own =
        |bytes: &[u8]| words.iter().fold(bytes.to_vec(), |bytes, word| replace(&bytes, &zeros(word), word));
    (within_base64(&answer.0, &own), own(&answer.1), answer.2)
}

async fn run(command: &[u8], input: &[u8]) -> Answer {
    let mut child = tokio::process::Command::new("sh")
        .args(["-c", std::str::from_utf8(command).unwrap()])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    (output.stdout, output.stderr, u32::try_from(output.status.code().unwrap()).unwrap())
}

/// The random words of a program: what follows [`WORD`] in 16 or 32 hexadecimal digits; longer ones first.
fn words(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut words: Vec<Vec<u8>> = Vec::new();
    for at in find_all(bytes, WORD.as_bytes()) {
        let digits = bytes[at + WORD.len()..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let word = bytes[at..at + WORD.len() + digits].to_vec();
        if matches!(digits, 16 | 32) && !words.contains(&word) {
            words.push(word);
        }
    }
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    words
}

/// Of the same length, so that lengths in a command stay right.
fn zeros(word: &[u8]) -> Vec<u8> {
    WORD.bytes().chain(std::iter::repeat_n(b'0', word.len() - WORD.len())).collect()
}

/// Answers travel in base64 between two lines with a random word.
fn within_base64(output: &[u8], own: &dyn Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let (begin, end) = (b" begin\n", b" end\n");
    let (Some(from), Some(to)) = (find_all(output, begin).next(), find_all(output, end).last()) else {
        return own(output);
    };
    let line = output[..to].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    let encoded: Vec<u8> =
        output[from + begin.len()..line].iter().copied().filter(|byte| *byte != b'\n').collect();
    let encoded = BASE64_STANDARD.encode(own(&BASE64_STANDARD.decode(encoded).unwrap()));
    // As base64(1) breaks lines.
    let lines: Vec<&[u8]> = encoded.as_bytes().chunks(76).collect();
    [&own(&output[..from + begin.len()]), &lines.join(&b'\n'), &b"\n"[..], &own(&output[line..])].concat()
}

fn replace(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut replaced = bytes.to_vec();
    for at in find_all(bytes, from) {
        replaced[at..at + from.len()].copy_from_slice(to);
    }
    replaced
}

fn find_all<'a>(bytes: &'a [u8], part: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let first = part[0];
    bytes
        .iter()
        .enumerate()
        .filter(move |(_, byte)| **byte == first)
        .map(|(at, _)| at)
        .filter(|at| bytes[*at..].starts_with(part))
}
