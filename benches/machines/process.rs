//! What is measured in a process of its own: this program, with `--process`. It prints its figures as JSON.

use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::StreamExt;
use metalform::cli::clock;
use metalform::controller::machine_caches::{self, MachineCaches};
use metalform::controller::wake::ObjectChange;
use metalform::kube_api::client::connect_without_retry;
use metalform::machine::host_job::HostWork;
use metalform::machine::life_observation::scene;
use metalform::machine::life_rules::LifeRules;
use metalform::machine::lifecycle::{self, MachineStep};
use metalform::machine::pool::Pool;
use serde::{Deserialize, Serialize};

use super::api_requests::ApiRequests;
use super::cluster::{SHORT, at_rest, run_controllers};
use super::hosts::SimulatedHosts;

/// Of controllers at rest.
pub const STEADY: &str = "steady";
/// Of a start, and of choices.
pub const POOL: &str = "pool";
/// How long controllers at rest are watched.
const WATCHED: Duration = Duration::from_secs(60);
/// Decisions that are measured together: the kernel counts processor time in steps of some milliseconds.
const TOGETHER: u32 = 20;
/// Measurements, of which the median and the longest count.
const MEASUREMENTS: usize = 21;

#[derive(Debug, Serialize, Deserialize)]
pub struct SteadyFigures {
    /// Resident memory at the end, MB.
    pub resident_mb: f64,
    /// The largest so far, MB.
    pub peak_mb: f64,
    /// Of one core, percent.
    pub processor: f64,
    pub writes: u64,
    pub requests: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PoolFigures {
    /// Until all caches are filled.
    pub start_seconds: f64,
    /// Resident memory then, MB.
    pub resident_mb: f64,
    /// From a change of a Host to the step of a Machine that waits, processor time: the median, ms.
    pub decision_ms: f64,
    /// The longest mean of some, ms.
    pub longest_ms: f64,
}

/// The figures of another process.
pub async fn measured<T: for<'a> Deserialize<'a>>(process: &str, kubeconfig: &Path) -> T {
    let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--process", process, "--kubeconfig"]).arg(kubeconfig).stdin(Stdio::null());
    let output = command.kill_on_drop(true).stderr(Stdio::inherit()).output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

pub async fn run(process: &str, kubeconfig: &str) {
    let json = match process {
        STEADY => serde_json::to_string(&steady(kubeconfig.as_ref()).await),
        _ => serde_json::to_string(&pool(kubeconfig.as_ref()).await),
    };
    println!("{}", json.unwrap());
}

async fn steady(kubeconfig: &Path) -> SteadyFigures {
    let client = connect_without_retry(kubeconfig).await.unwrap();
    let (counted, requests) = ApiRequests::counted(&client);
    let hosts =
        SimulatedHosts { kubelets: client, deployment: SHORT, other: SHORT, deployments: Mutex::default() };
    run_controllers(&counted, Arc::new(hosts), 50, async {
        at_rest(&requests).await;
        let before = (processor_seconds(), requests.writes(), sum(&requests));
        let began = Instant::now();
        tokio::time::sleep(WATCHED).await;
        SteadyFigures {
            resident_mb: memory("VmRSS:"),
            peak_mb: memory("VmHWM:"),
            processor: (processor_seconds() - before.0) / began.elapsed().as_secs_f64() * 100.0,
            writes: requests.writes() - before.1,
            requests: sum(&requests) - before.2,
        }
    })
    .await
}

fn sum(requests: &ApiRequests) -> u64 {
    requests.counts().values().sum()
}

async fn pool(kubeconfig: &Path) -> PoolFigures {
    let began = Instant::now();
    let client = connect_without_retry(kubeconfig).await.unwrap();
    let (caches, mut due) = machine_caches::watch(&client);
    due.next().await.unwrap();
    let start_seconds = began.elapsed().as_secs_f64();
    let resident_mb = memory("VmRSS:");
    let measure = |_| {
        let began = thread_milliseconds();
        (0..TOGETHER).for_each(|_| decide(&caches));
        (thread_milliseconds() - began) / f64::from(TOGETHER)
    };
    let mut times: Vec<f64> = (0..MEASUREMENTS).map(measure).collect();
    times.sort_by(f64::total_cmp);
    PoolFigures {
        start_seconds,
        resident_mb,
        decision_ms: times[MEASUREMENTS / 2],
        longest_ms: times[MEASUREMENTS - 1],
    }
}

/// What the controllers do between a change of a Host and the step of a Machine that waits.
fn decide(caches: &MachineCaches) {
    let host = caches.hosts.state()[0].as_ref().clone();
    let machine = caches.machines.state()[0].metadata.uid.clone().unwrap();
    let woken = caches.woken_by(&ObjectChange::Host(host));
    let rules = LifeRules::DEFAULT;
    let pool = Pool::new(caches.machines.state(), &caches.host_index(), caches.nodes.state(), &rules);
    let objects = pool.machine(&machine).unwrap();
    let scene = scene(&objects, HostWork::Idle, None, &rules).unwrap();
    let plan = lifecycle::next(&scene, clock::now());
    assert!(matches!(plan.step, Some(MachineStep::NoteHost(_))) && !woken.is_empty(), "{plan:?}");
}

/// Processor time of this thread: other work on the machine does not count.
fn thread_milliseconds() -> f64 {
    let schedule = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanoseconds: f64 = schedule.split_whitespace().next().unwrap().parse().unwrap();
    nanoseconds / 1e6
}

/// A field of `/proc/self/status`, MB.
fn memory(field: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    let kibibytes: f64 = line.trim().trim_end_matches("kB").trim().parse().unwrap();
    kibibytes * 1024.0 / 1e6
}

/// User and system time, from `/proc/self/stat`: in hundredths of a second on Linux.
pub fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: f64 = fields[11..13].iter().map(|field| field.parse::<f64>().unwrap()).sum();
    ticks / 100.0
}
