# After pod_processes.sh and end_pods.sh, without a kubelet: ends everything that it has started. The data of an etcd
# member is kept beside the data directory.
set -e
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
