//! `service`: whether a systemd unit runs, now and at boot.

pub(in crate::resource) mod last_start;

use crate::resource::contract::change::{Change, Verdict};
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, Probe, UnitState};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::resource_id::ResourceId;
use crate::resource::contract::step::{Step, UnitVerb};
use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_spec::{FieldSpec, FieldType};
use crate::resource::fields::field_values::FieldValues;
use crate::resource::fields::unit_name;
use crate::resource::kinds::service::last_start::Moment;

pub const FIELDS: &[FieldSpec] = &[
    FieldSpec::optional("enabled", FieldType::Boolean, "Whether it starts at boot, true by default."),
    FieldSpec::optional("running", FieldType::Boolean, "Whether it runs now, true by default."),
    FieldSpec::optional(
        "masked",
        FieldType::Boolean,
        "Whether it is masked; not allowed with `enabled` or `running`. Where it is not set, a unit that must be enabled or running is unmasked.",
    ),
    FieldSpec::optional(
        "restart_when_changed",
        FieldType::StringList,
        "Ids of earlier resources (`kind:name`) whose change requires a restart.",
    ),
    FieldSpec::optional(
        "reload_when_changed",
        FieldType::StringList,
        "Ids of earlier resources whose change requires a reload.",
    ),
];

/// A service. With `ensure: absent` it is neither enabled nor running.
///
/// A oneshot service that does not remain active is never running, and requires `running: false`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    unit: String,
    enabled: bool,
    running: bool,
    /// `None` where either is accepted.
    masked: Option<bool>,
    restart_when_changed: Vec<ResourceId>,
    reload_when_changed: Vec<ResourceId>,
}

impl Service {
    pub fn parse(name: &str, fields: &FieldValues) -> Result<Self, FieldError> {
        let present = fields.ensure == Ensure::Present;
        let masked = fields.optional_boolean("masked").filter(|_| present);
        let by_default = present && masked != Some(true);
        let [enabled, running] =
            ["enabled", "running"].map(|field| present && fields.boolean(field, by_default));
        if masked == Some(true) && (enabled || running) {
            return Err(fields.invalid("masked", "not allowed with enabled or running"));
        }
        let unit = unit_name::named(fields, name)?;
        if unit_name::is_template(&unit) {
            let reason = "must name an instance of the template, such as getty@tty1";
            return Err(fields.invalid_name(name, reason));
        }
        Ok(Self {
            unit,
            enabled,
            running,
            masked: masked.or((enabled || running).then_some(false)),
            restart_when_changed: fields.ids("restart_when_changed")?,
            reload_when_changed: fields.ids("reload_when_changed")?,
        })
    }

    pub fn probes(&self) -> Vec<Probe> {
        let mut probes = vec![self.unit_probe()];
        if self.running {
            probes.extend(last_start::probe(&self.restart_when_changed));
            probes.extend(last_start::probe(&self.reload_when_changed));
        }
        probes
    }

    fn unit_probe(&self) -> Probe {
        Probe::Unit { name: self.unit.clone() }
    }

    fn watched(&self, moment: Moment) -> &[ResourceId] {
        match moment {
            Moment::Start => &self.restart_when_changed,
            Moment::Reload => &self.reload_when_changed,
        }
    }

    pub fn diff(&self, observed: &Observed, context: &Context<'_>) -> Result<Verdict, Refusal> {
        let unit = observed.unit(self.unit_probe())?;
        let rewritten = context.pending.writes_unit_file(&self.unit);
        match unit.load.as_str() {
            "loaded" | "masked" => {}
            "not-found" if self.masked == Some(true) => {}
            "not-found" if !self.enabled && !self.running => {
                return Ok(Verdict::NoChange { reason: "does not exist".to_owned() });
            }
            "not-found" if !context.pending.may_add_unit(&self.unit) => {
                return Err(Refusal::NoUnit { unit: self.unit.clone() });
            }
            "not-found" => {}
            _ if context.pending.may_add_unit(&self.unit) => {}
            load => return Err(Refusal::BrokenUnit { unit: self.unit.clone(), load: load.to_owned() }),
        }
        let mut change = Change::default();
        if unit.needs_daemon_reload || rewritten {
            change.field("loaded by systemd", Some("older unit files"), Some("current unit files"));
            change.steps.push(Step::ReloadUnit(self.unit.clone()));
        }
        self.compare_enabled(unit, &mut change);
        self.compare_running(unit, observed, context, &mut change)?;
        if self.masked == Some(true) && unit.load != "masked" {
            change.field("masked", Some("false"), Some("true"));
            change.steps.push(self.step(UnitVerb::Mask));
        }
        Ok(change.into_verdict(match (self.enabled, self.running) {
            _ if self.masked == Some(true) => format!("is masked, and {}", unit.active),
            (true, true) => format!("is {}, and {} at boot", unit.active, unit.unit_file),
            _ => format!("is {}, and {} at boot, as desired", unit.active, or_disabled(&unit.unit_file)),
        }))
    }

