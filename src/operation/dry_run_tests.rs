use std::collections::BTreeMap;

use async_trait::async_trait;

use super::*;
use crate::operation::layer::Layer;
use crate::operation::phase::Condition;
use crate::operation::preflight;
use crate::operation::site::{Done, Trouble};
use crate::operation::world::{LayerPlan, NodeView, Seen};
use crate::operation::{BOOTSTRAP, DEPLOY};

/// Shows what it was told to; whoever acts on it fails the test.
struct Shown {
    seen: BTreeMap<Look, Seen>,
}

#[async_trait]
impl Site for Shown {
    async fn look(&mut self, look: &Look, _: &World) -> Result<Seen, Trouble> {
        let unseen = || Trouble::States { faults: vec![format!("no {}", look.title())] };
        self.seen.get(look).cloned().ok_or_else(unseen)
    }

    async fn act(&mut self, action: &Action, _: &World) -> Result<Done, Trouble> {
        panic!("a dry run did: {}", action.sentence());
    }
}

/// A phase that answers by a function.
struct Asks(&'static str, fn(&World) -> Next);

impl Phase for Asks {
    fn title(&self) -> &'static str {
        self.0
    }

    fn next(&self, _: &Goal, world: &World) -> Next {
        (self.1)(world)
    }
}

fn goal() -> Goal {
    Goal {
        name: "node-1".parse().unwrap(),
        roles: [crate::model::role::Role::Node].into(),
        first: false,
        control_plane_ip: [192, 0, 2, 2].into(),
        networks: crate::model::cluster_networks::Networks {
            control_plane: vec!["192.0.2.0/24".parse().unwrap()],
            workload_plane: crate::model::cluster_networks::WorkloadPlane {
                cidrs: vec!["192.0.2.0/24".parse().unwrap()],
                mtu: 1460,
            },
            node_ports: vec!["192.0.2.0/24".parse().unwrap()],
            pods: "10.233.0.0/16".parse().unwrap(),
            services: "10.96.0.0/12".parse().unwrap(),
            api_service_ip: [10, 96, 0, 1].into(),
            dns_ip: [10, 96, 0, 10].into(),
        },
        platforms: ["debian-13-amd64".parse().unwrap()].into(),
        authority: None,
        clock: 0,
    }
}

fn plan(ids: &[&str]) -> LayerPlan {
    let field = Difference::Field { name: "mode".into(), before: None, after: Some("0644".into()) };
    let changes = ids.iter().map(|id| ((*id).to_owned(), vec![field.clone()])).collect();
    LayerPlan { changes, refused: Vec::new(), unchanged: 1 }
}

fn apply(world: &World, layer: Layer) -> Next {
    match crate::operation::phases::layer_applied::applied(world, layer) {
        Ok(()) => Next::Holds,
        Err(next) => next,
    }
}

const BASE: Asks = Asks("base", |world| {
    if !world.join_token {
        return Next::Act(Action::CreateJoinToken);
    }
    apply(world, Layer::Base)
});
const PROXY: Asks = Asks("proxy", |world| apply(world, Layer::Proxy));
const API: Asks = Asks("api", |world| match &world.api {
    None => Next::Look(Look::Api),
    Some(_) => Next::Wait(Condition {
        sentence: "the API".to_owned(),
        last_seen: "nothing".to_owned(),
        limit: Duration::ZERO,
        looks: Vec::new(),
    }),
});
const BLOCKED: Asks = Asks("blocked", |_| {
    let failure = preflight::Failure { what: "no".to_owned(), hint: "yes".to_owned() };
    Next::Blocked(Blocker::Preflight(vec![failure]))
});

async fn preview(phases: &[&dyn Phase], seen: Vec<(Look, Seen)>) -> Result<Preview, RunError> {
    let mut site = Shown { seen: seen.into_iter().collect() };
    dry_run(phases, &goal(), &mut site).await
}

fn base(ids: &[&str]) -> (Look, Seen) {
    (Look::Plan(Layer::Base), Seen::Plan(Layer::Base, plan(ids)))
}

#[tokio::test]
async fn every_action_of_a_phase_is_told_and_none_is_done() {
    let preview = preview(&[&BASE], vec![base(&["file:/a"])]).await.unwrap();
    let sentences: Vec<String> =
        preview.phases[0].actions.iter().map(|planned| planned.action.sentence()).collect();
    assert_eq!(sentences, ["create a join token", "apply base system"]);
    assert_eq!(preview.phases[0].actions[1].changes, plan(&["file:/a"]).changes);
    assert_eq!(preview.phases[0].end, None);
    assert!(preview.changes());
}

