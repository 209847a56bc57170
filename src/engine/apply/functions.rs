//! The shell functions that a program requires besides the prelude.

use super::PackageManager;
use crate::engine::conditions;
use crate::engine::hidden_script::INTERPRETER;
use crate::model::shell_word::quote;
use crate::resource::contract::step::{Step, UnitVerb};

/// The functions that change files: also the value of the variable `functions`, since another user may run them. And
/// those that decide which user.
pub(super) fn of_files<'a, Steps: Iterator<Item = &'a Step>>(steps: impl Fn() -> Steps) -> String {
    let any = |is: fn(&Step) -> bool| steps().any(is);
    let mut functions = include_str!("files.sh").to_owned();
    if any(|step| matches!(step, Step::Download { .. } | Step::Unpack { .. })) {
        functions.push_str(include_str!("fetch.sh"));
    }
    if any(|step| matches!(step, Step::EditFile { .. })) {
        functions.push_str(include_str!("edit.sh"));
    }
    let holder = include_str!("holder.sh").replace("INTERPRETER", INTERPRETER);
    format!("functions={}\neval \"$functions\"\n{holder}", quote(&functions))
}

/// The other functions that `steps` call.
pub(super) fn needed<'a, Steps: Iterator<Item = &'a Step>>(
    steps: impl Fn() -> Steps,
    packages: PackageManager,
) -> Vec<&'static str> {
    let any = |is: fn(&Step) -> bool| steps().any(is);
    let mut needed = Vec::new();
    if any(is_about_packages) {
        needed.push(packages.functions());
    }
    if any(|step| matches!(step, Step::MakeDirectory { .. })) {
        needed.push(include_str!("dangling.sh"));
    }
    if any(|step| matches!(step, Step::VerifyUnit { .. })) {
        needed.push(include_str!("units.sh"));
    }
    if any(|step| {
        matches!(step, Step::ReloadUnit(_) | Step::Unit { verb: UnitVerb::Enable | UnitVerb::Disable, .. })
    }) {
        needed.push(include_str!("reload.sh"));
    }
    if any(|step| matches!(step, Step::Await { .. })) {
        needed.extend([conditions::FUNCTIONS, include_str!("wait.sh")]);
    }
    if any(|step| matches!(step, Step::WriteAuthorizedKeys { .. } | Step::SetPassword { .. })) {
        needed.push(include_str!("accounts.sh"));
    }
    if any(|step| matches!(step, Step::Mount { .. })) {
        needed.push(include_str!("mounts.sh"));
    }
    needed
}

pub(super) fn is_about_packages(step: &Step) -> bool {
    matches!(
        step,
        Step::RefreshPackageIndex
            | Step::InstallPackages(_)
            | Step::RemovePackages(_)
            | Step::HoldPackage { .. }
    )
}
