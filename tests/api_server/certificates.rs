//! Keys and certificates of a control plane, from our own CAs.

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use metalform::cli::clock;
use metalform::etcd::client::{DEADLINE, EtcdConnector, EtcdCredentials};
use metalform::pki::authorities::{Ca, generate_ca};
use metalform::pki::authority::Authority;
use metalform::pki::kubeconfig::{Credentials, KubeconfigFile, TrustAnchor};
use metalform::pki::leaf::{Leaf, LeafPair, Usage};
use metalform::pki::service_account::ServiceAccountKey;
use metalform::pki::validity::days;

pub struct Certificates {
    kubernetes: Authority,
    etcd: Authority,
    front_proxy: Authority,
    service_account: ServiceAccountKey,
}

impl Certificates {
    pub fn generate() -> Self {
        let ca = |ca: Ca| generate_ca(ca, clock::now(), &mut rand::rng()).unwrap();
        Self {
            kubernetes: ca(Ca::Kubernetes),
            etcd: ca(Ca::Etcd),
            front_proxy: ca(Ca::FrontProxy),
            service_account: ServiceAccountKey::create(&mut rand::rng()).unwrap(),
        }
    }

    /// Below `kubernetes/pki`, with the names that the static pod has.
    pub fn write(&self, directory: &Path, address: IpAddr) {
        let pki = directory.join("kubernetes/pki");
        fs::create_dir_all(pki.join("etcd")).unwrap();
        let put = |name: &str, text: &str| fs::write(pki.join(name), text).unwrap();
        let pair = |name: &str, pair: LeafPair| {
            put(&format!("{name}.crt"), &pair.certificate);
            put(&format!("{name}.key"), &pair.key);
        };
        put("ca.crt", self.kubernetes.certificate());
        put("etcd/ca.crt", self.etcd.certificate());
        put("front-proxy-ca.crt", self.front_proxy.certificate());
        put("sa.key", self.service_account.private());
        put("sa.pub", self.service_account.public());
        let server = |name: &str| Leaf {
            names: vec![address.to_string()],
            usages: vec![Usage::Server, Usage::Client],
            ..leaf(name, None)
        };
        pair("apiserver", issue(&self.kubernetes, &server("kube-apiserver")));
        pair("etcd/server", issue(&self.etcd, &server("etcd")));
        pair("apiserver-etcd-client", issue(&self.etcd, &leaf("kube-apiserver", None)));
        pair(
            "apiserver-kubelet-client",
            issue(&self.kubernetes, &leaf("kube-apiserver-kubelet-client", None)),
        );
        pair("front-proxy-client", issue(&self.front_proxy, &leaf("front-proxy-client", None)));
    }

    pub fn kubeconfig(&self, server: &str, user: &str, group: Option<&str>) -> String {
        let LeafPair { certificate, key } = issue(&self.kubernetes, &leaf(user, group));
        let file = KubeconfigFile {
            cluster: "metalform".to_owned(),
            server: server.to_owned(),
            anchor: TrustAnchor::Embedded(self.kubernetes.certificate().to_owned()),
            user: user.to_owned(),
            credentials: Credentials::Embedded { certificate, key },
        };
        file.to_yaml()
    }

    pub async fn etcd_client(&self, url: &String) -> etcd_client::Client {
        let LeafPair { certificate, key } = issue(&self.etcd, &leaf("kube-apiserver", None));
        let credentials = EtcdCredentials::from_pem(self.etcd.certificate(), certificate, key);
        credentials.connect(&[url], DEADLINE).await.unwrap()
    }
}

/// A client.
fn leaf(user: &str, group: Option<&str>) -> Leaf {
    Leaf {
        common_name: user.to_owned(),
        organization: group.map(str::to_owned),
        names: Vec::new(),
        usages: vec![Usage::Client],
        lifetime: days(1),
    }
}

fn issue(authority: &Authority, leaf: &Leaf) -> LeafPair {
    authority.issue_pair(leaf, clock::now(), &mut rand::rng()).unwrap()
}
