//! Hostile strings as the name and as every field of every kind, against real shells: each is refused with a field
//! error, or passed unchanged. Commands that would change the machine are replaced by commands that record their
//! arguments.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "all of it is test code; clippy knows only test functions"
)]

#[path = "hostile/bases.rs"]
mod bases;
#[path = "support/child.rs"]
mod child;
#[path = "hostile/play.rs"]
mod play;
#[path = "hostile/variants.rs"]
mod variants;

use std::collections::{BTreeMap, BTreeSet};

use metalform::engine::apply::{PackageManager, Work, program, segments};
use metalform::engine::nonce::Nonce;
use metalform::engine::observe;
use metalform::resource::contract::change::{Change, Verdict};
use metalform::resource::contract::context::Context;
use metalform::resource::contract::ensure::Ensure;
use metalform::resource::contract::kind::Kind;
use metalform::resource::contract::pending::Pending;
use metalform::resource::contract::probe::{Answer, Observed, PathState, Probe};
use proptest::prelude::*;

use bases::BASES;
use play::{Host, MARK};
use variants::{Variant, variants};

/// Names that break naive quoting.
const TEXTS: [&str; 16] = [
    "mark",
    "v1.mark-2",
    "a mark b",
    " mark ",
    "-mark",
    "--help=mark",
    "it's \"mark\"",
    "mark\ncanary\n",
    "$(canary)mark`canary`",
    "mark; canary & canary | canary #",
    "';canary;'mark\";canary;\"",
    "mark*?[a-z]{x,y}~!%s%n",
    "\\mark\\n\\0\\\\",
    "ünï\u{202e}mark💥",
    "\t\r\u{1b}[31mmark\u{7f}",
    "a=mark:b@c,d+e\\x20",
];

fn text() -> impl Strategy<Value = String> {
    let fragment = || {
        let pieces = vec![
            " ",
            "\n",
            "\t",
            "\r",
            "'",
            "\"",
            "\\",
            "`canary`",
            "$(canary)",
            "${x}",
            ";canary;",
            "&",
            "|",
            "*",
            "?",
            "~",
            "-",
            "--",
            "#",
            "!",
            "%s",
            "=",
            ":",
            ",",
            ".",
            "..",
            "<",
            ">",
            "(",
            ")",
            "{",
            "}",
            "ü",
            "\u{feff}",
            "\u{1}",
            "canary\n",
            "\u{85}",
            "@",
            "^",
            "EOF\n",
            "\\n",
            "'\\''",
            "a",
        ];
        prop::collection::vec(prop::sample::select(pieces), 0..5).prop_map(|pieces| pieces.concat())
    };
    (fragment(), fragment()).prop_map(|(before, after)| format!("{before}{MARK}{after}"))
}

#[test]
fn every_kind_is_covered() {
    let covered: BTreeSet<Kind> = BASES.iter().map(|base| base.kind).collect();
    let missing: Vec<&Kind> = Kind::ALL.iter().filter(|kind| !covered.contains(kind)).collect();
    assert!(missing.is_empty(), "tests/hostile/bases.rs needs a plain resource of {missing:?}");
}

/// Otherwise a refusal could have another reason than the string.
#[test]
fn the_bases_themselves_are_accepted() {
    let host = Host::new();
    for (number, base) in BASES.iter().enumerate() {
        let plain = base.resource(&host, number);
        plain.parse(Ensure::Present).unwrap_or_else(|error| panic!("{}: {error}", base.kind));
    }
}

