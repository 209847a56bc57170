# After pod_processes.sh and end_pods.sh: stops the kubelet and everything that it has started, for good: its
# certificate goes too, so that this host cannot come back as a node of the cluster by itself. The data of an etcd member
# is kept beside the data directory.
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
if test "$(systemctl show --property=ActiveState --value containerd.service)" = active; then
    tries=100
    while tasks=$(ctr --namespace k8s.io tasks list --quiet) && test -n "$tasks"; do
        if test "$tries" = 0; then
            echo 'containers do not end:' $tasks >&2
            exit 1
        fi
        printf '%s\n' $tasks | xargs -P 8 -I TASK sh -c '
            ctr --namespace k8s.io tasks kill --all --signal SIGKILL TASK
            ctr --namespace k8s.io tasks delete --force TASK
            true' >/dev/null 2>&1
        tries=$((tries - 1))
        sleep 0.1
    done
fi
# Of a containerd that does not run, or has lost them.
end_pods
# Its next Node has another part of the pod network: the bridge keeps its address, and refuses pods of another one.
if ip link show cni0 >/dev/null 2>&1; then
    ip link delete cni0
fi
rm -rf /var/lib/cni/networks
if test -d /var/lib/etcd/member; then
    mv -T /var/lib/etcd/member "/var/lib/etcd/removed-$(date +%s)"
fi
