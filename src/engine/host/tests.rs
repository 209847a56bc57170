use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;

use super::*;
use crate::engine::Item;
use crate::engine::apply::PackageManager;
use crate::engine::cancel::Cancel;
use crate::engine::share::LARGE;
use crate::resource::contract::change::{Change, Difference, Verdict};
use crate::resource::contract::probe::{Answer, PathState};
use crate::resource::contract::step::{Access, Step};
use crate::transport::fake::{FakeTransport, HangingTransport};
use crate::transport::local::LocalTransport;
use crate::transport::{LineSink, Replies};

/// Files that must exist, each created by a step of its own; a file is required only when the one before exists.
#[derive(Debug, Clone)]
struct Files(Vec<(String, Step)>);

impl Desired for Files {
    fn items(&self) -> Vec<Item> {
        let item =
            |(path, _): &(String, Step)| Item { id: format!("file:{path}"), probes: vec![probe(path)] };
        self.0.iter().map(item).collect()
    }

    fn verdicts(&self, observed: &Observed) -> Vec<(String, Verdict)> {
        let mut before_is_there = true;
        let verdict = |(path, step): &(String, Step)| {
            let there = observed.get(&probe(path)) != Some(&Answer::Path(PathState::Absent));
            let wanted = before_is_there && !there;
            before_is_there = there;
            let verdict = if wanted {
                let state = Difference::Field {
                    name: "state".to_owned(),
                    before: None,
                    after: Some("present".to_owned()),
                };
                Verdict::Change(Change { differences: vec![state], steps: vec![step.clone()] })
            } else {
                Verdict::NoChange { reason: "it exists, or is not required yet".into() }
            };
            (format!("file:{path}"), verdict)
        };
        self.0.iter().map(verdict).collect()
    }
}

fn probe(path: &str) -> Probe {
    Probe::Path { path: path.to_owned(), unless_sha256: None }
}

fn touch(path: &str) -> (String, Step) {
    (path.to_owned(), Step::Run { script: format!("touch '{path}'") })
}

fn host() -> HostSession<'static> {
    HostSession::new("here".parse().unwrap(), &LocalTransport, Nonce::new(11))
}

fn at(dir: &Path, name: &str) -> String {
    dir.join(name).to_str().unwrap().to_owned()
}

fn no_signer(_: &CertificateRequest, _: &str) -> Result<String, String> {
    Err("no signer".into())
}

async fn converged(files: &Files, events: EventSink<'_>) -> Result<Convergence, HostError> {
    let nothing = |_: &Facts| Err(());
    let looked = host().look(Some(files.clone()), nothing).await?.unwrap();
    host().converge(looked, &no_signer, events).await
}

#[tokio::test]
async fn a_host_converges_over_passes_and_then_needs_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let names = [at(dir.path(), "a"), at(dir.path(), "b")];
    let files = Files(names.iter().map(|name| touch(name)).collect());
    let seen = Mutex::new(Vec::new());
    let outcome = converged(&files, &|event| seen.lock().unwrap().push(event)).await.unwrap();
    let ids: Vec<String> = names.iter().map(|name| format!("file:{name}")).collect();
    assert_eq!(outcome, Convergence { changed: ids.clone(), unchanged: 0 });
    let host: HostName = "here".parse().unwrap();
    let of = |id: &String, unchanged| {
        [
            Event::Planned { host: host.clone(), changes: vec![id.clone()], unchanged },
            Event::ResourceBegun { host: host.clone(), resource: id.clone() },
            Event::ResourceDone { host: host.clone(), resource: id.clone() },
        ]
    };
    assert_eq!(seen.into_inner().unwrap(), [of(&ids[0], 1), of(&ids[1], 1)].concat());
    let again = converged(&files, &|event| panic!("{event:?}")).await.unwrap();
    assert_eq!(again, Convergence { changed: Vec::new(), unchanged: 2 });
}

