//! `swap: off`: no swap, now and at boot; the kubelet refuses to start with swap (failSwapOn).
//!
//! At boot swap is activated by /etc/fstab, or by units that are generated for partitions and zram; all of them are
//! dependencies of `swap.target` (systemd.special(7)), which is masked. Services that run swapon(8) themselves are not:
//! a node is refused while it has one (`operation/survey.rs`).

use crate::resource::contract::change::{Change, Verdict};
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::{Step, UnitVerb};
use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_spec::FieldSpec;
use crate::resource::fields::field_values::FieldValues;
use crate::resource::text::edited::Edited;
use crate::resource::text::fstab;
use crate::resource::text::lines::{Edit, Lines};

pub const FIELDS: &[FieldSpec] = &[];

const TARGET: &str = "swap.target";
/// Prefix of a disabled line of /etc/fstab.
const MARK: &str = "#metalform# ";

/// No swap. With `ensure: absent` the next boot activates what was disabled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swap {
    ensure: Ensure,
}

impl Swap {
    pub fn parse(name: &str, fields: &FieldValues) -> Result<Self, FieldError> {
        match name {
            "off" => Ok(Self { ensure: fields.ensure }),
            _ => Err(fields.invalid_name(name, "must be \"off\"")),
        }
    }

    fn fstab() -> Edited {
        fstab::file(false, false)
    }

    pub fn probes(&self) -> Vec<Probe> {
        let swap = (self.ensure == Ensure::Present).then_some(Probe::Swap);
        swap.into_iter().chain([target_probe(), Self::fstab().probe()]).collect()
    }

    pub fn diff(&self, observed: &Observed, context: &Context<'_>) -> Result<Verdict, Refusal> {
        let masked = observed.unit(target_probe())?.load == "masked";
        let present = Self::fstab().text(observed, context)?;
        let mut lines = Lines::of(present.map_or("", |present| present.text));
        if self.ensure == Ensure::Absent {
            let mut change = Change::default();
            if masked {
                change.field("swap.target", Some("masked"), None);
                change.steps.push(unit_step(UnitVerb::Unmask));
            }
            lines.edit(|body| body.strip_prefix(MARK).map(|line| Edit::Replace(line.to_owned())));
            change.append(Self::fstab().change(present, lines.into_text(), context));
            return Ok(change.into_verdict("was not disabled by metalform"));
        }
        lines.edit(|body| is_swap(body).then(|| Edit::Replace(format!("{MARK}{body}"))));
        let mut change = Self::fstab().change(present, lines.into_text(), context);
        if !masked {
            change.field("swap.target", Some("enabled"), Some("masked"));
            change.steps.push(unit_step(UnitVerb::Mask));
        }
        if observed.holds(Probe::Swap)? {
            change.field("swap", Some("on"), Some("off"));
            change.steps.push(Step::SwapOff);
        }
        Ok(change.into_verdict("is off, now and at boot"))
    }
}

/// Whether a line of fstab(5) is not a comment and its type is `swap`.
fn is_swap(line: &str) -> bool {
    !line.trim_start().starts_with('#') && line.split_whitespace().nth(2) == Some("swap")
}

fn target_probe() -> Probe {
    Probe::Unit { name: TARGET.to_owned() }
}

fn unit_step(verb: UnitVerb) -> Step {
    Step::Unit { name: TARGET.to_owned(), verb }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_other_types_are_not_swap() {
        for line in ["/dev/c\tnone\tswap\tsw 0 0", " /swap none swap"] {
            assert!(is_swap(line), "{line}");
        }
        for line in
            ["UUID=a / ext4 defaults 0 1", "# /dev/b none swap sw 0 0", "/dev/d /swap ext4 swap 0 0", "swap"]
        {
            assert!(!is_swap(line), "{line}");
        }
    }
}
