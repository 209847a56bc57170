#!/bin/sh
# Uninstalls a worker by hand, for comparison: its pods, packages, files and network.
set -eu
export DEBIAN_FRONTEND=noninteractive

systemctl --quiet disable --now kubelet kube-proxy bird haproxy metalform-pod-network
for task in $(ctr --namespace k8s.io tasks list --quiet); do
    ctr --namespace k8s.io tasks kill --signal SIGKILL --all "$task" >/dev/null || true
done
systemctl --quiet disable --now containerd
findmnt --raw --noheadings --output TARGET | grep -E '^/(run/containerd|run/netns|var/lib/(kubelet|containerd))/' | sort -r |
    xargs --no-run-if-empty umount
apt-get -qq purge --yes --allow-change-held-packages --auto-remove -o Dpkg::Use-Pty=0 \
    bird2 conntrack containerd ethtool haproxy iptables kube-proxy kubectl kubelet kubernetes-cni nftables runc socat >/dev/null
rm -rf /etc/kubernetes /etc/metalform /etc/cni /etc/containerd /etc/bird /etc/haproxy /etc/default/kubelet \
    /etc/systemd/system/kubelet.service /etc/systemd/system/kube-proxy.service /etc/systemd/system/metalform-pod-network.service \
    /etc/apt/sources.list.d/metalform.sources /etc/apt/keyrings/metalform.asc /etc/apt/apt.conf.d/90metalform-metalform \
    /var/lib/cni /run/containerd
# They may be mounts of their own.
find /var/lib/kubelet /var/lib/containerd -mindepth 1 -delete
find /etc/sysctl.d /etc/modules-load.d -name '*metalform*' -delete
sed -i "/[[:space:]]mirror\.metalform\.internal$/d" /etc/hosts
systemctl daemon-reload
ip link delete cni0 2>/dev/null || true
