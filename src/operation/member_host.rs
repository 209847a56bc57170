//! The host of an etcd member while etcd has no quorum, or no API server uses it: what is on its disk, which member it
//! continues as, and with which one its API server does.
//!
//! Scripts, not states: what they change is data, while etcd does not run, and manifests, while no API answers.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::timeout;

use super::etcd_container;
use super::host_access::HostAccess;
use super::script_turn::member_data_turn;
use crate::engine::host::HostError;
use crate::etcd::recovery::{DiskState, EtcdPod, MemberCopy};
use crate::model::image_reference::without_tag;
use crate::model::shell_word::quote_all;
use crate::transport::Program;
use crate::transport::error::TransportError;

/// How long a host may take, its connection included, to be looked at.
const INSPECT_LIMIT: Duration = Duration::from_secs(30);
/// To stop its pods, once a script before this one has ended.
const STOP_LIMIT: Duration = Duration::from_secs(300);
/// To copy a database of 8 GiB, etcd's largest recommended, on a slow disk, and to start etcd with it.
const CONTINUE_LIMIT: Duration = Duration::from_secs(1800);

const INSPECT: &str = include_str!("member_host/inspect.sh");
const STOP: &str =
    concat!(include_str!("cluster_site/pod_processes.sh"), include_str!("cluster_site/stop_pods.sh"));
const API_SERVER: &str = "kube-apiserver";
const CONTROL_PLANE: &str = "kube-apiserver kube-controller-manager kube-scheduler";
const EXPECT_API_SERVER: &str = include_str!("member_host/expect_api_server.sh");
const POINT: &str = include_str!("member_host/point_api_server.sh");
const KEEP: &str = include_str!("member_host/keep_manifests.sh");
const SET_ASIDE: &str = include_str!("cluster_site/set_aside_member_data.sh");
const RECOVER: &str = include_str!("member_host/recover.sh");

/// The host of a member.
#[derive(Clone)]
pub struct MemberHost(pub Arc<dyn HostAccess>);

/// The member that a host continues as, alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoleMember {
    /// Its node.
    pub name: String,
    /// Its peer URL.
    pub peer_url: String,
    /// The image of etcd, with etcdutl(1), by the name under which containerd on the host has it.
    pub image: String,
}

/// Why a script did not end well on the host of a member.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemberHostError {
    /// The host was not reached, or the script failed.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The script was given up. It may still run on the host: the next one waits for it.
    #[error("no answer in {} s", .0.as_secs())]
    TimedOut(Duration),
}

impl MemberHostError {
    /// The connection error, if it is one.
    pub fn connection(&self) -> Option<&TransportError> {
        match self {
            Self::Host(error) => error.connection(),
            Self::TimedOut(_) => None,
        }
    }
}

impl MemberHost {
    /// What is on its disk, but for how far the member has come. Changes nothing.
    ///
    /// # Errors
    /// When the host does not answer.
    pub async fn inspect(&self) -> Result<DiskState, MemberHostError> {
        Ok(parse(&self.run(INSPECT_LIMIT, "etcd-data:inspect", INSPECT.to_owned(), Vec::new()).await?))
    }

    /// Ends its etcd and its control plane, removes their static pods, and sets the data aside. With the client URL of a
    /// member, its API server starts again, with that member. [`Self::recover`] and [`Self::restore`] put the static pods
    /// back.
    ///
    /// # Errors
    /// When one of them does not end.
    pub async fn set_aside(&self, api_server: Option<&str>) -> Result<(), MemberHostError> {
        let script = format!(
            "pods='etcd {CONTROL_PLANE}'\n{}{STOP}\n{KEEP}\n{}\n{SET_ASIDE}",
            member_data_turn(),
            without_control_plane(api_server)
        );
        self.run(STOP_LIMIT, "etcd-data:set aside", script, Vec::new()).await.map(drop)
    }

