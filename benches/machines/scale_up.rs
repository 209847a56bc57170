//! From 0 to 500 Machines on 500 hosts, of which 50 are provisioned at the same time.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::Findings;
use super::api_requests::{ApiRequests, is_write};
use super::bound::Bound;
use super::cluster::{Cluster, run_controllers};
use super::process::processor_seconds;

const MACHINES: usize = 500;
const LIMIT: usize = 50;
const DEPLOYMENT: Duration = Duration::from_secs(10);
const OTHER: Duration = Duration::from_millis(500);
/// Of the time that the limit alone allows.
const TOLERANCE: f64 = 1.3;

pub async fn measure() -> Findings {
    let cluster = Cluster::start().await;
    cluster.add_hosts(0, MACHINES).await;
    cluster.add_deployment("nodes", 0, 1).await;
    let (client, requests) = ApiRequests::counted(&cluster.controller().await);
    let hosts = cluster.hosts(&cluster.admin, DEPLOYMENT, OTHER);
    let scaled = async {
        cluster.complete().await;
        let (began, busy) = (Instant::now(), processor_seconds());
        let replicas = json!({ "spec": { "replicas": MACHINES } });
        let patch = Patch::Merge(&replicas);
        cluster.deployments().patch_scale("nodes", &PatchParams::default(), &patch).await.unwrap();
        cluster.complete().await;
        (began, began.elapsed().as_secs_f64(), processor_seconds() - busy)
    };
    let (began, took, busy) = run_controllers(&client, hosts.clone(), LIMIT, scaled).await;
    let ideal = (MACHINES / LIMIT) as f64 * DEPLOYMENT.as_secs_f64();
    let mut text = "| request | accepted | refused |\n| --- | --- | --- |\n".to_owned();
    let counts = requests.counts();
    let titles: std::collections::BTreeSet<&String> = counts.keys().map(|(title, _)| title).collect();
    for title in titles {
        let count = |accepted| counts.get(&(title.clone(), accepted)).copied().unwrap_or(0);
        writeln!(text, "| {title} | {} | {} |", count(true), count(false)).unwrap();
    }
    let writes: u64 = counts.iter().filter(|((title, _), _)| is_write(title)).map(|(_, count)| count).sum();
    let deployments = hosts.deployments.lock().unwrap().clone();
    let first = deployments.iter().map(|(from, _)| *from).min().unwrap() - began;
    let last = deployments.iter().map(|(_, to)| *to).max().unwrap() - began;
    let longest = deployments.iter().map(|(from, to)| *to - *from).max().unwrap();
    writeln!(
        text,
        "\n{:.1} writes a Machine. The first deployment began after {:.1} s, the last one ended after {:.1} s; the longest took \
         {:.1} s. The controllers and the simulated hosts used {busy:.1} s of processor time.",
        writes as f64 / MACHINES as f64,
        first.as_secs_f64(),
        last.as_secs_f64(),
        longest.as_secs_f64(),
    )
    .unwrap();
    let bound = Bound {
        about: "scale-up of 0 to 500 Machines, 50 at the same time, 10 s each: time to that of the limit alone",
        limit: format!("{TOLERANCE:.2} times {ideal:.0} s"),
        measured: format!("{:.2} times ({took:.0} s)", took / ideal),
        met: took / ideal <= TOLERANCE,
    };
    Findings { text, bounds: vec![bound] }
}
