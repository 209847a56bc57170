//! `route`: a live route of the main table. It does not outlive a reboot by itself: a unit brings it back.

use std::net::IpAddr;

use crate::resource::contract::change::{Change, Verdict};
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::Step;
use crate::resource::fields::field::{FieldSort, FieldSpec};
use crate::resource::fields::given::{FieldError, Given};

/// Its fields; at least one must be given.
pub const FIELDS: &[FieldSpec] = &[
    FieldSpec { name: "via", sort: FieldSort::Text, required: false, about: "Address of the gateway." },
    FieldSpec { name: "device", sort: FieldSort::Text, required: false, about: "Network interface." },
];

/// A route to a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    destination: String,
    /// In the order of `ip route`; empty when it should be absent.
    hops: Vec<(&'static str, String)>,
}

impl Route {
    pub(in crate::resource) fn parse(name: &str, given: &Given) -> Result<Self, FieldError> {
        let Some(destination) = network(name) else {
            let reason = "it must be a network in CIDR form, as 10.96.0.0/12";
            return Err(FieldError::Name { kind: "route", name: name.to_owned(), reason });
        };
        if let Some(via) = given.text("via")
            && via.parse::<IpAddr>().is_err()
        {
            return Err(given.invalid("via", "it must be an IP address"));
        }
        if let Some(device) = given.text("device") {
            // dev_valid_name() of the kernel.
            let good = !device.is_empty() && device.len() < 16 && !device.contains(['/', ':']);
            if !good || device.contains(char::is_whitespace) {
                return Err(given.invalid("device", "it is not the name of a network interface"));
            }
        }
        let hops: Vec<_> = [("via", given.text("via")), ("dev", given.text("device"))]
            .into_iter()
            .filter_map(|(word, value)| Some((word, value?)))
            .collect();
        match given.ensure {
            Ensure::Present if hops.is_empty() => Err(given.invalid("via", "via or device must be given")),
            Ensure::Present => Ok(Self { destination, hops }),
            Ensure::Absent => Ok(Self { destination, hops: Vec::new() }),
        }
    }

    pub(in crate::resource) fn probes(&self) -> Vec<Probe> {
        vec![Probe::Route { destination: self.destination.clone() }]
    }

    pub(in crate::resource) fn diff(&self, observed: &Observed) -> Result<Verdict, Refusal> {
        let live = observed.line(Probe::Route { destination: self.destination.clone() })?;
        let mut change = Change::default();
        if self.hops.is_empty() {
            if live.is_some() {
                change.field("route", live, None);
                change.steps.push(Step::Run { script: format!("ip route del {}", self.destination) });
            }
            return Ok(change.or("is absent"));
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
        Ok(change.or(format!("goes {}", words.join(" "))))
    }
}

/// The network as `ip route` takes it; `None` when bits below its prefix are set.
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
