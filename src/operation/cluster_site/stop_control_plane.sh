# After end_pods.sh: removes the static pods of the control plane, and waits until the kubelet has ended their
# containers. Without a kubelet they are ended here. Without containerd, it is not known whether one runs.
set -e
pods='kube-apiserver kube-controller-manager kube-scheduler'
running() {
    for pod in $pods; do
        for container in $(ctr --namespace k8s.io containers list --quiet "labels.\"io.kubernetes.container.name\"==$pod"); do
            if ctr --namespace k8s.io tasks list | grep -q "^$container .*RUNNING"; then
                echo "$container"
            fi
        done
    done
}
for pod in $pods; do
    rm -f "/etc/kubernetes/manifests/$pod.yaml"
done
state=$(systemctl show --property=ActiveState --value containerd.service)
if test "$state" != active; then
    left=$(processes_of_pods)
    test -n "$left" || exit 0
    echo "containerd.service is $state, and processes of pods run: repair containerd, or reboot the host" >&2
    exit 1
fi
tries=600
while left=$(running) && test -n "$left"; do
    if test "$tries" = 0; then
        echo "the control plane does not end: containers $left" >&2
        exit 1
    fi
    if ! systemctl --quiet is-active kubelet.service; then
        for container in $left; do
            ctr --namespace k8s.io tasks kill --signal SIGTERM "$container" || true
        done
    fi
    tries=$((tries - 1))
    sleep 0.1
done
