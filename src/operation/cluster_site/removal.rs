//! The host of a node that is removed.

use super::ClusterSite;
use crate::operation::effect::Returned;
use crate::operation::site::EffectError;

const STOP_NODE: &str = concat!(
    include_str!("recorded.sh"),
    include_str!("stop_node.sh"),
    include_str!("forget_kept_manifests.sh"),
    include_str!("forget_packet_rules.sh")
);

impl ClusterSite {
    pub(super) async fn stop_control_plane(&self) -> Result<Returned, EffectError> {
        self.run("static_pod:kube-apiserver", include_str!("stop_control_plane.sh")).await
    }

    pub(super) async fn stop_node(&self) -> Result<Returned, EffectError> {
        self.run("service:kubelet", STOP_NODE).await
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use crate::engine::shells::{run, shells};
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
}
