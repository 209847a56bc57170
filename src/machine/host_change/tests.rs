use super::*;

fn status(state: &str, claim: bool) -> HostStatus {
    let claim = if claim {
        "claim: {machine: {namespace: kube-system, name: m-1, uid: u1}, token: 3, since: '2026-11-23T11:00:00Z'}, "
    } else {
        ""
    };
    serde_saphyr::from_str(&format!("{{state: {state}, {claim}lastToken: 3}}")).unwrap()
}

/// `+inspect -release`: set and removed, without the prefix.
fn decided(
    state: &str,
    claim: bool,
    present: &[&str],
    request: &HostRequest,
    claimant: ClaimantStatus,
) -> String {
    let now = "2026-11-23T12:00:00Z".parse().unwrap();
    let present = present.iter().map(|key| ((*key).to_owned(), String::new())).collect();
    match annotations(&status(state, claim), &present, request, claimant, now) {
        Ok(annotations) => {
            let change = |(key, value): (&'static str, Option<String>)| {
                let sign = if value.is_some() { '+' } else { '-' };
                format!("{sign}{}", key.trim_start_matches("metalform.dev/"))
            };
            annotations.into_iter().map(change).collect::<Vec<_>>().join(" ")
        }
        Err(refusal) => refusal.to_string(),
    }
}

#[test]
fn every_request_is_decided_by_state_and_claim() {
    let inspect = HostRequest::Inspect;
    let release = HostRequest::Release { powered_off: false };
    let off = HostRequest::Release { powered_off: true };
    let quarantine = HostRequest::Quarantine { reason: "smoke".into() };
    let lost = HostRequest::Lost { reason: "stolen".into() };
    let (exists, ready, gone) = (ClaimantStatus::Exists, ClaimantStatus::NodeReady, ClaimantStatus::Gone);
    let runs = "Machine kube-system/m-1 exists and may run its node";
    let node_runs = "Machine kube-system/m-1 no longer exists, but its Node is Ready";
    for (request, state, claim, claimant, expected) in [
        (&inspect, "Unknown", false, gone, "+inspect"),
        (&inspect, "Inspecting", false, gone, "+inspect"),
        (&inspect, "Available", false, gone, "+inspect"),
        (&inspect, "Unreachable", false, gone, "+inspect"),
        (&inspect, "Quarantined", false, gone, "its state is Quarantined, which only a release ends"),
        (&inspect, "Lost", false, gone, "its state is Lost, which only a release ends"),
        (&inspect, "InUse", true, exists, "it belongs to Machine kube-system/m-1, state InUse"),
        (&inspect, "Unreachable", true, exists, "it belongs to Machine kube-system/m-1, state Unreachable"),
        (&inspect, "Resetting", true, gone, "it belongs to Machine kube-system/m-1, state Resetting"),
        (&quarantine, "Available", false, gone, "+quarantine -release"),
        (&quarantine, "Unknown", false, gone, "+quarantine -release"),
        (&quarantine, "Quarantined", false, gone, "+quarantine -release"),
        (&quarantine, "Resetting", true, exists, "+quarantine -release"),
        (&quarantine, "InUse", true, exists, "+quarantine -release"),
        (&lost, "Available", false, gone, "+lost"),
        (&lost, "Unreachable", true, gone, "+lost"),
        (&lost, "Quarantined", true, gone, "+lost"),
        (&lost, "Lost", true, gone, "+lost"),
        (&lost, "InUse", true, ready, "it runs the Node of Machine kube-system/m-1, which is Ready"),
        (&release, "Quarantined", false, gone, "-quarantine +release"),
        (&release, "Lost", false, gone, "-lost -quarantine +release"),
        (&release, "Quarantined", true, exists, "-quarantine +release"),
        (&release, "Quarantined", true, gone, "-quarantine +release"),
        (&release, "Available", false, gone, "its state is Available, and it has no claim"),
        (&release, "Unknown", false, gone, "its state is Unknown, and it has no claim"),
        (&release, "Unreachable", false, gone, "its state is Unreachable, and it has no claim"),
        (&release, "Claimed", true, exists, runs),
        (&release, "InUse", true, exists, runs),
        (&release, "Unreachable", true, exists, runs),
        (&release, "InUse", true, ready, node_runs),
        (&release, "Resetting", true, gone, ""),
        (&off, "InUse", true, exists, "+powered-off"),
        (&off, "Unreachable", true, exists, "+powered-off"),
        (&off, "InUse", true, ready, "+powered-off"),
        (&off, "Unreachable", true, gone, "+powered-off"),
        // That it is off releases nothing where there is nothing.
        (&off, "Available", false, gone, "its state is Available, and it has no claim"),
        (&off, "Quarantined", true, exists, "-quarantine +release"),
    ] {
        let found = decided(state, claim, &[], request, claimant);
        assert_eq!(found, expected, "{request:?} {state} {claim} {claimant:?}");
    }
}

#[test]
fn a_quarantine_that_has_not_begun_is_withdrawn() {
    let release = HostRequest::Release { powered_off: false };
    for (state, present, expected) in [
        ("Available", &[HOST_QUARANTINE][..], "-quarantine"),
        ("Available", &[HOST_RELEASE], "its state is Available, and it has no claim"),
        ("Quarantined", &[HOST_QUARANTINE], "-quarantine +release"),
        // It was declared lost, and answers.
        ("Available", &[HOST_LOST], "-lost"),
        ("Lost", &[HOST_LOST], "-lost -quarantine +release"),
    ] {
        let found = decided(state, false, present, &release, ClaimantStatus::Gone);
        assert_eq!(found, expected, "{state} {present:?}");
    }
}
