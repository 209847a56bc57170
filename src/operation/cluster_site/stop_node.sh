# Stops the kubelet and everything that it has started, for good: its certificate goes too, so that this host cannot come
# back as a node of the cluster by itself. The data of an etcd member is kept beside the data directory.
set -e
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
# Its next Node has another part of the pod network: the bridge keeps its address, and refuses pods of another one.
if ip link show cni0 >/dev/null 2>&1; then
    ip link delete cni0
fi
rm -rf /var/lib/cni/networks
if test -d /var/lib/etcd/member; then
    mv -T /var/lib/etcd/member "/var/lib/etcd/removed-$(date +%s)"
fi
# What kube-proxy and the network plugins have set in the kernel stays when they end.
if command -v nft >/dev/null; then
    for table in $(nft list tables | awk '/kube-proxy|cni/ { print $2 ":" $3 }'); do
        nft delete table "${table%:*}" "${table#*:}"
    done
fi
for family in ip:iptables ip6:ip6tables; do
    iptables=${family#*:} family=${family%:*}
    command -v "$iptables-save" >/dev/null || continue
    if "$iptables-save" 2>/dev/null | grep -q -e KUBE- -e CNI-; then
        "$iptables-save" | grep -v -e KUBE- -e CNI- | "$iptables-restore"
    fi
    # Without a rule, a chain of its own or a policy that drops, its tables do nothing.
    if command -v nft >/dev/null && ! "$iptables-save" 2>/dev/null | grep -q -e '^-A' -e '^:[^ ]* [-D]'; then
        for table in filter nat mangle raw security; do
            nft delete table "$family" "$table" 2>/dev/null || true
        done
    fi
done
