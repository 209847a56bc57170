//! What each kind of resource decides: `kinds/<kind>/<case>.yaml` says what should be, what the host
//! answered and what earlier resources will change, and expects a verdict.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "all of it is test code; clippy knows only test functions"
)]

#[path = "kinds/answer.rs"]
mod answer;
#[expect(dead_code, reason = "tests/real_site.rs uses the rest")]
#[path = "kinds/case.rs"]
mod case;
#[expect(dead_code, reason = "tests/real_site.rs uses the rest")]
#[path = "kinds/certificates.rs"]
mod certificates;
#[path = "kinds/fields.rs"]
mod fields;
#[path = "kinds/scripts.rs"]
mod scripts;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use metalform::resource;
use metalform::resource::contract::kind::Kind;

use self::case::{Case, Expect};
use self::certificates::Authorities;

fn folder(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kinds").join(kind)
}

/// The cases of a kind by name, in order.
fn cases(kind: &str) -> BTreeMap<String, Case> {
    let entries =
        std::fs::read_dir(folder(kind)).unwrap_or_else(|error| panic!("no cases of {kind}: {error}"));
    entries
        .map(|entry| {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let case =
                serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            (path.file_stem().unwrap().to_string_lossy().into_owned(), case)
        })
        .collect()
}

#[test]
fn every_case_has_the_expected_verdict() {
    let authorities = Authorities::new();
    let mut failures = Vec::new();
    for kind in resource::kinds() {
        for (name, case) in cases(kind.kind.name()) {
            let got = case.decide(kind.kind, &authorities);
            if got != case.expect {
                failures.push(format!("{}/{name}\n  expected {:#?}\n  got {got:#?}", kind.kind, case.expect));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_kind_has_cases_for_each_verdict() {
    for kind in resource::kinds() {
        let cases = cases(kind.kind.name());
        let has = |verdict: &str| cases.values().any(|case| case.expect.verdict() == verdict);
        assert!(has("change") && has("no_change"), "{}", kind.kind);
        // The other kinds have nothing to remove.
        let removes =
            cases.values().any(|case| case.is_removal() && matches!(case.expect, Expect::Change { .. }));
        let lasts = !matches!(kind.kind, Kind::Command | Kind::Reboot | Kind::Wait);
        assert!(removes || !lasts, "{} has no removal", kind.kind);
    }
}
