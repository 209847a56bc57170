//! `swap: off`: no swap, now and after a reboot; the kubelet refuses to start with it (failSwapOn).
//!
//! A reboot brings swap back through /etc/fstab, or through units that generators make for partitions and
//! zram; all of them are wanted by `swap.target` (systemd.special(7)), so that one is masked.

use super::change::{Change, Verdict};
use super::ensure::Ensure;
use super::field::FieldSpec;
use super::given::{FieldError, Given};
use super::probe::{Observed, Probe};
use super::refusal::Refusal;
use super::step::{Step, UnitVerb};

/// It has none.
pub const FIELDS: &[FieldSpec] = &[];

const TARGET: &str = "swap.target";
/// What a disabled line of /etc/fstab begins with.
const MARK: &str = "#metalform# ";
/// A line of fstab(5) in force whose third field is `swap`.
const FSTAB_LINE: &str =
    "^[[:space:]]*[^#[:space:]][^[:space:]]*[[:space:]]+[^[:space:]]+[[:space:]]+swap([[:space:]]|$)";

/// No swap. When it should be absent, what was disabled may come back with the next boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swap {
    ensure: Ensure,
}

impl Swap {
    pub(super) fn parse(name: &str, given: &Given) -> Result<Self, FieldError> {
        match name {
            "off" => Ok(Self { ensure: given.ensure }),
            _ => Err(FieldError::Name {
                kind: "swap",
                name: name.to_owned(),
                reason: "its one name is \"off\"",
            }),
        }
    }

    pub(super) fn probes(&self) -> Vec<Probe> {
        match self.ensure {
            Ensure::Present => vec![Probe::Swap, target_probe(), fstab_probe(FSTAB_LINE)],
            Ensure::Absent => vec![target_probe(), fstab_probe(&format!("^{MARK}"))],
        }
    }

    pub(super) fn diff(&self, observed: &Observed) -> Result<Verdict, Refusal> {
        let masked = observed.unit(target_probe())?.load == "masked";
        let mut change = Change::default();
        if self.ensure == Ensure::Absent {
            if masked {
                change.field("swap.target", Some("masked"), None);
                change.steps.push(unit_step(UnitVerb::Unmask));
            }
            if observed.holds(fstab_probe(&format!("^{MARK}")))? {
                change.field("swap in /etc/fstab", Some("disabled"), None);
                change.steps.push(Step::Run { script: format!("sed -i 's/^{MARK}//' /etc/fstab") });
            }
            return Ok(change.or("nothing of it was disabled by metalform"));
        }
        if observed.holds(fstab_probe(FSTAB_LINE))? {
            change.field("swap in /etc/fstab", Some("enabled"), Some("disabled"));
            change
                .steps
                .push(Step::Run { script: format!("sed -i -E '/{FSTAB_LINE}/s/^/{MARK}/' /etc/fstab") });
        }
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

fn target_probe() -> Probe {
    Probe::Unit { name: TARGET.to_owned() }
}

fn fstab_probe(pattern: &str) -> Probe {
    Probe::Guard { script: format!("grep -qsE '{pattern}' /etc/fstab") }
}

fn unit_step(verb: UnitVerb) -> Step {
    Step::Unit { name: TARGET.to_owned(), verb }
}
