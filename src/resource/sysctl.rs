//! `sysctl`: a kernel parameter, live and after a reboot (`/etc/sysctl.d/90-metalform-<key>.conf`).

use super::change::{Change, Verdict};
use super::contents::{Contents, removal, removal_probe};
use super::context::Context;
use super::ensure::Ensure;
use super::field::{FieldSort, FieldSpec};
use super::given::{FieldError, Given};
use super::probe::{Observed, Probe};
use super::refusal::Refusal;
use super::step::Step;

/// Its fields.
pub const FIELDS: &[FieldSpec] =
    &[FieldSpec { name: "value", sort: FieldSort::Any, required: true, about: "A text or a number." }];

/// A kernel parameter. When it should be absent its file goes, and the live value stays until a reboot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sysctl {
    key: String,
    path: String,
    /// `None` when it should be absent.
    wanted: Option<Wanted>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Wanted {
    value: String,
    file: Contents,
}

impl Sysctl {
    pub(super) fn parse(name: &str, given: &Given) -> Result<Self, FieldError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "._-:@".contains(c);
        let empty_part = name.split('.').any(str::is_empty);
        if empty_part || !name.chars().all(allowed) || name.starts_with('-') {
            let reason = "write it dotted, as net.ipv4.ip_forward";
            return Err(FieldError::Name { kind: "sysctl", name: name.to_owned(), reason });
        }
        let path = format!("/etc/sysctl.d/90-metalform-{name}.conf");
        let wanted = match given.ensure {
            Ensure::Absent => None,
            Ensure::Present => {
                let value = given.need_scalar("value")?;
                if value.trim().is_empty() || value.contains('\n') {
                    return Err(given.invalid("value", "it must be one line of text"));
                }
                let file = Contents::public(path.clone(), format!("{name} = {value}\n"));
                Some(Wanted { value, file })
            }
        };
        Ok(Self { key: name.to_owned(), path, wanted })
    }

    pub(super) fn probes(&self) -> Vec<Probe> {
        match &self.wanted {
            Some(wanted) => vec![wanted.file.probe(), self.live_probe()],
            None => vec![removal_probe(&self.path)],
        }
    }

    fn live_probe(&self) -> Probe {
        Probe::Sysctl { key: self.key.clone() }
    }

    pub(super) fn diff(&self, observed: &Observed, context: &Context<'_>) -> Result<Verdict, Refusal> {
        let Some(wanted) = &self.wanted else {
            return Ok(removal(&self.path, observed, context.pending)?.or("is not set by metalform"));
        };
        let live = observed.line(self.live_probe())?;
        if live.is_none() && !context.pending.brings("kmod") {
            return Err(Refusal::NoParameter { key: self.key.clone() });
        }
        let mut change = Change::default();
        // The kernel separates the numbers of one parameter by tabs; sysctl(8) takes any white space.
        if !live.is_some_and(|live| live.split_whitespace().eq(wanted.value.split_whitespace())) {
            change.field("value", live.map(str::trim_end), Some(&wanted.value));
            change.steps.push(Step::SetSysctl { key: self.key.clone(), value: wanted.value.clone() });
        }
        change.append(wanted.file.compare(observed, context.pending)?);
        Ok(change.or(format!("is {}, live and after a reboot", wanted.value)))
    }
}
