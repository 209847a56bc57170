//! How the Machines of a MachineDeployment are replaced.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::count_or_percent::CountOrPercent;
use super::{rules, schema};

/// How Machines with an old template are replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStrategy {
    /// RollingUpdate is the only one.
    #[serde(rename = "type", default)]
    pub type_: RolloutType,
    /// By how much the number of Machines may differ from replicas meanwhile.
    #[serde(default)]
    pub rolling_update: RollingUpdate,
}

/// The type of a strategy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RolloutType {
    /// Some at a time.
    #[default]
    RollingUpdate,
}

/// By how much the number of Machines may differ from `replicas` during a rolling update.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::rolling_update()))]
pub struct RollingUpdate {
    /// How many Machines more than replicas there may be: a number, or a percentage of replicas, rounded up. They need
    /// as many free Hosts.
    #[serde(default = "one")]
    #[schemars(schema_with = "schema::int_or_string", extend("x-kubernetes-validations" = rules::surge()))]
    pub max_surge: IntOrString,
    /// How many Machines fewer than replicas may be available: a number, or a percentage of replicas, rounded down. A
    /// pool without free Hosts needs at least 1.
    #[serde(default = "zero")]
    #[schemars(schema_with = "schema::int_or_string", extend("x-kubernetes-validations" = rules::unavailable()))]
    pub max_unavailable: IntOrString,
}

/// A field of a rolling update is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RollingUpdateError {
    /// Neither a number nor a percentage.
    #[error("{field} is {value:?}, expected an integer from 0, or a percentage such as 25%")]
    Quota {
        /// `maxSurge` or `maxUnavailable`.
        field: &'static str,
        /// As written.
        value: String,
    },
    /// More than all Machines.
    #[error("maxUnavailable is {0}%, expected at most 100%")]
    TooManyUnavailable(u32),
    /// No step would be allowed.
    #[error("maxSurge and maxUnavailable are both 0")]
    BothZero,
}

fn one() -> IntOrString {
    IntOrString::Int(1)
}

fn zero() -> IntOrString {
    IntOrString::Int(0)
}

impl Default for RollingUpdate {
    fn default() -> Self {
        Self { max_surge: one(), max_unavailable: zero() }
    }
}

impl Default for RolloutStrategy {
    fn default() -> Self {
        Self { type_: RolloutType::RollingUpdate, rolling_update: RollingUpdate::default() }
    }
}

impl RollingUpdate {
    /// `maxSurge` and `maxUnavailable`.
    ///
    /// # Errors
    /// Those cases that the rules of the definition refuse.
    pub fn quotas(&self) -> Result<(CountOrPercent, CountOrPercent), RollingUpdateError> {
        let surge = quota("maxSurge", &self.max_surge)?;
        let unavailable = quota("maxUnavailable", &self.max_unavailable)?;
        match unavailable {
            CountOrPercent::Percent(percent) if percent > 100 => {
                Err(RollingUpdateError::TooManyUnavailable(percent))
            }
            _ if surge.is_zero() && unavailable.is_zero() => Err(RollingUpdateError::BothZero),
            _ => Ok((surge, unavailable)),
        }
    }
}

pub(super) fn quota(field: &'static str, value: &IntOrString) -> Result<CountOrPercent, RollingUpdateError> {
    let written = match value {
        IntOrString::Int(number) => number.to_string(),
        IntOrString::String(text) => text.clone(),
    };
    written.parse().map_err(|_| RollingUpdateError::Quota { field, value: written })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_numbers_or_percentages_that_allow_a_step() {
        let quotas = |yaml: &str| {
            let update: RollingUpdate = serde_saphyr::from_str(yaml).unwrap();
            let quotas = update.quotas().map(|(surge, unavailable)| format!("{surge} {unavailable}"));
            quotas.map_err(|error| error.to_string())
        };
        let both = Err("maxSurge and maxUnavailable are both 0");
        for (yaml, expected) in [
            ("{}", Ok("1 0")),
            ("{maxSurge: 0, maxUnavailable: 1}", Ok("0 1")),
            ("{maxSurge: 25%, maxUnavailable: 100%}", Ok("25% 100%")),
            ("{maxSurge: 200%}", Ok("200% 0")),
            ("{maxUnavailable: 5}", Ok("1 5")),
            ("{maxSurge: 0}", both),
            ("{maxSurge: 0%, maxUnavailable: 0}", both),
            ("{maxSurge: 00%, maxUnavailable: 0%}", both),
            ("{maxSurge: '2'}", Ok("2 0")),
            (
                "{maxSurge: -1}",
                Err("maxSurge is \"-1\", expected an integer from 0, or a percentage such as 25%"),
            ),
            (
                "{maxUnavailable: a}",
                Err("maxUnavailable is \"a\", expected an integer from 0, or a percentage such as 25%"),
            ),
            (
                "{maxSurge: +5%}",
                Err("maxSurge is \"+5%\", expected an integer from 0, or a percentage such as 25%"),
            ),
            (
                "{maxSurge: '%'}",
                Err("maxSurge is \"%\", expected an integer from 0, or a percentage such as 25%"),
            ),
            (
                "{maxSurge: ''}",
                Err("maxSurge is \"\", expected an integer from 0, or a percentage such as 25%"),
            ),
            ("{maxUnavailable: 101%}", Err("maxUnavailable is 101%, expected at most 100%")),
        ] {
            assert_eq!(quotas(yaml), expected.map(str::to_owned).map_err(str::to_owned), "{yaml}");
        }
    }
}
