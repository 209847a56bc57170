//! `cargo bench --bench fleet [-- --json FILE]`: hundreds of hosts that need nothing, gone through by the real
//! `metalform` in a process of its own.
//!
//! The hosts are simulated: one SSH server in this process stands for all of them. What a host answers is what
//! the shell of this machine answers to the same program, asked once; so the client speaks the same remote
//! program and reads the same answers as with real hosts, and no shells take the time that is measured.

#![expect(clippy::unwrap_used, reason = "an error ends the benchmark")]
#![expect(clippy::print_stdout, reason = "the table is what it is for")]

#[path = "fleet/bound.rs"]
mod bound;
#[path = "fleet/client.rs"]
mod client;
#[path = "fleet/hosts.rs"]
mod hosts;
#[path = "fleet/verdict.rs"]
mod verdict;

use self::client::{Fleet, Run};
use self::hosts::Hosts;

/// Hosts and resources of each measurement; the first is not counted.
const GRID: [(usize, usize); 7] =
    [(75, 100), (75, 100), (150, 100), (300, 100), (300, 50), (300, 200), (300, 400)];

/// Of which the median counts.
const REPETITIONS: usize = 3;

#[tokio::main]
async fn main() {
    let hosts = Hosts::listen().await;
    let mut runs: Vec<Run> = Vec::new();
    for (index, (count, resources)) in GRID.into_iter().enumerate() {
        let fleet = Fleet::new(count, resources, &hosts);
        fleet.settle();
        let mut again = Vec::new();
        for _ in 0..REPETITIONS {
            again.push(fleet.run().await);
        }
        again.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
        if index > 0 {
            runs.push(again.swap_remove(REPETITIONS / 2));
        }
    }
    let bounds = verdict::bounds(&runs);
    print!("{}", verdict::markdown(&runs, &bounds));
    let mut arguments = std::env::args().skip_while(|argument| argument != "--json");
    if let Some(path) = arguments.nth(1) {
        let document = serde_json::json!({ "runs": runs, "bounds": bounds });
        std::fs::write(path, format!("{document:#}\n")).unwrap();
    }
}
