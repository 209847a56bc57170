//! Which Machines of a MachineDeployment are replaced because their nodes are unhealthy (Cluster API,
//! MachineHealthCheck).

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rolling_update::{RollingUpdateError, quota};
use super::{go_duration, rules, schema};
use crate::machine::health::{HealthRules, UnhealthyCondition};

/// Which nodes are unhealthy, and how many Machines are replaced for it. It is no part of the template: a change of it
/// replaces no node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Remediation {
    /// A Machine whose Node has one of these conditions is replaced.
    #[schemars(
        length(min = 1, max = 16),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type", "status"])
    )]
    pub unhealthy_conditions: Vec<UnhealthyNodeCondition>,
    /// With more unhealthy Machines than this none is replaced: a number, or a percentage of all Machines, rounded down.
    #[serde(default = "all")]
    #[schemars(schema_with = "schema::int_or_string", extend("x-kubernetes-validations" = rules::unavailable()))]
    pub max_unhealthy: IntOrString,
    /// How many unhealthy Machines are being replaced at the same time: a number, or a percentage of all Machines,
    /// rounded up. One is being replaced until its Host is free again or in quarantine.
    #[serde(default = "one")]
    #[schemars(schema_with = "schema::int_or_string", extend("x-kubernetes-validations" = rules::in_flight()))]
    pub max_in_flight: IntOrString,
}

/// A condition of a Node that makes its Machine unhealthy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnhealthyNodeCondition {
    /// Type of the condition, such as Ready.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 316))]
    pub type_: String,
    /// Its status.
    pub status: NodeConditionStatus,
    /// For how long the condition must have this status, such as 5m.
    #[schemars(length(max = 32), extend("x-kubernetes-validations" = rules::timeout()))]
    pub timeout: String,
}

/// The status of a condition (core/v1, `ConditionStatus`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NodeConditionStatus {
    /// It holds.
    True,
    /// It does not.
    False,
    /// The node does not report it.
    Unknown,
}

/// A field of a remediation is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemediationError {
    /// A number of Machines.
    #[error(transparent)]
    Quota(#[from] RollingUpdateError),
    /// Nothing would ever be replaced.
    #[error("maxInFlight is 0, expected at least 1")]
    NoneInFlight,
    /// A timeout is no duration, or 0.
    #[error("timeout of {condition} is {value:?}, expected a duration above 0, such as 5m")]
    Timeout {
        /// Type of the condition.
        condition: String,
        /// As written.
        value: String,
    },
}

fn all() -> IntOrString {
    IntOrString::String("100%".to_owned())
}

fn one() -> IntOrString {
    IntOrString::Int(1)
}

impl Remediation {
    /// The rules that it defines.
    ///
    /// # Errors
    /// The first field that is invalid.
    pub fn rules(&self) -> Result<HealthRules, RemediationError> {
        let max_in_flight = quota("maxInFlight", &self.max_in_flight)?;
        if max_in_flight.is_zero() {
            return Err(RemediationError::NoneInFlight);
        }
        let unhealthy = self.unhealthy_conditions.iter().map(UnhealthyNodeCondition::rule);
        Ok(HealthRules {
            unhealthy: unhealthy.collect::<Result<_, _>>()?,
            max_unhealthy: quota("maxUnhealthy", &self.max_unhealthy)?,
            max_in_flight,
        })
    }
}

impl UnhealthyNodeCondition {
    fn rule(&self) -> Result<UnhealthyCondition, RemediationError> {
        let timeout = go_duration::parse(&self.timeout).filter(|timeout| !timeout.is_zero());
        let timeout = timeout.and_then(|timeout| SignedDuration::try_from(timeout).ok());
        Ok(UnhealthyCondition {
            kind: self.type_.clone(),
            status: self.status.name().to_owned(),
            timeout: timeout.ok_or_else(|| RemediationError::Timeout {
                condition: self.type_.clone(),
                value: self.timeout.clone(),
            })?,
        })
    }
}

impl NodeConditionStatus {
    /// As in the status of a Node.
    fn name(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remediation_has_defaults_and_bounds() {
        let rules = |yaml: &str| {
            let remediation: Remediation = serde_saphyr::from_str(yaml).unwrap();
            let rules = remediation.rules().map_err(|error| error.to_string())?;
            let conditions: Vec<String> = rules
                .unhealthy
                .iter()
                .map(|one| format!("{}={} {}s", one.kind, one.status, one.timeout.as_secs()))
                .collect();
            Ok(format!("{}; {} of which {}", conditions.join(", "), rules.max_unhealthy, rules.max_in_flight))
        };
        let ready = "unhealthyConditions: [{type: Ready, status: Unknown, timeout: 5m}]";
        for (yaml, expected) in [
            (format!("{{{ready}}}"), Ok("Ready=Unknown 300s; 100% of which 1")),
            (
                format!("{{{ready}, maxUnhealthy: 40%, maxInFlight: 25%}}"),
                Ok("Ready=Unknown 300s; 40% of which 25%"),
            ),
            (format!("{{{ready}, maxUnhealthy: 0}}"), Ok("Ready=Unknown 300s; 0 of which 1")),
            (format!("{{{ready}, maxInFlight: 0%}}"), Err("maxInFlight is 0, expected at least 1")),
            (
                format!("{{{ready}, maxUnhealthy: most}}"),
                Err("maxUnhealthy is \"most\", expected an integer from 0, or a percentage such as 25%"),
            ),
            (
                "{unhealthyConditions: [{type: KernelDeadlock, status: 'True', timeout: 1h30m}]}".to_owned(),
                Ok("KernelDeadlock=True 5400s; 100% of which 1"),
            ),
            (
                "{unhealthyConditions: [{type: Ready, status: 'False', timeout: 0s}]}".to_owned(),
                Err("timeout of Ready is \"0s\", expected a duration above 0, such as 5m"),
            ),
            (
                "{unhealthyConditions: [{type: Ready, status: 'False', timeout: '300'}]}".to_owned(),
                Err("timeout of Ready is \"300\", expected a duration above 0, such as 5m"),
            ),
        ] {
            assert_eq!(rules(&yaml), expected.map(str::to_owned).map_err(str::to_owned), "{yaml}");
        }
    }
}
