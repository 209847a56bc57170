//! `route`: a live route of the main table. It does not survive a reboot; a unit must restore it.

use std::net::IpAddr;

use crate::resource::contract::change::{Change, Verdict};
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::Step;
use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_spec::{FieldSpec, FieldType};
use crate::resource::fields::field_values::FieldValues;

/// At least one is required.
pub const FIELDS: &[FieldSpec] = &[
    FieldSpec::optional("via", FieldType::String, "Address of the gateway."),
    FieldSpec::optional("device", FieldType::String, "Network interface."),
];

/// A route to a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    destination: String,
    /// In the order of `ip route`; empty when it should be absent.
    hops: Vec<(&'static str, String)>,
}

impl Route {
    pub fn parse(name: &str, fields: &FieldValues) -> Result<Self, FieldError> {
        let Some(destination) = network(name) else {
            let reason = "must be a network in CIDR form, such as 10.96.0.0/12";
            return Err(fields.invalid_name(name, reason));
        };
        if let Some(via) = fields.string("via")
            && via.parse::<IpAddr>().is_err()
        {
            return Err(fields.invalid("via", "must be an IP address"));
        }
        if let Some(device) = fields.string("device") {
            // dev_valid_name() of the kernel.
            let good = !device.is_empty() && device.len() < 16 && !device.contains(['/', ':']);
            if !good || device.contains(char::is_whitespace) {
                return Err(fields.invalid("device", "must be the name of a network interface"));
            }
        }
        let hops: Vec<_> = [("via", fields.string("via")), ("dev", fields.string("device"))]
            .into_iter()
            .filter_map(|(word, value)| Some((word, value?)))
            .collect();
        match fields.ensure {
            Ensure::Present if hops.is_empty() => Err(fields.invalid("via", "via or device is required")),
            Ensure::Present => Ok(Self { destination, hops }),
            Ensure::Absent => Ok(Self { destination, hops: Vec::new() }),
        }
    }

    pub fn probes(&self) -> Vec<Probe> {
        vec![Probe::Route { destination: self.destination.clone() }]
    }

    pub fn diff(&self, observed: &Observed) -> Result<Verdict, Refusal> {
        let live = observed.line(Probe::Route { destination: self.destination.clone() })?;
        let mut change = Change::default();
        if self.hops.is_empty() {
            if live.is_some() {
                change.field("route", live, None);
                change.steps.push(Step::Run { script: format!("ip route del {}", self.destination) });
            }
            return Ok(change.into_verdict("is absent"));
        }
        let words: Vec<&str> = live.unwrap_or_default().split_whitespace().collect();
        let goes =
            |(word, value): &(&str, String)| words.windows(2).any(|pair| pair == [*word, value.as_str()]);
        if !self.hops.iter().all(goes) {
            let via =
                self.hops.iter().map(|(word, value)| format!("{word} {value}")).collect::<Vec<_>>().join(" ");
            change.field("route", live, Some(&via));
            change.steps.push(Step::ReplaceRoute { destination: self.destination.clone(), via });
        }
        Ok(change.into_verdict(format!("is {}", words.join(" "))))
    }
}

/// The network in the form of ip-route(8); `None` where bits beyond the prefix are set.
fn network(text: &str) -> Option<String> {
    let (address, prefix) = text.split_once('/')?;
    let (address, prefix): (IpAddr, u32) = (address.parse().ok()?, prefix.parse().ok()?);
    let (bits, width) = match address {
        IpAddr::V4(v4) => (u128::from(v4.to_bits()), 32),
        IpAddr::V6(v6) => (v6.to_bits(), 128),
    };
    let host_bits = width - Some(prefix).filter(|prefix| *prefix <= width)?;
    let mask = 1u128.checked_shl(host_bits).map_or(u128::MAX, |bit| bit - 1);
    (bits & mask == 0).then(|| format!("{address}/{prefix}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_no_host_bits() {
        for good in ["10.96.0.0/12", "0.0.0.0/0", "10.0.0.1/32", "fd00::/8", "::/0"] {
            assert_eq!(network(good).as_deref(), Some(good));
        }
        for bad in ["10.96.0.1/12", "10.96.0.0", "10.0.0.0/33", "fd00::1/64", "::/129", "a/8", "10.0.0.0/-1"]
        {
            assert_eq!(network(bad), None, "{bad}");
        }
    }
}