    /// Ends its control plane, where other nodes' etcd was all it had. With the client URL of a member, its API server
    /// starts again, with that member.
    ///
    /// # Errors
    /// When it does not end.
    pub async fn stop_control_plane(&self, api_server: Option<&str>) -> Result<(), MemberHostError> {
        let remove = without_control_plane(api_server);
        let script = format!("pods='{CONTROL_PLANE}'\n{}{STOP}\n{remove}", member_data_turn());
        self.run(STOP_LIMIT, "static_pod:kube-apiserver", script, Vec::new()).await.map(drop)
    }

    /// Restarts its API server with the member at this client URL, alone. Its etcd is left as it is.
    ///
    /// # Errors
    /// When there is none, and when it does not end.
    pub async fn connect_api_server(&self, url: &str) -> Result<(), MemberHostError> {
        let script = format!(
            "{EXPECT_API_SERVER}\npods={API_SERVER}\n{}{STOP}\n{}",
            member_data_turn(),
            pointed_to(url)
        );
        self.run(STOP_LIMIT, "static_pod:kube-apiserver", script, Vec::new()).await.map(drop)
    }

    /// Makes its data that of the only member, the whole of it or nothing; what it was stays beside it.
    ///
    /// # Errors
    /// The data is what it was then.
    pub async fn recover(&self, member: &SoleMember) -> Result<(), MemberHostError> {
        self.go_on(member, "data", Vec::new()).await
    }

    /// Puts a snapshot in the place of its data, as the only member; what it was stays beside it.
    ///
    /// # Errors
    /// The data is what it was then.
    pub async fn restore(&self, member: &SoleMember, snapshot: Vec<u8>) -> Result<(), MemberHostError> {
        self.go_on(member, "snapshot", snapshot).await
    }

    async fn go_on(
        &self,
        member: &SoleMember,
        source: &str,
        payload: Vec<u8>,
    ) -> Result<(), MemberHostError> {
        let SoleMember { name, peer_url, image } = member;
        let size = payload.len().to_string();
        let arguments = quote_all([image.as_str(), name, peer_url, source, &size]);
        let (turn, functions) = (member_data_turn(), etcd_container::FUNCTIONS);
        let stop = format!("pods='etcd kube-apiserver'\n{turn}{STOP}");
        let script = format!("set -- {arguments}\n{stop}\n{functions}\n{RECOVER}");
        self.run(CONTINUE_LIMIT, "etcd-data:recover", script, payload).await.map(drop)
    }

