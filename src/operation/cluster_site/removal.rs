//! The host of a node that is removed.

use std::time::Duration;

use super::ClusterSite;
use crate::engine::wait::{WaitStatus, wait_for};
use crate::kube_api::pod_name::PodName;
use crate::kube_api::{pod_removal, service_endpoints};
use crate::model::error_chain::error_chain;
use crate::operation::class::FailureClass;
use crate::operation::effect::Returned;
use crate::operation::site::{EffectError, in_time};

/// How long the API may take to remove pods.
const LIMIT: (Duration, FailureClass) = (Duration::from_secs(10), FailureClass::Api);
/// How long the controller manager may take to remove pods from EndpointSlices: another one takes over 17 s after the end of
/// the one that leads.
const ENDPOINTS_LIMIT: Duration = Duration::from_secs(30);
const STOP_KUBELET: &str = include_str!("stop_kubelet.sh");
const STOP_CONTAINERS: &str = concat!(
    include_str!("recorded.sh"),
    include_str!("pod_processes.sh"),
    include_str!("end_pods.sh"),
    include_str!("stop_containers.sh"),
    include_str!("forget_kept_manifests.sh"),
    include_str!("forget_packet_rules.sh")
);
const STOP_CONTROL_PLANE: &str =
    concat!(include_str!("pod_processes.sh"), include_str!("stop_control_plane.sh"));

impl ClusterSite {
    pub(super) async fn stop_control_plane(&self) -> Result<Returned, EffectError> {
        self.run("static_pod:kube-apiserver", STOP_CONTROL_PLANE).await
    }

    /// Containers end once no Service sends requests to them. What the API does not do of this the controllers of the cluster
    /// do later.
    pub(super) async fn stop_node(&self) -> Result<Returned, EffectError> {
        self.run("service:kubelet", STOP_KUBELET).await?;
        let withdrawn = self.withdraw_from_services().await;
        let returned = self.run("service:containerd", STOP_CONTAINERS).await?;
        let removed = match withdrawn {
            Ok(()) => self.remove_ended_pods().await,
            failed => failed,
        };
        if let Err(failure) = removed {
            let failure = error_chain(&failure);
            tracing::warn!(node = %self.goal.name, "could not remove its pods from the API: {failure}");
        }
        Ok(returned)
    }

    async fn withdraw_from_services(&self) -> Result<(), EffectError> {
        let node = &self.goal.name;
        let removed = async {
            let client = self.client().await?;
            let pods = pod_removal::remove_of_daemon_sets(&client, node).await?;
            Ok((client, pods))
        };
        let (client, pods) = in_time(LIMIT, removed).await?;
        let condition = format!("the controller manager to remove the pods of {node} from EndpointSlices");
        let waited = wait_for(condition, ENDPOINTS_LIMIT, async || {
            match service_endpoints::serving(&client, &pods).await {
                Ok(serving) if serving.is_empty() => WaitStatus::Holds(()),
                Ok(serving) => {
                    WaitStatus::NotYet(serving.iter().map(PodName::to_string).collect::<Vec<_>>().join(", "))
                }
                // The API server that answered may have stopped since.
                Err(error) => WaitStatus::NotYet(error_chain(&error)),
            }
        });
        if let Err(late) = waited.await {
            tracing::warn!(%node, "Services may send requests to pods that end: {late}");
        }
        Ok(())
    }

