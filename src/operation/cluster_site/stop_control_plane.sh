# After pod_processes.sh: removes the static pods of the control plane, and waits until the kubelet has ended their
# containers. Without a kubelet they are ended here. Without containerd, it is not known whether one runs.
set -e
# Until they have ended, the next run finds them by this file, without their manifests. A reboot ends them too.
ending=/run/metalform/control-plane-ends
mkdir -p "${ending%/*}"
: >"$ending"
pods='kube-apiserver kube-controller-manager kube-scheduler'
for pod in $pods; do
    rm -f "/etc/kubernetes/manifests/$pod.yaml"
done
state=$(systemctl show --property=ActiveState --value containerd.service)
if test "$state" != active; then
    left=$(processes_of_pods)
    if test -z "$left"; then
        rm -f "$ending"
        exit 0
    fi
    echo "containerd.service is $state, and processes of pods run: repair containerd, or reboot the host" >&2
    exit 1
fi
tries=600
asked=
while :; do
    left=$(for pod in $pods; do processes_of_static_pod "$pod" || exit; done)
    test -n "$left" || break
    if test "$tries" = 0; then
        echo 'the control plane does not end: processes' $left >&2
        exit 1
    fi
    # Once: at a second signal an API server ends before it has withdrawn its address.
    if test -z "$asked" && ! systemctl --quiet is-active kubelet.service; then
        kill -TERM $left 2>/dev/null || true
        asked=yes
    fi
    tries=$((tries - 1))
    sleep 0.1
done
rm -f "$ending"
