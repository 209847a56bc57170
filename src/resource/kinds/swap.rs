//! `swap: off`: no swap, now and after a reboot; the kubelet refuses to start with it (failSwapOn).
//!
//! A reboot brings swap back through /etc/fstab, or through units that generators make for partitions and
//! zram; all of them are wanted by `swap.target` (systemd.special(7)), so that one is masked.

use crate::resource::contract::change::{Change, Verdict};
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::{Step, UnitVerb};
use crate::resource::fields::field::FieldSpec;
use crate::resource::fields::given::{FieldError, Given};
use crate::resource::text::edited::Edited;
use crate::resource::text::fstab;
use crate::resource::text::lines::{Edit, Lines};

/// It has none.
pub const FIELDS: &[FieldSpec] = &[];

const TARGET: &str = "swap.target";
/// What a disabled line of /etc/fstab begins with.
const MARK: &str = "#metalform# ";

/// No swap. When it should be absent, what was disabled may come back with the next boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swap {
    ensure: Ensure,
}

impl Swap {
    pub(in crate::resource) fn parse(name: &str, given: &Given) -> Result<Self, FieldError> {
        match name {
            "off" => Ok(Self { ensure: given.ensure }),
            _ => Err(FieldError::Name {
                kind: "swap",
                name: name.to_owned(),
                reason: "its one name is \"off\"",
            }),
        }
    }

    fn fstab() -> Edited {
        fstab::file(false, false)
    }

    pub(in crate::resource) fn probes(&self) -> Vec<Probe> {
        let swap = (self.ensure == Ensure::Present).then_some(Probe::Swap);
        swap.into_iter().chain([target_probe(), Self::fstab().probe()]).collect()
    }

    pub(in crate::resource) fn diff(
        &self,
        observed: &Observed,
        context: &Context<'_>,
    ) -> Result<Verdict, Refusal> {
        let masked = observed.unit(target_probe())?.load == "masked";
        let present = Self::fstab().text(observed, context)?;
        let mut lines = Lines::of(present.map_or("", |present| present.text));
        if self.ensure == Ensure::Absent {
            let mut change = Change::default();
            if masked {
                change.field("swap.target", Some("masked"), None);
                change.steps.push(unit_step(UnitVerb::Unmask));
            }
            lines.edit(|body| body.strip_prefix(MARK).map(|line| Edit::Become(line.to_owned())));
            change.append(Self::fstab().change(present, lines.into_text(), context));
            return Ok(change.or("nothing of it was disabled by metalform"));
        }
        lines.edit(|body| is_swap(body).then(|| Edit::Become(format!("{MARK}{body}"))));
        let mut change = Self::fstab().change(present, lines.into_text(), context);
        if !masked {
            change.field("swap.target", Some("enabled"), Some("masked"));
            change.steps.push(unit_step(UnitVerb::Mask));
        }
        if observed.holds(Probe::Swap)? {
            change.field("swap", Some("on"), Some("off"));
            change.steps.push(Step::SwapOff);
        }
        Ok(change.or("is off, now and after a reboot"))
    }
}

/// Whether a line of fstab(5) is in force and its third field is `swap`.
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
    fn only_swap_in_force_is_swap() {
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
