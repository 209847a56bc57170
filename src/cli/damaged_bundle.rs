//! The end of a command that found a bundle damaged.

use std::collections::BTreeSet;
use std::path::Path;

use super::failure::{Exit, Failure};
use crate::bundle::problem::BundleProblem;

/// Every problem, and how to mend them.
pub(super) fn damaged_bundle(directory: &Path, problems: &BTreeSet<BundleProblem>) -> Failure {
    Failure {
        exit: Exit::Host,
        errors: problems.iter().map(ToString::to_string).collect(),
        hints: vec![format!("build it again: metalform bundle build -o {}", directory.display())],
    }
}
