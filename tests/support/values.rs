//! The cluster as templates see it, with dummies for everything secret.

use std::collections::BTreeMap;

use metalform::model::cluster::{
    Cluster, ClusterBundle, EtcdSnapshotOptions, KubernetesOptions, MIRROR_NAME, Mirrors, Repository, Secrets,
};
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
            (
                "coredns",
                "registry.k8s.io/coredns/coredns:v1.14.7@sha256:8a32e516d7415be524a7fcec482ad2918f2b6ef2a7f4cb8e2e232b361436b20b",
            ),
            (
                "etcd",
                "registry.k8s.io/etcd:3.6.16-0@sha256:c38cbd92fce41312f3fbdce60510013b7f0d4004a03b45c8e762f98f1ed4006c",
            ),
            (
                "kube-apiserver",
                "registry.k8s.io/kube-apiserver:v1.35.4@sha256:3ddd18007da0e2a1e7da24b251a2d691f53a918f9e2dedf116c0bd39de1149fe",
            ),
            (
                "kube-controller-manager",
                "registry.k8s.io/kube-controller-manager:v1.35.4@sha256:4a994d4ab83b7a29e79cbeef1e000050b276397409a226231f7be4b209639b19",
            ),
            (
                "kube-scheduler",
                "registry.k8s.io/kube-scheduler:v1.35.4@sha256:a6fbf422f675e85853635a96c221a1a343450db7f4bbd0b0842521362634ac48",
            ),
            (
                "pause",
                "registry.k8s.io/pause:3.10.1@sha256:6210c0bf05396716df932f0729df69de0533933e5ad9871fd07b61811c4c28df",
            ),
        ]),
        kubernetes: KubernetesOptions::default(),
        etcd_snapshots: EtcdSnapshotOptions::default(),
        repository: Repository {
            format: PackageFormat::Deb,
            suite: "debian-13".to_owned(),
            uri: "https://mirror.metalform.internal:8443/bundles/1.35.4/apt".to_owned(),
            key: "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nREPOSITORY\n-----END PGP PUBLIC KEY BLOCK-----\n"
                .to_owned(),
            signed_packages: false,
        },
        registry: "https://mirror.metalform.internal:8443".to_owned(),
        mirrors: Mirrors {
            name: MIRROR_NAME.to_owned(),
            address: "192.0.2.11".parse().unwrap(),
            origin: "https://192.0.2.11:8443".to_owned(),
            metalform_sha256: "0".repeat(64),
        },
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
        bundles: vec![ClusterBundle {
            kubernetes: "1.35.4".to_owned(),
            directory: "/srv/metalform/bundle".to_owned(),
            inputs: "0".repeat(64),
        }],
        record: "{}".to_owned(),
    }
}
