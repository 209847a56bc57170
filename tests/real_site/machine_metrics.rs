//! The metrics of the machine controllers: what they are after a rollout, who may read them, and that the alerts use them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use metalform::controller::controller_metrics::ControllerMetrics;
use metalform::serve::metrics_server::{MetricsServer, MetricsSource};
use metalform::serve::secure_listener::ListenConfig;
use regex::Regex;
use serde_json::Value;
use tokio::sync::watch;

use crate::api::ScriptedApi;
use crate::api::rules::Fate;
use crate::machine_controller::{Performer, cluster, phases, states, until_measured};
use crate::pinned_tls::trusting;
use crate::scripts::now;

/// Name and labels of every series.
fn series(text: &str) -> Vec<(String, BTreeMap<String, String>)> {
    let label = Regex::new(r#"([a-z_]+)="([^"]*)""#).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, labels) = line.rsplit_once(' ').unwrap().0.split_once('{').unwrap_or((line, ""));
            let name = name.split(' ').next().unwrap().to_owned();
            let labels = label.captures_iter(labels).map(|one| (one[1].to_owned(), one[2].to_owned()));
            (name, labels.collect())
        })
        .collect()
}

fn value(text: &str, series: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{series} is not in\n{text}")).parse().unwrap()
}

/// The metrics of controllers that have rolled out two Machines, while they run.
async fn of_a_rollout() -> (ScriptedApi, Arc<ControllerMetrics>, String) {
    let api = cluster(2);
    let performer = Arc::new(Performer::new(&api, "a"));
    let metrics = Arc::new(ControllerMetrics::new(now));
    let text = Mutex::new(String::new());
    until_measured(&api, &performer, &metrics, || {
        let read = metrics.text();
        let is_complete = read.contains("metalform_machinedeployments{rollout=\"Complete\"} 1\n");
        *text.lock().unwrap() = read;
        is_complete && phases(&api) == ["Running"; 2] && states(&api).values().all(|state| state == "InUse")
    })
    .await;
    (api, metrics, text.into_inner().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_rollout_is_seen_in_the_metrics_while_the_process_leads() {
    let (_, metrics, text) = of_a_rollout().await;
    for (series, expected) in [
        ("metalform_leader", 1.0),
        ("metalform_lease_transitions_total{to=\"leader\"}", 1.0),
        ("metalform_hosts{state=\"InUse\"}", 2.0),
        ("metalform_hosts{state=\"Quarantined\"}", 0.0),
        ("metalform_machines{phase=\"Running\"}", 2.0),
        ("metalform_machines_ready", 2.0),
        ("metalform_machine_longest_not_ready_seconds", 0.0),
        ("metalform_machine_creation_to_ready_seconds_count", 2.0),
        ("metalform_host_jobs_total{kind=\"Deploy\",result=\"success\"}", 2.0),
        ("metalform_host_jobs_total{kind=\"Deploy\",result=\"error\"}", 0.0),
        // Each takes five seconds.
        ("metalform_host_job_duration_seconds_sum{kind=\"Deploy\"}", 10.0),
        ("metalform_reconciles_total{controller=\"machine\",result=\"error\"}", 0.0),
    ] {
        let found = value(&text, series);
        assert!((found - expected).abs() < 0.5, "{series}: {found}\n{text}");
    }
    assert!(value(&text, "metalform_reconciles_total{controller=\"machine\",result=\"success\"}") > 2.0);
    assert!(value(&text, "metalform_machine_creation_to_ready_seconds_sum") > 10.0, "{text}");

    // The controllers have ended: another process may have the Lease, and reports the pool.
    let text = metrics.text();
    assert!(!text.contains("metalform_hosts{"), "{text}");
    assert_eq!(value(&text, "metalform_leader"), 0.0);
    assert_eq!(value(&text, "metalform_lease_transitions_total{to=\"standby\"}"), 1.0);
    assert_eq!(value(&text, "metalform_machine_creation_to_ready_seconds_count"), 2.0, "counters are kept");
}

#[tokio::test(start_paused = true)]
async fn no_label_has_the_name_of_an_object() {
    let (api, _, text) = of_a_rollout().await;
    let mut names: BTreeSet<String> = BTreeSet::new();
    for kind in ["hosts", "machines", "machinesets", "machinedeployments"] {
        for object in api.lock().store.all(kind) {
            names.extend(["name", "namespace", "uid"].map(|key| object["metadata"][key].to_string()));
        }
    }
    let values: BTreeSet<String> =
        series(&text).into_iter().flat_map(|(_, labels)| labels.into_values()).collect();
    assert!(names.len() > 8 && values.len() > 30, "{names:?} {values:?}");
    assert!(values.iter().all(|value| !names.contains(&format!("{value:?}"))), "{values:?}");
}

fn alerts() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/machine-alerts.yaml");
    serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn rules(file: &Value) -> Vec<Value> {
    let groups = file["spec"]["groups"].as_array().unwrap();
    groups.iter().flat_map(|group| group["rules"].as_array().unwrap().clone()).collect()
}

#[test]
fn the_alerts_are_a_prometheus_rule() {
    let file = alerts();
    assert_eq!(
        (&file["apiVersion"], &file["kind"]),
        (&"monitoring.coreos.com/v1".into(), &"PrometheusRule".into())
    );
    assert!(file["metadata"]["name"].is_string());
    let groups = file["spec"]["groups"].as_array().unwrap();
    assert!(groups.iter().all(|group| group["name"].is_string()));
    let rules = rules(&file);
    let names: Vec<&str> = rules.iter().map(|rule| rule["alert"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["MetalformMachinesNotReady", "MetalformHostsOutOfService", "MetalformMachineControllersFailing"]
    );
    let duration = Regex::new("^[0-9]+[mh]$").unwrap();
    for rule in rules {
        let keys: Vec<&String> = rule.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["alert", "annotations", "expr", "for", "labels"], "{rule}");
        assert!(duration.is_match(rule["for"].as_str().unwrap()), "{rule}");
        assert!(["warning", "critical"].contains(&rule["labels"]["severity"].as_str().unwrap()), "{rule}");
        for annotation in ["summary", "description"] {
            assert!(rule["annotations"][annotation].as_str().is_some_and(|text| !text.is_empty()), "{rule}");
        }
    }
}

/// Whether a series fits `label="value", other=~"a|b"`.
fn fits(labels: &BTreeMap<String, String>, matchers: &str) -> bool {
    let matcher = Regex::new(r#"([a-z_]+)\s*(=~|!~|!=|=)\s*"([^"]*)""#).unwrap();
    matcher.captures_iter(matchers).all(|one| {
        let Some(found) = labels.get(&one[1]) else { return false };
        let whole = Regex::new(&format!("^(?:{})$", &one[3])).unwrap();
        match &one[2] {
            "=" => *found == one[3],
            "!=" => *found != one[3],
            "=~" => whole.is_match(found),
            _ => !whole.is_match(found),
        }
    })
}

/// Every selector of an alert finds a series, and every alternative of its patterns does.
#[tokio::test(start_paused = true)]
async fn the_alerts_use_metrics_that_are_exported() {
    let (_, _, text) = of_a_rollout().await;
    let series = series(&text);
    let selector = Regex::new(r"\b(metalform_[a-z_]+)(?:\{([^}]*)\})?").unwrap();
    let alternatives = Regex::new(r#"=~\s*"([^"]*)""#).unwrap();
    let mut found = BTreeSet::new();
    for rule in rules(&alerts()) {
        let expression = rule["expr"].as_str().unwrap();
        let before = found.len();
        for one in selector.captures_iter(expression) {
            let matchers = one.get(2).map_or("", |matchers| matchers.as_str());
            let each = match alternatives.captures(matchers) {
                Some(list) => list[1].split('|').map(|value| matchers.replace(&list[1], value)).collect(),
                None => vec![matchers.to_owned()],
            };
            for matchers in each {
                let exists = series.iter().any(|(name, labels)| *name == one[1] && fits(labels, &matchers));
                assert!(exists, "no series {}{{{matchers}}}, which {} uses", &one[1], rule["alert"]);
            }
            found.insert(one[0].to_owned());
        }
        assert!(found.len() > before, "{expression} uses no metric");
    }
    for wrong in ["state=\"Broken\"", "phase=\"Lost\"", "state=~\"Lost\", phase=\"Running\""] {
        assert!(
            series.iter().all(|(name, labels)| name != "metalform_hosts" || !fits(labels, wrong)),
            "{wrong}"
        );
    }
}

/// A server with the metrics `up 1`.
struct Served {
    url: String,
    client: reqwest::Client,
    _directory: tempfile::TempDir,
}

impl Served {
    async fn by(api: &ScriptedApi) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let (certificate, key) = (directory.path().join("tls.crt"), directory.path().join("tls.key"));
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let listen = "127.0.0.1:0".parse().unwrap();
        let config = ListenConfig { listen, certificate, key, clock: || Timestamp::UNIX_EPOCH };
        let (_, client) = watch::channel(Some(api.client()));
        let source = MetricsSource { text: Arc::new(|| "up 1\n".to_owned()), client };
        let server = MetricsServer::bind(&config, source).await.unwrap();
        let url = format!("https://{}", server.address());
        tokio::spawn(server.run(std::future::pending()));
        let tls = trusting(&made.cert);
        let client = reqwest::Client::builder().tls_backend_preconfigured(tls).no_proxy().build().unwrap();
        Self { url, client, _directory: directory }
    }

    async fn get(&self, path: &str, authorization: Option<&str>) -> (u16, String) {
        let request = self.client.get(format!("{}{path}", self.url));
        let request =
            authorization.into_iter().fold(request, |request, one| request.header("Authorization", one));
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }
}

const PROMETHEUS: &str = "system:serviceaccount:monitoring:prometheus";

fn reviewing() -> ScriptedApi {
    let api = ScriptedApi::new();
    {
        let mut server = api.lock();
        server.reviews.tokens.insert("good".to_owned(), PROMETHEUS.to_owned());
        server.reviews.tokens.insert("other".to_owned(), "alice".to_owned());
        server.reviews.readers.insert((PROMETHEUS.to_owned(), "/metrics".to_owned()));
        server.reviews.readers.insert(("alice".to_owned(), "/version".to_owned()));
    }
    api
}

#[tokio::test]
async fn metrics_are_read_with_a_token_and_the_right_alone() {
    let api = reviewing();
    let served = Served::by(&api).await;
    for (path, authorization, status, body) in [
        ("/metrics", None, 401, "a valid bearer token is required\n"),
        ("/metrics", Some("Basic Z29vZDo="), 401, "a valid bearer token is required\n"),
        ("/metrics", Some("Bearer bad"), 401, "a valid bearer token is required\n"),
        ("/metrics", Some("Bearer other"), 403, "user \"alice\" cannot get path \"/metrics\"\n"),
        ("/metrics", Some("Bearer good"), 200, "up 1\n"),
        ("/", Some("Bearer good"), 404, ""),
        ("/metrics/", None, 404, ""),
    ] {
        let found = served.get(path, authorization).await;
        assert_eq!(found, (status, body.to_owned()), "{path} {authorization:?}");
    }
    let response =
        served.client.get(format!("{}/metrics", served.url)).bearer_auth("good").send().await.unwrap();
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    let post =
        served.client.post(format!("{}/metrics", served.url)).bearer_auth("good").send().await.unwrap();
    assert_eq!(post.status().as_u16(), 405);
    let refused = served.client.get(format!("{}/metrics", served.url)).send().await.unwrap();
    assert_eq!(refused.headers()["www-authenticate"], "Bearer");
    // "bad" is of no user; the answers for "other" and "good" are two reviews each, used for every request of a token.
    assert_eq!(api.lock().reviews.asked.len(), 5, "{:?}", api.lock().reviews.asked);
}

#[tokio::test]
async fn without_reviews_nothing_is_served() {
    let api = reviewing();
    let served = Served::by(&api).await;
    for (title, fate) in [
        ("create tokenreviews", Fate::Refused),
        ("create tokenreviews", Fate::Status(403)),
        ("create subjectaccessreviews", Fate::Status(500)),
    ] {
        api.lock().rules.add(title, fate.clone(), Some(1));
        let found = served.get("/metrics", Some("Bearer good")).await;
        assert_eq!(found, (503, "cannot verify the token\n".to_owned()), "{title} {fate:?}");
    }
    // A failure is not remembered.
    assert_eq!(served.get("/metrics", Some("Bearer good")).await.0, 200);
}