#[tokio::test]
async fn a_resource_that_stays_different_is_named_and_not_changed_twice() {
    let dir = tempfile::tempdir().unwrap();
    let path = at(dir.path(), "a");
    let files = Files(vec![(path.clone(), Step::Run { script: ":".into() })]);
    let error = converged(&files, &|_| {}).await.unwrap_err();
    let message = format!("still differs after apply: file:{path} (state: (none) → present)");
    assert_eq!(error.to_string(), message);
}

#[tokio::test]
async fn more_than_three_passes_are_an_error_in_the_states() {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..4).map(|n| at(dir.path(), &n.to_string())).collect();
    let error = converged(&Files(names.iter().map(|name| touch(name)).collect()), &|_| {}).await.unwrap_err();
    assert!(
        matches!(error, HostError::StillDiffers { resources } if resources[0].ends_with("/3 (state: (none) → present)"))
    );
}

#[tokio::test]
async fn a_failed_step_names_its_resource() {
    let files = Files(vec![("/absent/x".into(), Step::Run { script: "echo no room >&2; exit 28".into() })]);
    let error = converged(&files, &|_| {}).await.unwrap_err();
    assert_eq!(error.to_string(), "file:/absent/x failed with status 28: no room");
}

#[tokio::test]
async fn a_certificate_is_requested_signed_and_written_and_the_key_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let owner = fs::metadata(dir.path()).unwrap();
    let access = Access { owner: owner.uid().to_string(), group: owner.gid().to_string(), mode: 0o644 };
    let issue = |name: &str| {
        let (certificate, key) =
            (at(dir.path(), &format!("{name}.crt")), at(dir.path(), &format!("{name}.key")));
        let request = CertificateRequest {
            certificate: certificate.clone(),
            key,
            authority: "kubernetes".into(),
            common_name: format!("system:node:{name}/x"),
            organizations: vec!["system:nodes".into()],
            names: Vec::new(),
            usages: Vec::new(),
            access: access.clone(),
            days: 1,
        };
        (
            certificate,
            Verdict::Change(Change { differences: Vec::new(), steps: vec![Step::IssueCertificate(request)] }),
        )
    };
    let plan = Plan { verdicts: vec![issue("a"), issue("b")] };
    let sign = |request: &CertificateRequest, pem: &str| {
        assert!(pem.starts_with("-----BEGIN CERTIFICATE REQUEST-----"));
        assert!(pem.ends_with("-----END CERTIFICATE REQUEST-----\n"));
        Ok(format!("signed {}", request.common_name))
    };
    let seen = Mutex::new(Vec::new());
    let record = |event: Event| {
        seen.lock().unwrap().push(match event {
            Event::ResourceBegun { resource, .. } => {
                format!("begun {}", resource.rsplit('/').next().unwrap())
            }
            Event::ResourceDone { resource, .. } => format!("done {}", resource.rsplit('/').next().unwrap()),
            other => panic!("{other:?}"),
        });
    };
    let host = host();
    host.apply(&plan, PackageManager::Apt, &sign, &record).await.unwrap();
    assert_eq!(seen.into_inner().unwrap(), ["begun a.crt", "begun b.crt", "done a.crt", "done b.crt"]);
    assert_eq!(fs::read_to_string(at(dir.path(), "a.crt")).unwrap(), "signed system:node:a/x");
    let key = fs::read(at(dir.path(), "a.key")).unwrap();
    assert_eq!(fs::metadata(at(dir.path(), "a.key")).unwrap().permissions().mode() & 0o7777, 0o600);
    host.apply(&plan, PackageManager::Apt, &sign, &|_| {}).await.unwrap();
    assert_eq!(fs::read(at(dir.path(), "a.key")).unwrap(), key, "a key that is there is kept");
    let refused = host.apply(&plan, PackageManager::Apt, &no_signer, &|_| {}).await.unwrap_err();
    assert_eq!(refused.to_string(), format!("certificate {}: no signer", at(dir.path(), "a.crt")));
}

