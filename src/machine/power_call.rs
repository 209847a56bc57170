//! What a power hook is called for, and what its answers mean.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

/// What a power hook is to do: its first argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PowerVerb {
    /// Print `on` or `off`.
    Status,
    /// Switch the host off, at once. It may be off already.
    Off,
}

/// What a power hook reads from its standard input, as JSON. `Debug` is not implemented: it contains a secret.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct PowerRequest<'a> {
    /// As the first argument.
    pub verb: PowerVerb,
    /// The name of the Host; as the second argument.
    pub host: &'a str,
    /// That SSH connects to; as the third argument.
    pub address: &'a str,
    /// `spec.power.parameters`.
    pub parameters: &'a BTreeMap<String, String>,
    /// The data of the Secret of `spec.power.secretRef`.
    pub secret: BTreeMap<&'a str, &'a str>,
}

/// What a call that succeeded has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerReply {
    /// `status`: the host is on.
    On,
    /// `status`: the host is off.
    Off,
    /// `off` has succeeded.
    Done,
}

/// What follows from the calls so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerStep {
    /// Call the hook.
    Call(PowerVerb),
    /// The host is off.
    Confirmed,
}

/// Why a host is not confirmed to be off.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PowerCallError {
    /// `status` printed something else.
    #[error("status printed {0:?}, expected on or off")]
    NoState(String),
    /// `off` has succeeded, and `status` is unchanged.
    #[error("the host is still on after off")]
    StillOn,
}

/// Characters of an unknown answer that are shown.
const SHOWN: usize = 80;

/// The next call. Nothing but the hook's `status` confirms that a host is off.
///
/// # Errors
/// When the calls have not had their effect: they are made again later.
pub fn next(replies: &[PowerReply]) -> Result<PowerStep, PowerCallError> {
    match replies {
        [] => Ok(PowerStep::Call(PowerVerb::Status)),
        [.., PowerReply::Off] => Ok(PowerStep::Confirmed),
        [PowerReply::On] => Ok(PowerStep::Call(PowerVerb::Off)),
        [.., PowerReply::Done] => Ok(PowerStep::Call(PowerVerb::Status)),
        [.., PowerReply::On] => Err(PowerCallError::StillOn),
    }
}

/// What a call has shown that succeeded with this output.
///
/// # Errors
/// When `status` printed neither `on` nor `off`.
pub fn reply(verb: PowerVerb, output: &str) -> Result<PowerReply, PowerCallError> {
    match (verb, output.trim()) {
        (PowerVerb::Off, _) => Ok(PowerReply::Done),
        (PowerVerb::Status, "on") => Ok(PowerReply::On),
        (PowerVerb::Status, "off") => Ok(PowerReply::Off),
        (PowerVerb::Status, other) => Err(PowerCallError::NoState(other.chars().take(SHOWN).collect())),
    }
}

impl fmt::Display for PowerVerb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Status => "status",
            Self::Off => "off",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_status_confirms_that_a_host_is_off() {
        use PowerReply::{Done, Off, On};
        for (replies, expected) in [
            (&[][..], Ok(PowerStep::Call(PowerVerb::Status))),
            (&[Off], Ok(PowerStep::Confirmed)),
            (&[On], Ok(PowerStep::Call(PowerVerb::Off))),
            (&[On, Done], Ok(PowerStep::Call(PowerVerb::Status))),
            (&[On, Done, Off], Ok(PowerStep::Confirmed)),
            (&[On, Done, On], Err(PowerCallError::StillOn)),
        ] {
            assert_eq!(next(replies), expected, "{replies:?}");
        }
    }

    #[test]
    fn a_status_is_one_word() {
        let no_state = |text: &str| Err(PowerCallError::NoState(text.to_owned()));
        for (verb, output, expected) in [
            (PowerVerb::Status, "on\n", Ok(PowerReply::On)),
            (PowerVerb::Status, " off \n\n", Ok(PowerReply::Off)),
            (PowerVerb::Status, "", no_state("")),
            (PowerVerb::Status, "Off", no_state("Off")),
            (PowerVerb::Status, "on\noff", no_state("on\noff")),
            (PowerVerb::Status, "Chassis Power is off", no_state("Chassis Power is off")),
            (PowerVerb::Off, "on", Ok(PowerReply::Done)),
            (PowerVerb::Off, "", Ok(PowerReply::Done)),
        ] {
            assert_eq!(reply(verb, output), expected, "{verb} {output:?}");
        }
    }

    #[test]
    fn a_request_is_json() {
        let parameters = BTreeMap::from([("bmc".to_owned(), "192.0.2.9".to_owned())]);
        let secret = BTreeMap::from([("password", "x")]);
        let request = PowerRequest {
            verb: PowerVerb::Off,
            host: "h1",
            address: "10.0.0.2",
            parameters: &parameters,
            secret,
        };
        let expected = r#"{"verb":"off","host":"h1","address":"10.0.0.2","parameters":{"bmc":"192.0.2.9"},"secret":{"password":"x"}}"#;
        assert_eq!(serde_json::to_string(&request).unwrap(), expected);
    }
}
