# The processes of pods by their cgroups: containers outlive containerd, without it nothing else knows them, and its list
# of tasks lacks one whose shim does not answer in time. The kubelet's cgroups are kubepods.slice with cgroup v2, else
# kubepods below each controller.
cgroups=/sys/fs/cgroup
pod_cgroups=$cgroups/kubepods.slice
test -e "$cgroups/cgroup.controllers" || pod_cgroups=$(echo "$cgroups"/*/kubepods)

# Without 0, a process that this host does not see: kill(1) takes it for the caller's group.
processes_of_pods() {
    find $pod_cgroups "$@" -name cgroup.procs -exec cat {} + 2>/dev/null |
        awk '$1 && !seen[$1]++'
}

# Of the containers of a static pod of the control plane, by their name. Fails where containerd does not list them.
processes_of_static_pod() {
    of_control_plane='labels."io.kubernetes.pod.namespace"==kube-system'
    containers=$(ctr --namespace k8s.io containers list --quiet \
        "$of_control_plane,labels.\"io.kubernetes.container.name\"==$1") || return
    for container in $containers; do
        processes_of_pods -path "*$container*"
    done
}
