//! Runs a target on damaged input: seeds with pieces removed, repeated, inserted and mixed.
//!
//! Each target runs on its seeds, on the inputs of former failures in `tests/damage/TARGET/`, and on [`RUNS`] damaged
//! inputs; `DAMAGE_RUNS=1000000 cargo test --test damage` runs for longer, and `DAMAGE_SEED` (32 hexadecimal digits, in
//! the message of every failure) repeats a run. The input of a failure is shrunk and written to `tests/damage/TARGET/`.
//! An input that ends the process (by a stack overflow) is in the file at `DAMAGE_LAST`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use sha2::{Digest, Sha256};

/// Damaged inputs of each target by default.
const RUNS: u32 = 200;
/// The longest that one input may take, on a busy machine and without optimization.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longer inputs are truncated.
const LARGEST: usize = 32 << 10;

/// One change of an input. Offsets are relative to its length at that time.
#[derive(Debug, Clone)]
enum Damage {
    Lose(Index, usize),
    Put(Index, &'static str),
    Repeat(Index, usize, usize),
    Byte(Index, u8),
    Mix(Index, Index, Index, usize),
    End(Index),
}

fn damage(words: &'static [&'static str]) -> impl Strategy<Value = Damage> {
    let at = any::<Index>;
    prop_oneof![
        3 => (at(), 1..40_usize).prop_map(|(at, length)| Damage::Lose(at, length)),
        4 => (at(), prop::sample::select(words)).prop_map(|(at, word)| Damage::Put(at, word)),
        2 => (at(), 1..60_usize, 2..40_usize).prop_map(|(at, length, times)| Damage::Repeat(at, length, times)),
        2 => (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Byte(at, byte)),
        2 => (at(), at(), at(), 1..200_usize).prop_map(|(at, seed, from, length)| Damage::Mix(at, seed, from, length)),
        1 => at().prop_map(Damage::End),
    ]
}

fn damaged(seeds: &[Vec<u8>], first: Index, all: &[Damage]) -> Vec<u8> {
    let piece =
        |bytes: &[u8], from: usize, length: usize| bytes[from..(from + length).min(bytes.len())].to_vec();
    let mut bytes = first.get(seeds).clone();
    for one in all {
        let place = |at: &Index| at.index(bytes.len() + 1);
        match one {
            Damage::Lose(at, length) => {
                let from = place(at);
                bytes.drain(from..(from + length).min(bytes.len()));
            }
            Damage::Put(at, word) => {
                let at = place(at);
                bytes.splice(at..at, word.bytes());
            }
            Damage::Repeat(at, length, times) => {
                let at = place(at);
                let again = piece(&bytes, at, *length).repeat(*times);
                bytes.splice(at..at, again);
            }
            Damage::Byte(at, byte) => {
                let at = place(at);
                bytes.splice(at..(at + 1).min(bytes.len()), [*byte]);
            }
            Damage::Mix(at, seed, from, length) => {
                let at = place(at);
                let other = seed.get(seeds);
                let part = piece(other, from.index(other.len() + 1), *length);
                bytes.splice(at..at, part);
            }
            Damage::End(at) => bytes.truncate(place(at)),
        }
        bytes.truncate(LARGEST);
    }
    bytes
}

/// Runs a target, which panics where it finds a fault.
pub fn run(
    name: &str,
    seeds: &[Vec<u8>],
    words: &'static [&'static str],
    target: impl Fn(&[u8]) + std::panic::RefUnwindSafe,
) {
    assert!(!seeds.is_empty(), "{name} has no seeds");
    let kept = kept(name);
    for bytes in seeds.iter().cloned().chain(files(&kept)) {
        timed(&target, &bytes);
    }
    let text = std::env::var("DAMAGE_SEED").unwrap_or_else(|_| format!("{:032x}", rand::random::<u128>()));
    let runs = std::env::var("DAMAGE_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(RUNS);
    let config = Config { cases: runs, failure_persistence: None, ..Config::default() };
    let seed: [u8; 32] = Sha256::digest(format!("{name} {text}")).into();
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    let strategy = (any::<Index>(), prop::collection::vec(damage(words), 1..8))
        .prop_map(|(first, all)| damaged(seeds, first, &all));
    let outcome = runner.run(&strategy, |bytes| {
        std::panic::catch_unwind(|| timed(&target, &bytes)).map_err(|_| TestCaseError::fail("it panics"))
    });
    if let Err(proptest::test_runner::TestError::Fail(reason, bytes)) = outcome {
        let path = kept.join(hex::encode(&Sha256::digest(&bytes)[..6]));
        std::fs::create_dir_all(&kept).unwrap();
        std::fs::write(&path, &bytes).unwrap();
        panic!(
            "{name}, DAMAGE_SEED={text}: {reason}: {} ({:?})",
            path.display(),
            String::from_utf8_lossy(&bytes)
        );
    }
}

fn timed(target: &impl Fn(&[u8]), bytes: &[u8]) {
    if let Some(path) = std::env::var_os("DAMAGE_LAST") {
        std::fs::write(path, bytes).unwrap();
    }
    let began = Instant::now();
    target(bytes);
    let elapsed = began.elapsed();
    assert!(elapsed < PATIENCE, "it took {elapsed:?}");
}

fn kept(name: &str) -> PathBuf {
    top("tests/damage").join(name)
}

pub fn top(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Every file below a directory, which may not exist.
fn files(folder: &Path) -> Vec<Vec<u8>> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .map(|all| all.map(|entry| entry.unwrap().path()).collect())
        .unwrap_or_default();
    paths.sort();
    let mut texts = Vec::new();
    for path in paths {
        if path.is_dir() {
            texts.extend(files(&path));
        } else {
            texts.push(std::fs::read(path).unwrap());
        }
    }
    texts
}
