//! What happens to hosts, and what people do.

use jiff::Timestamp;

use super::api::Api;
use super::hosts::Metals;
use crate::machine::api::host_state::HostState;
use crate::machine::dice::Dice;
use crate::machine::host_state::HostOrders;

/// One of many.
pub(super) fn disturb(api: &mut Api, metals: &mut Metals, dice: &mut Dice, now: Timestamp) -> Option<String> {
    let hosts: Vec<_> = api.now.hosts.keys().cloned().collect();
    let host = dice.pick(&hosts)?;
    let machines: Vec<_> = api.now.machines.keys().cloned().collect();
    let is_on = metals.metals[&host].on;
    let metal = metals.metals.get_mut(&host)?;
    Some(match dice.roll(12) {
        0 if is_on => {
            (metal.on, metal.registered) = (false, false);
            format!("{host} loses power")
        }
        0 | 1 if !is_on => {
            // What was confirmed is withdrawn first.
            api.change_host(&host, |host| host.orders = HostOrders::default());
            metal.on = true;
            format!("{host} is switched on")
        }
        2 => {
            metal.cut = !metal.cut;
            format!("{host} cut: {}", metal.cut)
        }
        3 if !is_on => {
            api.change_host(&host, |host| host.orders.powered_off = true);
            format!("{host} is confirmed off")
        }
        4 if !is_on && dice.one_in(3) => {
            api.change_host(&host, |host| host.orders.lost = true);
            format!("{host} is declared lost")
        }
        5 => {
            metal.broken = !metal.broken;
            format!("{host} broken: {}", metal.broken)
        }
        6 if api.now.hosts[&host].state == HostState::Quarantined => {
            api.change_host(&host, |host| host.orders.release = true);
            format!("{host} is released")
        }
        7 if dice.one_in(3) => {
            api.change_nodes(|nodes| {
                nodes.remove(&host);
            });
            format!("the node of {host} is deleted by hand")
        }
        8 if dice.one_in(6) => {
            api.change_host(&host, |host| host.orders.quarantine = !host.orders.quarantine);
            format!("the quarantine of {host} is ordered or not")
        }
        9..12 => {
            let uid = dice.pick(&machines)?;
            if api.now.machines[&uid].0.deleting_since.is_some() {
                return None;
            }
            api.change_machine(&uid, |machine| machine.deleting_since = Some(now));
            format!("{uid} is deleted by hand")
        }
        _ => return None,
    })
}

/// All is well from here on.
pub(super) fn settle(api: &mut Api, metals: &mut Metals) {
    for (name, metal) in &mut metals.metals {
        (metal.on, metal.cut, metal.broken) = (true, false, false);
        api.change_host(name, |host| host.orders = HostOrders::default());
    }
}

/// An operator returns hosts to the pool.
pub(super) fn release(api: &mut Api) -> bool {
    let quarantined = |host: &&crate::machine::host_state::HostView| {
        host.state == HostState::Quarantined && !host.orders.release
    };
    let host = api.now.hosts.values().find(quarantined).map(|host| host.name.clone());
    if let Some(name) = &host {
        api.change_host(name, |host| host.orders.release = true);
    }
    host.is_some()
}