#[test]
fn known_hostile_strings_are_passed_unchanged_or_refused() {
    let taken: usize = TEXTS.iter().enumerate().map(|(number, text)| go_through(text, number)).sum();
    assert!(taken > 100, "nearly all were refused: {taken}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, failure_persistence: None, max_shrink_iters: 32, ..ProptestConfig::default() })]

    #[test]
    fn any_string_is_passed_unchanged_or_refused(text in text(), number in 0..3_usize) {
        go_through(&text, number);
    }
}

/// Applies and removes every variant; returns how many were accepted. `number` selects the shell.
fn go_through(text: &str, number: usize) -> usize {
    let host = Host::new();
    let all = variants(&host, text);
    let mut taken = Vec::new();
    for variant in all {
        match variant.parse(Ensure::Present) {
            Ok(_) => taken.push(variant),
            Err(error) => {
                let said = error.to_string();
                assert!(!said.contains(|c: char| c.is_control()), "{}: {said:?}", variant.title());
            }
        }
    }
    let shell = play::SHELLS[number % play::SHELLS.len()];
    let shell = if play::there(shell) { shell } else { "sh" };
    for ensure in [Ensure::Present, Ensure::Absent] {
        pass(&host, shell, &taken, text, ensure);
    }
    taken.len()
}

fn pass(host: &Host, shell: &str, variants: &[Variant], text: &str, ensure: Ensure) {
    let resources: Vec<_> =
        variants.iter().filter_map(|variant| Some((variant, variant.parse(ensure).ok()?))).collect();
    let observed =
        observation(host, shell, resources.iter().flat_map(|(_, resource)| resource.probes()).collect());
    let (now, authorities) = ("2026-11-21T00:00:00Z".parse().unwrap(), BTreeMap::new());
    let own_boot_id = metalform::engine::states::own_boot_id();
    let mut pending = Pending::default();
    // A module may add kernel parameters.
    pending.record("kmod:x".parse().unwrap(), Ensure::Present, &Change::default());
    let (mut together, mut alone) = (Vec::new(), Vec::new());
    for (variant, resource) in &resources {
        let context = Context {
            now,
            authorities: &authorities,
            // This machine is never rebooted.
            own_boot_id: own_boot_id.as_deref(),
            pending: &pending,
        };
        if let Verdict::Change(change) = resource.diff(&observed, &context) {
            pending.record(variant.id(), ensure, &change);
            let work = Work { id: variant.title(), steps: change.steps };
            if variant.may_fail { alone.push(vec![work]) } else { together.push(work) }
        }
    }
    for (works, may_fail) in alone.into_iter().map(|works| (works, true)).chain([(together, false)]) {
        for segment in segments(&works) {
            let program = program(&segment, PackageManager::Apt, "", &Nonce::new(7));
            let output = host.run(shell, &program);
            let failed = output.failed().and_then(|number| segment.tasks.get(number)).map(|task| &task.ids);
            let said = format!("{shell} {ensure:?} {failed:?}\n{}", output.said());
            assert!(output.ended() || may_fail, "{said}");
            host.expect_harmless(text, &said);
        }
    }
    for (variant, _) in &resources {
        variant.expect_done(ensure, &format!("{shell}: {}", variant.title()));
    }
    if ensure == Ensure::Present {
        expect_seen(host, shell, variants);
    }
}

/// A written file is observed under its name.
fn expect_seen(host: &Host, shell: &str, variants: &[Variant]) {
    let written: Vec<(&Variant, Probe)> = variants
        .iter()
        .filter(|variant| variant.kind() == Kind::File)
        .map(|variant| (variant, variant.parse(Ensure::Present).unwrap().probes().remove(0)))
        .collect();
    let observed = observation(host, shell, written.iter().map(|(_, probe)| probe.clone()).collect());
    for (variant, probe) in written {
        let found = observed.get(&probe);
        assert!(
            matches!(found, Some(Answer::Path(PathState::File { .. }))),
            "{}: {found:?}",
            variant.title()
        );
    }
}

fn observation(host: &Host, shell: &str, probes: BTreeSet<Probe>) -> Observed {
    let nonce = Nonce::new(7);
    let output = host.run(shell, &observe::program(&probes, &nonce));
    host.expect_harmless(MARK, &output.said());
    let observed = observe::parse(&probes, &nonce, &output.0)
        .unwrap_or_else(|error| panic!("{shell}: {error}\n{}", output.said()));
    let unanswered: Vec<&Probe> = probes.iter().filter(|probe| observed.get(probe).is_none()).collect();
    assert!(unanswered.is_empty(), "{unanswered:?}");
    observed
}