#[tokio::test]
async fn a_token_that_is_taken_back_is_no_change() {
    let preview = preview(&[&BASE], vec![base(&[])]).await.unwrap();
    assert_eq!(preview.phases[0].actions.len(), 1);
    assert!(!preview.changes());
}

#[tokio::test]
async fn a_resource_of_two_layers_is_told_once() {
    let proxy = (Look::Plan(Layer::Proxy), Seen::Plan(Layer::Proxy, plan(&["file:/a", "file:/b"])));
    let preview = preview(&[&BASE, &PROXY], vec![base(&["file:/a"]), proxy]).await.unwrap();
    assert_eq!(preview.phases[1].actions[0].changes, plan(&["file:/b"]).changes);
}

#[tokio::test]
async fn phases_after_an_undone_action_say_what_they_can() {
    let preview = preview(&[&BASE, &API, &BLOCKED, &PROXY], vec![base(&["file:/a"])]).await.unwrap();
    let ends: Vec<bool> = preview.phases.iter().map(|phase| phase.end.is_some()).collect();
    assert_eq!(ends, [false, true, true, true]);
    assert_eq!(
        preview.phases[1].end,
        Some(Unforeseen::Unseen {
            look: Look::Api,
            reason: "the states do not fit this host: no the API".to_owned()
        })
    );
}

#[tokio::test]
async fn what_stops_a_run_before_it_did_anything_stops_a_dry_run() {
    assert!(matches!(preview(&[&BLOCKED, &BASE], Vec::new()).await, Err(RunError::Blocked { .. })));
    assert!(matches!(preview(&[&API, &BASE], Vec::new()).await, Err(RunError::Trouble { .. })));
}

#[tokio::test]
async fn a_wait_ends_foresight_and_not_the_dry_run() {
    let api = (Look::Api, Seen::Api(Some("down".to_owned())));
    let preview = preview(&[&API, &BASE], vec![api, base(&[])]).await.unwrap();
    assert!(matches!(preview.phases[0].end, Some(Unforeseen::Wait { .. })));
    assert_eq!(preview.phases[1].end, None);
}

#[tokio::test(start_paused = true)]
async fn a_look_that_may_be_in_vain_does_not_hold_up_the_rest() {
    struct Hangs;
    #[async_trait]
    impl Site for Hangs {
        async fn look(&mut self, _: &Look, _: &World) -> Result<Seen, Trouble> {
            std::future::pending().await
        }
        async fn act(&mut self, action: &Action, _: &World) -> Result<Done, Trouble> {
            panic!("a dry run did: {}", action.sentence());
        }
    }
    let preview = dry_run(&[&BASE, &API], &goal(), &mut Hangs).await.unwrap();
    assert!(matches!(preview.phases[0].end, Some(Unforeseen::Unseen { .. })));
    assert!(matches!(preview.phases[1].end, Some(Unforeseen::Unseen { .. })));
}

#[tokio::test]
async fn the_real_recipes_come_to_an_end_whatever_is_seen() {
    let node = NodeView { pod_cidr: Some("10.233.0.0/24".to_owned()), ..NodeView::default() };
    let facts = crate::engine::roster::tests::facts();
    let seen = |trust: bool| {
        let mut seen = vec![
            (Look::Facts, Seen::Facts(facts.clone())),
            (
                Look::Survey,
                Seen::Survey(crate::operation::survey::Survey { openssl: true, ..Default::default() }),
            ),
            (Look::Node, Seen::Node(Some(node.clone()))),
            (Look::Peers, Seen::Peers(BTreeMap::new())),
            base(&["file:/a"]),
        ];
        if trust {
            seen.push((Look::Trust, Seen::MissingTrust(["ca.crt".to_owned()].into())));
        }
        seen
    };
    for (phases, trust) in [(DEPLOY, false), (BOOTSTRAP, true)] {
        // Preflight is asked with a host that is fit in all that matters here.
        let phases: Vec<&dyn Phase> =
            phases.iter().copied().filter(|phase| phase.title() != "Preflight").collect();
        let preview = preview(&phases, seen(trust)).await.unwrap();
        assert!(preview.changes());
    }
}
