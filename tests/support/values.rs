//! The cluster as templates see it, with dummies for everything secret.

use std::collections::BTreeMap;

use metalform::model::cluster::{Cluster, KubernetesOptions, Repository, Secrets};
use metalform::model::platform::PackageFormat;

use super::given::networks;

pub fn cluster() -> Cluster {
    let map = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect::<BTreeMap<_, _>>()
    };
    Cluster {
        name: "metalform".to_owned(),
        networks: networks(),
        versions: map(&[("kubernetes", "1.35.4"), ("etcd", "3.6.16")]),
        packages: map(&[
            ("containerd", "2.2.1"),
            ("kube-proxy", "1.35.4"),
            ("kubectl", "1.35.4"),
            ("kubelet", "1.35.4"),
            ("kubernetes-cni", "1.9.1"),
            ("registry", "3.0.0"),
        ]),
        images: map(&[
            ("coredns", "registry.k8s.io/coredns/coredns:v1.14.7"),
            ("etcd", "registry.k8s.io/etcd:3.6.16-0"),
            ("kube-apiserver", "registry.k8s.io/kube-apiserver:v1.35.4"),
            ("kube-controller-manager", "registry.k8s.io/kube-controller-manager:v1.35.4"),
            ("kube-scheduler", "registry.k8s.io/kube-scheduler:v1.35.4"),
            ("pause", "registry.k8s.io/pause:3.10.1"),
        ]),
        kubernetes: KubernetesOptions::default(),
        repository: Repository {
            format: PackageFormat::Deb,
            suite: "debian-13".to_owned(),
            uri: "https://192.0.2.11:8443/apt".to_owned(),
            key: "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nREPOSITORY\n-----END PGP PUBLIC KEY BLOCK-----\n"
                .to_owned(),
        },
        registry: "https://192.0.2.11:8443".to_owned(),
        authorities: map(&[
            ("kubernetes", "CERTIFICATE OF kubernetes\n"),
            ("etcd", "CERTIFICATE OF etcd\n"),
            ("front-proxy", "CERTIFICATE OF front-proxy\n"),
        ]),
        service_account_public_key: "PUBLIC KEY OF service accounts\n".to_owned(),
        secrets: Secrets {
            service_account_key: "SECRET KEY OF service accounts\n".to_owned(),
            encryption_key: "U0VDUkVU".to_owned(),
            routing_key: "5ec4e7".to_owned(),
        },
        metalform: "/usr/local/bin/metalform".to_owned(),
    }
}
