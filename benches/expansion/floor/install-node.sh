#!/bin/sh
# Installs a node by hand, for comparison. Its files follow on standard input, as tar archives; static pods
# among them start with the kubelet. $1: the image of every pod's sandbox.
set -eu
export DEBIAN_FRONTEND=noninteractive

umask 022
tar --extract --directory=/ --numeric-owner --preserve-permissions --ignore-zeros
sysctl --quiet --load /etc/sysctl.d/*.conf

apt-get -qq -o Acquire::Languages=none update
apt-get -qq install --yes --no-install-recommends -o Dpkg::Use-Pty=0 -o Dpkg::Options::=--force-confold -o Dpkg::Options::=--force-unsafe-io \
    bird2 conntrack containerd ethtool haproxy iptables kube-proxy kubectl kubelet kubernetes-cni nftables runc socat >/dev/null
apt-mark hold containerd kube-proxy kubectl kubelet kubernetes-cni >/dev/null
sync -f /usr

chown bird:bird /etc/bird/bird.conf
[ ! -e /etc/kubernetes/manifests/etcd.yaml ] || mkdir -p -m 0700 /var/lib/etcd /var/lib/etcd/member /var/log/kubernetes
systemctl daemon-reload
systemctl --quiet enable metalform-pod-network haproxy bird containerd kubelet kube-proxy
# Those that their packages have started ran without our configuration, or were refused it.
systemctl restart metalform-pod-network haproxy bird containerd kubelet kube-proxy
ctr --namespace k8s.io images pull --hosts-dir /etc/containerd/certs.d "$1" >/dev/null
