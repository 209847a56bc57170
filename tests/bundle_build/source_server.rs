//! A source of artefacts on the loopback interface that can be slow, silent or wrong.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Barrier;
use tokio_rustls::TlsAcceptor;

/// Of a body that is written at a pace.
const CHUNK: usize = 16 << 10;

/// What happens to one request.
#[derive(Debug, Clone, Copy)]
pub enum Fault {
    /// The connection ends after so many bytes of the body.
    Cut(usize),
    /// Nothing comes after so many bytes of the body.
    Silent(usize),
    Status(u16),
    /// The range after the one that was requested.
    OtherRange,
}

#[derive(Debug, Clone)]
pub struct Artefact {
    pub content: Vec<u8>,
    /// A whole header, and the value that If-Range must have.
    pub validator: Option<(&'static str, &'static str)>,
    pub has_ranges: bool,
}

impl Artefact {
    pub fn new(content: impl Into<Vec<u8>>) -> Self {
        Self { content: content.into(), validator: Some(("ETag", "\"one\"")), has_ranges: true }
    }
}

/// The state of a server.
#[derive(Default)]
pub struct Shelf {
    pub artefacts: BTreeMap<String, Artefact>,
    pub faults: BTreeMap<String, VecDeque<Fault>>,
    /// Path, range and If-Range of each request.
    pub requests: Vec<String>,
    /// Between two chunks of a body.
    pub pace: Option<Duration>,
    /// So many requests are answered together.
    pub together: Option<Arc<Barrier>>,
    pub open: usize,
    /// Of requests at one time.
    pub most: usize,
}

#[derive(Clone)]
pub struct SourceServer {
    pub address: SocketAddr,
    pub shelf: Arc<Mutex<Shelf>>,
}

impl SourceServer {
    pub async fn start(tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self { address: listener.local_addr().unwrap(), shelf: Arc::default() };
        let shelf = server.shelf.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (shelf, tls) = (shelf.clone(), tls.clone());
                tokio::spawn(async move {
                    // A client that ends in the middle is part of the tests.
                    let _ = match tls {
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => serve(stream, &shelf).await,
                            Err(error) => Err(error),
                        },
                        None => serve(stream, &shelf).await,
                    };
                });
            }
        });
        server
    }

    pub fn put(&self, path: &str, artefact: Artefact) {
        self.shelf.lock().unwrap().artefacts.insert(path.to_owned(), artefact);
    }

    pub fn faults(&self, path: &str, faults: impl IntoIterator<Item = Fault>) {
        self.shelf.lock().unwrap().faults.insert(path.to_owned(), faults.into_iter().collect());
    }

    /// The requests since the last call.
    pub fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.shelf.lock().unwrap().requests)
    }
}

/// The answer to one request.
struct Answer {
    status: u16,
    headers: String,
    body: Vec<u8>,
    fault: Option<Fault>,
    pace: Option<Duration>,
    together: Option<Arc<Barrier>>,
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, shelf: &Mutex<Shelf>) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(stream.read_u8().await?);
    }
    let answer = shelf.lock().unwrap().answer(&String::from_utf8(request).unwrap());
    if let Some(together) = &answer.together {
        together.wait().await;
    }
    let head = format!(
        "HTTP/1.1 {} Answer\r\nConnection: close\r\nContent-Length: {}\r\n{}\r\n",
        answer.status,
        answer.body.len(),
        answer.headers
    );
    stream.write_all(head.as_bytes()).await?;
    let end = match answer.fault {
        Some(Fault::Cut(end) | Fault::Silent(end)) => end.min(answer.body.len()),
        _ => answer.body.len(),
    };
    for chunk in answer.body[..end].chunks(CHUNK) {
        stream.write_all(chunk).await?;
        if let Some(pace) = answer.pace {
            tokio::time::sleep(pace).await;
        }
    }
    stream.flush().await?;
    if matches!(answer.fault, Some(Fault::Silent(_))) {
        std::future::pending::<()>().await;
    }
    shelf.lock().unwrap().open -= 1;
    stream.shutdown().await
}

impl Shelf {
    fn answer(&mut self, request: &str) -> Answer {
        let header = |name: &str| {
            let lines = request.lines().filter_map(|line| line.split_once(": "));
            lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
        };
        let path = request.split(' ').nth(1).unwrap().to_owned();
        let (range, validator) = (header("range"), header("if-range"));
        let words = [Some(path.as_str()), range, validator].into_iter().flatten();
        self.requests.push(words.collect::<Vec<_>>().join(" "));
        self.open += 1;
        self.most = self.most.max(self.open);
        let fault = self.faults.get_mut(&path).and_then(VecDeque::pop_front);
        let mut answer = Answer {
            status: 404,
            headers: String::new(),
            body: Vec::new(),
            fault,
            pace: self.pace,
            together: self.together.clone(),
        };
        if let Some(Fault::Status(status)) = fault {
            answer.status = status;
            return answer;
        }
        let Some(artefact) = self.artefacts.get(&path) else { return answer };
        answer.status = 200;
        answer.body.clone_from(&artefact.content);
        let first = range.and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
        let is_unchanged = validator == artefact.validator.map(|(_, value)| value);
        if let Some(first) = first.filter(|_| artefact.has_ranges && is_unchanged) {
            let first: usize = if matches!(fault, Some(Fault::OtherRange)) { first + 1 } else { first };
            answer.status = if first < artefact.content.len() { 206 } else { 416 };
            answer.body.drain(..first.min(artefact.content.len()));
            let size = artefact.content.len();
            answer.headers = format!("Content-Range: bytes {first}-{}/{size}\r\n", size - 1);
        }
        if let Some((name, value)) = artefact.validator {
            answer.headers.push_str(&format!("{name}: {value}\r\n"));
        }
        answer
    }
}
