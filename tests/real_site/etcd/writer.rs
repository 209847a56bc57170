//! A client of etcd that writes without pause, and remembers what was confirmed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use etcd_client::{Client, GetOptions};
use metalform::etcd::client::EtcdAccess;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

/// How long one member may take. A write whose fate is unknown is repeated through the next member.
const PATIENCE: Duration = Duration::from_secs(1);
/// Between a confirmation and the next write.
const PAUSE: Duration = Duration::from_millis(10);
const PREFIX: &str = "writer/";

/// Each write has a key of its own, so that a lost one is missed.
pub struct Writer {
    access: EtcdAccess,
    confirmed: Arc<Mutex<Vec<Instant>>>,
    writing: JoinHandle<()>,
}

impl Writer {
    /// Writes through these members from now on.
    pub fn start(access: EtcdAccess) -> Self {
        let confirmed = Arc::new(Mutex::new(vec![Instant::now()]));
        let writing = tokio::spawn(write(access.clone(), confirmed.clone()));
        Self { access, confirmed, writing }
    }

    /// The longest time without a confirmation that began after `since`, up to now.
    pub fn gap(&self, since: Instant) -> Duration {
        let mut confirmed = self.confirmed.lock().unwrap().clone();
        confirmed.push(Instant::now());
        let gaps = confirmed.windows(2).filter(|pair| pair[1] > since).map(|pair| pair[1] - pair[0]);
        gaps.max().unwrap_or_default()
    }

    /// Ends; what was confirmed and is not there.
    pub async fn lost(self) -> Vec<usize> {
        self.writing.abort();
        let urls: Vec<&String> = self.access.endpoints.iter().collect();
        let mut client = self.access.connector.connect(&urls, PATIENCE).await.unwrap();
        let options = GetOptions::new().with_prefix().with_keys_only();
        let found = client.get(PREFIX, Some(options)).await.unwrap();
        let found: BTreeSet<String> = found.kvs().iter().map(|kv| kv.key_str().unwrap().to_owned()).collect();
        let count = self.confirmed.lock().unwrap().len();
        (1..count).filter(|number| !found.contains(&key(*number))).collect()
    }
}

fn key(number: usize) -> String {
    format!("{PREFIX}{number:08}")
}

async fn write(access: EtcdAccess, confirmed: Arc<Mutex<Vec<Instant>>>) {
    let mut client: Option<Client> = None;
    for (number, mut through) in (1..).zip(access.endpoints.iter().cycle()) {
        let mut others = access.endpoints.iter().cycle();
        loop {
            let put = async {
                let mut client = match client.take() {
                    Some(client) => client,
                    None => access.connector.connect(&[through], PATIENCE).await?,
                };
                client.put(key(number), number.to_string(), None).await.map(|_| client)
            };
            if let Ok(Ok(used)) = timeout(PATIENCE, put).await {
                client = Some(used);
                break;
            }
            through = others.find(|other| *other != through).unwrap_or(through);
            tokio::task::yield_now().await;
        }
        confirmed.lock().unwrap().push(Instant::now());
        tokio::time::sleep(PAUSE).await;
    }
}
