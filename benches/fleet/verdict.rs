//! What the figures say.

use std::fmt::Write as _;

use super::bound::{Bound, table};
use super::client::Run;

/// How much more than linear passes for linear: other work on the machine, and caches that overflow.
const TOLERANCE: f64 = 1.25;
/// MB.
const MEMORY: f64 = 200.0;

/// Pure.
pub fn bounds(runs: &[Run]) -> Vec<Bound> {
    let seconds = |hosts: usize, resources: usize| {
        runs.iter()
            .find(|run| (run.hosts, run.resources) == (hosts, resources))
            .map_or(f64::NAN, |run| run.seconds)
    };
    let by_hosts = seconds(300, 100) / seconds(75, 100);
    // What one resource more takes, between many and between few of them; it doubles where time grows with
    // the square.
    let more = |few: usize, many: usize| (seconds(300, many) - seconds(300, few)) / (many - few) as f64;
    let by_resources = more(200, 400) / more(50, 200);
    let peak = runs.iter().map(|run| run.peak_mb).fold(0.0, f64::max);
    vec![
        Bound {
            about: "time for four times the hosts (300 to 75, 100 resources)",
            limit: format!("{:.1} times", 4.0 * TOLERANCE),
            measured: format!("{by_hosts:.2} times"),
            met: by_hosts <= 4.0 * TOLERANCE,
        },
        Bound {
            about: "time for one resource more, of 200 to 400 over that of 50 to 200 (300 hosts)",
            limit: format!("{:.2} times", TOLERANCE * TOLERANCE),
            measured: format!("{by_resources:.2} times"),
            met: by_resources <= TOLERANCE * TOLERANCE,
        },
        Bound {
            about: "the client's peak memory with 300 hosts",
            limit: format!("{MEMORY:.0} MB"),
            measured: format!("{peak:.0} MB"),
            met: peak < MEMORY,
        },
    ]
}

/// Both tables.
pub fn markdown(runs: &[Run], bounds: &[Bound]) -> String {
    let mut text =
        "| hosts | resources | seconds | hosts/s | peak MB |\n| --- | --- | --- | --- | --- |\n".to_owned();
    for run in runs {
        let Run { hosts, resources, seconds, hosts_per_second, peak_mb } = run;
        writeln!(text, "| {hosts} | {resources} | {seconds:.2} | {hosts_per_second:.0} | {peak_mb:.0} |")
            .unwrap();
    }
    text.push('\n');
    text.push_str(&table(bounds));
    text
}