#[tokio::test]
async fn a_refusal_changes_nothing() {
    let steps = vec![Step::Run { script: "exit 1".into() }];
    let change = Verdict::Change(Change { differences: Vec::new(), steps });
    let refuse = Verdict::Refuse { reason: "it is a directory".into() };
    let plan = Plan { verdicts: vec![("command:x".into(), change), ("file:/etc".into(), refuse)] };
    let error = host().apply(&plan, PackageManager::Apt, &no_signer, &|_| {}).await.unwrap_err();
    assert_eq!(error.to_string(), "refused: file:/etc: it is a directory");
}

/// One program answers, in one run of the transport, whether or not the states depend on facts.
#[tokio::test]
async fn a_host_is_observed_by_one_program() {
    let dir = tempfile::tempdir().unwrap();
    let files = Files(vec![touch(&at(dir.path(), "a"))]);
    let observed = host().look(Some(files.clone()), |_| Err("facts")).await.unwrap().unwrap();
    assert_eq!(observed.facts, None, "nothing requires them");
    let by_facts = |facts: &Facts| (facts.hostname != "another").then(|| files.clone()).ok_or("no");
    let mut looked = host().look(None, by_facts).await.unwrap().unwrap();
    assert!(looked.facts.take().is_some_and(|facts| facts.memory > 0));
    assert_eq!(looked.observed, observed.observed);
    assert_eq!(looked.plan().works().len(), 1);
    let refused = host().look::<Files, _>(None, |facts| Err(facts.cpus)).await.unwrap();
    assert!(refused.is_err_and(|cpus| cpus > 0));
    let nothing = host().look(Some(Files(Vec::new())), |_| Err(())).await.unwrap().unwrap();
    assert!(nothing.facts.is_some(), "a host without resources is reached all the same");
}

#[tokio::test]
async fn output_that_is_no_observation_is_an_error() {
    let fake = FakeTransport::new(|_| {
        Ok(Output { status: 0, stdout: b"This account is disabled.\n".to_vec(), stderr: Vec::new() })
    });
    let host = HostSession::new("here".parse().unwrap(), &fake, Nonce::new(11));
    let expected = "the host returned \"This account is disabled.\\n\" instead of an observation";
    for known in [Some(Files(Vec::new())), None] {
        let error = host.look(known, |_| Err(())).await.unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

/// The program that applies a change also verifies it: one run to observe, one to apply.
#[tokio::test]
async fn a_change_takes_one_run_and_its_verification_none() {
    let dir = tempfile::tempdir().unwrap();
    let files = Files(vec![touch(&at(dir.path(), "a")), ("/etc/hostname".to_owned(), Step::SwapOff)]);
    let counting = Counting::default();
    let host = HostSession::new("here".parse().unwrap(), &counting, Nonce::new(11));
    let looked = host.look(Some(files), |_| Err(())).await.unwrap().unwrap();
    let outcome = host.converge(looked, &no_signer, &|_| {}).await.unwrap();
    assert_eq!((outcome.changed.len(), outcome.unchanged), (1, 1));
    assert_eq!(counting.0.into_inner(), 2);
}

#[derive(Default)]
struct Counting(AtomicUsize);

#[async_trait]
impl Transport for Counting {
    async fn converse(
        &self,
        program: &Program,
        replies: Replies,
        progress: &mut LineSink<'_>,
    ) -> Result<Output, TransportError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        LocalTransport.converse(program, replies, progress).await
    }
}

#[tokio::test]
async fn a_large_payload_waits_for_an_upload_slot() {
    let dir = tempfile::tempdir().unwrap();
    let owner = fs::metadata(dir.path()).unwrap();
    let access = Access { owner: owner.uid().to_string(), group: owner.gid().to_string(), mode: 0o600 };
    // What can be compressed is not large.
    let mut state = 1_u64;
    let content: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_be_bytes()[0]
    })
    .take(2 * LARGE)
    .collect();
    let path = at(dir.path(), "large");
    let step = Step::WriteFile { path: path.clone(), content, access, sensitive: false };
    let change = Verdict::Change(Change { differences: Vec::new(), steps: vec![step] });
    let plan = Plan { verdicts: vec![(format!("file:{path}"), change)] };
    let share = Share::new(Cancel::never(), std::num::NonZeroUsize::MIN);
    let taken = share.free_turn().unwrap();
    let (reported, waiting) = tokio::sync::oneshot::channel();
    let reported = Mutex::new(Some(reported));
    let events = |event: Event| {
        if let Event::Waiting { condition, last_seen, .. } = event {
            reported.lock().unwrap().take().unwrap().send((condition, last_seen)).unwrap();
        }
    };
    let host = host().sharing(&share);
    let applying = host.apply(&plan, PackageManager::Apt, &no_signer, &events);
    tokio::pin!(applying);
    let seen = tokio::select! {
        ended = &mut applying => panic!("{ended:?}"),
        seen = waiting => seen.unwrap(),
    };
    assert_eq!(seen, ("a free upload slot".to_owned(), "1 of 1 uploads are running".to_owned()));
    assert!(!Path::new(&path).exists());
    drop(taken);
    applying.await.unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), 2 * LARGE as u64);
}

