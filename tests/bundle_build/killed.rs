//! A build that is killed. `METALFORM_SEED` chooses the instants; 5 of them, or 20 with `METALFORM_LONG=1`.

use std::process::Stdio;
use std::time::{Duration, Instant};

use metalform::bundle::manifest::Bundle;
use tokio::process::Command;
use tokio::time::timeout;

use crate::command::run;
use crate::dice::Dice;
use crate::workshop::{Workshop, digests};

/// Between two chunks of an artefact, so that downloads take longer than all else.
const PACE: Duration = Duration::from_millis(40);

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

#[expect(clippy::print_stderr, reason = "the seed repeats a run")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_build_leaves_the_old_bundle_and_ends_as_an_undisturbed_one() {
    let seed = variable("METALFORM_SEED").unwrap_or_else(|| u64::from(rand::random::<u32>()));
    let count = if variable("METALFORM_LONG") == Some(1) { 20 } else { 5 };
    eprintln!("METALFORM_SEED={seed}");
    let dice = Dice::new(seed);

    let workshop = Workshop::new().await;
    let (old, new) = (workshop.offer("tool", "1.0.0"), workshop.offer("tool", "2.0.0"));
    let (one, two) = (workshop.offer("one", "2.0.0"), workshop.offer("two", "2.0.0"));
    let (before, after) = ([&old], [&new, &one, &two]);
    let (code, lines) = run(workshop.command("", ("cache", "out"), &before)).await;
    assert_eq!(code, Some(0), "{lines}");
    workshop.server.shelf.lock().unwrap().pace = Some(PACE);
    copy(&workshop, "cache", "cache-whole").await;
    let began = Instant::now();
    let (code, lines) = run(workshop.command("", ("cache-whole", "whole"), &after)).await;
    let took = began.elapsed();
    assert_eq!(code, Some(0), "{lines}");
    let whole = digests(&workshop.at("whole"));

    for number in 0..count {
        let (cache, output) = (format!("cache-{number}"), format!("out-{number}"));
        copy(&workshop, "cache", &cache).await;
        copy(&workshop, "out", &output).await;
        let instant = dice.within(took);
        let context = format!("METALFORM_SEED={seed}: killed after {instant:?} of {took:?}");
        let mut child =
            workshop.command("", (&cache, &output), &after).stderr(Stdio::null()).spawn().unwrap();
        if timeout(instant, child.wait()).await.is_err() {
            child.kill().await.unwrap();
        }
        let version = Bundle::read(&workshop.at(&output)).unwrap().versions["tool"].clone();
        let list: &[_] = if version == "1.0.0" { &before } else { &after };
        assert_eq!(workshop.verify(&output, list), [""; 0], "{context}");

        let (code, lines) = run(workshop.command("", (&cache, &output), &after)).await;
        assert_eq!(code, Some(0), "{context}: {lines}");
        assert_eq!(digests(&workshop.at(&output)), whole, "{context}");
        let cache = format!("{cache}/bundle");
        assert_eq!(workshop.leftovers(&cache, "."), [".lock"], "{context}");
        assert_eq!(workshop.leftovers("", &format!(".{output}.")), [""; 0], "{context}");
    }
}

async fn copy(workshop: &Workshop, from: &str, to: &str) {
    let copied = Command::new("cp").arg("-a").arg(workshop.at(from)).arg(workshop.at(to)).status().await;
    assert!(copied.unwrap().success());
}