    async fn remove_ended_pods(&self) -> Result<(), EffectError> {
        in_time(LIMIT, async { Ok(pod_removal::remove_ended(&self.client().await?, &self.goal.name).await?) })
            .await
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use crate::engine::shells::{run, shells};
    use crate::operation::survey::CONTROL_PLANE_ENDS;
    use crate::transport::Program;

    /// As iptables-nft prints it. The first table is not its own.
    const SAVED: &str = "# Table `nat' contains incompatible base-chains, use 'nft' tool to list them.\n*nat\n\
                         :POSTROUTING ACCEPT [0:0]\n-A PREROUTING -j KUBE-SERVICES\nCOMMIT\n# Completed\n*filter\n\
                         :INPUT ACCEPT [0:0]\nCOMMIT\n*mangle\n:FORWARD ACCEPT [0:0]\nCOMMIT\n";
    const TABLES: &str = "table ip nat\ntable ip filter\ntable ip mangle\ntable ip kube-proxy\ntable inet cni_hostport\n\
                          table inet technicians\n";

    fn program(directory: &Path, name: &str, text: &str) {
        let path = directory.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn packet_rules_of_an_administrator_stay() {
        for shell in shells() {
            let host = tempfile::tempdir().unwrap();
            let root = host.path().to_str().unwrap();
            std::fs::write(host.path().join("inventory"), "nftables\tip mangle\t\n").unwrap();
            std::fs::write(host.path().join("saved"), SAVED).unwrap();
            std::fs::write(host.path().join("tables"), TABLES).unwrap();
            program(host.path(), "iptables-save", &format!("cat {root}/saved"));
            program(host.path(), "ip6tables-save", "exit 1");
            let nft =
                format!("case $1 in list) cat {root}/tables ;; *) echo \"$@\" >>{root}/deleted ;; esac");
            program(host.path(), "nft", &nft);
            let script = format!(
                "set -e\nPATH={root}:$PATH\n{}before={root}\n{}",
                include_str!("recorded.sh"),
                include_str!("forget_packet_rules.sh")
            );
            let output = run(shell, &Program { script, payload: Vec::new() });
            assert!(output.status == 0 && output.stderr.is_empty(), "{shell}: {output:?}");
            let deleted = std::fs::read_to_string(host.path().join("deleted")).unwrap();
            let of_kubernetes =
                "delete table ip kube-proxy\ndelete table inet cni_hostport\ndelete table ip filter\n";
            assert_eq!(deleted, of_kubernetes, "{shell}");
        }
    }

    #[test]
    fn a_package_that_was_removed_and_not_purged_was_not_installed() {
        for shell in shells() {
            let host = tempfile::tempdir().unwrap();
            let root = host.path().to_str().unwrap();
            let before =
                "package\thtop\tinstall installed\npackage\thaproxy\tdeinstall config-files\nunit\tbird\tb\n";
            std::fs::write(host.path().join("inventory"), before).unwrap();
            let packages =
                "printf '%s\\n' 'installed haproxy' 'installed htop' 'installed bird' 'config-files runc'";
            program(host.path(), "dpkg-query", packages);
            let script = format!(
                "set -e\nPATH={root}:$PATH\n{}before={root}\n{}installed_packages | unrecorded package\n",
                include_str!("recorded.sh"),
                include_str!("installed_packages.sh")
            );
            let output = run(shell, &Program { script, payload: Vec::new() });
            assert!(output.status == 0 && output.stderr.is_empty(), "{shell}: {output:?}");
            assert_eq!(String::from_utf8_lossy(&output.stdout), "haproxy\nbird\n", "{shell}");
        }
    }

    /// A host whose containerd does not run, with the processes of a pod and of SSH.
    struct Cut(tempfile::TempDir);

    impl Cut {
        fn new(pod: &str) -> Self {
            let host = tempfile::tempdir().unwrap();
            // Below a container of another program are pods that are not this node's.
            let others = ["system.slice/ssh.service", "lxc.payload.a/kubepods/pod1"];
            let v2 = pod.starts_with("kubepods.slice");
            let others = others.into_iter().take(if v2 { 2 } else { 1 }).map(|cgroup| (cgroup, "4711\n"));
            for (cgroup, processes) in others.chain([(pod, "4242\n0\n")]) {
                let cgroup = host.path().join("sys/fs/cgroup").join(cgroup);
                std::fs::create_dir_all(&cgroup).unwrap();
                std::fs::write(cgroup.join("cgroup.procs"), processes).unwrap();
            }
            if v2 {
                std::fs::write(host.path().join("sys/fs/cgroup/cgroup.controllers"), "cpu\n").unwrap();
            }
            std::fs::create_dir_all(host.path().join("etc/apt/sources.list.d")).unwrap();
            std::fs::write(host.path().join("etc/apt/sources.list.d/metalform.sources"), "").unwrap();
            let systemctl = "case $1 in show) echo activating ;; *) exit 1 ;; esac";
            program(host.path(), "systemctl", systemctl);
            program(host.path(), "ip", "exit 1");
            Self(host)
        }

        /// Whether a survey finds a control plane whose manifests are gone.
        fn control_plane_ends(&self) -> bool {
            self.0.path().join(CONTROL_PLANE_ENDS.trim_start_matches('/')).exists()
        }

        /// The status, and what was written to standard error.
        fn run(&self, shell: &str, functions: &str, script: &str) -> (i32, String) {
            let root = self.0.path().display();
            let places = [
                "/sys/fs/cgroup",
                "/etc/kubernetes",
                "/etc/apt",
                "/etc/yum.repos.d",
                "/var/lib",
                "/run/metalform",
            ];
            let script = places
                .iter()
                .fold(script.to_owned(), |script, place| script.replace(place, &format!("{root}{place}")));
            let script = format!("cd {root}\nPATH={root}:$PATH\n{functions}\n{script}");
            let output = run(shell, &Program { script, payload: Vec::new() });
            (output.status, String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }

    #[test]
    fn pods_end_without_containerd_and_nothing_else_does() {
        let script = concat!(
            include_str!("stop_kubelet.sh"),
            include_str!("pod_processes.sh"),
            include_str!("end_pods.sh"),
            include_str!("stop_containers.sh")
        );
        let v1 = "cpu/kubepods/burstable/pod1/container";
        let v2 = "kubepods.slice/kubepods-burstable.slice/container.scope";
        let kills = |pod: &str| {
            format!(
                "kill() {{ echo \"$@\" >>killed; : >sys/fs/cgroup/{pod}/cgroup.procs; }}\nsleep() {{ :; }}"
            )
        };
        let group = format!(
            "kill() {{ echo \"$@\" >>killed; }}\nsleep() {{ \
             if grep -qx 1 sys/fs/cgroup/kubepods.slice/cgroup.kill; then : >sys/fs/cgroup/{v2}/cgroup.procs; fi; }}"
        );
        let stays = "kill() { :; }\nsleep() { :; }".to_owned();
        for shell in shells() {
            for (pod, has_group, functions, expected, killed) in [
                (v1, false, kills(v1), (0, ""), "-KILL 4242\n"),
                (v2, false, kills(v2), (0, ""), "-KILL 4242\n"),
                (v2, true, group.clone(), (0, ""), ""),
                (v1, false, stays.clone(), (1, "processes of pods do not end: 4242\n"), ""),
            ] {
                let host = Cut::new(pod);
                if has_group {
                    std::fs::write(host.0.path().join("sys/fs/cgroup/kubepods.slice/cgroup.kill"), "")
                        .unwrap();
                }
                let (status, stderr) = host.run(shell, &functions, script);
                assert_eq!((status, stderr.as_str()), expected, "{shell}: {pod}");
                assert!(host.0.path().join("var/lib/metalform/resetting").exists(), "{shell}: {pod}");
                let found = std::fs::read_to_string(host.0.path().join("killed")).unwrap_or_default();
                assert_eq!(found, killed, "{shell}: {pod}");
            }
        }
    }

    #[test]
    fn a_control_plane_has_not_ended_while_pods_run_without_containerd() {
        for shell in shells() {
            let host = Cut::new("kubepods.slice/container.scope");
            let expected = "containerd.service is activating, and processes of pods run: repair containerd, or reboot \
                            the host\n";
            assert_eq!(host.run(shell, "", super::STOP_CONTROL_PLANE), (1, expected.to_owned()), "{shell}");
            assert!(host.control_plane_ends(), "{shell}: the next run tries again");
            std::fs::remove_dir_all(host.0.path().join("sys/fs/cgroup/kubepods.slice")).unwrap();
            assert_eq!(host.run(shell, "", super::STOP_CONTROL_PLANE), (0, String::new()), "{shell}");
            assert!(!host.control_plane_ends(), "{shell}");
        }
    }

    /// Whatever containerd lists as its tasks: it leaves out one whose shim does not answer.
    #[test]
    fn a_static_pod_has_ended_when_its_processes_have() {
        const STOP_PODS: &str = concat!(include_str!("pod_processes.sh"), include_str!("stop_pods.sh"));
        let systemctl = "case $* in *containerd*) echo active ;; show*) echo inactive ;; *) exit 1 ;; esac";
        let lists = "case $* in *'containers list'*kube-system*etcd | *'containers list'*kube-system*kube-apiserver) \
                     echo c0ffee ;; *'containers list'*) ;; *) exit 9 ;; esac";
        let stays = "kill() { echo \"$@\" >>killed; }\nsleep() { :; }";
        for (shell, pod) in shells().into_iter().flat_map(|shell| {
            let v2 = "kubepods.slice/kubepods-pod1.slice/cri-containerd-c0ffee.scope";
            [(shell, "cpu/kubepods/burstable/pod1/c0ffee"), (shell, v2)]
        }) {
            let ends = format!(
                "kill() {{ echo \"$@\" >>killed; : >sys/fs/cgroup/{pod}/cgroup.procs; }}\nsleep() {{ :; }}"
            );
            for (script, signal, name) in
                [(STOP_PODS, "-KILL", "etcd"), (super::STOP_CONTROL_PLANE, "-TERM", "the control plane")]
            {
                let status = |functions: &str, ctr: &str| {
                    let host = Cut::new(pod);
                    program(host.0.path(), "systemctl", systemctl);
                    program(host.0.path(), "ctr", ctr);
                    let (status, stderr) = host.run(shell, functions, script);
                    let killed = std::fs::read_to_string(host.0.path().join("killed")).unwrap_or_default();
                    let ends = signal == "-TERM" && status != 0;
                    assert_eq!(host.control_plane_ends(), ends, "{shell}: {name}");
                    (status, stderr, killed)
                };
                let once = format!("{signal} 4242\n");
                assert_eq!(status(&ends, lists), (0, String::new(), once.clone()), "{shell}: {name}");
                let other = "echo decaf";
                assert_eq!(status(&ends, other), (0, String::new(), String::new()), "{shell}: {name}");
                let (failed, _, killed) = status(&ends, "exit 7");
                assert_eq!((failed, killed.as_str()), (7, ""), "{shell}: {name}");
                let (failed, stderr, killed) = status(stays, lists);
                assert_eq!(
                    (failed, stderr),
                    (1, format!("{name} does not end: processes 4242\n")),
                    "{shell}"
                );
                // A second signal would cut the end of an API server short.
                let signals = if signal == "-TERM" { 1 } else { 100 };
                assert_eq!(killed, once.repeat(signals), "{shell}: {name}");
            }
        }
    }
}
