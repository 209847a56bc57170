//! `cargo bench --bench machines [-- --only ROW] [--json FILE]`: the machine controllers against a real kube-apiserver and
//! etcd on this machine, over simulated hosts.
//!
//! The simulated hosts take the place of the SSH work alone ([`hosts`]); what is measured are the controllers, as
//! `metalform machine-controller` runs them. Where memory and processor time are measured, they have a process of their own.

#![expect(clippy::unwrap_used, clippy::panic, reason = "an error ends the benchmark")]
#![expect(clippy::print_stdout, reason = "the tables are what it is for")]

#[path = "machines/api_requests.rs"]
mod api_requests;
#[expect(dead_code, reason = "tests/admission.rs uses the rest")]
#[path = "../tests/api_server/mod.rs"]
mod api_server;
#[path = "fleet/bound.rs"]
mod bound;
#[path = "machines/cluster.rs"]
mod cluster;
#[path = "../tests/support/component_binary.rs"]
mod component_binary;
#[path = "machines/hosts.rs"]
mod hosts;
#[path = "../tests/support/loopback.rs"]
mod loopback;
#[path = "machines/pool.rs"]
mod pool;
#[path = "machines/process.rs"]
mod process;
#[path = "machines/rollout.rs"]
mod rollout;
#[path = "machines/scale_up.rs"]
mod scale_up;
#[path = "machines/state_changes.rs"]
mod state_changes;
#[path = "machines/steady_state.rs"]
mod steady_state;

use std::time::Instant;

use self::bound::{Bound, table};

/// What one row of the benchmark has found.
pub struct Findings {
    /// Markdown, for people.
    pub text: String,
    pub bounds: Vec<Bound>,
}

const ROWS: [&str; 4] = ["rollout", "scale-up", "steady-state", "pool"];

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let after = |flag: &str| arguments.iter().skip_while(|argument| *argument != flag).nth(1).cloned();
    if let Some(process) = after("--process") {
        return process::run(&process, &after("--kubeconfig").unwrap()).await;
    }
    let only = after("--only");
    let mut bounds = Vec::new();
    for row in ROWS.into_iter().filter(|row| only.as_deref().is_none_or(|only| only == *row)) {
        let began = Instant::now();
        let found = match row {
            "rollout" => rollout::measure().await,
            "scale-up" => scale_up::measure().await,
            "steady-state" => steady_state::measure().await,
            _ => pool::measure().await,
        };
        println!("## {row} ({:.0} s)\n\n{}", began.elapsed().as_secs_f64(), found.text);
        bounds.extend(found.bounds);
    }
    print!("## bounds\n\n{}", table(&bounds));
    if let Some(path) = after("--json") {
        std::fs::write(path, format!("{:#}\n", serde_json::json!({ "bounds": bounds }))).unwrap();
    }
}
