//! What a recovery of etcd would do, for the person who decides on it.

use std::fmt::Write as _;

use super::diff::printable;
use super::table::table;
use crate::etcd::reconnection::{Listed, MemberNode};
use crate::etcd::recovery::{DiskState, MemberOnDisk};
use crate::model::name::HostName;
use crate::service::etcd_reconnect::PreparedReconnection;
use crate::service::etcd_recover::{Prepared, PreparedRecovery};

const HEADER: [&str; 5] = ["NODE", "DATA", "LAST-WRITE", "REVISION", "WHAT HAPPENS"];

/// What happens to which node, and what is lost.
pub fn text(prepared: &Prepared) -> String {
    match prepared {
        Prepared::Recovery(prepared) => recovery(prepared),
        Prepared::Reconnection(prepared) => reconnection(prepared),
    }
}

fn reconnection(prepared: &PreparedReconnection) -> String {
    let plan = &prepared.plan;
    let mut rows = vec![[plan.member.to_string(), "API servers continue with its etcd member".to_owned()]];
    let is_lost = |node: &MemberNode<HostName>| node.listed == Listed::Lost;
    let member = |node: &MemberNode<HostName>| match node.listed {
        Listed::Lost => "the data of its own etcd member is lost: it is replaced",
        Listed::No => "its own etcd member joins again",
        Listed::Healthy | Listed::Silent => "it is deployed",
    };
    let row = |first: &str, node: &MemberNode<HostName>| {
        [node.node.to_string(), format!("{first}{}", member(node))]
    };
    rows.extend(plan.api_servers.iter().map(|node| row("its API server restarts; ", node)));
    rows.extend(plan.joining.iter().map(|node| row("", node)));
    let healthy = prepared.working.healthy_voters().count();
    let voters = prepared.working.voters().count();
    let mount = if plan.api_servers.iter().chain(&plan.joining).any(is_lost) {
        "If the disk of /var/lib/etcd is only not mounted, mount it instead: the member then resumes.\n"
    } else {
        ""
    };
    format!(
        "{}\netcd has its quorum ({healthy} of {voters} voting members are healthy), and no API server uses it. Nothing that \
         was written is lost.\n{mount}",
        table(&["NODE", "WHAT HAPPENS"], &rows)
    )
}

fn recovery(prepared: &PreparedRecovery) -> String {
    let plan = &prepared.plan;
    let mut rows = vec![row(
        &plan.survivor,
        match prepared.snapshot {
            None => "etcd continues with this data alone".to_owned(),
            Some(_) => "etcd continues with the snapshot here; the data is set aside".to_owned(),
        },
    )];
    let joins = |_: &_| "is stopped, its data set aside; joins again".to_owned();
    rows.extend(plan.set_aside.iter().map(|member| row(member, joins(member))));
    rows.extend(plan.unreachable.iter().map(|member| row(member, "must be off, and stay off".to_owned())));
    let mut text = table(&HEADER, &rows);
    let _infallible = writeln!(text, "\n{}", lost(prepared));
    for member in &plan.unreachable {
        if let DiskState::Unreachable { reason } = &member.state {
            let _infallible = writeln!(text, "{}: {}", member.node, printable(reason));
        }
    }
    if !plan.unreachable.is_empty() {
        text.push_str(
            "Should members on hosts that do not answer still run, there would be two clusters. Later, replace those \
             machines (`metalform deploy-node NAME --replace`) or remove them (`metalform remove-node NAME --offline`).\n",
        );
    }
    text
}

fn lost(prepared: &PreparedRecovery) -> String {
    match (&prepared.snapshot, &prepared.working) {
        (Some(snapshot), working) => {
            let now =
                working.iter().flat_map(|membership| membership.voters().filter_map(|voter| voter.status()));
            let now = now.map(|status| status.revision).max();
            let now = now.map(|revision| format!(" etcd has its quorum, and revision {revision} now."));
            format!(
                "All that was written after the snapshot {} ({}) is lost.{}",
                snapshot.file.display(),
                snapshot.age,
                now.unwrap_or_default(),
            )
        }
        (None, _) => {
            let data = prepared.plan.survivor.data();
            let revision = data.and_then(|data| data.position).map(|position| position.revision);
            let revision = revision.map_or_else(String::new, |revision| format!(" revision {revision},"));
            let last = data.map_or_else(String::new, |data| format!(" {:.0}", data.last_write));
            format!(
                "All that {} does not have is lost: what was written after{revision}{last}.",
                prepared.plan.survivor.node
            )
        }
    }
}

fn row(member: &MemberOnDisk<HostName>, what: String) -> [String; 5] {
    let data = member.data();
    let position = data.and_then(|data| data.position);
    let state = match (&member.state, data) {
        (DiskState::Unreachable { .. } | DiskState::Running { .. }, _) => "unknown",
        (DiskState::Reached { .. }, Some(_)) => "present",
        (DiskState::Reached { .. }, None) => "lost",
    };
    let dash = || "-".to_owned();
    [
        member.node.to_string(),
        state.to_owned(),
        data.map_or_else(dash, |data| format!("{:.0}", data.last_write)),
        position.map_or_else(dash, |position| position.revision.to_string()),
        what,
    ]
}