    fn compare_enabled(&self, unit: &UnitState, change: &mut Change) {
        let masked = unit.load == "masked";
        if masked && self.masked == Some(false) {
            change.field("masked", Some("true"), Some("false"));
            change.steps.push(self.step(UnitVerb::Unmask));
            if !self.enabled {
                // systemd shows only the mask of a unit that is enabled too, and disables no masked unit.
                change.steps.push(self.step(UnitVerb::Disable));
                return;
            }
        }
        // `systemctl is-enabled` in systemctl(1): other states have no [Install] section.
        let verb = match unit.unit_file.as_str() {
            "enabled" if !self.enabled => UnitVerb::Disable,
            "enabled-runtime" | "linked" | "linked-runtime" if self.enabled => UnitVerb::Enable,
            "disabled" | "masked" | "masked-runtime" | "bad" | "" if self.enabled => UnitVerb::Enable,
            _ => return,
        };
        change.field("enabled", Some(&(!self.enabled).to_string()), Some(&self.enabled.to_string()));
        change.steps.push(self.step(verb));
    }

    fn compare_running(
        &self,
        unit: &UnitState,
        observed: &Observed,
        context: &Context<'_>,
        change: &mut Change,
    ) -> Result<(), Refusal> {
        // `activating` includes the pause before an automatic restart.
        let up = matches!(unit.active.as_str(), "active" | "activating" | "reloading" | "refreshing");
        if !self.running {
            if up || unit.active == "deactivating" {
                change.field("active", Some(&unit.active), Some("inactive"));
                change.steps.push(self.step(UnitVerb::Stop));
            }
            return Ok(());
        }
        let restart = self.reaction(Moment::Start, unit, observed, context)?;
        if !up {
            change.field("active", Some(&unit.active), Some("active"));
            // A package may start it before its configuration is written, in which case a start has no effect.
            let verb = if restart.is_some() { UnitVerb::Restart } else { UnitVerb::Start };
            change.steps.push(self.step(verb));
        } else if let Some(reason) = restart {
            change.field("restart", None, Some(&reason));
            change.steps.push(self.step(UnitVerb::Restart));
        } else if let Some(reason) = self.reaction(Moment::Reload, unit, observed, context)? {
            change.field("reload", None, Some(&reason));
            change.steps.push(self.step(UnitVerb::ReloadOrRestart));
        }
        Ok(())
    }

    /// Why it must be restarted or reloaded; `None` where it need not be.
    fn reaction(
        &self,
        moment: Moment,
        unit: &UnitState,
        observed: &Observed,
        context: &Context<'_>,
    ) -> Result<Option<String>, Refusal> {
        if let Some(cause) = context.pending.first_of(self.watched(moment)) {
            return Ok(Some(cause.to_string()));
        }
        let written = match last_start::probe(self.watched(moment)) {
            Some(probe) => observed.written(probe)?,
            None => None,
        };
        let is_newer = written.zip(moment.of(unit)).is_some_and(|(written, moment)| written > moment);
        Ok(is_newer.then(|| "a dependency changed since its last start".to_owned()))
    }

    /// The resources whose change requires a restart or a reload.
    pub fn causes(&self) -> impl Iterator<Item = &ResourceId> {
        self.restart_when_changed.iter().chain(&self.reload_when_changed)
    }

    fn step(&self, verb: UnitVerb) -> Step {
        Step::Unit { name: self.unit.clone(), verb }
    }
}

fn or_disabled(unit_file: &str) -> &str {
    if unit_file.is_empty() { "disabled" } else { unit_file }
}