    async fn run(
        &self,
        limit: Duration,
        resource: &str,
        script: String,
        payload: Vec<u8>,
    ) -> Result<String, MemberHostError> {
        let program = Program { script, payload };
        let ended = timeout(limit, self.0.run(&program)).await;
        let output = ended.map_err(|_| MemberHostError::TimedOut(limit))??;
        if output.status == 0 {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(HostError::of_script(resource, &output).into())
    }
}

/// Manifests that are removed are written again once the node has its member.
fn without_control_plane(api_server: Option<&str>) -> String {
    let removed = CONTROL_PLANE.split(' ').filter(|pod| api_server.is_none() || *pod != API_SERVER);
    let manifests = removed.map(|pod| format!(" /etc/kubernetes/manifests/{pod}.yaml"));
    let point = api_server.map(|url| format!("\n{}", pointed_to(url)));
    format!("rm -f{}{}", manifests.collect::<String>(), point.unwrap_or_default())
}

fn pointed_to(url: &str) -> String {
    format!("etcd={}\n{POINT}", quote_all([url]))
}

fn parse(printed: &str) -> DiskState {
    let values =
        |key: &'static str| printed.lines().filter_map(move |line| line.strip_prefix(key)?.strip_prefix(' '));
    let last_write = values("last-write").next().and_then(|seconds| seconds.parse().ok());
    let last_write = last_write.and_then(|seconds| Timestamp::from_second(seconds).ok());
    let image = values("pod").next().map(without_tag).filter(|image| !image.is_empty());
    let has_leader = values("has-leader").next() == Some("yes");
    // Without any, containerd did not answer.
    let stored: Vec<&str> = values("stored").collect();
    let loaded = |image: &str| stored.is_empty() || stored.contains(&image);
    DiskState::Reached {
        pod: image.map(|image| EtcdPod { loaded: loaded(&image), image }),
        data: last_write.map(|last_write| MemberCopy { last_write, position: None, has_leader }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::engine::share::Share;
    use crate::engine::shells::{run, shells};
    use crate::operation::host_access::EngineHost;
    use crate::transport::Output;
    use crate::transport::fake::{FakeTransport, HangingTransport};

    #[tokio::test(start_paused = true)]
    async fn a_host_on_which_nothing_ends_is_given_up() {
        let engine = EngineHost::new("m2".parse().unwrap(), Arc::new(HangingTransport), Share::default());
        let host = MemberHost(Arc::new(engine));
        let (name, image) = ("m2".to_owned(), "a.b/etcd:1".to_owned());
        let member = SoleMember { name, peer_url: "https://192.0.2.2:2380".to_owned(), image };
        let given_up = |seconds| Err(MemberHostError::TimedOut(Duration::from_secs(seconds)));
        let inspected = host.inspect().await.map(drop);
        assert_eq!(inspected.clone().unwrap_err().to_string(), "no answer in 30 s");
        assert_eq!(inspected, given_up(30));
        assert_eq!(host.set_aside(None).await, given_up(300));
        assert_eq!(host.stop_control_plane(None).await, given_up(300));
        assert_eq!(host.connect_api_server("https://192.0.2.3:2379").await, given_up(300));
        assert_eq!(host.recover(&member).await, given_up(1800));
        assert_eq!(host.restore(&member, Vec::new()).await, given_up(1800));
    }

    #[test]
    fn an_api_server_starts_again_with_the_member_that_continues() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().to_str().unwrap();
        let manifest = |pod: &str| root.path().join(format!("{pod}.yaml"));
        let line = "        - --etcd-servers=https://192.0.2.1:2379,https://192.0.2.2:2379\n";
        for shell in shells() {
            CONTROL_PLANE.split(' ').for_each(|pod| {
                std::fs::write(manifest(pod), format!("command:\n{line}        - --v=2\n")).unwrap();
            });
            let changed = |api_server| {
                let script =
                    without_control_plane(api_server).replace("/etc/kubernetes/manifests", directory);
                let output =
                    run(shell, &Program { script: format!("set -eu\n{script}"), payload: Vec::new() });
                assert_eq!(output.status, 0, "{shell}");
                CONTROL_PLANE.split(' ').map(|pod| std::fs::read_to_string(manifest(pod)).ok()).collect()
            };
            let kept = "command:\n        - --etcd-servers=https://192.0.2.3:2379\n        - --v=2\n";
            let pointed: Vec<Option<String>> = changed(Some("https://192.0.2.3:2379"));
            assert_eq!(pointed, [Some(kept.to_owned()), None, None], "{shell}");
            assert_eq!(changed(None), [None, None, None], "{shell}");
            assert_eq!(changed(Some("https://192.0.2.3:2379")), [None, None, None], "{shell}");
        }
    }

    #[test]
    fn only_an_api_server_that_is_there_is_connected() {
        let root = tempfile::tempdir().unwrap();
        let script = EXPECT_API_SERVER.replace("/etc/kubernetes/manifests", root.path().to_str().unwrap());
        let status = |shell| run(shell, &Program { script: script.clone(), payload: Vec::new() }).status;
        for shell in shells() {
            assert_eq!(status(shell), 1, "{shell}");
            std::fs::write(root.path().join("kube-apiserver.yaml"), "").unwrap();
            assert_eq!(status(shell), 0, "{shell}");
            std::fs::remove_file(root.path().join("kube-apiserver.yaml")).unwrap();
        }
    }

    #[tokio::test]
    async fn static_pods_are_kept_before_they_are_removed() {
        let ends_well = |_: &Program| Ok(Output { status: 0, stdout: Vec::new(), stderr: Vec::new() });
        let fake = Arc::new(FakeTransport::new(ends_well));
        let engine = EngineHost::new("m2".parse().unwrap(), fake.clone(), Share::default());
        MemberHost(Arc::new(engine)).set_aside(None).await.unwrap();
        let programs = fake.programs();
        let place = |text: &str| programs[0].script.find(text).unwrap();
        assert!(place(STOP) < place(KEEP) && place(KEEP) < place("rm -f /etc/kubernetes/manifests/"));
    }

    /// Its Node was applied, and never deployed; or it was reset.
    #[tokio::test]
    async fn on_a_bare_host_nothing_is_to_be_stopped() {
        let ends_well = |_: &Program| Ok(Output { status: 0, stdout: Vec::new(), stderr: Vec::new() });
        let fake = Arc::new(FakeTransport::new(ends_well));
        let engine = EngineHost::new("m2".parse().unwrap(), fake.clone(), Share::default());
        let host = MemberHost(Arc::new(engine));
        for url in [None, Some("https://192.0.2.3:2379")] {
            host.set_aside(url).await.unwrap();
            host.stop_control_plane(url).await.unwrap();
        }
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().to_str().unwrap();
        let path = std::env::var_os("PATH").unwrap();
        for name in ["mkdir", "flock", "rm"] {
            let place =
                std::env::split_paths(&path).map(|place| place.join(name)).find(|place| place.exists());
            std::os::unix::fs::symlink(place.unwrap(), root.path().join(name)).unwrap();
        }
        let systemctl = root.path().join("systemctl");
        std::fs::write(&systemctl, "#!/bin/sh\necho inactive\n").unwrap();
        std::fs::set_permissions(&systemctl, std::fs::Permissions::from_mode(0o755)).unwrap();
        let containerd = root.path().join("run/containerd");
        for (shell, program) in shells()
            .into_iter()
            .flat_map(|shell| fake.programs().into_iter().map(move |program| (shell, program)))
        {
            let script = ["/run/", "/var/lib/etcd", "/etc/kubernetes/manifests"]
                .iter()
                .fold(program.script, |script, place| script.replace(place, &format!("{directory}{place}")));
            let program = Program { script: format!("PATH={directory}\n{script}"), payload: Vec::new() };
            assert_eq!(run(shell, &program).status, 0, "{shell} {}", program.script);
            // Its package was removed: what it has started runs on.
            std::fs::create_dir_all(&containerd).unwrap();
            assert_ne!(run(shell, &program).status, 0, "{shell} {}", program.script);
            std::fs::remove_dir(&containerd).unwrap();
        }
    }

    #[test]
    fn data_is_set_aside_before_its_pod_is_removed() {
        for shell in shells() {
            let root = tempfile::tempdir().unwrap();
            let directory = root.path().to_str().unwrap();
            let [data, recovery, manifest] =
                ["member", "recovery", "etcd.yaml"].map(|name| root.path().join(name));
            // A directory cannot be removed as a file: the script ends there.
            for path in [&data, &recovery, &manifest] {
                std::fs::create_dir(path).unwrap();
            }
            let script = ["/var/lib/etcd", "/etc/kubernetes/manifests"]
                .iter()
                .fold(format!("set -e\n{SET_ASIDE}"), |script, place| script.replace(place, directory));
            let output = run(shell, &Program { script, payload: Vec::new() });
            assert_ne!(output.status, 0, "{shell}");
            assert!(!data.exists() && manifest.exists(), "{shell}");
            assert!(!recovery.exists(), "{shell}: it would be taken for the data later");
        }
    }

    #[test]
    fn a_host_without_data_or_pod_says_so() {
        let state = |pod: Option<(&str, bool)>, seconds: Option<i64>| DiskState::Reached {
            pod: pod.map(|(image, loaded)| EtcdPod { image: image.to_owned(), loaded }),
            data: seconds.map(|seconds| MemberCopy {
                last_write: Timestamp::from_second(seconds).unwrap(),
                position: None,
                has_leader: false,
            }),
        };
        let known = Some(("a.b/etcd@sha256:ab", true));
        let listed = "stored a.b/c@sha256:cd\nstored a.b/etcd@sha256:ab\n";
        let pod = "pod a.b/etcd:3@sha256:ab\n";
        assert_eq!(
            parse(&format!("{pod}{listed}last-write 1763890000\n")),
            state(known, Some(1_763_890_000))
        );
        assert_eq!(parse(pod), state(known, None));
        assert_eq!(
            parse(&format!("{pod}stored a.b/c@sha256:cd\n")),
            state(known.map(|(image, _)| (image, false)), None)
        );
        assert_eq!(parse("pod \n"), state(None, None));
        let DiskState::Reached { data, .. } = parse("last-write 1763890000\nhas-leader yes\n") else {
            panic!("it was reached")
        };
        assert!(data.is_some_and(|data| data.has_leader));
        assert_eq!(parse(""), state(None, None));
    }

    #[test]
    fn a_voter_says_on_its_own_host_whether_it_has_a_leader() {
        let root = tempfile::tempdir().unwrap();
        let (directory, timeout) = (root.path().to_str().unwrap(), root.path().join("timeout"));
        for shell in shells() {
            for (metrics, has_leader) in [
                ("etcd_server_has_leader 1\\netcd_server_is_learner 0\\n", true),
                ("etcd_server_has_leader 0\\netcd_server_is_learner 0\\n", false),
                ("etcd_server_has_leader 1\\netcd_server_is_learner 1\\n", false),
                ("", false),
            ] {
                std::fs::write(&timeout, format!("#!/bin/sh\nprintf '{metrics}'\n")).unwrap();
                std::fs::set_permissions(&timeout, std::fs::Permissions::from_mode(0o755)).unwrap();
                let script = INSPECT
                    .replace("/etc/kubernetes/manifests", directory)
                    .replace("/var/lib/etcd", &format!("{directory}/etcd"));
                let script = format!("PATH={directory}:$PATH\n{script}");
                let output = run(shell, &Program { script, payload: Vec::new() });
                let printed = String::from_utf8(output.stdout).unwrap();
                assert_eq!((output.status, printed.contains("has-leader yes")), (0, has_leader), "{shell}");
            }
        }
    }

    #[test]
    fn the_image_is_that_of_the_static_pod_on_the_host() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().to_str().unwrap();
        let ctr = root.path().join("ctr");
        let manifest = "containers:\n    - name: etcd\n      image: a.b/etcd:3@sha256:ab\n      command:\n";
        let (used, kept) = (root.path().join("etcd.yaml"), root.path().join("etcd/stopped/etcd.yaml"));
        std::fs::create_dir_all(kept.parent().unwrap()).unwrap();
        let lists = [("echo a.b/c:1; echo a.b/etcd@sha256:ab", true), ("echo", false), ("exit 1", true)];
        for (shell, (list, loaded)) in shells().into_iter().flat_map(|shell| lists.map(|list| (shell, list)))
        {
            // A recovery has removed the one and kept the other; or there was none.
            let (manifest_at, other) = if loaded { (&used, &kept) } else { (&kept, &used) };
            std::fs::write(manifest_at, manifest).unwrap();
            let _none = std::fs::remove_file(other);
            std::fs::write(&ctr, format!("#!/bin/sh\n{list}\n")).unwrap();
            std::fs::set_permissions(&ctr, std::fs::Permissions::from_mode(0o755)).unwrap();
            let script = INSPECT
                .replace("/etc/kubernetes/manifests", directory)
                .replace("/var/lib/etcd", &format!("{directory}/etcd"));
            let script = format!("PATH={directory}:$PATH\n{script}");
            let output = run(shell, &Program { script, payload: Vec::new() });
            assert_eq!(output.status, 0, "{shell} {list}");
            let pod = Some(EtcdPod { image: "a.b/etcd@sha256:ab".to_owned(), loaded });
            let printed = String::from_utf8(output.stdout).unwrap();
            assert_eq!(parse(&printed), DiskState::Reached { pod, data: None }, "{shell} {list}");
        }
    }
}