#[tokio::test(start_paused = true)]
async fn every_operation_has_a_limit_that_its_error_names() {
    let second = std::time::Duration::from_secs(1);
    let host = HostSession::new("node-1".parse().unwrap(), &HangingTransport, Nonce::new(11))
        .within(Limits { observe: 60 * second, apply: 900 * second });
    let observed = host.observe(&BTreeSet::from([Probe::Swap])).await.unwrap_err();
    let files = || Files(vec![touch("/a")]);
    let by_facts = host.look(None::<Files>, |_| Err(())).await.map(drop).unwrap_err();
    for error in [
        observed,
        host.facts().await.unwrap_err(),
        host.plan(&files()).await.unwrap_err(),
        host.look_at(files()).await.map(drop).unwrap_err(),
        by_facts,
    ] {
        assert_eq!(error.to_string(), "observing node-1 did not finish within 60 s");
    }
    let verdicts =
        files().verdicts(&Observed([(probe("/a"), Answer::Path(PathState::Absent))].into_iter().collect()));
    let applied = host.apply(&Plan { verdicts }, PackageManager::Apt, &no_signer, &|_| {}).await;
    assert_eq!(applied.unwrap_err().to_string(), "applying changes to node-1 did not finish within 900 s");
}

/// The program has begun a resource and hangs: the error names the resource, and its processes are ended.
#[tokio::test]
async fn a_resource_that_hangs_is_named_and_ended() {
    let dir = tempfile::tempdir().unwrap();
    let started = at(dir.path(), "started");
    let files = Files(vec![(
        at(dir.path(), "a"),
        Step::Run { script: format!("echo $$ >'{started}'; exec sleep 600") },
    )]);
    let limits = Limits { apply: std::time::Duration::from_secs(2), ..Limits::default() };
    let host = host().within(limits);
    let looked = host.look_at(files).await.unwrap();
    let error = host.converge(looked, &no_signer, &|_| {}).await.unwrap_err();
    let path = at(dir.path(), "a");
    assert_eq!(
        error.to_string(),
        format!("applying changes to here did not finish within 2 s, while applying file:{path}")
    );
    let process = fs::read_to_string(&started).unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.trim())).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
}

#[test]
fn the_error_of_a_script_has_the_end_of_what_it_printed() {
    let output = |stderr: String| Output { status: 3, stdout: Vec::new(), stderr: stderr.into_bytes() };
    let warning = "time=\"2026-11-23T11:47:14Z\" level=warning msg=\"DEPRECATION\"\n".repeat(100);
    let error =
        HostError::of_script("etcd-data:recover", &output(format!("{warning}first\n{warning}last\n")));
    assert_eq!(error.to_string(), "etcd-data:recover failed with status 3: first\nlast");
    let many: String = (0..2000).map(|number| format!("line {number}\n")).collect();
    let error = HostError::of_script("x", &output(many)).to_string();
    assert!(error.len() < 5000 && error.ends_with("line 1999"), "{}", error.len());
}
