# Stops the kubelet for good: its certificate goes too, so that this host cannot come back as a node of the cluster by
# itself. Its containers run on.
set -e
# A reset goes on from here, also of a host that has no record: what it is known by goes with the states.
for source in /etc/apt/sources.list.d/metalform.sources /etc/yum.repos.d/metalform.repo; do
    if test -e "$source" && ! test -e /var/lib/metalform/before; then
        mkdir -p /var/lib/metalform
        touch /var/lib/metalform/resetting
        sync /var/lib/metalform
    fi
done
set --
for unit in kubelet.service kube-proxy.service; do
    if systemctl --quiet is-enabled "$unit" 2>/dev/null || systemctl --quiet is-active "$unit"; then
        set -- "$@" "$unit"
    fi
done
# Unit files are reloaded when the node's are removed.
if test $# != 0; then
    systemctl disable --no-reload "$@"
    systemctl stop "$@"
fi
rm -f /etc/kubernetes/manifests/*.yaml /etc/kubernetes/bootstrap-kubelet.conf /etc/kubernetes/kubelet.conf
rm -f /var/lib/kubelet/pki/*
