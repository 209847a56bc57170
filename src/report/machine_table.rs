//! Machines as a table, and one of them with its conditions and Events.

use super::table::{columns, table};
use crate::service::machine_list::{DescribedMachine, ListedMachine};

const HEAD: [&str; 9] =
    ["NAME", "PHASE", "HOST", "NODE", "READY", "VERSION", "MACHINESET", "CREATED", "PROVIDER-ID"];
/// Columns without `-o wide`.
const NARROW: usize = 6;

/// One line for each Machine.
pub fn text(machines: &[ListedMachine], wide: bool) -> String {
    let columns = if wide { HEAD.len() } else { NARROW };
    let rows: Vec<Vec<String>> =
        machines.iter().map(|machine| cells(machine).into_iter().take(columns).collect()).collect();
    table(&HEAD[..columns], &rows)
}

fn cells(machine: &ListedMachine) -> [String; 9] {
    let or_dash = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    let phase = match (machine.deleting, machine.phase) {
        (true, _) => "Deleting".to_owned(),
        (false, Some(phase)) => format!("{phase:?}"),
        (false, None) => "-".to_owned(),
    };
    [
        machine.name.clone(),
        phase,
        or_dash(&machine.host),
        or_dash(&machine.node),
        or_dash(&machine.ready),
        machine.version.clone(),
        or_dash(&machine.machine_set),
        machine.created.map_or_else(|| "-".to_owned(), |created| created.to_string()),
        or_dash(&machine.provider_id),
    ]
}

/// What is known of one Machine, its conditions and its Events, the latest last.
pub fn details(described: &DescribedMachine) -> String {
    let machine = &described.machine;
    let mut rows: Vec<[String; 2]> = HEAD
        .iter()
        .zip(cells(machine))
        .filter(|(_, value)| value != "-")
        .map(|(head, value)| [format!("{}:", head.to_lowercase()), value])
        .collect();
    rows.insert(1, ["namespace:".to_owned(), machine.namespace.clone()]);
    if let Some(host) = &described.host {
        rows.push(["host state:".to_owned(), format!("{} ({})", host.state, host.address)]);
    }
    rows.extend(described.error.clone().map(|error| ["error:".to_owned(), error]));
    let mut text: String = columns(&rows, "  ").into_iter().map(|line| line + "\n").collect();
    if !described.conditions.is_empty() {
        let rows: Vec<[String; 5]> = described
            .conditions
            .iter()
            .map(|one| {
                let time = one.last_transition_time.0.to_string();
                [one.type_.clone(), one.status.clone(), time, one.reason.clone(), one.message.clone()]
            })
            .collect();
        text.push('\n');
        text.push_str(&table(&["CONDITION", "STATUS", "SINCE", "REASON", "MESSAGE"], &rows));
    }
    if !described.events.is_empty() {
        let rows: Vec<[String; 4]> = described
            .events
            .iter()
            .map(|one| {
                let time = one.time.map_or_else(|| "-".to_owned(), |time| time.to_string());
                [time, one.type_.clone(), one.reason.clone(), one.message.clone()]
            })
            .collect();
        text.push('\n');
        text.push_str(&table(&["EVENT", "TYPE", "REASON", "MESSAGE"], &rows));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::api::machine::Machine;
    use crate::service::machine_list::MachineEvent;

    fn machine(status: &str) -> Machine {
        serde_saphyr::from_str(&format!(
            "{{apiVersion: cluster.k8s.io/v1alpha1, kind: Machine, metadata: {{name: m-1, namespace: kube-system}}, spec: {{
               versions: {{kubelet: 1.35.4}}, providerSpec: {{value: {{}}}}}}, status: {{{status}}}}}"
        ))
        .unwrap()
    }

    #[test]
    fn what_is_not_known_is_a_dash() {
        let machines = [
            ListedMachine::from(&machine("")),
            ListedMachine::from(&machine(
                "phase: Running, host: rack-2, nodeRef: {name: rack-2}, conditions: [{type: Ready, status: 'True',
                 reason: R, message: '', lastTransitionTime: '2026-11-23T12:00:00Z'}]",
            )),
        ];
        assert_eq!(
            text(&machines, false),
            "NAME   PHASE     HOST     NODE     READY   VERSION\n\
             m-1    -         -        -        -       1.35.4\n\
             m-1    Running   rack-2   rack-2   True    1.35.4\n"
        );
    }

    #[test]
    fn details_are_fields_conditions_and_events() {
        let machine = machine("phase: Provisioning, host: rack-2");
        let event = MachineEvent {
            time: Some("2026-11-23T12:00:00Z".parse().unwrap()),
            type_: "Warning".to_owned(),
            reason: "HostClaimed".to_owned(),
            message: "host rack-2".to_owned(),
        };
        let conditions = serde_saphyr::from_str(
            "[{type: Claimed, status: 'True', reason: R, message: host rack-2, lastTransitionTime: '2026-11-23T11:00:00Z'}]",
        );
        let described = DescribedMachine {
            machine: ListedMachine::from(&machine),
            error: Some("CreateError: no SSH connection".to_owned()),
            host: None,
            conditions: conditions.unwrap(),
            events: vec![event],
        };
        assert_eq!(
            details(&described),
            "name:       m-1\n\
             namespace:  kube-system\n\
             phase:      Provisioning\n\
             host:       rack-2\n\
             version:    1.35.4\n\
             error:      CreateError: no SSH connection\n\
             \n\
             CONDITION   STATUS   SINCE                  REASON   MESSAGE\n\
             Claimed     True     2026-11-23T11:00:00Z   R        host rack-2\n\
             \n\
             EVENT                  TYPE      REASON        MESSAGE\n\
             2026-11-23T12:00:00Z   Warning   HostClaimed   host rack-2\n"
        );
    }
}
