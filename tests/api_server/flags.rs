//! Flags and files of etcd and kube-apiserver: those of our static pod, in a directory of their own.

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use metalform::pki::encryption_key::encryption_key;

use super::template_text;

const API_PORT: u16 = 6443;
const ETCD_PORT: u16 = 2379;

pub fn url(address: IpAddr) -> String {
    format!("https://{address}:{API_PORT}")
}

pub fn etcd_url(address: IpAddr) -> String {
    format!("https://{address}:{ETCD_PORT}")
}

/// What `/etc/kubernetes` is there.
fn configuration(directory: &Path) -> String {
    directory.join("kubernetes").display().to_string()
}

/// The files that the flags name, without keys and certificates.
pub fn write_files(directory: &Path) {
    let configuration = configuration(directory);
    for name in ["authentication", "encryption", "audit-policy"] {
        let text = template_text(&format!("kube-apiserver/{name}.yaml.j2"));
        let text = text.replace("{{ cluster.secrets.encryption_key }}", &encryption_key(&mut rand::rng()));
        fs::write(format!("{configuration}/{name}.yaml"), text).unwrap();
    }
}

/// The command of `templates/kube-apiserver/static-pod.yaml.j2`, without the feature gates that a cluster may set.
pub fn of_api_server(directory: &Path, address: IpAddr) -> Vec<String> {
    let template = template_text("kube-apiserver/static-pod.yaml.j2");
    let lines = template.lines().filter_map(|line| line.trim().strip_prefix("- --"));
    let flags: Vec<String> = lines
        .filter(|flag| !flag.starts_with("feature-gates="))
        .map(|flag| {
            let flag = flag
                .replace("{{ node.control_plane_ip }}", &address.to_string())
                .replace("{{ node.etcd.endpoints | join(\",\") }}", &etcd_url(address))
                .replace("{{ cluster.networks.services }}", "10.96.0.0/16")
                .replace("/etc/kubernetes", &configuration(directory))
                .replace("/var/log/kubernetes", &directory.display().to_string());
            format!("--{flag}")
        })
        .collect();
    assert!(flags.len() > 30 && !flags.iter().any(|flag| flag.contains("{{")), "{flags:?}");
    flags
}

pub fn of_etcd(directory: &Path, address: IpAddr) -> Vec<String> {
    let (client, pki) = (etcd_url(address), format!("{}/pki/etcd", configuration(directory)));
    let peer = format!("http://{address}:2380");
    vec![
        "--name=etcd".to_owned(),
        format!("--data-dir={}", directory.join("data").display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=etcd={peer}"),
        "--client-cert-auth=true".to_owned(),
        format!("--trusted-ca-file={pki}/ca.crt"),
        format!("--cert-file={pki}/server.crt"),
        format!("--key-file={pki}/server.key"),
        "--unsafe-no-fsync=true".to_owned(),
    ]
}
